//! A text as the generated lexer of CEL's grammar sees it, mistakes and all; for the words of syntax errors.

/// A kind of token, numbered as in the grammar: sets of them are shown in this order.
pub(super) type TokenKind = u32;

pub(super) const END: TokenKind = 0;
pub(super) const AND: TokenKind = 8;
pub(super) const OR: TokenKind = 9;
pub(super) const LEFT_BRACKET: TokenKind = 10;
pub(super) const RIGHT_BRACKET: TokenKind = 11;
pub(super) const LEFT_BRACE: TokenKind = 12;
pub(super) const RIGHT_BRACE: TokenKind = 13;
pub(super) const LEFT_PAREN: TokenKind = 14;
pub(super) const RIGHT_PAREN: TokenKind = 15;
pub(super) const DOT: TokenKind = 16;
pub(super) const COMMA: TokenKind = 17;
pub(super) const MINUS: TokenKind = 18;
pub(super) const NOT: TokenKind = 19;
pub(super) const QUESTION: TokenKind = 20;
pub(super) const COLON: TokenKind = 21;
pub(super) const TRUE: TokenKind = 26;
pub(super) const FLOAT: TokenKind = 31;
pub(super) const INT: TokenKind = 32;
const UINT: TokenKind = 33;
const STRING: TokenKind = 34;
pub(super) const BYTES: TokenKind = 35;
pub(super) const IDENTIFIER: TokenKind = 36;
pub(super) const ESCAPED: TokenKind = 37;

/// How each kind is shown.
pub(super) const NAMES: [&str; 38] = [
    "<EOF>",
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "WHITESPACE",
    "COMMENT",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
];

/// A token and the bytes that it has.
#[derive(Clone, Copy)]
pub(super) struct Lexeme {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// All tokens, the last being the end; and what is none: where it begins, and its text.
pub(super) fn lexemes(source: &str) -> (Vec<Lexeme>, Vec<(usize, &str)>) {
    let mut found = vec![];
    let mut wrong = vec![];
    let mut at = 0;
    loop {
        at = skip_hidden(source, at);
        let rest = &source[at..];
        if rest.is_empty() {
            found.push(Lexeme { kind: END, start: at, end: at });
            return (found, wrong);
        }
        match lexeme(rest) {
            Ok((kind, length)) => {
                found.push(Lexeme { kind, start: at, end: at + length });
                at += length;
            }
            // The character that does not fit is skipped with what was read before it.
            Err(length) => {
                let end = length + rest[length..].chars().next().map_or(0, char::len_utf8);
                wrong.push((at, &rest[..end]));
                at += end;
            }
        }
    }
}

/// Past white and comments.
fn skip_hidden(source: &str, mut at: usize) -> usize {
    loop {
        let rest = &source[at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        at += rest.len() - trimmed.len();
        if !trimmed.starts_with("//") {
            return at;
        }
        at += trimmed.find('\n').unwrap_or(trimmed.len());
    }
}

/// The longest token; or how much was read until a character did not fit.
fn lexeme(rest: &str) -> Result<(TokenKind, usize), usize> {
    let first = rest.as_bytes()[0];
    let digit_next = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    if first.is_ascii_digit() || first == b'.' && digit_next {
        return Ok(number(rest));
    }
    if let Some(found) = prefixed_text(rest) {
        return Ok(found);
    }
    match first {
        b'"' | b'\'' => text(rest, false).map(|length| (STRING, length)),
        b'`' => escaped(rest).map(|length| (ESCAPED, length)),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
            Ok((word(&rest[..length]), length))
        }
        _ => symbol(rest),
    }
}

fn word(text: &str) -> TokenKind {
    match text {
        "in" => 3,
        "true" => TRUE,
        "false" => TRUE + 1,
        "null" => TRUE + 2,
        _ => IDENTIFIER,
    }
}

/// The operators are named by how they are shown.
fn symbol(rest: &str) -> Result<(TokenKind, usize), usize> {
    for length in [2, 1] {
        let Some(text) = rest.get(..length) else { continue };
        let is_it =
            |name: &&str| name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')) == Some(text);
        if let Some(kind) = NAMES.iter().position(is_it) {
            return Ok((kind as TokenKind, length));
        }
    }
    Err(usize::from(rest.starts_with(['=', '&', '|'])))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn number(rest: &str) -> (TokenKind, usize) {
    let unsigned = |length: usize| {
        if rest[length..].starts_with(['u', 'U']) { (UINT, length + 1) } else { (INT, length) }
    };
    let hex =
        rest.strip_prefix("0x").map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count());
    if hex > 0 {
        return unsigned(2 + hex);
    }
    let whole = digits(rest);
    let part = rest[whole..].strip_prefix('.').map_or(0, digits);
    let mantissa = if part > 0 { whole + 1 + part } else { whole };
    let exponent = rest[mantissa..].strip_prefix(['e', 'E']).map_or(0, |rest| {
        let sign = usize::from(rest.starts_with(['+', '-']));
        let count = digits(&rest[sign..]);
        if count > 0 { 1 + sign + count } else { 0 }
    });
    if part > 0 || exponent > 0 { (FLOAT, mantissa + exponent) } else { unsigned(whole) }
}

/// A text behind `r`, `b` or `br`; None where it is not whole, as the letters are a name then.
fn prefixed_text(rest: &str) -> Option<(TokenKind, usize)> {
    let bytes = usize::from(rest.starts_with(['b', 'B']));
    let raw = usize::from(rest[bytes..].starts_with(['r', 'R']));
    if bytes + raw == 0 || !rest[bytes + raw..].starts_with(['"', '\'']) {
        return None;
    }
    let length = text(&rest[bytes + raw..], raw > 0).ok()?;
    Some((if bytes > 0 { BYTES } else { STRING }, bytes + raw + length))
}

/// In three quotes, if they are closed, else in one.
fn text(rest: &str, is_raw: bool) -> Result<usize, usize> {
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    if rest.starts_with(&triple)
        && let Ok(length) = closed(rest, &triple, is_raw)
    {
        return Ok(length);
    }
    closed(rest, quote, is_raw)
}

fn closed(rest: &str, quote: &str, is_raw: bool) -> Result<usize, usize> {
    let mut at = quote.len();
    while let Some(next) = rest[at..].chars().next() {
        if rest[at..].starts_with(quote) {
            return Ok(at + quote.len());
        }
        match next {
            '\n' | '\r' if quote.len() == 1 => return Err(at),
            '\\' if !is_raw => at += escape(&rest[at..]).map_err(|read| at + read)?,
            other => at += other.len_utf8(),
        }
    }
    Err(at)
}

/// How long an escape is; or how much of it was read.
fn escape(rest: &str) -> Result<usize, usize> {
    let bytes = rest.as_bytes();
    let all = |count: usize, fits: fn(&u8) -> bool| {
        let found = bytes[2..].iter().take(count).take_while(|byte| fits(byte)).count();
        if found == count { Ok(2 + count) } else { Err(2 + found) }
    };
    match bytes.get(1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => Ok(2),
        Some(b'x' | b'X') => all(2, u8::is_ascii_hexdigit),
        Some(b'u') => all(4, u8::is_ascii_hexdigit),
        Some(b'U') => all(8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => all(2, |byte| matches!(byte, b'0'..=b'7')),
        _ => Err(1),
    }
}

fn escaped(rest: &str) -> Result<usize, usize> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(byte);
    let length = rest.bytes().skip(1).take_while(fits).count();
    match rest.as_bytes().get(1 + length) {
        Some(b'`') if length > 0 => Ok(length + 2),
        _ => Err(1 + length),
    }
}
