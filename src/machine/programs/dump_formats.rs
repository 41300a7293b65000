//! Formats of `hexdump -e`, as `16/1 "%02x " "\n"`: so often, so many bytes at once, and how they are shown.

/// Letters that have names of their own in `od -c`.
const NAMED: [(u8, &str); 8] =
    [(0, "\\0"), (7, "\\a"), (8, "\\b"), (9, "\\t"), (10, "\\n"), (11, "\\v"), (12, "\\f"), (13, "\\r")];
/// So much one format may say, whatever it repeats.
const MAX_SAID: usize = 1 << 20;

/// What is repeated: a part of the format with its counts.
#[derive(Debug, PartialEq)]
struct FormatUnit {
    times: usize,
    pieces: Vec<FormatPiece>,
}

#[derive(Debug, PartialEq)]
enum FormatPiece {
    Plain(String),
    /// `%_p`: a byte as it is, or a dot.
    Sign,
    /// `%_c` and `%c`
    Letter,
    /// `%04x`: its base, the bytes of a number, its width, and whether zeros fill that.
    Number {
        base: char,
        bytes: usize,
        width: usize,
        has_zeros: bool,
    },
}

/// A format that was understood.
#[derive(Debug, PartialEq)]
pub(super) struct DumpFormat(Vec<FormatUnit>);

impl DumpFormat {
    /// Nothing where it is none.
    pub(super) fn read(text: &str) -> Option<DumpFormat> {
        let mut units = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let counts = &rest[..rest.find('"')?];
            let (times, bytes) = counts.trim().split_once('/').unwrap_or((counts.trim(), ""));
            let count = |text: &str| {
                if text.trim().is_empty() { Some(None) } else { text.trim().parse().ok().map(Some) }
            };
            let (times, bytes) = (count(times)?.unwrap_or(1usize), count(bytes)?);
            let quoted = &rest[counts.len() + 1..];
            let end = quoted.find('"')?;
            units.push(FormatUnit { times, pieces: pieces_of(&quoted[..end], bytes)? });
            rest = quoted[end + 1..].trim_start();
        }
        Some(DumpFormat(units))
    }

    /// All bytes in this format, again and again until there are none.
    pub(super) fn said(&self, bytes: &[u8]) -> String {
        let mut rest = bytes;
        let mut said = String::new();
        while !rest.is_empty() && said.len() < MAX_SAID {
            let before = rest.len();
            self.0.iter().for_each(|unit| unit.say(&mut rest, &mut said));
            if rest.len() == before {
                break;
            }
        }
        said
    }
}

impl FormatUnit {
    fn say(&self, rest: &mut &[u8], said: &mut String) {
        let takes = self.pieces.iter().any(|piece| !matches!(piece, FormatPiece::Plain(_)));
        for time in 0..self.times {
            if takes && rest.is_empty() {
                return;
            }
            for piece in &self.pieces {
                said.push_str(&piece.text(rest));
            }
            // What only parts numbers does not stand behind the last one.
            if self.times > 1 && time + 1 == self.times {
                said.truncate(said.trim_end_matches([' ', '\t']).len());
            }
        }
    }
}

impl FormatPiece {
    fn text(&self, rest: &mut &[u8]) -> String {
        let mut take = |count: usize| {
            let (own, others) = rest.split_at(count.min(rest.len()));
            *rest = others;
            own
        };
        match self {
            FormatPiece::Plain(text) => text.clone(),
            FormatPiece::Sign => {
                let sign = |byte: &u8| if (32..127).contains(byte) { char::from(*byte) } else { '.' };
                take(1).iter().map(sign).collect()
            }
            FormatPiece::Letter => take(1).iter().map(|byte| letter(*byte)).collect(),
            FormatPiece::Number { base, bytes, width, has_zeros } => {
                let mut all = [0; 8];
                let own = take(*bytes);
                all[..own.len()].copy_from_slice(own);
                let value = u64::from_le_bytes(all);
                let unused = 64 - 8 * bytes;
                let digits = match base {
                    'x' => format!("{value:x}"),
                    'X' => format!("{value:X}"),
                    'o' => format!("{value:o}"),
                    'u' => value.to_string(),
                    _ => ((value << unused).cast_signed() >> unused).to_string(),
                };
                if *has_zeros { format!("{digits:0>width$}") } else { format!("{digits:>width$}") }
            }
        }
    }
}

/// A byte as `od -c` tells it.
pub(super) fn letter(byte: u8) -> String {
    match NAMED.iter().find(|(own, _)| *own == byte) {
        Some((_, name)) => (*name).to_owned(),
        None if (0x20..0x7f).contains(&byte) => char::from(byte).to_string(),
        None => format!("{byte:03o}"),
    }
}

/// `bytes` is how many a number has, where that is said.
fn pieces_of(format: &str, bytes: Option<usize>) -> Option<Vec<FormatPiece>> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut letters = format.chars().peekable();
    while let Some(sign) = letters.next() {
        match sign {
            '\\' => plain.push(match letters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                other => other,
            }),
            '%' if letters.next_if_eq(&'%').is_some() => plain.push('%'),
            '%' => {
                let digits: String = std::iter::from_fn(|| letters.next_if(char::is_ascii_digit)).collect();
                let width = if digits.is_empty() { 0 } else { digits.parse().ok()? };
                let piece = match (letters.next()?, width) {
                    ('_', _) => match letters.next()? {
                        'p' => FormatPiece::Sign,
                        'c' | 'u' => FormatPiece::Letter,
                        _ => return None,
                    },
                    ('c', _) => FormatPiece::Letter,
                    (base @ ('x' | 'X' | 'o' | 'u' | 'd' | 'i'), width @ 0..=64) => {
                        let bytes = bytes.unwrap_or(4);
                        let is_fine = matches!(bytes, 1 | 2 | 4 | 8);
                        let has_zeros = digits.starts_with('0');
                        is_fine.then_some(FormatPiece::Number { base, bytes, width, has_zeros })?
                    }
                    _ => return None,
                };
                if !plain.is_empty() {
                    pieces.push(FormatPiece::Plain(std::mem::take(&mut plain)));
                }
                pieces.push(piece);
            }
            sign => plain.push(sign),
        }
    }
    if !plain.is_empty() {
        pieces.push(FormatPiece::Plain(plain));
    }
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_formats_say() {
        for (format, bytes, said) in [
            ("100 \"%_p\"", "text\n", "text."),
            ("4/1 \"%02x \" \"\\n\"", "abcdef", "61 62 63 64\n65 66 \n"),
            ("\"%d\\n\"", "\x01\0\0\0\x02\0\0\0", "1\n2\n"),
            ("1/2 \"%5u|\"", "\x01\x01", "  257|"),
            ("\"no bytes\"", "x", "no bytes"),
            ("2 \"%_c%%\"", "a\n", "a%\\n%"),
        ] {
            assert_eq!(DumpFormat::read(format).unwrap().said(bytes.as_bytes()), said, "{format}");
        }
        for wrong in ["100 %_p", "\"%q\"", "\"open", "x \"%_p\"", "1/3 \"%x\""] {
            assert_eq!(DumpFormat::read(wrong), None, "{wrong}");
        }
    }
}
