//! `expr`: sums, comparisons and texts, each word an operand or an operator.

use crate::bounds::MAX_DEPTH;
use crate::interpreter::player::Player;

/// A compiled pattern is no bigger.
const MAX_PATTERN_BYTES: usize = 1 << 18;
/// The weakest operators first.
const LEVELS: &[&[&str]] =
    &[&["|"], &["&"], &["=", "==", "!=", "<", "<=", ">", ">="], &["+", "-"], &["*", "/", "%"], &[":"]];

struct ExprWords<'w> {
    words: &'w [&'w str],
    depth: usize,
    costs: usize,
}

/// What it says, and its status: 1 for nothing and 0, 2 for what is no expression.
pub(super) fn evaluate(player: &mut Player<'_>, words: &[&str]) -> (String, i32) {
    player.handle(2 * words.iter().map(|word| word.len()).sum::<usize>());
    // Scripts write it in one word, too.
    let split: Vec<String>;
    let mut own: Vec<&str> = words.to_vec();
    if let [word] = words
        && word.contains(['+', '*', '/', '%'])
    {
        split = "+-*/%()"
            .chars()
            .fold(word.to_string(), |text, c| text.replace(c, &format!(" {c} ")))
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        own = split.iter().map(String::as_str).collect();
    }
    let mut expression = ExprWords { words: &own, depth: 0, costs: 0 };
    let value = expression.level(0).filter(|_| expression.words.is_empty());
    player.handle(expression.costs);
    match value {
        Some(value) => {
            let status = i32::from(value.is_empty() || value == "0");
            (format!("{value}\n"), status)
        }
        None => {
            player.complain("expr: syntax error\n");
            (String::new(), 2)
        }
    }
}

impl<'w> ExprWords<'w> {
    fn level(&mut self, level: usize) -> Option<String> {
        let Some(operators) = LEVELS.get(level) else { return self.operand() };
        let mut value = self.level(level + 1)?;
        while let Some((operator, rest)) = self.words.split_first()
            && operators.contains(operator)
        {
            self.words = rest;
            let other = self.level(level + 1)?;
            value = self.applied(value, operator, &other)?;
        }
        Some(value)
    }

    fn operand(&mut self) -> Option<String> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        match *word {
            "(" => {
                self.depth += 1;
                let value = (self.depth <= MAX_DEPTH).then(|| self.level(0)).flatten()?;
                self.depth -= 1;
                let (close, rest) = self.words.split_first()?;
                self.words = rest;
                (*close == ")").then_some(value)
            }
            "length" => self.next().map(|word| word.chars().count().to_string()),
            "index" => {
                let (text, letters) = (self.next()?, self.next()?);
                let at = text.chars().position(|c| letters.contains(c)).map_or(0, |at| at + 1);
                Some(at.to_string())
            }
            "substr" => {
                let (text, from, length) = (self.next()?, self.next()?, self.next()?);
                let from: usize = from.parse().ok().filter(|from| *from > 0)?;
                Some(text.chars().skip(from - 1).take(length.parse().ok()?).collect())
            }
            "match" => {
                let (text, pattern) = (self.next()?.to_owned(), self.next()?.to_owned());
                self.applied(text, ":", &pattern)
            }
            word => Some(word.to_owned()),
        }
    }

    fn next(&mut self) -> Option<&'w str> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word)
    }

    fn applied(&mut self, a: String, operator: &str, b: &str) -> Option<String> {
        let is_nothing = |text: &str| text.is_empty() || text == "0";
        let numbers = a.trim().parse::<i64>().ok().zip(b.trim().parse::<i64>().ok());
        let said = |is_so: bool| Some(i32::from(is_so).to_string());
        match operator {
            "|" => Some(if is_nothing(&a) { b.to_owned() } else { a }),
            "&" => Some(if is_nothing(&a) || is_nothing(b) { "0".into() } else { a }),
            ":" => self.matched(&a, b),
            "+" | "-" | "*" | "/" | "%" => {
                let (a, b) = numbers?;
                let value = match operator {
                    "+" => a.wrapping_add(b),
                    "-" => a.wrapping_sub(b),
                    "*" => a.wrapping_mul(b),
                    "/" => a.checked_div(b)?,
                    _ => a.checked_rem(b)?,
                };
                Some(value.to_string())
            }
            _ => {
                let order = numbers.map_or_else(|| a.as_str().cmp(b), |(a, b)| a.cmp(&b));
                said(match operator {
                    "=" | "==" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
        }
    }

    /// From the beginning of the text: what is in the parentheses of the pattern, or how many letters match.
    fn matched(&mut self, text: &str, pattern: &str) -> Option<String> {
        self.costs += MAX_PATTERN_BYTES;
        let pattern = format!("^(?:{})", super::patterns::basic(pattern));
        let pattern = regex::RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_BYTES).build().ok()?;
        let has_group = pattern.captures_len() > 1;
        let found = pattern.captures(text);
        Some(match (found, has_group) {
            (Some(found), true) => found.get(1).map(|group| group.as_str().to_owned()).unwrap_or_default(),
            (Some(found), false) => found[0].chars().count().to_string(),
            (None, true) => String::new(),
            (None, false) => "0".into(),
        })
    }
}
