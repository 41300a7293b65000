//! Go's words for JSON that is none: `encoding/json`'s scanner, run only over bodies that serde has refused.

/// Containers that may lie in each other.
const MAX_DEPTH: usize = 10_000;

/// The error of Go's scanner; None where Go sees none.
pub fn syntax_error(body: &[u8]) -> Option<String> {
    let mut scanner = JsonScanner { body, at: 0, open: Vec::new() };
    scanner.document().err()
}

struct JsonScanner<'a> {
    body: &'a [u8],
    at: usize,
    /// The brackets that are open: `{` or `[`.
    open: Vec<u8>,
}

type Scanned = Result<(), String>;

impl JsonScanner<'_> {
    fn document(&mut self) -> Scanned {
        loop {
            self.value()?;
            // Every container that ends here ends the value that it is.
            loop {
                match (self.open.last().copied(), self.next_visible()) {
                    (None, None) => return Ok(()),
                    (None, Some(byte)) => return Err(invalid(byte, "after top-level value")),
                    (Some(_), None) => return Err(end_of_input()),
                    (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => {
                        self.open.pop();
                    }
                    (Some(b'{'), Some(b',')) => {
                        self.key()?;
                        break;
                    }
                    (Some(_), Some(b',')) => break,
                    (Some(b'{'), Some(byte)) => return Err(invalid(byte, "after object key:value pair")),
                    (Some(_), Some(byte)) => return Err(invalid(byte, "after array element")),
                }
            }
        }
    }

    /// Reads down to a scalar or an empty container.
    fn value(&mut self) -> Scanned {
        loop {
            let byte = self.next_visible().ok_or_else(end_of_input)?;
            match byte {
                b'{' | b'[' if self.open.len() >= MAX_DEPTH => {
                    return Err(invalid(byte, "exceeded max depth"));
                }
                b'{' if self.closes_with(b'}') => return Ok(()),
                b'[' if self.closes_with(b']') => return Ok(()),
                b'{' => {
                    self.open.push(byte);
                    self.key()?;
                }
                b'[' => self.open.push(byte),
                b'"' => return self.string(),
                b'-' | b'0'..=b'9' => return self.number(byte),
                b't' => return self.literal("true"),
                b'f' => return self.literal("false"),
                b'n' => return self.literal("null"),
                _ => return Err(invalid(byte, "looking for beginning of value")),
            }
        }
    }

    fn key(&mut self) -> Scanned {
        match self.next_visible().ok_or_else(end_of_input)? {
            b'"' => self.string()?,
            byte => return Err(invalid(byte, "looking for beginning of object key string")),
        }
        match self.next_visible().ok_or_else(end_of_input)? {
            b':' => Ok(()),
            byte => Err(invalid(byte, "after object key")),
        }
    }

    fn string(&mut self) -> Scanned {
        loop {
            match self.next().ok_or_else(end_of_input)? {
                b'"' => return Ok(()),
                b'\\' => match self.next().ok_or_else(end_of_input)? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => self.hexadecimal()?,
                    byte => return Err(invalid(byte, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(invalid(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn hexadecimal(&mut self) -> Scanned {
        for _ in 0..4 {
            let byte = self.next().ok_or_else(end_of_input)?;
            if !byte.is_ascii_hexdigit() {
                return Err(invalid(byte, "in \\u hexadecimal character escape"));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Scanned {
        let leading = if first == b'-' { self.digit("in numeric literal")? } else { first };
        if leading != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digit(&mut self, context: &str) -> Result<u8, String> {
        match self.next().ok_or_else(end_of_input)? {
            digit @ b'0'..=b'9' => Ok(digit),
            byte => Err(invalid(byte, context)),
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for expected in word.bytes().skip(1) {
            let byte = self.next().ok_or_else(end_of_input)?;
            if byte != expected {
                return Err(invalid(
                    byte,
                    &format!("in literal {word} (expecting '{}')", char::from(expected)),
                ));
            }
        }
        Ok(())
    }

    fn closes_with(&mut self, bracket: u8) -> bool {
        self.skip_space();
        let closes = self.peek() == Some(bracket);
        self.at += usize::from(closes);
        closes
    }

    fn next_visible(&mut self) -> Option<u8> {
        self.skip_space();
        self.next()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }
}

fn end_of_input() -> String {
    "unexpected end of JSON input".into()
}

fn invalid(byte: u8, context: &str) -> String {
    format!("invalid character {} {context}", quoted(byte))
}

/// Go's `quoteChar`: the byte as the character of that number.
fn quoted(byte: u8) -> String {
    let inner = match byte {
        b'\'' => "\\'".into(),
        b'\\' => "\\\\".into(),
        0x07 => "\\a".into(),
        0x08 => "\\b".into(),
        0x0b => "\\v".into(),
        0x0c => "\\f".into(),
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        0..0x20 | 0x7f => format!("\\x{byte:02x}"),
        0x80..0xa1 | 0xad => format!("\\u{byte:04x}"),
        _ => char::from(byte).to_string(),
    };
    format!("'{inner}'")
}
