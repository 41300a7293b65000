//! Cuts a template into texts and actions, and actions into words.

use super::error::TemplateError;

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TemplatePiece {
    Text(String),
    /// The words between `{{` and `}}`.
    Action(Vec<ActionWord>),
}

/// A word of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ActionWord {
    /// `range`, `eq`, `Now`, `true`
    Name(String),
    /// `.a.b`, or `.` alone, which has no names.
    Path(Vec<String>),
    /// `.a.b` behind a parenthesis, without a space between.
    Chain(Vec<String>),
    /// `$name.a.b`
    Variable(String, Vec<String>),
    Text(String),
    Number(f64),
    Open,
    Close,
    Pipe,
    Comma,
    /// `:=`
    Declare,
    /// `=`
    Assign,
}

pub(super) fn pieces(template: &str) -> Result<Vec<TemplatePiece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(begin) = rest.find("{{") {
        let action = &rest[begin + 2..];
        let end = end_of(action).ok_or_else(|| TemplateError::new("unclosed action"))?;
        let (inner, after) = (&action[..end], &action[end + 2..]);
        let trimmed_left = inner.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace));
        let inner = trimmed_left.unwrap_or(inner);
        let trimmed_right = inner.strip_suffix('-').filter(|rest| rest.ends_with(char::is_whitespace));
        let inner = trimmed_right.unwrap_or(inner);
        let text = &rest[..begin];
        let text = if trimmed_left.is_some() { text.trim_end() } else { text };
        pieces.push(TemplatePiece::Text(text.to_owned()));
        if !inner.trim_start().starts_with("/*") {
            pieces.push(TemplatePiece::Action(words(inner)?));
        }
        rest = if trimmed_right.is_some() { after.trim_start() } else { after };
    }
    pieces.push(TemplatePiece::Text(rest.to_owned()));
    Ok(pieces)
}

/// Where an action ends: not within a text or a comment.
fn end_of(action: &str) -> Option<usize> {
    let begin = action.strip_prefix('-').unwrap_or(action).trim_start();
    if begin.starts_with("/*") {
        let comment = action.find("*/")?;
        return Some(comment + action[comment..].find("}}")?);
    }
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in action.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some('"') if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '`' => quote = Some(c),
            None if action[at..].starts_with("}}") => return Some(at),
            None => {}
        }
    }
    None
}

fn words(action: &str) -> Result<Vec<ActionWord>, TemplateError> {
    let mut words = Vec::new();
    let mut rest = action.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = word(rest, first)?;
        words.push(word);
        rest = &rest[length..];
        if words.last() == Some(&ActionWord::Close) && is_chain(rest) {
            let (names, length) = dotted(rest);
            words.push(ActionWord::Chain(names));
            rest = &rest[length..];
        }
        rest = rest.trim_start();
    }
    Ok(words)
}

fn is_chain(rest: &str) -> bool {
    rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

fn word(rest: &str, first: char) -> Result<(ActionWord, usize), TemplateError> {
    Ok(match first {
        '(' => (ActionWord::Open, 1),
        ')' => (ActionWord::Close, 1),
        '|' => (ActionWord::Pipe, 1),
        ',' => (ActionWord::Comma, 1),
        ':' if rest.starts_with(":=") => (ActionWord::Declare, 2),
        '=' => (ActionWord::Assign, 1),
        '"' | '`' => quoted(rest, first)?,
        '.' => {
            let (names, length) = dotted(rest);
            (ActionWord::Path(names), length)
        }
        '$' => variable(rest),
        '-' | '0'..='9' => number(rest)?,
        _ if first.is_alphabetic() || first == '_' => {
            let length = name(rest);
            (ActionWord::Name(rest[..length].to_owned()), length)
        }
        other => return Err(TemplateError::new(format!("unexpected {other:?} in action"))),
    })
}

fn name(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

fn quoted(text: &str, quote: char) -> Result<(ActionWord, usize), TemplateError> {
    let fault = || TemplateError::new(format!("unterminated quoted string {text:?}"));
    if quote == '`' {
        let end = text[1..].find('`').ok_or_else(fault)?;
        return Ok((ActionWord::Text(text[1..=end].to_owned()), end + 2));
    }
    let mut is_escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    let end = end.ok_or_else(fault)?;
    let value = serde_json::from_str(&text[..end + 2]);
    Ok((ActionWord::Text(value.map_err(|error| TemplateError::new(error.to_string()))?), end + 2))
}

/// `.a.b`: its names.
fn dotted(text: &str) -> (Vec<String>, usize) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let names = text[..length].split('.').filter(|part| !part.is_empty()).map(str::to_owned);
    (names.collect(), length)
}

fn variable(text: &str) -> (ActionWord, usize) {
    let length = 1 + name(&text[1..]);
    let (names, behind) = dotted(&text[length..]);
    (ActionWord::Variable(text[..length].to_owned(), names), length + behind)
}

fn number(text: &str) -> Result<(ActionWord, usize), TemplateError> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '.');
    let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let value = text[..length].parse();
    let value = value.map_err(|_| TemplateError::new(format!("bad number {:?}", &text[..length])));
    Ok((ActionWord::Number(value?), length))
}
