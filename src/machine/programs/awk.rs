//! `awk`, as far as it prints fields: `awk '{print $1}'`.

use super::input::input;
use crate::interpreter::player::Player;
use crate::shell::{self, Word};

/// What `print` prints.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// `$1`; `$0` is the line.
    Field(usize),
    /// `$NF`
    LastField,
    /// `NF`
    Fields,
    /// `NR`
    Line,
    Text(String),
}

/// A program: of which lines what is printed.
#[derive(Debug, PartialEq)]
struct Program {
    /// `NR==2`
    line: Option<usize>,
    items: Vec<Item>,
}

/// Whether its program is one that is played.
pub(crate) fn is_understood(arguments: &[Word]) -> bool {
    let words: Option<Vec<String>> = arguments.iter().map(joined).collect();
    let words = words.unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    parts(&words).is_some_and(|(_, program, _)| read(program).is_some())
}

/// The text of a word in which nothing is filled in.
fn joined(word: &Word) -> Option<String> {
    word.iter().map(|part| shell::plain(std::slice::from_ref(part))).collect()
}

/// The separator of fields, the program and the files.
fn parts<'a>(words: &'a [&'a str]) -> Option<(Option<&'a str>, &'a str, &'a [&'a str])> {
    match words {
        ["-F", separator, program, files @ ..] => Some((Some(separator), program, files)),
        [flag, program, files @ ..] if flag.starts_with("-F") => Some((Some(&flag[2..]), program, files)),
        [flag, ..] if flag.starts_with('-') => None,
        [program, files @ ..] => Some((None, program, files)),
        [] => None,
    }
}

/// `{print $1, "text" $NF}`, and the same of one line alone.
fn read(program: &str) -> Option<Program> {
    let (condition, body) = program.trim().strip_suffix('}')?.split_once('{')?;
    let line = match condition.trim() {
        "" => None,
        condition => Some(condition.strip_prefix("NR")?.trim().strip_prefix("==")?.trim().parse().ok()?),
    };
    let body = body.trim().trim_end_matches(';').strip_prefix("print")?;
    let mut items = Vec::new();
    for (at, list) in outside_quotes(body)?.into_iter().enumerate() {
        if at > 0 {
            items.push(Item::Text(" ".into()));
        }
        items.extend(read_items(list)?);
    }
    if items.is_empty() {
        items.push(Item::Field(0));
    }
    Some(Program { line, items })
}

/// What stands between commas.
fn outside_quotes(text: &str) -> Option<Vec<&str>> {
    let mut lists = Vec::new();
    let mut from = 0;
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' | '{' | '}' | '\n' if !is_quoted => return None,
            '\\' => return None,
            ',' if !is_quoted => {
                lists.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    lists.push(&text[from..]);
    Some(lists).filter(|_| !is_quoted)
}

/// One behind the other.
fn read_items(text: &str) -> Option<Vec<Item>> {
    let (mut items, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let (item, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"')?;
            (Item::Text(text.to_owned()), after)
        } else {
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let end = rest[first..].find(|c: char| !c.is_ascii_alphanumeric());
            let end = end.map_or(rest.len(), |end| end + first);
            let item = match &rest[..end] {
                "$NF" => Item::LastField,
                "NF" => Item::Fields,
                "NR" => Item::Line,
                field => Item::Field(field.strip_prefix('$')?.parse().ok()?),
            };
            (item, &rest[end..])
        };
        items.push(item);
        rest = after.trim_start();
    }
    Some(items)
}

/// What an item costs on a line on which it finds nothing.
const BYTES_OF_ITEM: usize = 32;

pub(crate) fn run(player: &mut Player<'_>, words: &[&str]) {
    let Some((separator, program, files)) = parts(words) else { return player.fail("awk: syntax error\n") };
    let Some(program) = read(program) else { return player.fail("awk: syntax error\n") };
    let Some(text) = input(player, "awk", files) else { return };
    for (at, line) in text.lines().enumerate() {
        if program.line.is_some_and(|wanted| wanted != at + 1) {
            continue;
        }
        if !player.handle(program.items.len().saturating_mul(line.len() + BYTES_OF_ITEM)) {
            return;
        }
        let said = printed(&program.items, line, at + 1, separator);
        player.say(&(said + "\n"));
    }
}

fn printed(items: &[Item], line: &str, number: usize, separator: Option<&str>) -> String {
    let fields: Vec<&str> = match separator {
        Some(separator) if !separator.is_empty() && separator != " " => line.split(separator).collect(),
        _ => line.split_whitespace().collect(),
    };
    let shown = |item: &Item| match item {
        Item::Field(0) => line.to_owned(),
        Item::Field(at) => fields.get(at - 1).copied().unwrap_or_default().to_owned(),
        Item::LastField => fields.last().copied().unwrap_or_default().to_owned(),
        Item::Fields => fields.len().to_string(),
        Item::Line => number.to_string(),
        Item::Text(text) => text.clone(),
    };
    items.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_printed() {
        let cases = [
            ("{print $1}", None, "a"),
            ("{ print $2, $1 }", None, "b a"),
            ("{print $NF \"-\" NF}", None, "c-3"),
            ("{print}", None, "a b  c"),
            ("{print $0;}", None, "a b  c"),
            ("{print $9}", None, ""),
            ("NR==4 {print NR}", None, "4"),
            ("{print $2}", Some("b"), "  c"),
        ];
        for (program, separator, wanted) in cases {
            let items = read(program).unwrap_or_else(|| panic!("{program}")).items;
            assert_eq!(printed(&items, "a b  c", 4, separator), wanted, "{program}");
        }
        for unknown in [
            "{print $1",
            "{x++}",
            "BEGIN {print 1}",
            "{printf \"%s\", $1}",
            "{print \"a}",
            "/x/ {print}",
            "{print é}",
        ] {
            assert_eq!(read(unknown), None, "{unknown}");
        }
    }
}
