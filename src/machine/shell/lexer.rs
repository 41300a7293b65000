//! Words and operators of a script.

use super::syntax::{Part, Script, Unplayable, Word};
use crate::bounds::{Fault, MAX_DEPTH};

/// The longest first among those that begin alike.
const OPERATORS: [&str; 16] =
    ["&&", "||", ";;", ">>", ">&", "&>", "<<<", "<<-", "<<", ">", "<", "|", "&", ";", "\n", "("];

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// With how deeply scripts are nested in it.
    Word(Word, usize),
    /// A file descriptor before a redirection.
    Descriptor(u8),
    Operator(&'static str),
}

/// Where a script stands, and how those are read that stand in it.
#[derive(Clone, Copy)]
pub(crate) struct Nesting<'a> {
    /// So many substitutions deep.
    pub(crate) level: usize,
    /// Reads a script that stands so many deep.
    pub(crate) read: &'a dyn Fn(&str, usize) -> Result<Script, Unplayable>,
}

impl Nesting<'_> {
    fn deeper(self) -> Self {
        Nesting { level: self.level + 1, ..self }
    }
}

/// Splits a script that stands so deep; what was read before the error is in `tokens`.
pub(crate) fn tokens(text: &str, nesting: Nesting<'_>, tokens: &mut Vec<Token>) -> Result<(), Unplayable> {
    let mut rest = text;
    let mut waiting = Vec::new();
    while let Some(first) = rest.chars().next() {
        if let Some(joined) = rest.strip_prefix("\\\n") {
            rest = joined;
        } else if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some((operator, after)) = operator(rest) {
            tokens.push(Token::Operator(operator));
            rest = after;
            if matches!(operator, "<<" | "<<-") {
                let (here, after) = HereText::begin(rest, operator, tokens.len())?;
                tokens.push(Token::Word(Word::new(), 0));
                waiting.push(here);
                rest = after;
            } else if operator == "\n" {
                for here in waiting.drain(..) {
                    let (word, depth, after) = here.read(rest, nesting)?;
                    tokens[here.at] = Token::Word(word, depth);
                    rest = after;
                }
            }
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if let Some(digit) = descriptor(rest) {
            tokens.push(Token::Descriptor(digit));
            rest = &rest[1..];
        } else {
            let (length, Builder { parts, depth, .. }) = word(rest, nesting)?;
            tokens.push(Token::Word(parts, depth));
            rest = &rest[length..];
        }
    }
    // What nothing ends is not played.
    if waiting.is_empty() { Ok(()) } else { Err(Unplayable::Unknown) }
}

/// A text that follows the line which reads it (here-document).
struct HereText {
    /// Its place among the tokens.
    at: usize,
    end: String,
    is_plain: bool,
    /// Tabs at the beginning of lines are left out.
    is_indented: bool,
}

impl HereText {
    /// What ends it stands here; also what comes after that.
    fn begin<'a>(text: &'a str, operator: &str, at: usize) -> Result<(HereText, &'a str), Unplayable> {
        let text = text.trim_start_matches([' ', '\t']);
        let length = text.find(|c: char| c.is_whitespace() || ";&|<>()".contains(c)).unwrap_or(text.len());
        let (word, rest) = text.split_at(length);
        let end: String = word.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        if end.is_empty() || end.contains(['$', '`']) {
            return Err(Unplayable::Unknown);
        }
        let is_plain = end != word;
        Ok((HereText { at, end, is_plain, is_indented: operator == "<<-" }, rest))
    }

    /// Reads it; with what comes behind its end.
    fn read<'a>(&self, text: &'a str, nesting: Nesting<'_>) -> Result<(Word, usize, &'a str), Unplayable> {
        let mut body = String::new();
        let mut rest = text;
        loop {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            let shown = if self.is_indented { line.trim_start_matches('\t') } else { line };
            if shown == self.end {
                rest = after;
                break;
            }
            if rest.is_empty() {
                return Err(Unplayable::Unknown);
            }
            body.push_str(shown);
            body.push('\n');
            rest = after;
        }
        if self.is_plain {
            return Ok((vec![Part::Text(body, true)], 0, rest));
        }
        let Builder { parts, depth, .. } = filled(&body, nesting)?;
        Ok((parts, depth, rest))
    }
}

/// A text in which only variables and commands are filled in.
fn filled(text: &str, nesting: Nesting<'_>) -> Result<Builder, Unplayable> {
    let mut builder = Builder { is_quoted: true, ..Builder::default() };
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\\' if text[at + 1..].starts_with(['$', '`', '\\', '\n']) => {
                at += builder.escape(&text[at..], true)?;
            }
            '$' | '`' => at += builder.expand(&text[at..], true, nesting)?,
            c => {
                builder.push(c, true);
                at += c.len_utf8();
            }
        }
    }
    builder.finish_text();
    Ok(builder)
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
    /// How deeply scripts are nested in it.
    depth: usize,
}

/// What begins with a dollar sign or a back quote.
struct Expansion {
    /// None when the dollar sign is just one.
    part: Option<Part>,
    length: usize,
    depth: usize,
}

impl Builder {
    fn push(&mut self, c: char, is_quoted: bool) {
        if self.is_quoted != is_quoted {
            self.finish_text();
            self.is_quoted = is_quoted;
        }
        self.text.push(c);
    }

