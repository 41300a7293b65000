//! Cuts a query into words.

use super::error::QueryError;

/// A longer query is refused.
const MAX_QUERY_BYTES: usize = 4096;

/// A word of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum QueryToken {
    /// `.name`, `."name"`
    Field(String),
    /// `select`, `and`, `true`
    Word(String),
    Text(String),
    Number(f64),
    /// Whatever else: `.`, `..`, `|`, `//`, `==`, `[`
    Sign(&'static str),
}

/// The longer ones first.
const SIGNS: &[&str] = &[
    "//", "==", "!=", "<=", ">=", "..", ".", "|", ",", "[", "]", "(", ")", "{", "}", ":", "?", "+", "-", "*",
    "/", "%", "<", ">",
];

pub(super) fn tokens(query: &str) -> Result<Vec<QueryToken>, QueryError> {
    if query.len() > MAX_QUERY_BYTES {
        return Err(QueryError(format!("the query is longer than {MAX_QUERY_BYTES} bytes")));
    }
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = token(rest, first)?;
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn token(rest: &str, first: char) -> Result<(QueryToken, usize), QueryError> {
    if let Some(after) = rest.strip_prefix('.') {
        if is_start(after.chars().next()) {
            let length = name(after);
            return Ok((QueryToken::Field(after[..length].to_owned()), length + 1));
        }
        if after.starts_with('"') {
            let (text, length) = quoted(after)?;
            return Ok((QueryToken::Field(text), length + 1));
        }
    }
    if first == '"' {
        let (text, length) = quoted(rest)?;
        return Ok((QueryToken::Text(text), length));
    }
    if first.is_ascii_digit() {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..length].parse().map_err(|_| not_understood(rest))?;
        return Ok((QueryToken::Number(number), length));
    }
    if is_start(Some(first)) {
        let length = name(rest);
        return Ok((QueryToken::Word(rest[..length].to_owned()), length));
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).ok_or_else(|| not_understood(rest))?;
    Ok((QueryToken::Sign(sign), sign.len()))
}

pub(super) fn not_understood(rest: &str) -> QueryError {
    let shown: String = rest.chars().take(40).collect();
    QueryError(format!("{shown:?} is not understood"))
}

fn is_start(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
}

fn name(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

fn quoted(text: &str) -> Result<(String, usize), QueryError> {
    let mut is_escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    let length = end.ok_or_else(|| QueryError(format!("{text:?} has no end")))? + 2;
    let value = serde_json::from_str(&text[..length]).map_err(|_| not_understood(text))?;
    Ok((value, length))
}
