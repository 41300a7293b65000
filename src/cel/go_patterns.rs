//! Regular expressions in Go's syntax, compiled by Rust's `regex`: what both read differently is rewritten.

use std::iter::Peekable;
use std::str::Chars;

use golang::go_text::regexp_error;
use regex::{Regex, RegexBuilder};

use super::error::EvaluationError;

/// Bytes that a compiled pattern of an expression may take; Go bounds them as well, if by another measure.
const MAX_COMPILED: usize = 1 << 20;
/// Bytes that one of a schema may take, which is compiled once: what repeats letters of every script a
/// thousand times is among what Go takes.
const MAX_COMPILED_ONCE: usize = 10 << 20;
/// How often something may be said to repeat, as in Go.
const MAX_REPEAT: u32 = 1_000;

golang::text_error! {
    /// What is no regular expression, or too large a one; in Go's words.
    pub struct BadPattern;
}

/// Compiles a pattern of an expression.
pub(super) fn compile(pattern: &str) -> Result<Regex, EvaluationError> {
    compile_within(pattern, MAX_COMPILED).map_err(|error| EvaluationError::Function(error.into()))
}

/// Compiles a pattern of a schema as Go's `regexp` reads it.
///
/// # Errors
/// It is none, or too large.
pub fn go_regex(pattern: &str) -> Result<Regex, BadPattern> {
    compile_within(pattern, MAX_COMPILED_ONCE)
}

fn compile_within(pattern: &str, most_bytes: usize) -> Result<Regex, BadPattern> {
    let built = RegexBuilder::new(&translate(pattern)?).size_limit(most_bytes).build();
    built.map_err(|_| regexp_error(pattern).into())
}

/// Go's Perl classes and word boundaries are ASCII, and within brackets a bracket, `&` and `~` are letters.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => escaped(&mut chars, false, &mut out),
            '[' => class(&mut chars, &mut out),
            '{' => out.push_str(&repeat(&mut chars)?),
            c => out.push(c),
        }
    }
    Ok(out)
}

/// Between `[` and `]`; a `]` that comes first is a letter.
fn class(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    out.push('[');
    out.extend(chars.next_if_eq(&'^'));
    if chars.next_if_eq(&']').is_some() {
        out.push_str("\\]");
    }
    while let Some(c) = chars.next() {
        match c {
            '\\' => escaped(chars, true, out),
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                named(chars, out);
            }
            '[' | '&' | '~' => out.extend(['\\', c]),
            ']' => return out.push(']'),
            c => out.push(c),
        }
    }
}

/// `[:alpha:]`, up to its end.
fn named(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    for c in chars.by_ref() {
        out.push(c);
        if c == ']' {
            return;
        }
    }
}

/// What stands behind a backslash.
fn escaped(chars: &mut Peekable<Chars<'_>>, in_class: bool, out: &mut String) {
    let Some(c) = chars.next() else { return out.push('\\') };
    let text = match (c, in_class) {
        ('d', false) => "[0-9]",
        ('d', true) => "0-9",
        ('D', _) => "[^0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('w', true) => "0-9A-Za-z_",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', false) => r"[\t\n\f\r ]",
        ('s', true) => r"\t\n\f\r ",
        ('S', _) => r"[^\t\n\f\r ]",
        ('b', false) => r"(?-u:\b)",
        ('B', false) => r"(?-u:\B)",
        ('<', _) => "<",
        ('>', _) => ">",
        _ => {
            out.extend(['\\', c]);
            // `\p{Greek}` and `\x{3b1}` are no repeats.
            if matches!(c, 'p' | 'P' | 'x') && chars.peek() == Some(&'{') {
                out.extend(std::iter::from_fn(|| chars.next_if(|c| *c != '}')));
            }
            return;
        }
    };
    out.push_str(text);
}

/// `{n}`, `{n,}` or `{n,m}`; any other brace is a letter.
fn repeat(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    // Looks no further than the numbers: a pattern of nothing but braces is read once.
    let mut ahead = chars.clone();
    let part = |c: &char| c.is_ascii_digit() || *c == ',';
    let inner: String = std::iter::from_fn(|| ahead.next_if(part)).collect();
    let is_closed = ahead.peek() == Some(&'}');
    let (least, most) = inner.split_once(',').unwrap_or((&inner, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !is_closed || least.is_empty() || !is_number(least) || !is_number(most) {
        return Ok("\\{".to_owned());
    }
    let fits = |text: &str| text.is_empty() || text.parse::<u32>().is_ok_and(|count| count <= MAX_REPEAT);
    if !fits(least) || !fits(most) {
        return Err(format!("error parsing regexp: invalid repeat count: `{{{inner}}}`"));
    }
    for _ in 0..=inner.len() {
        chars.next();
    }
    Ok(format!("{{{inner}}}"))
}
