//! `head` and `tail`: the first and the last of texts.

use super::filling::bytes_of;
use super::input::read;
use crate::bounds::{MAX_FILE_BYTES, ScriptFault};
use crate::byte_text;
use crate::interpreter::player::Player;

/// How much, and from where it is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum EndCount {
    /// So many of this end.
    Some(usize),
    /// All but so many of the other end (`head -n -3`).
    AllBut(usize),
    /// From that one on (`tail -n +3`).
    From(usize),
}

struct EndCall<'w> {
    count: EndCount,
    is_bytes: bool,
    /// Whether names stand before texts; as many files as there are say so themselves.
    is_named: Option<bool>,
    paths: Vec<&'w str>,
}

impl<'w> EndCall<'w> {
    /// # Errors
    /// The number that is none.
    fn read(words: &[&'w str]) -> Result<EndCall<'w>, &'w str> {
        let mut call = EndCall { count: EndCount::Some(10), is_bytes: false, is_named: None, paths: vec![] };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
                call.paths.push(word);
                continue;
            };
            let letters = flag.strip_prefix('-').map(|long| match long.split_once('=') {
                Some(("lines", value)) => ("n", value),
                Some(("bytes", value)) => ("c", value),
                _ => ("", ""),
            });
            let (kind, value) = letters.unwrap_or_else(|| {
                let at = flag.find(['n', 'c']).unwrap_or(0);
                let kind = flag.get(at..at + 1).filter(|kind| matches!(*kind, "n" | "c")).unwrap_or("");
                (kind, if kind.is_empty() { flag } else { &flag[at + 1..] })
            });
            match kind {
                "n" | "c" => {
                    let value = if value.is_empty() { words.next().unwrap_or_default() } else { value };
                    call.count = count(value).ok_or(value)?;
                    call.is_bytes = kind == "c";
                }
                _ if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() => {
                    call.count = count(value).ok_or(value)?;
                }
                _ if value.contains('q') => call.is_named = Some(false),
                _ if value.contains('v') => call.is_named = Some(true),
                _ => {}
            }
        }
        Ok(call)
    }
}

fn count(text: &str) -> Option<EndCount> {
    let number = |digits: &str| if digits == "0" { Some(0) } else { bytes_of(digits) };
    match text.as_bytes().first() {
        Some(b'+') => number(&text[1..]).map(EndCount::From),
        Some(b'-') => number(&text[1..]).map(EndCount::AllBut),
        _ => number(text).map(EndCount::Some),
    }
}

/// Whether `tail` with these words follows nothing.
pub(crate) fn is_plain_tail(words: &[&str]) -> bool {
    !words.iter().any(|word| matches!(*word, "-f" | "-F"))
}

/// `head [-n COUNT | -c BYTES] [FILE...]`
pub(super) fn head(player: &mut Player<'_>, words: &[&str]) {
    each(player, "head", words, |all, count| match count {
        EndCount::Some(count) | EndCount::From(count) => &all[..count.min(all.len())],
        EndCount::AllBut(count) => &all[..all.len().saturating_sub(count)],
    });
}

/// `tail` without following.
pub(crate) fn tail(player: &mut Player<'_>, words: &[&str]) {
    each(player, "tail", words, |all, count| match count {
        EndCount::Some(count) | EndCount::AllBut(count) => &all[all.len().saturating_sub(count)..],
        EndCount::From(from) => &all[from.saturating_sub(1).min(all.len())..],
    });
}

/// What is taken of lines with their ends, or of bytes.
type TakenEnd = for<'a> fn(&'a [&'a [u8]], EndCount) -> &'a [&'a [u8]];

fn each(player: &mut Player<'_>, program: &str, words: &[&str], taken: TakenEnd) {
    let call = match EndCall::read(words) {
        Ok(call) => call,
        Err(value) => return player.fail(&format!("{program}: invalid number '{value}'\n")),
    };
    let is_named = call.is_named.unwrap_or(call.paths.len() > 1);
    let paths = if call.paths.is_empty() { vec!["-"] } else { call.paths.clone() };
    let mut gap = "";
    for path in paths {
        let Some(text) = content(player, program, path, &call) else { continue };
        if is_named {
            let name = if path == "-" { "standard input" } else { path };
            player.say(&format!("{gap}==> {name} <==\n"));
            gap = "\n";
        }
        let bytes = byte_text::bytes_of(&text);
        let all: Vec<&[u8]> = if call.is_bytes {
            bytes.chunks(1).collect()
        } else {
            bytes.split_inclusive(|byte| *byte == b'\n').collect()
        };
        let said = taken(&all, call.count).concat();
        player.say_bytes(&said);
    }
}

/// The text of a file; of one that never ends as much as is asked for.
fn content(player: &mut Player<'_>, program: &str, path: &str, call: &EndCall<'_>) -> Option<String> {
    let wanted = match call.count {
        EndCount::Some(count) if call.is_bytes => count,
        _ => 0,
    };
    let made = match path {
        "/dev/zero" | "/dev/urandom" | "/dev/random" if wanted > MAX_FILE_BYTES => {
            player.stop(ScriptFault::Files);
            return None;
        }
        "/dev/zero" if wanted > 0 => vec![0; wanted],
        "/dev/urandom" | "/dev/random" if wanted > 0 => player.random_bytes(wanted),
        "-" => return Some(player.input()),
        _ => return read(player, program, path),
    };
    player.handle(made.len());
    Some(byte_text::text_of(&made))
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    #[test]
    fn both_ends_are_counted_from_both_sides() {
        let said = |script: &str| {
            let words = ["sh", "-c", script].map(str::to_owned);
            let ran = exec(&words, &Surroundings::default(), vec![], Some(vec![])).unwrap();
            ran.out + &ran.errors
        };
        for (script, wanted) in [
            ("seq 20 | head | tail -n 1", "10\n"),
            ("seq 5 | head -n -2", "1\n2\n3\n"),
            ("seq 5 | head -2", "1\n2\n"),
            ("seq 5 | head -n2 | tail -n1", "2\n"),
            ("seq 5 | tail -n +4", "4\n5\n"),
            ("seq 5 | tail -2", "4\n5\n"),
            ("printf abcdef | head -c 2", "ab"),
            ("printf abcdef | head -c -2", "abcd"),
            ("printf abcdef | tail -c 2", "ef"),
            ("printf abcdef | tail -c +5", "ef"),
            ("printf 'a\\nb' | tail -n 1", "b"),
            ("echo a > /a; echo b > /b; head -n 1 /a /b", "==> /a <==\na\n\n==> /b <==\nb\n"),
            ("echo a > /a; tail -q -n 1 /a /a", "a\na\n"),
            ("head -n x /a", "head: invalid number 'x'\n"),
            ("head --lines=1 /none", "head: /none: No such file or directory\n"),
            ("head -c 3 /dev/zero | od -An -tx1", " 00 00 00\n"),
            ("basename /a/b.c .c; basename -a /x/y z/; basename -s .c b.c", "b\ny\nz\nb\n"),
        ] {
            assert_eq!(said(script), wanted, "{script}");
        }
    }
}
