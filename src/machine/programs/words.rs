//! `echo` and `printf`: what they make of words.

use crate::bounds::MAX_MEMORY_BYTES;
use crate::byte_text;
use crate::interpreter::dialect::Dialect;

/// Words with blanks between them. Debian's shell reads escapes without being asked to.
pub(super) fn echo(words: &[&str], dialect: Dialect) -> String {
    let mut newline = true;
    let mut escapes = dialect == Dialect::Dash;
    let mut words = words;
    while let [flag, rest @ ..] = words
        && let Some(letters) = flag.strip_prefix('-').filter(|letters| !letters.is_empty())
        && letters.chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
    {
        newline &= !letters.contains('n');
        escapes = letters.contains('e') || escapes && !letters.contains('E');
        words = rest;
    }
    let text = words.join(" ");
    let (text, is_over) = if escapes { unescape(&text) } else { (text, false) };
    if newline && !is_over { text + "\n" } else { text }
}

/// What `\n` and its kin mean; also whether `\c` ends everything.
pub(super) fn unescape(text: &str) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('v') => out.push('\u{b}'),
            Some('e') => out.push('\u{1b}'),
            Some('\\') => out.push('\\'),
            Some('c') => return (out, true),
            Some('x') => out.push(code(&mut letters, 16, 2, 0)),
            Some(digit @ '0'..='7') => {
                let first = digit.to_digit(8).unwrap_or_default();
                out.push(code(&mut letters, 8, if first == 0 { 3 } else { 2 }, first));
            }
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    (out, false)
}

/// The letter or the byte of so many digits.
fn code(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, base: u32, most: usize, first: u32) -> char {
    let mut value = first;
    for _ in 0..most {
        let Some(digit) = letters.peek().and_then(|c| c.to_digit(base)) else { break };
        value = value * base + digit;
        letters.next();
    }
    byte_text::letter_of((value & 0xff) as u8)
}

/// The most digits that a precision asks for: what the library can show.
const MAX_DIGITS: usize = u16::MAX as usize;

/// A directive of a format: `%-8.3s`.
#[derive(Default)]
struct PrintfDirective {
    is_left: bool,
    is_filled: bool,
    shows_sign: bool,
    has_prefix: bool,
    width: usize,
    precision: Option<usize>,
}

/// The format, again and again while there are arguments; nothing when that is too much.
pub(super) fn printf(format: &str, arguments: &[&str]) -> Option<String> {
    let (mut out, mut arguments) = (String::new(), arguments.iter());
    loop {
        let mut takes = false;
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            let (text, is_over) = unescape(&rest[..at]);
            out.push_str(&text);
            if is_over {
                return Some(out);
            }
            rest = directive(&rest[at + 1..], &mut arguments, &mut out, &mut takes)?;
            if out.len() > MAX_MEMORY_BYTES {
                return None;
            }
        }
        let (text, is_over) = unescape(rest);
        out.push_str(&text);
        if out.len() > MAX_MEMORY_BYTES {
            return None;
        }
        if is_over || !takes || arguments.len() == 0 {
            return Some(out);
        }
    }
}

/// One directive, from behind its sign; what comes behind it.
fn directive<'f, 'w>(
    format: &'f str,
    arguments: &mut impl Iterator<Item = &'w &'w str>,
    out: &mut String,
    takes: &mut bool,
) -> Option<&'f str> {
    let mut own = PrintfDirective::default();
    let mut rest = format;
    while let Some(c) = rest.chars().next().filter(|c| "-0+ #".contains(*c)) {
        own.is_left |= c == '-';
        own.is_filled |= c == '0';
        own.shows_sign |= c == '+';
        own.has_prefix |= c == '#';
        rest = &rest[1..];
    }
    (own.width, rest) = number(rest);
    if let Some(behind) = rest.strip_prefix('.') {
        let (precision, behind) = number(behind);
        own.precision = Some(precision);
        rest = behind;
    }
    if own.width.max(own.precision.unwrap_or(0)) > MAX_MEMORY_BYTES {
        return None;
    }
    let Some(kind) = rest.chars().next() else {
        out.push('%');
        return Some(rest);
    };
    if kind == '%' {
        out.push('%');
    } else {
        *takes = true;
        let word = arguments.next().copied().unwrap_or_default();
        out.push_str(&own.shown(kind, word));
    }
    Some(&rest[kind.len_utf8()..])
}

