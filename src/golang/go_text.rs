//! Texts as Go writes them, where messages carry them.

use std::fmt::Write as _;

use regex_syntax::ast::ErrorKind;
use regex_syntax::{Error, Parser};

/// `strconv.Quote`, which is `%q`.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            c if is_printable(c) => quoted.push(c),
            c => escape(&mut quoted, c as u32),
        }
    }
    quoted.push('"');
    quoted
}

/// JSON as `encoding/json` writes it: safe within HTML.
pub fn escape_html(json: String) -> String {
    if !json.contains(['<', '>', '&']) {
        return json;
    }
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A number as `encoding/json` writes it: without an exponent from 1e-6 until 1e21.
pub fn float(value: f64) -> String {
    if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// A number as `%v` writes it: with an exponent below 1e-4 and from 1e6 on.
pub fn printed_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or_default() {
        -4..6 => value.to_string(),
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

/// Near `unicode.IsPrint`: what Rust would escape is not printable, but for marks that it escapes because
/// they would join the quote before them.
fn is_printable(c: char) -> bool {
    c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && !c.is_control() && !c.is_whitespace())
}

fn escape(quoted: &mut String, code: u32) {
    let written = match code {
        0..0x80 => write!(quoted, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
        _ => write!(quoted, "\\U{code:08x}"),
    };
    written.expect("a String takes everything");
}

/// What `regexp.Compile` says of a pattern that is none: ``error parsing regexp: missing closing ): `(` ``.
pub fn regexp_error(pattern: &str) -> String {
    let (what, at) = match Parser::new().parse(pattern) {
        Err(Error::Parse(error)) => {
            let span = error.span();
            let part = pattern.get(span.start.offset..span.end.offset).unwrap_or(pattern);
            let rest = pattern.get(span.start.offset..).unwrap_or(pattern);
            syntax_error(error.kind(), pattern, part, rest)
        }
        Err(Error::Translate(error)) => {
            let span = error.span();
            let part = pattern.get(span.start.offset..span.end.offset).unwrap_or(pattern);
            ("invalid character class range", part)
        }
        // Too large, which Go bounds in another way.
        _ => ("expression too large", ""),
    };
    format!("error parsing regexp: {what}: `{at}`")
}

fn syntax_error<'p>(
    kind: &ErrorKind,
    pattern: &'p str,
    part: &'p str,
    rest: &'p str,
) -> (&'static str, &'p str) {
    match kind {
        ErrorKind::GroupUnclosed => ("missing closing )", pattern),
        ErrorKind::GroupUnopened => ("unexpected )", pattern),
        ErrorKind::ClassUnclosed => ("missing closing ]", rest),
        // It is found where its argument should stand.
        ErrorKind::RepetitionMissing => {
            ("missing argument to repetition operator", rest.get(..1).unwrap_or(rest))
        }
        ErrorKind::RepetitionCountInvalid
        | ErrorKind::RepetitionCountUnclosed
        | ErrorKind::RepetitionCountDecimalEmpty => ("invalid repeat count", part),
        ErrorKind::EscapeUnexpectedEof => ("trailing backslash at end of expression", ""),
        ErrorKind::EscapeUnrecognized
        | ErrorKind::UnsupportedBackreference
        | ErrorKind::ClassEscapeInvalid
        | ErrorKind::EscapeHexInvalid
        | ErrorKind::EscapeHexInvalidDigit => ("invalid escape sequence", part),
        ErrorKind::GroupNameInvalid | ErrorKind::GroupNameEmpty | ErrorKind::GroupNameDuplicate { .. } => {
            ("invalid named capture", part)
        }
        ErrorKind::ClassRangeInvalid | ErrorKind::ClassRangeLiteral => {
            ("invalid character class range", part)
        }
        ErrorKind::NestLimitExceeded(_) => ("expression nests too deeply", ""),
        _ => ("invalid or unsupported Perl syntax", part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_gos() {
        let cases = [
            ("plain it's", r#""plain it's""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\u{1}\n\t\u{7f}", r#""\x01\n\t\x7f""#),
            ("gr\u{fc}n \u{2028}\u{a0}", "\"gr\u{fc}n \\u2028\\u00a0\""),
        ];
        for (text, quoted) in cases {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn patterns_are_refused_in_gos_words() {
        let cases = [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("x[a", "missing closing ]: `[a`"),
            ("*a", "missing argument to repetition operator: `*`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ];
        for (pattern, words) in cases {
            assert_eq!(regexp_error(pattern), format!("error parsing regexp: {words}"), "{pattern}");
        }
    }
}