    fn finish_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text), self.is_quoted));
        }
    }

    /// Takes what begins at the start of `text`; its length.
    fn expand(&mut self, text: &str, is_quoted: bool, nesting: Nesting<'_>) -> Result<usize, Unplayable> {
        let Expansion { part, length, depth } = expansion(text, is_quoted, nesting)?;
        match part {
            Some(part) => {
                self.finish_text();
                self.parts.push(part);
            }
            None => self.push('$', true),
        }
        self.depth = self.depth.max(depth);
        Ok(length)
    }

    /// Takes what follows a backslash; its length with it.
    fn escape(&mut self, text: &str, is_quoted: bool) -> Result<usize, Unplayable> {
        let escaped = text.chars().nth(1).ok_or(Unplayable::Unknown)?;
        if is_quoted && !"$`\"\\\n".contains(escaped) {
            self.push('\\', true);
        }
        if escaped != '\n' {
            self.push(escaped, true);
        }
        Ok(1 + escaped.len_utf8())
    }
}

/// A word and its length in bytes.
fn word(text: &str, nesting: Nesting<'_>) -> Result<(usize, Builder), Unplayable> {
    let mut builder = Builder::default();
    let mut at = 0;
    let mut quote = None;
    while let Some(c) = text[at..].chars().next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                (quote, builder.has_quotes) = (Some(c), true);
            }
            (None | Some('"'), '\\') => {
                at += builder.escape(&text[at..], quote.is_some())?;
                continue;
            }
            (None | Some('"'), '$' | '`') => {
                at += builder.expand(&text[at..], quote.is_some(), nesting)?;
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
    match quote {
        None => Ok((at, builder)),
        Some(_) => Err(Unplayable::Faulty(Fault::Syntax("unterminated quoted string".into()))),
    }
}

fn expansion(text: &str, is_quoted: bool, nesting: Nesting<'_>) -> Result<Expansion, Unplayable> {
    if let Some(command) = text.strip_prefix('`') {
        let end = command.find('`').ok_or(Unplayable::Unknown)?;
        return output(&command[..end], end + 2, is_quoted, nesting);
    }
    if text.starts_with("$((") {
        let length = text.find("))").ok_or(Unplayable::Unknown)? + 2;
        return Ok(Expansion { part: Some(Part::Sum(text[3..length - 2].to_owned())), length, depth: 0 });
    }
    if text.starts_with("$(") {
        let length = closing(text, 1, ('(', ')')).ok_or(Unplayable::Unknown)? + 1;
        return output(&text[2..length - 1], length, is_quoted, nesting);
    }
    if text.starts_with("${") {
        let length = closing(text, 1, ('{', '}')).ok_or(Unplayable::Unknown)? + 1;
        let (part, depth) = braced(&text[2..length - 1], is_quoted, nesting.deeper())?;
        return Ok(Expansion { part: Some(part), length, depth });
    }
    let rest = &text[1..];
    if !is_quoted && rest.starts_with('\'') {
        // `$'...'` has escapes of its own.
        return Err(Unplayable::Unknown);
    }
    let special = rest.chars().next().filter(|c| "?#@*$!".contains(*c) || c.is_ascii_digit());
    let length = match special {
        Some(_) => 1,
        None => name_length(rest),
    };
    let part = (length > 0).then(|| Part::Variable(rest[..length].to_owned(), None, is_quoted));
    Ok(Expansion { part, length: 1 + length, depth: 0 })
}

/// `$(command)`
fn output(text: &str, length: usize, is_quoted: bool, nesting: Nesting<'_>) -> Result<Expansion, Unplayable> {
    let script = (nesting.read)(text, nesting.level + 1).map_err(Unplayable::within)?;
    let depth = script.depth;
    Ok(Expansion { part: Some(Part::Output(script, is_quoted)), length, depth })
}

/// `NAME`, or `NAME:-default` and its kin; and how deeply scripts are nested in it.
fn braced(text: &str, is_quoted: bool, nesting: Nesting<'_>) -> Result<(Part, usize), Unplayable> {
    if nesting.level > MAX_DEPTH {
        return Err(Unplayable::Faulty(Fault::Depth));
    }
    let special = text.chars().next().filter(|c| "?@*".contains(*c) || c.is_ascii_digit());
    let length = special.map_or_else(|| name_length(text), |_| 1);
    let (name, rest) = text.split_at(length);
    let operators = [":-", ":+", "-", "+", ""];
    let operator = operators.into_iter().find(|operator| rest.starts_with(operator)).unwrap_or_default();
    if name.is_empty() || (operator.is_empty() && !rest.is_empty()) {
        return Err(Unplayable::Unknown);
    }
    if operator.is_empty() {
        return Ok((Part::Variable(name.into(), None, is_quoted), 0));
    }
    let default = &rest[operator.len()..];
    let quoted = format!("\"{}\"", default.replace('"', ""));
    let (_, Builder { parts, depth, .. }) = word(&quoted, nesting).map_err(Unplayable::within)?;
    let operator = operator.trim_start_matches(':').to_owned();
    Ok((Part::Variable(name.into(), Some((operator, parts)), is_quoted), depth + 1))
}

fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Where what is opened at `from` is closed.
fn closing(text: &str, from: usize, (open, close): (char, char)) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
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
