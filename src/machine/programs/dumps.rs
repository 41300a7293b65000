//! `hexdump`, `od` and `xxd`: bytes in digits.

use super::input::input;
use crate::byte_text;
use crate::interpreter::player::Player;

/// So many bytes stand in a line.
const ROW_BYTES: usize = 16;
/// Digits of an address, where there are no eight.
const OD_ADDRESS: usize = 7;
/// So many bytes stand in a line of `xxd -p`.
const PLAIN_BYTES: usize = 30;
/// Letters that have names of their own in `od -c`.
const NAMED: [(u8, &str); 8] =
    [(0, "\\0"), (7, "\\a"), (8, "\\b"), (9, "\\t"), (10, "\\n"), (11, "\\v"), (12, "\\f"), (13, "\\r")];

/// Whether it is one of these.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "hexdump" | "hd" | "od" | "xxd")
}

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let call = DumpCall::read(name, words);
    let Some(text) = input(player, name, &call.paths) else { return };
    let all = byte_text::bytes_of(&text);
    let from = call.skipped.min(all.len());
    let bytes = &all[from..all.len().min(from.saturating_add(call.most))];
    if !player.handle(bytes.len() * 8) {
        return;
    }
    if call.is_reversed {
        return player.say_bytes(&read_back(&text, call.kind == DumpKind::Plain));
    }
    let said = match (name, call.kind) {
        ("xxd", DumpKind::Plain) => plain(bytes),
        ("xxd", _) => {
            rows(bytes, from, |row| format!(": {:<39}  {}", xxd_words(row), shown(row)), (8, true, false))
        }
        (_, DumpKind::Canonical) => {
            rows(bytes, from, |row| format!("  {:<48}  |{}|", halves(row), shown(row)), (8, true, true))
        }
        _ => {
            let own = |row: &[u8]| call.kind.row(row);
            if call.has_addresses {
                rows(bytes, from, own, (OD_ADDRESS, name != "od", true))
            } else {
                bytes.chunks(ROW_BYTES).map(|row| own(row) + "\n").collect()
            }
        }
    };
    player.say(&said);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DumpKind {
    /// `-C`
    Canonical,
    /// `xxd -p`
    Plain,
    Letters,
    Bytes,
    /// Words of two bytes, in octal or hexadecimal digits.
    Octal,
    Words,
    Decimal,
}

struct DumpCall<'w> {
    kind: DumpKind,
    has_addresses: bool,
    is_reversed: bool,
    skipped: usize,
    most: usize,
    paths: Vec<&'w str>,
}

impl<'w> DumpCall<'w> {
    fn read(name: &str, words: &[&'w str]) -> DumpCall<'w> {
        let kind = match name {
            "od" => DumpKind::Octal,
            "hd" => DumpKind::Canonical,
            _ => DumpKind::Words,
        };
        let paths = vec![];
        let mut call =
            DumpCall { kind, has_addresses: true, is_reversed: false, skipped: 0, most: usize::MAX, paths };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                if word != "-" {
                    call.paths.push(word);
                }
                continue;
            };
            for (at, letter) in letters.char_indices() {
                let takes = matches!(letter, 'A' | 't' | 'N' | 'n' | 'j' | 's' | 'l' | 'e' | 'w' | 'g')
                    || (name == "xxd" && letter == 'c');
                if !takes {
                    call.switch(name, letter);
                    continue;
                }
                let rest = &letters[at + letter.len_utf8()..];
                let value = if rest.is_empty() { words.next().unwrap_or_default() } else { rest };
                call.set(letter, value);
                break;
            }
        }
        call
    }

    fn switch(&mut self, name: &str, letter: char) {
        match (name, letter) {
            ("xxd", 'p') => self.kind = DumpKind::Plain,
            ("xxd", 'r') => self.is_reversed = true,
            ("hexdump", 'C') => self.kind = DumpKind::Canonical,
            (_, 'c') => self.kind = DumpKind::Letters,
            (_, 'x') => self.kind = DumpKind::Words,
            (_, 'o') => self.kind = DumpKind::Octal,
            (_, 'd') => self.kind = DumpKind::Decimal,
            _ => {}
        }
    }

    fn set(&mut self, letter: char, value: &str) {
        let number = || match value.strip_prefix("0x") {
            Some(digits) => usize::from_str_radix(digits, 16).ok(),
            None => super::tools::bytes_of(value),
        };
        match letter {
            'A' => self.has_addresses = value != "n",
            't' => {
                self.kind = match value.get(..2).unwrap_or(value) {
                    "x1" => DumpKind::Bytes,
                    "c" | "a" => DumpKind::Letters,
                    "x2" | "x" => DumpKind::Words,
                    "d2" | "u2" | "d" | "u" => DumpKind::Decimal,
                    _ => DumpKind::Octal,
                }
            }
            'N' | 'n' | 'l' => self.most = number().unwrap_or(0),
            'j' | 's' => self.skipped = number().unwrap_or(0),
            _ => {}
        }
    }
}

