//! `hexdump`, `od` and `xxd`: bytes in digits.

use super::dump_formats::{DumpFormat, letter};
use super::input::input;
use crate::byte_text;
use crate::interpreter::player::Player;

/// So many bytes stand in a line.
const ROW_BYTES: usize = 16;
/// So many bytes stand in a line of `xxd -p`.
const PLAIN_BYTES: usize = 30;
/// What `od -a` calls those that are no signs.
const CALLED: [&str; 33] = [
    "nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "nl", "vt", "ff", "cr", "so", "si",
    "dle", "dc1", "dc2", "dc3", "dc4", "nak", "syn", "etb", "can", "em", "sub", "esc", "fs", "gs", "rs",
    "us", "sp",
];

/// Whether it is one of these.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "hexdump" | "hd" | "od" | "xxd")
}

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let call = match DumpCall::read(name, words) {
        Ok(call) => call,
        Err(why) => return player.fail(&format!("{name}: {why}\n")),
    };
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
    if !call.formats.is_empty() {
        let said: String = call.formats.iter().map(|format| format.said(bytes)).collect();
        return player.say(&said);
    }
    let rows = |is_short, own: &dyn Fn(&[u8]) -> String| {
        DumpRows { bytes, from, address: call.address, is_short: is_short && !call.shows_all }.said(own)
    };
    let said = match (name, &call.kind) {
        ("xxd", DumpKind::Plain) => plain(bytes),
        ("xxd", _) => rows(false, &|row| format!(": {:<39}  {}\n", xxd_words(row), shown(row))),
        (_, DumpKind::Canonical) => rows(true, &|row| format!("  {:<48}  |{}|\n", halves(row), shown(row))),
        _ => rows(true, &|row| fields_of(row, &call)),
    };
    let has_end = name != "xxd" && call.address.is_some() && !bytes.is_empty();
    let end =
        if has_end { format!("{}\n", told_address(call.address, from + bytes.len())) } else { String::new() };
    player.say(&(said + &end));
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DumpKind {
    /// `-C`
    Canonical,
    /// `xxd -p`
    Plain,
    /// As the fields say.
    Fields,
}

/// How bytes stand in a row of `od` or `hexdump`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DumpField {
    form: FieldForm,
    /// Bytes of one number.
    size: usize,
    /// Digits, with zeros before them.
    digits: usize,
    /// With the spaces before it.
    width: usize,
    /// Whether letters stand behind the row (`z`).
    has_letters: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FieldForm {
    Octal,
    Hexadecimal,
    Signed,
    Unsigned,
    /// `c`
    Letter,
    /// `a`
    Name,
}

/// Digits of an address: their base and how many there are.
type AddressForm = (FieldForm, usize);

struct DumpCall<'w> {
    kind: DumpKind,
    fields: Vec<DumpField>,
    /// Of `hexdump -e`, instead of all others.
    formats: Vec<DumpFormat>,
    /// Nothing where no addresses are wanted (`-An`).
    address: Option<AddressForm>,
    /// `-v`
    shows_all: bool,
    is_reversed: bool,
    skipped: usize,
    most: usize,
    paths: Vec<&'w str>,
}

impl DumpField {
    /// `x1`, `u4`, `dL`, `c`, with a `z` or without.
    fn of_type(text: &str) -> Option<DumpField> {
        let has_letters = text.ends_with('z');
        let text = text.strip_suffix('z').unwrap_or(text);
        let size = |default: usize| match &text[1..] {
            "" => Some(default),
            "1" | "C" => Some(1),
            "2" | "S" => Some(2),
            "4" | "I" => Some(4),
            "8" | "L" => Some(8),
            _ => None,
        };
        let of_size = |digits: [usize; 4], size: usize| digits[size.trailing_zeros() as usize];
        let (form, size, digits, width) = match text.chars().next()? {
            'x' => {
                let size = size(4)?;
                (FieldForm::Hexadecimal, size, size * 2, size * 2)
            }
            'o' => {
                let size = size(4)?;
                let digits = of_size([3, 6, 11, 22], size);
                (FieldForm::Octal, size, digits, digits)
            }
            'd' => {
                let size = size(4)?;
                (FieldForm::Signed, size, 1, of_size([4, 6, 11, 20], size))
            }
            'u' => {
                let size = size(4)?;
                (FieldForm::Unsigned, size, 1, of_size([3, 5, 10, 20], size))
            }
            'c' => (FieldForm::Letter, 1, 1, 3),
            'a' => (FieldForm::Name, 1, 1, 3),
            _ => return None,
        };
        Some(DumpField { form, size, digits, width: width + 1, has_letters })
    }

