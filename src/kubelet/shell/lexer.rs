//! Words and operators of a script.

use super::{Part, Script, Word};

/// The longest first among those that begin alike.
const OPERATORS: [&str; 15] =
    ["&&", "||", ";;", ">>", ">&", "&>", "<<<", "<<", ">", "<", "|", "&", ";", "\n", "("];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(Word),
    /// A file descriptor before a redirection.
    Descriptor(u8),
    Operator(&'static str),
}

/// Splits a script; nothing when it has what is not understood.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(joined) = rest.strip_prefix("\\\n") {
            rest = joined;
        } else if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some((operator, after)) = operator(rest) {
            tokens.push(Token::Operator(operator));
            rest = after;
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if let Some(digit) = descriptor(rest) {
            tokens.push(Token::Descriptor(digit));
            rest = &rest[1..];
        } else {
            let (word, length) = word(rest)?;
            tokens.push(Token::Word(word));
            rest = &rest[length..];
        }
    }
    Some(tokens)
}

fn operator(text: &str) -> Option<(&'static str, &str)> {
    if let Some(after) = text.strip_prefix(')') {
        return Some((")", after));
    }
    let operator = OPERATORS.iter().find(|operator| text.starts_with(**operator))?;
    Some((operator, &text[operator.len()..]))
}

fn descriptor(text: &str) -> Option<u8> {
    let mut chars = text.bytes();
    let digit = chars.next().filter(u8::is_ascii_digit)? - b'0';
    chars.next().filter(|next| matches!(next, b'<' | b'>')).map(|_| digit)
}

/// Gathers the parts of a word.
#[derive(Default)]
struct Builder {
    parts: Word,
    text: String,
    is_quoted: bool,
    /// An empty pair of quotes is a word, too.
    has_quotes: bool,
}

impl Builder {
    fn push(&mut self, c: char, is_quoted: bool) {
        if self.is_quoted != is_quoted {
            self.finish_text();
            self.is_quoted = is_quoted;
        }
        self.text.push(c);
    }

    fn push_part(&mut self, part: Part) {
        self.finish_text();
        self.parts.push(part);
    }

    fn finish_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text), self.is_quoted));
        }
    }
}

/// A word and its length in bytes.
fn word(text: &str) -> Option<(Word, usize)> {
    let mut builder = Builder::default();
    let (mut at, mut quote) = (0, None);
    while let Some(c) = text[at..].chars().next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                (quote, builder.has_quotes) = (Some(c), true);
            }
            (None | Some('"'), '\\') => {
                at += 1;
                let escaped = text[at..].chars().next()?;
                if quote.is_some() && !"$`\"\\\n".contains(escaped) {
                    builder.push('\\', true);
                }
                if escaped != '\n' {
                    builder.push(escaped, true);
                }
                at += escaped.len_utf8();
                continue;
            }
            (None | Some('"'), '$' | '`') => {
                let (part, length) = expansion(&text[at..], quote.is_some())?;
                match part {
                    Some(part) => builder.push_part(part),
                    None => builder.push(c, true),
                }
                at += length;
                continue;
            }
            (None, c) if c.is_whitespace() || ";&|<>()".contains(c) => break,
            (_, c) => builder.push(c, quote.is_some()),
        }
        at += c.len_utf8();
    }
    builder.finish_text();
    if builder.parts.is_empty() && builder.has_quotes {
        builder.parts.push(Part::Text(String::new(), true));
    }
    quote.is_none().then_some((builder.parts, at))
}

/// What begins with a dollar sign or a back quote, and its length; no part when the dollar sign is just
/// one.
fn expansion(text: &str, is_quoted: bool) -> Option<(Option<Part>, usize)> {
    if let Some(command) = text.strip_prefix('`') {
        let end = command.find('`')?;
        return Some((Some(Part::Output(Script::parse(&command[..end])?, is_quoted)), end + 2));
    }
    if text.starts_with("$((") {
        let length = text.find("))")? + 2;
        return Some((Some(Part::Sum(text[3..length - 2].to_owned())), length));
    }
    if text.starts_with("$(") {
        let length = closing(text, 1, ('(', ')'))? + 1;
        let script = Script::parse(&text[2..length - 1])?;
        return Some((Some(Part::Output(script, is_quoted)), length));
    }
    if text.starts_with("${") {
        let length = closing(text, 1, ('{', '}'))? + 1;
        return Some((Some(braced(&text[2..length - 1], is_quoted)?), length));
    }
    let rest = &text[1..];
    let special = rest.chars().next().filter(|c| "?#@*$!".contains(*c) || c.is_ascii_digit());
    let length = match special {
        Some(_) => 1,
        None => name_length(rest),
    };
    let part = (length > 0).then(|| Part::Variable(rest[..length].to_owned(), None, is_quoted));
    Some((part, 1 + length))
}

/// `NAME`, or `NAME:-default` and its kin.
fn braced(text: &str, is_quoted: bool) -> Option<Part> {
    let special = text.chars().next().filter(|c| "?@*".contains(*c) || c.is_ascii_digit());
    let length = special.map_or_else(|| name_length(text), |_| 1);
    let (name, rest) = text.split_at(length);
    if name.is_empty() {
        return None;
    }
    let operator = [":-", ":+", "-", "+", ""].into_iter().find(|operator| rest.starts_with(operator))?;
    if operator.is_empty() {
        return rest.is_empty().then(|| Part::Variable(name.into(), None, is_quoted));
    }
    let default = &rest[operator.len()..];
    let quoted = format!("\"{}\"", default.replace('"', ""));
    let (word, _) = word(&quoted)?;
    Some(Part::Variable(name.into(), Some((operator.trim_start_matches(':').into(), word)), is_quoted))
}

fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Where what is opened at `from` is closed.
fn closing(text: &str, from: usize, (open, close): (char, char)) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < from) {
        match quote {
            Some(wanted) if c == wanted => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == open => depth += 1,
            None if c == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            None => {}
        }
    }
    None
}