/// A width in digits.
fn number(text: &str) -> (usize, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().unwrap_or(if end > 0 { usize::MAX } else { 0 }), &text[end..])
}

impl PrintfDirective {
    fn shown(&self, kind: char, word: &str) -> String {
        let digits = self.precision.map(|precision| precision.min(MAX_DIGITS));
        let text = match kind {
            'd' | 'i' | 'u' => self.integer(integer(word), digits.unwrap_or(0)),
            'x' if self.has_prefix => format!("{:#x}", integer(word)),
            'x' => format!("{:x}", integer(word)),
            'X' => format!("{:X}", integer(word)),
            'o' => format!("{:o}", integer(word)),
            'f' | 'F' => {
                format!("{:.*}", digits.unwrap_or(6), word.trim().parse::<f64>().unwrap_or(0.0))
            }
            'e' | 'g' => format!("{}", word.trim().parse::<f64>().unwrap_or(0.0)),
            'c' => word.chars().take(1).collect(),
            'b' => unescape(word).0,
            'q' => quoted(word),
            _ => match self.precision {
                Some(precision) => word.chars().take(precision).collect(),
                None => word.to_owned(),
            },
        };
        self.padded(text, kind)
    }

    fn integer(&self, value: i64, count: usize) -> String {
        let digits = format!("{:0>count$}", value.unsigned_abs());
        match value {
            ..0 => format!("-{digits}"),
            _ if self.shows_sign => format!("+{digits}"),
            _ => digits,
        }
    }

    fn padded(&self, text: String, kind: char) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        if missing == 0 {
            return text;
        }
        if self.is_left {
            return text + &" ".repeat(missing);
        }
        if self.is_filled && !matches!(kind, 's' | 'c' | 'b' | 'q') {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            return format!("{sign}{}{digits}", "0".repeat(missing));
        }
        " ".repeat(missing) + &text
    }
}

/// A number as `printf` takes one: `'A` is the code of a letter.
fn integer(word: &str) -> i64 {
    let word = word.trim();
    if let Some(letter) = word.strip_prefix(['\'', '"']) {
        return letter.chars().next().map_or(0, |c| i64::from(u32::from(c)));
    }
    if let Some(hex) = word.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).unwrap_or(0);
    }
    word.parse().unwrap_or(0)
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_c() {
        for (format, arguments, wanted) in [
            ("%s=%d\\n", &["a", "1", "b", "2"][..], "a=1\nb=2\n"),
            ("%5s|%-5s|%05d|%+d", &["ab", "cd", "-42", "7"], "   ab|cd   |-0042|+7"),
            ("%.2f %x %o %c%c", &["3.14159", "255", "8", "abc", "def"], "3.14 ff 10 ad"),
            ("%b%%\\t%q", &["a\\n", "it's"], "a\n%\t'it'\\''s'"),
            ("%.2s", &["abc"], "ab"),
            ("plain\\c no", &["x"], "plain"),
            ("%d %s\\n", &[], "0 \n"),
            ("100%", &[], "100%"),
        ] {
            assert_eq!(printf(format, arguments).unwrap(), wanted, "{format}");
        }
        for (format, is_behind) in [("%.70000d", 0), ("%.70000i", 0), ("%.70000f", 2)] {
            assert_eq!(printf(format, &["1"]).unwrap().len(), MAX_DIGITS + is_behind, "{format}");
        }
        assert_eq!(printf("%999999999999s", &["a"]), None);
        assert_eq!(printf(&"%9999s".repeat(300), &["a"]), None);
    }

    #[test]
    fn echo_reads_escapes_where_its_shell_does() {
        assert_eq!(echo(&["-e", "a\\tb\\x41\\0101"], Dialect::Ash), "a\tbAA\n");
        assert_eq!(echo(&["a\\tb"], Dialect::Ash), "a\\tb\n");
        assert_eq!(echo(&["a\\tb\\c"], Dialect::Dash), "a\tb");
        assert_eq!(echo(&["-n", "-x", "a"], Dialect::Bash), "-x a");
    }
}