impl DumpKind {
    fn row(self, row: &[u8]) -> String {
        let words =
            || row.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        match self {
            DumpKind::Letters => row.iter().map(|byte| format!("{:>4}", letter(*byte))).collect(),
            DumpKind::Bytes => row.iter().map(|byte| format!(" {byte:02x}")).collect(),
            DumpKind::Octal => words().map(|word| format!(" {word:06o}")).collect(),
            DumpKind::Decimal => words().map(|word| format!(" {word:>5}")).collect(),
            _ => words().map(|word| format!(" {word:04x}")).collect(),
        }
    }
}

fn letter(byte: u8) -> String {
    match NAMED.iter().find(|(own, _)| *own == byte) {
        Some((_, name)) => (*name).to_owned(),
        None if (0x20..0x7f).contains(&byte) => char::from(byte).to_string(),
        None => format!("{byte:03o}"),
    }
}

/// Rows behind where they are; rows that are as the one before are a star, where that is so written.
fn rows(
    bytes: &[u8],
    from: usize,
    own: impl Fn(&[u8]) -> String,
    (width, is_hex, is_short): (usize, bool, bool),
) -> String {
    let address = |at: usize| if is_hex { format!("{at:0width$x}") } else { format!("{at:0width$o}") };
    let mut out = String::new();
    let mut last: Option<&[u8]> = None;
    let mut is_starred = false;
    for (at, row) in bytes.chunks(ROW_BYTES).enumerate() {
        let is_same = is_short && last == Some(row) && row.len() == ROW_BYTES;
        last = Some(row);
        if is_same {
            out.push_str(if is_starred { "" } else { "*\n" });
            is_starred = true;
            continue;
        }
        is_starred = false;
        out.push_str(&format!("{}{}\n", address(from + at * ROW_BYTES), own(row)));
    }
    if is_short && !bytes.is_empty() {
        out.push_str(&format!("{}\n", address(from + bytes.len())));
    }
    out
}

fn halves(row: &[u8]) -> String {
    let half = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    format!("{:<23}  {}", half(&row[..row.len().min(8)]), half(row.get(8..).unwrap_or_default()))
}

fn xxd_words(row: &[u8]) -> String {
    let word = |pair: &[u8]| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    row.chunks(2).map(word).collect::<Vec<_>>().join(" ")
}

fn plain(bytes: &[u8]) -> String {
    let line =
        |row: &[u8]| row.iter().map(|byte| format!("{byte:02x}")).chain(["\n".into()]).collect::<String>();
    bytes.chunks(PLAIN_BYTES).map(line).collect()
}

fn shown(row: &[u8]) -> String {
    row.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' }).collect()
}

/// `xxd -r`: the bytes of a dump.
fn read_back(text: &str, is_plain: bool) -> Vec<u8> {
    let digits_of = |line: &str| {
        let inner = if is_plain { line } else { line.split_once(": ").map_or("", |(_, rest)| rest) };
        let digits = if is_plain { inner } else { inner.split("  ").next().unwrap_or_default() };
        digits.chars().filter(char::is_ascii_hexdigit).collect::<String>()
    };
    let digits: String = text.lines().map(digits_of).collect();
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.filter_map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    #[test]
    fn bytes_are_shown_in_digits() {
        let said = |script: &str| {
            let words = ["sh", "-c", script].map(str::to_owned);
            let ran = exec(&words, &Surroundings::default(), vec![], Some(vec![])).unwrap();
            ran.out + &ran.errors
        };
        for (script, wanted) in [
            (
                "printf 'a\\nb' | hexdump -C",
                "00000000  61 0a 62                                          |a.b|\n00000003\n",
            ),
            ("printf 'ab\\n' | hexdump", "0000000 6261 000a\n0000003\n"),
            ("printf 'ab\\n' | od", "0000000 061141 000012\n0000003\n"),
            ("printf 'a\\n\\377' | od -An -c", "   a  \\n 377\n"),
            ("printf 'abc' | od -An -tx1", " 61 62 63\n"),
            ("printf 'abc' | od -A n -t x1 -N 2", " 61 62\n"),
            ("printf 'abc' | xxd", "00000000: 6162 63                                  abc\n"),
            ("printf 'abc\\200' | xxd -p", "61626380\n"),
            ("printf '61620a' | xxd -r -p", "ab\n"),
            ("printf 'abc\\n' | xxd | xxd -r", "abc\n"),
            (
                "head -c 64 /dev/zero | hexdump",
                "0000000 0000 0000 0000 0000 0000 0000 0000 0000\n*\n0000040\n",
            ),
            ("od -c /none", "od: can't open '/none': No such file or directory\n"),
        ] {
            assert_eq!(said(script), wanted, "{script}");
        }
    }
}