    fn of_hexdump(form: FieldForm, size: usize, (digits, width): (usize, usize)) -> DumpField {
        DumpField { form, size, digits, width, has_letters: false }
    }

    fn text(&self, part: &[u8]) -> String {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        let value = u64::from_le_bytes(bytes);
        let digits = self.digits;
        match self.form {
            FieldForm::Octal => format!("{value:0digits$o}"),
            FieldForm::Hexadecimal => format!("{value:0digits$x}"),
            FieldForm::Unsigned => format!("{value:0digits$}"),
            FieldForm::Signed => {
                let unused = 64 - 8 * self.size;
                ((value << unused).cast_signed() >> unused).to_string()
            }
            FieldForm::Letter => letter(part[0]),
            FieldForm::Name => match usize::from(part[0] & 0x7f) {
                0x7f => "del".to_owned(),
                known if known < CALLED.len() => CALLED[known].to_owned(),
                _ => char::from(part[0] & 0x7f).to_string(),
            },
        }
    }
}

impl<'w> DumpCall<'w> {
    fn read(name: &str, words: &[&'w str]) -> Result<DumpCall<'w>, String> {
        let is_od = name == "od";
        let address = match name {
            "hexdump" => (FieldForm::Hexadecimal, 7),
            "od" => (FieldForm::Octal, 7),
            _ => (FieldForm::Hexadecimal, 8),
        };
        let mut call = DumpCall {
            kind: if name == "hd" { DumpKind::Canonical } else { DumpKind::Fields },
            fields: vec![],
            formats: vec![],
            address: Some(address),
            shows_all: false,
            is_reversed: false,
            skipped: 0,
            most: usize::MAX,
            paths: vec![],
        };
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
                if letter == 'e' && name == "hexdump" {
                    let format = DumpFormat::read(value);
                    call.formats.push(format.ok_or_else(|| format!("bad format {{{value}}}"))?);
                } else {
                    call.set(letter, value)?;
                }
                break;
            }
        }
        if call.fields.is_empty() {
            let form = if is_od { "o2" } else { "x2" };
            call.fields.extend(DumpField::of_type(form));
        }
        if call.kind == DumpKind::Canonical {
            call.address = call.address.map(|(form, _)| (form, 8));
        }
        Ok(call)
    }

    fn switch(&mut self, name: &str, letter: char) {
        let of_type = |text: &str| DumpField::of_type(text);
        let of_hexdump = |form, size, widths| Some(DumpField::of_hexdump(form, size, widths));
        let field = match (name, letter) {
            ("xxd", 'p') => {
                self.kind = DumpKind::Plain;
                None
            }
            ("xxd", 'r') => {
                self.is_reversed = true;
                None
            }
            ("hexdump", 'C') => {
                self.kind = DumpKind::Canonical;
                None
            }
            (_, 'v') => {
                self.shows_all = true;
                None
            }
            ("hexdump", 'x') => of_hexdump(FieldForm::Hexadecimal, 2, (4, 8)),
            ("hexdump", 'd') => of_hexdump(FieldForm::Unsigned, 2, (5, 8)),
            ("hexdump", 'o') => of_hexdump(FieldForm::Octal, 2, (6, 8)),
            ("hexdump" | "od", 'b') => of_type("o1"),
            (_, 'c') => of_type("c"),
            ("od", 'a') => of_type("a"),
            ("od", 'x') => of_type("x2"),
            ("od", 'o') => of_type("o2"),
            ("od", 'd') => of_type("u2"),
            ("od", 's') => of_type("d2"),
            ("od", 'i') => of_type("d4"),
            _ => None,
        };
        self.fields.extend(field);
    }

