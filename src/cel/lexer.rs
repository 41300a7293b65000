//! From text to tokens (the lexical part of CEL's grammar).

use super::error::Issue;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CelToken {
    Int(i64),
    /// 9223372036854775808: an integer only behind a minus.
    IntMinimum,
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// A name, keyword or reserved word.
    Ident(String),
    /// A name in backquotes.
    Escaped(String),
    Symbol(&'static str),
    End,
}

/// Longest first.
const SYMBOLS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", ".", ",", "(", ")", "[", "]", "{", "}", "+", "-", "*", "/", "%", "!",
    "?", ":", "<", ">", "=", "&", "|",
];

/// All tokens with their places; the last is [`CelToken::End`].
pub(super) fn tokens(source: &str) -> Result<Vec<(usize, CelToken)>, Issue> {
    let mut lexer = Lexer { source, at: 0 };
    let mut out = vec![];
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let token = lexer.token().map_err(|message| Issue { at, message })?;
        let is_end = token == CelToken::End;
        out.push((at, token));
        if is_end {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']).len();
            let comment = rest[blanks..].starts_with("//");
            self.at += blanks;
            if !comment {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn token(&mut self) -> Result<CelToken, String> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(CelToken::End) };
        let digit_next = rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || (first == '.' && digit_next) {
            return self.number();
        }
        if let Some(token) = self.quoted()? {
            return Ok(token);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let end = self.rest().find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let word = self.rest()[..end.unwrap_or(self.rest().len())].to_owned();
            self.at += word.len();
            return Ok(CelToken::Ident(word));
        }
        if first == '`' {
            return self.escaped_name();
        }
        let symbol = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol));
        let symbol = symbol.filter(|symbol| !matches!(**symbol, "=" | "&" | "|"));
        let symbol = symbol.ok_or_else(|| format!("Syntax error: token recognition error at: '{first}'"))?;
        self.at += symbol.len();
        Ok(CelToken::Symbol(symbol))
    }

    /// A name in backquotes: letters, digits, and what stands in labels.
    fn escaped_name(&mut self) -> Result<CelToken, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        let end = self.rest()[1..].find(|c: char| !fits(c)).unwrap_or(0);
        if end == 0 || !self.rest()[1 + end..].starts_with('`') {
            return Err("Syntax error: token recognition error at: '`'".to_owned());
        }
        let name = self.rest()[1..=end].to_owned();
        self.at += end + 2;
        Ok(CelToken::Escaped(name))
    }

    fn number(&mut self) -> Result<CelToken, String> {
        let rest = self.rest();
        if let Some(hex) = rest.strip_prefix("0x") {
            let digits = hex.len() - hex.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
            let text = hex[..digits].to_owned();
            self.at += 2 + digits;
            return self.integer(&text, 16);
        }
        let whole = count_digits(rest);
        let fraction = rest[whole..].strip_prefix('.').map_or(0, count_digits);
        let mut end = whole + if fraction > 0 { fraction + 1 } else { 0 };
        let exponent = rest[end..].strip_prefix(['e', 'E']).map_or(0, |exponent| {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let digits = count_digits(&exponent[sign..]);
            if digits > 0 { 1 + sign + digits } else { 0 }
        });
        end += exponent;
        let text = rest[..end].to_owned();
        self.at += end;
        if fraction > 0 || exponent > 0 {
            let number = text.parse().map_err(|_| "invalid double literal".to_owned())?;
            return Ok(CelToken::Double(number));
        }
        self.integer(&text, 10)
    }

    fn integer(&mut self, digits: &str, radix: u32) -> Result<CelToken, String> {
        if self.rest().starts_with(['u', 'U']) {
            self.at += 1;
            let number = u64::from_str_radix(digits, radix);
            return number.map(CelToken::Uint).map_err(|_| "invalid uint literal".into());
        }
        match u64::from_str_radix(digits, radix) {
            Ok(number) if number == 1 << 63 => Ok(CelToken::IntMinimum),
            Ok(number) => i64::try_from(number).map(CelToken::Int).map_err(|_| "invalid int literal".into()),
            Err(_) => Err("invalid int literal".into()),
        }
    }

    /// A string or bytes literal, if one begins here: prefixes `r`, `b` in either order and case; one quote
    /// or three.
    fn quoted(&mut self) -> Result<Option<CelToken>, String> {
        let rest = self.rest();
        let prefix = rest.len() - rest.trim_start_matches(['r', 'R', 'b', 'B']).len();
        if prefix > 2 || !rest[prefix..].starts_with(['"', '\'']) {
            return Ok(None);
        }
        let letters = rest[..prefix].to_ascii_lowercase();
        let (raw, bytes) = (letters.contains('r'), letters.contains('b'));
        let body = &rest[prefix..];
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote));
        let quote = quote.expect("one of the single quotes is there");
        let body = &body[quote.len()..];
        let end = closing(body, quote, raw)
            .ok_or_else(|| format!("Syntax error: token recognition error at: '{}'", &rest[..prefix + 1]))?;
        let text = body[..end].to_owned();
        self.at += prefix + quote.len() + end + quote.len();
        if bytes {
            return Ok(Some(CelToken::Bytes(unescape(&text, raw, true)?)));
        }
        let bytes = unescape(&text, raw, false)?;
        Ok(Some(CelToken::Text(String::from_utf8(bytes).map_err(|error| error.to_string())?)))
    }
}

fn count_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Where the literal ends; a short one ends on its line.
fn closing(body: &str, quote: &str, raw: bool) -> Option<usize> {
    let mut at = 0;
    while at < body.len() {
        if body[at..].starts_with(quote) {
            return Some(at);
        }
        let next = body[at..].chars().next()?;
        if quote.len() == 1 && matches!(next, '\n' | '\r') {
            return None;
        }
        at += next.len_utf8();
        if next == '\\' && !raw {
            at += body[at..].chars().next()?.len_utf8();
        }
    }
    None
}

fn unescape(text: &str, raw: bool, bytes: bool) -> Result<Vec<u8>, String> {
    if raw || !text.contains('\\') {
        return Ok(text.as_bytes().to_vec());
    }
    let (mut out, mut chars) = (Vec::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let invalid = || "Syntax error: unable to unescape string".to_owned();
        let kind = chars.next().ok_or_else(invalid)?;
        if let Some(plain) = plain_escape(kind) {
            out.push(plain);
            continue;
        }
        let (radix, digits, first) = match kind {
            'x' | 'X' => (16, 2, None),
            'u' => (16, 4, None),
            'U' => (16, 8, None),
            '0'..='3' => (8, 2, Some(kind)),
            _ => return Err(invalid()),
        };
        let code: String = first.into_iter().chain(chars.by_ref().take(digits)).collect();
        let code = u32::from_str_radix(&code, radix).map_err(|_| invalid())?;
        match (bytes && matches!(kind, 'x' | 'X' | '0'..='3'), char::from_u32(code)) {
            (true, _) => out.push(u8::try_from(code).map_err(|_| invalid())?),
            (false, Some(c)) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            (false, None) => return Err(invalid()),
        }
    }
    Ok(out)
}

fn plain_escape(kind: char) -> Option<u8> {
    Some(match kind {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => kind as u8,
        _ => return None,
    })
}
