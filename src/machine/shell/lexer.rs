//! Words and operators of a script.

use std::cell::Cell;

use super::braces;
use super::nesting::{closing_brace, closing_parenthesis, sum_end};
use super::syntax::{Script, ShellWordPart, Unplayable, ValueOperation, Word};
use crate::bounds::{MAX_DEPTH, ScriptFault};

/// The longest first among those that begin alike.
const OPERATORS: [&str; 22] = [
    "&&", "&>>", "&>", "||", "|&", ";;", ">>", ">&", ">|", "<<<", "<<-", "<<", "<&", "<>", ">", "<", "|",
    "&", ";", "\n", "(", ")",
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// With how deeply scripts are nested in it.
    Word(Word, usize),
    /// A file descriptor before a redirection.
    Descriptor(u8),
    Operator(&'static str),
    /// `((sum))`, also between semicolons (`for`).
    Sum(Vec<Word>),
}

/// Where a script stands, and how those are read that stand in it.
#[derive(Clone, Copy)]
pub(crate) struct Nesting<'a> {
    /// So many substitutions deep.
    pub(crate) level: usize,
    /// `{a,b}` is two words (bash): how much such words may still be made ([`braces::MAX_MADE_BYTES`]).
    pub(crate) braces: Option<&'a Cell<usize>>,
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
        } else if let Some((sum, after)) = sum_command(rest, tokens.last(), nesting)? {
            tokens.push(sum);
            rest = after;
        } else if is_process(rest) {
            return Err(Unplayable::Unknown);
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
            let before = nesting.braces.map_or(0, Cell::get);
            let (length, Builder { parts, depth, .. }) = word(rest, nesting)?;
            let words = match nesting.braces {
                Some(left) => braces::words(parts, length + before - left.get(), left),
                None => vec![parts],
            };
            tokens.extend(words.into_iter().map(|word| Token::Word(word, depth)));
            rest = &rest[length..];
        }
    }
    // What nothing ends is not played.
    if waiting.is_empty() { Ok(()) } else { Err(Unplayable::Unknown) }
}

/// `<(command)`
fn is_process(text: &str) -> bool {
    text.starts_with("<(") || text.starts_with(">(")
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
            return Ok((vec![ShellWordPart::Text(body, true)], 0, rest));
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
    let operator = OPERATORS.iter().find(|operator| text.starts_with(**operator))?;
    // Processes as files are not known.
    Some((operator, &text[operator.len()..]))
}

/// `((...))` where a command may stand, when what stands in it can be one.
fn sum_command<'a>(
    text: &'a str,
    before: Option<&Token>,
    nesting: Nesting<'_>,
) -> Result<Option<(Token, &'a str)>, Unplayable> {
    let may_begin = match before {
        None => true,
        Some(Token::Operator(operator)) => !operator.starts_with(['<', '>']),
        Some(Token::Word(word, _)) => matches!(
            word.as_slice(),
            [ShellWordPart::Text(text, false)]
                if matches!(text.as_str(), "for" | "if" | "while" | "until" | "then" | "do" | "else" | "elif" | "!")
        ),
        Some(_) => false,
    };
    // Where one stands behind another it is shells within shells: to look for the end of each would take
    // as long as all of them together are.
    if !may_begin || !text.starts_with("((") || text.starts_with("(((") {
        return Ok(None);
    }
    let Some(length) = sum_end(text, 2).filter(|length| looks_like_sum(&text[2..length - 2])) else {
        return Ok(None);
    };
    let parts = text[2..length - 2].split(';').map(|part| filled(part, nesting).map(|built| built.parts));
    Ok(Some((Token::Sum(parts.collect::<Result<_, _>>()?), &text[length..])))
}

/// Letters that sums are made of, and no two words beside each other.
fn looks_like_sum(text: &str) -> bool {
    let is_one =
        |c: char| c.is_ascii_alphanumeric() || c.is_whitespace() || "_$+-*/%<>=!&|^~?:(),;{}#".contains(c);
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let beside = |pair: &[&str]| is_word(pair[0].chars().last()) && is_word(pair[1].chars().next());
    text.chars().all(is_one) && !words.windows(2).any(beside)
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
    part: Option<ShellWordPart>,
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
            self.parts.push(ShellWordPart::Text(std::mem::take(&mut self.text), self.is_quoted));
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
        builder.parts.push(ShellWordPart::Text(String::new(), true));
    }
    match quote {
        None => Ok((at, builder)),
        Some(_) => Err(Unplayable::Faulty(ScriptFault::Syntax("unterminated quoted string".into()))),
    }
}

fn expansion(text: &str, is_quoted: bool, nesting: Nesting<'_>) -> Result<Expansion, Unplayable> {
    if let Some(command) = text.strip_prefix('`') {
        let end = back_quote(command).ok_or(Unplayable::Unknown)?;
        let inner = command[..end].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
        return output(&inner, end + 2, is_quoted, nesting);
    }
    if text.starts_with("$((")
        && let Some(length) = sum_end(text, 3)
    {
        let Builder { parts, depth, .. } = filled(&text[3..length - 2], nesting.deeper())?;
        return Ok(Expansion { part: Some(ShellWordPart::Sum(parts)), length, depth });
    }
    if text.starts_with("$(") {
        let length = closing_parenthesis(text, 1).ok_or(Unplayable::Unknown)? + 1;
        return output(&text[2..length - 1], length, is_quoted, nesting);
    }
    if text.starts_with("${") {
        let length = closing_brace(text, 1).ok_or(Unplayable::Unknown)? + 1;
        let (part, depth) = braced(&text[2..length - 1], is_quoted, nesting.deeper())?;
        return Ok(Expansion { part: Some(part), length, depth });
    }
    let rest = &text[1..];
    if !is_quoted && rest.starts_with('\'') {
        let (shown, length) = escaped_text(&rest[1..]).ok_or(Unplayable::Unknown)?;
        return Ok(Expansion { part: Some(ShellWordPart::Text(shown, true)), length: length + 2, depth: 0 });
    }
    let special = rest.chars().next().filter(|c| "?#@*$!-".contains(*c) || c.is_ascii_digit());
    let length = match special {
        Some(_) => 1,
        None => name_length(rest),
    };
    let part = (length > 0).then(|| ShellWordPart::Variable(rest[..length].to_owned(), None, is_quoted));
    Ok(Expansion { part, length: 1 + length, depth: 0 })
}

