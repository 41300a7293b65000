//! `md5sum` and its kin: sums of files, and whether they are still the same.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::input::read;
use crate::byte_text;
use crate::interpreter::player::Player;

/// A step is less of these than of other bytes.
const COST: usize = 2;

/// Whether it is one of these.
pub(super) fn is_known(name: &str) -> bool {
    sum_of(name).is_some()
}

type Sum = fn(&[u8]) -> String;

fn sum_of(name: &str) -> Option<Sum> {
    Some(match name {
        "md5sum" => |bytes| format!("{:x}", Md5::digest(bytes)),
        "sha1sum" => |bytes| format!("{:x}", Sha1::digest(bytes)),
        "sha224sum" => |bytes| format!("{:x}", Sha224::digest(bytes)),
        "sha256sum" => |bytes| format!("{:x}", Sha256::digest(bytes)),
        "sha384sum" => |bytes| format!("{:x}", Sha384::digest(bytes)),
        "sha512sum" => |bytes| format!("{:x}", Sha512::digest(bytes)),
        _ => return None,
    })
}

/// `md5sum [-c] [FILE...]`
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let Some(sum) = sum_of(name) else { return };
    let is_flag = |word: &&str| word.starts_with('-') && word.len() > 1;
    let (flags, paths): (Vec<&str>, Vec<&str>) = words.iter().copied().partition(is_flag);
    let flags: String = flags.iter().map(|flag| if *flag == "--check" { "-c" } else { flag }).collect();
    let paths = if paths.is_empty() { vec!["-"] } else { paths };
    let mut wrong = 0;
    for path in paths {
        let Some(text) = content(player, name, path) else { continue };
        if !flags.contains('c') {
            player.say(&format!("{}  {path}\n", sum(&byte_text::bytes_of(&text))));
            continue;
        }
        for (wanted, file) in text.lines().filter_map(|line| line.split_once([' ', '\t'])) {
            let file = file.trim_start_matches([' ', '*']);
            let found = content(player, name, file).map(|text| sum(&byte_text::bytes_of(&text)));
            let is_same = found.is_some_and(|found| found == wanted.to_ascii_lowercase());
            wrong += usize::from(!is_same);
            if !flags.contains('s') && !flags.contains("quiet") {
                player.say(&format!("{file}: {}\n", if is_same { "OK" } else { "FAILED" }));
            }
        }
    }
    if wrong > 0 {
        player.fail(&format!("{name}: WARNING: {wrong} of the computed checksums did NOT match\n"));
    }
}

fn content(player: &mut Player<'_>, name: &str, path: &str) -> Option<String> {
    let text = if path == "-" { Some(player.input()) } else { read(player, name, path) };
    text.filter(|text| player.handle(text.len() * COST))
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    #[test]
    fn sums_are_told_and_checked() {
        let said = |script: &str| {
            let words = ["sh", "-c", script].map(str::to_owned);
            let ran = exec(&words, &Surroundings::default(), vec![], Some(vec![])).unwrap();
            (ran.end.unwrap().1, ran.out + &ran.errors)
        };
        for (script, code, wanted) in [
            ("printf abc | md5sum", 0, "900150983cd24fb0d6963f7d28e17f72  -\n"),
            ("printf abc | sha1sum", 0, "a9993e364706816aba3e25717850c26c9cd0d89d  -\n"),
            ("printf abc > /f; md5sum /f > /s; md5sum -c /s", 0, "/f: OK\n"),
            (
                "printf abc > /f; sha256sum /f > /s; echo >> /f; sha256sum -c /s",
                1,
                "/f: FAILED\nsha256sum: WARNING: 1 of the computed checksums did NOT match\n",
            ),
        ] {
            assert_eq!(said(script), (code, wanted.to_owned()), "{script}");
        }
    }
}