    fn set(&mut self, letter: char, value: &str) -> Result<(), String> {
        let number = || match value.strip_prefix("0x") {
            Some(digits) => usize::from_str_radix(digits, 16).ok(),
            None => super::filling::bytes_of(value),
        };
        match letter {
            'A' => {
                self.address = match value {
                    "n" => None,
                    "x" => Some((FieldForm::Hexadecimal, 6)),
                    "d" => Some((FieldForm::Unsigned, 7)),
                    "o" => Some((FieldForm::Octal, 7)),
                    _ => return Err(format!("invalid output address radix '{value}'")),
                }
            }
            't' => {
                let field = DumpField::of_type(value);
                self.fields.push(field.ok_or_else(|| format!("invalid type string '{value}'"))?);
            }
            'N' | 'n' | 'l' => self.most = number().unwrap_or(0),
            'j' | 's' => self.skipped = number().unwrap_or(0),
            _ => {}
        }
        Ok(())
    }
}

/// A row in each of its forms, one below the other: what belongs to a byte stands in the same columns.
fn fields_of(row: &[u8], call: &DumpCall<'_>) -> String {
    let widest = call.fields.iter().map(|field| field.width * (ROW_BYTES / field.size)).max().unwrap_or(0);
    let mut said = String::new();
    for (at, field) in call.fields.iter().enumerate() {
        if at > 0 {
            said.push_str(&" ".repeat(call.address.map_or(0, |(_, digits)| digits)));
        }
        let width = widest / (ROW_BYTES / field.size);
        let own: String =
            row.chunks(field.size).map(|part| format!("{:>width$}", field.text(part))).collect();
        if field.has_letters {
            said.push_str(&format!("{own:<widest$}  >{}<\n", shown(row)));
        } else {
            said.push_str(&format!("{own}\n"));
        }
    }
    said
}

fn told_address(form: Option<AddressForm>, at: usize) -> String {
    match form {
        None => String::new(),
        Some((FieldForm::Hexadecimal, width)) => format!("{at:0width$x}"),
        Some((FieldForm::Unsigned, width)) => format!("{at:0width$}"),
        Some((_, width)) => format!("{at:0width$o}"),
    }
}

/// Rows behind where they are.
struct DumpRows<'b> {
    bytes: &'b [u8],
    from: usize,
    address: Option<AddressForm>,
    /// Rows that are as the one before are a star.
    is_short: bool,
}

impl DumpRows<'_> {
    fn said(&self, own: &dyn Fn(&[u8]) -> String) -> String {
        let mut out = String::new();
        let mut last: Option<&[u8]> = None;
        let mut is_starred = false;
        for (at, row) in self.bytes.chunks(ROW_BYTES).enumerate() {
            let is_same = self.is_short && last == Some(row) && row.len() == ROW_BYTES;
            last = Some(row);
            if is_same {
                out.push_str(if is_starred { "" } else { "*\n" });
                is_starred = true;
                continue;
            }
            is_starred = false;
            out.push_str(&told_address(self.address, self.from + at * ROW_BYTES));
            out.push_str(&own(row));
        }
        out
    }
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
            ("printf 'abc\\377\\376\\375zz9' | od -An -tu4", " 4284703329 2054880766         57\n"),
            ("printf 'abc\\377\\376\\375' | od -An -td1", "   97   98   99   -1   -2   -3\n"),
            ("printf 'abc\\377\\376\\375' | od -An -td2", "  25185   -157   -514\n"),
            ("printf 'abc\\377\\376\\375zz9' | od -An -tx8", " 7a7afdfeff636261 0000000000000039\n"),
            ("printf 'abc\\377' | od -An -to4", " 37730661141\n"),
            ("printf 'a \\n\\377' | od -An -ta", "   a  sp  nl del\n"),
            (
                "printf 'ab\\n' | od -A x -t x1z",
                "000000 61 62 0a                                         >ab.<\n000003\n",
            ),
            ("printf ab | od -tx1 -c", "0000000  61  62\n          a   b\n0000002\n"),
            (
                "head -c 32 /dev/zero | od -v -Ad -tx8",
                "0000000 0000000000000000 0000000000000000\n0000016 0000000000000000 0000000000000000\n0000032\n",
            ),
            ("n=$(od -An -N4 -tu4 /dev/urandom); echo $(( $n >= 0 ))", "1\n"),
            ("printf abcd | hexdump -d", "0000000   25185   25699\n0000004\n"),
            ("od -tq /dev/null", "od: invalid type string 'q'\n"),
            ("od -c /none", "od: /none: No such file or directory\n"),
        ] {
            assert_eq!(said(script), wanted, "{script}");
        }
    }
}