/// Where a back quote stands that no backslash stands before.
fn back_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '`' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

/// `$'...'`: what its escapes mean, and its length with the quote that ends it.
fn escaped_text(text: &str) -> Option<(String, usize)> {
    let mut shown = String::new();
    let mut letters = text.char_indices();
    while let Some((at, c)) = letters.next() {
        match c {
            '\'' => return Some((shown, at + 1)),
            '\\' => shown.push(match letters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'a' => '\u{7}',
                'b' => '\u{8}',
                'e' | 'E' => '\u{1b}',
                '0' => '\0',
                other => other,
            }),
            c => shown.push(c),
        }
    }
    None
}

/// `$(command)`
fn output(text: &str, length: usize, is_quoted: bool, nesting: Nesting<'_>) -> Result<Expansion, Unplayable> {
    let script = (nesting.read)(text, nesting.level + 1).map_err(Unplayable::within)?;
    let depth = script.depth;
    Ok(Expansion { part: Some(ShellWordPart::Output(script, is_quoted)), length, depth })
}

/// What may stand behind a name, the longest first among those that begin alike.
const OPERATIONS: [&str; 20] = [
    ":-", ":+", ":=", ":?", ":", "-", "+", "=", "?", "##", "#", "%%", "%", "//", "/#", "/%", "/", "^^", ",,",
    "^",
];

/// `NAME`, or `NAME:-default` and its kin; and how deeply scripts are nested in it.
fn braced(text: &str, is_quoted: bool, nesting: Nesting<'_>) -> Result<(ShellWordPart, usize), Unplayable> {
    if nesting.level > MAX_DEPTH {
        return Err(Unplayable::Faulty(ScriptFault::Depth));
    }
    if let Some(name) =
        text.strip_prefix('#').filter(|name| !name.is_empty() && variable_length(name) == name.len())
    {
        let operation = ValueOperation { operator: "length", word: Word::new(), other: None };
        return Ok((ShellWordPart::Variable(name.into(), Some(Box::new(operation)), is_quoted), 0));
    }
    let (name, rest) = text.split_at(variable_length(text));
    if name.is_empty() {
        return Err(Unplayable::Unknown);
    }
    if rest.is_empty() {
        return Ok((ShellWordPart::Variable(name.into(), None, is_quoted), 0));
    }
    let operator = OPERATIONS.into_iter().find(|operator| rest.starts_with(operator));
    let operator = operator.ok_or(Unplayable::Unknown)?;
    let behind = &rest[operator.len()..];
    let (first, second) = operands(operator, behind);
    let (word, depth) = operand(first, operator, is_quoted, nesting)?;
    let (other, other_depth) = match second {
        Some(second) => {
            operand(second, operator, is_quoted, nesting).map(|(word, depth)| (Some(word), depth))?
        }
        None => (None, 0),
    };
    let operation = Some(Box::new(ValueOperation { operator, word, other }));
    Ok((ShellWordPart::Variable(name.into(), operation, is_quoted), depth.max(other_depth) + 1))
}

/// `pattern/text` of a replacement, `from:length` of a piece.
fn operands<'a>(operator: &str, text: &'a str) -> (&'a str, Option<&'a str>) {
    let separator = match operator {
        "/" | "//" | "/#" | "/%" => '/',
        ":" => ':',
        _ => return (text, None),
    };
    let mut is_escaped = false;
    let at = text.char_indices().find(|(_, c)| {
        let is_it = *c == separator && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_it
    });
    at.map_or((text, None), |(at, _)| (&text[..at], Some(&text[at + 1..])))
}

/// The word of an operation. Patterns keep their quotations apart; what is put instead is a text.
fn operand(
    text: &str,
    operator: &str,
    is_quoted: bool,
    nesting: Nesting<'_>,
) -> Result<(Word, usize), Unplayable> {
    let is_pattern = operator.starts_with(['#', '%', '/']);
    if is_pattern || !is_quoted {
        let mut parts = Word::new();
        let mut depth = 0;
        let mut rest = text;
        // Blanks part no words here.
        while !rest.is_empty() {
            let blank = rest.len()
                - rest.trim_start_matches(|c: char| c.is_whitespace() || ";&|<>()".contains(c)).len();
            if blank > 0 {
                parts.push(ShellWordPart::Text(rest[..blank].to_owned(), is_pattern));
                rest = &rest[blank..];
                continue;
            }
            let (length, built) = word(rest, nesting).map_err(Unplayable::within)?;
            parts.extend(built.parts);
            depth = depth.max(built.depth);
            rest = &rest[length..];
        }
        return Ok((parts, depth));
    }
    let quoted = format!("\"{}\"", text.replace('"', ""));
    let (_, Builder { parts, depth, .. }) = word(&quoted, nesting).map_err(Unplayable::within)?;
    Ok((parts, depth))
}

/// The length of a name, of a number, or of a special one.
fn variable_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    }
    usize::from(text.starts_with(['?', '@', '*', '!', '$', '-', '#'])).max(name_length(text))
}

fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}
