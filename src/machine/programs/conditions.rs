//! `test`, `[` and `[[`.

use chrono::{DateTime, Utc};

use crate::bounds::MAX_DEPTH;
use crate::interpreter::player::Player;
use crate::shell::{ShellWordPart, Word};

/// What `test` asks: of alternatives one, and of what is joined all.
pub(crate) fn holds(player: &mut Player<'_>, words: &[&str]) -> bool {
    let joined = |words: &[&str]| -> Vec<Vec<String>> {
        let parts = words.split(|word| matches!(*word, "-a" | "&&"));
        parts.map(|part| part.iter().map(ToString::to_string).collect()).collect()
    };
    let alternatives: Vec<_> = words.split(|word| matches!(*word, "-o" | "||")).map(joined).collect();
    alternatives.iter().any(|all| {
        all.iter().all(|words| is_so(player, &words.iter().map(String::as_str).collect::<Vec<_>>()))
    })
}

fn is_so(player: &mut Player<'_>, words: &[&str]) -> bool {
    let negations = words.iter().take_while(|word| **word == "!").count();
    let file = |path: &str| player.file(path);
    let is_so = match &words[negations..] {
        [] => false,
        ["-z", value] => value.is_empty(),
        ["-n", value] | [value] => !value.is_empty(),
        ["-d", path] => player.has_folder(path),
        ["-e" | "-f" | "-s" | "-r" | "-x", path] if player.is_program(path) => true,
        ["-f", path] => file(path).is_some_and(|file| !(file.is_folder || file.is_block_device())),
        ["-s", path] => file(path).is_some_and(|file| file.size() > 0),
        ["-x", path] => {
            file(path).is_some_and(|file| file.is_folder || file.mode & 0o111 != 0) || player.is_folder(path)
        }
        ["-e" | "-a" | "-r" | "-w" | "-O" | "-G", path] => file(path).is_some() || player.is_folder(path),
        ["-p", path] => file(path).is_some_and(|file| file.is_pipe()),
        ["-L" | "-h", path] => player.own_link(path).is_some(),
        ["-b", path] => file(path).is_some_and(|file| file.is_block_device()),
        ["-S" | "-c" | "-u" | "-g" | "-k", _] => false,
        ["-t", _] => player.terminal().is_some(),
        ["-v", name] => player.variables.get(name).is_some(),
        [one, "-nt", other] => modified(player, one) > modified(player, other),
        [one, "-ot", other] => modified(player, one) < modified(player, other),
        [a, operator, b] => compares(a, operator, b),
        _ => false,
    };
    is_so == (negations % 2 == 0)
}

/// When a file was written last; what is not there is older than all.
fn modified(player: &Player<'_>, path: &str) -> Option<DateTime<Utc>> {
    player.file(path).map(|file| player.stamp_of(&file).modified)
}

fn compares(a: &str, operator: &str, b: &str) -> bool {
    let [x, y] = [a, b].map(|text| text.trim().parse::<i64>().unwrap_or(0));
    match operator {
        "!=" => a != b,
        "-eq" => x == y,
        "-ne" => x != y,
        "-lt" => x < y,
        "-le" => x <= y,
        "-gt" => x > y,
        "-ge" => x >= y,
        "<" | "\\<" => a < b,
        ">" | "\\>" => a > b,
        _ => a == b,
    }
}

/// `[[ ... ]]`: words are not split, what stands behind `==` is a pattern, and behind `=~` an expression.
pub(crate) fn conditional(player: &mut Player<'_>, words: &[Word]) -> bool {
    let mut condition = TestWords { words, depth: 0 };
    condition.any(player)
}

struct TestWords<'w> {
    words: &'w [Word],
    depth: usize,
}

/// A word in which nothing is quoted.
fn bare(word: &Word) -> &str {
    match word.as_slice() {
        [ShellWordPart::Text(text, false)] => text,
        _ => "",
    }
}

impl TestWords<'_> {
    fn take(&mut self, wanted: &str) -> bool {
        match self.words.split_first() {
            Some((word, rest)) if bare(word) == wanted => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn any(&mut self, player: &mut Player<'_>) -> bool {
        let mut is_so = self.all(player);
        while self.take("||") {
            is_so |= self.all(player);
        }
        is_so
    }

    fn all(&mut self, player: &mut Player<'_>) -> bool {
        let mut is_so = self.one(player);
        while self.take("&&") {
            is_so &= self.one(player);
        }
        is_so
    }

    fn one(&mut self, player: &mut Player<'_>) -> bool {
        let mut is_negated = false;
        while self.take("!") {
            is_negated = !is_negated;
        }
        if self.take("(") {
            self.depth += 1;
            let is_so = self.depth <= MAX_DEPTH && self.any(player);
            self.depth -= 1;
            self.take(")");
            return is_so != is_negated;
        }
        let is_end = |word: &Word| matches!(bare(word), "&&" | "||" | ")");
        let count = self.words.iter().position(is_end).unwrap_or(self.words.len());
        let (own, rest) = self.words.split_at(count);
        self.words = rest;
        simple(player, own) != is_negated
    }
}

fn simple(player: &mut Player<'_>, words: &[Word]) -> bool {
    if let [a, operator, b] = words {
        let (operator, a) = (bare(operator), player.text(a));
        match operator {
            "==" | "=" | "!=" => {
                let pattern = player.pattern(b);
                return player.matches(&pattern, &a) != (operator == "!=");
            }
            "=~" => {
                let pattern = player.text(b);
                return super::matching::is_match(player, pattern, &a);
            }
            _ => {
                let b = player.text(b);
                return compares(&a, operator, &b);
            }
        }
    }
    let texts: Vec<String> = words.iter().map(|word| player.text(word)).collect();
    is_so(player, &texts.iter().map(String::as_str).collect::<Vec<_>>())
}
