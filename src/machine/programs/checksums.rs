//! `md5sum` and its kin: sums of files, and whether they are still the same.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::input::read;
use crate::byte_text;
use crate::interpreter::dialect::Dialect;
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

/// How it is called.
#[derive(Default)]
struct SumCall<'w> {
    checks: bool,
    is_quiet: bool,
    is_silent: bool,
    ignores_missing: bool,
    is_strict: bool,
    warns: bool,
    is_tagged: bool,
    paths: Vec<&'w str>,
}

/// What came of the lines of a list.
#[derive(Default)]
struct SumCheck {
    checked: usize,
    wrong: usize,
    unread: usize,
    malformed: usize,
}

impl<'w> SumCall<'w> {
    /// The word that is not known, where one is not.
    fn read(words: &[&'w str]) -> Result<SumCall<'w>, &'w str> {
        let mut call = SumCall::default();
        for word in words {
            match *word {
                "--check" => call.checks = true,
                "--quiet" => call.is_quiet = true,
                "--status" => call.is_silent = true,
                "--ignore-missing" => call.ignores_missing = true,
                "--strict" => call.is_strict = true,
                "--warn" => call.warns = true,
                "--tag" => call.is_tagged = true,
                "--binary" | "--text" | "--zero" => {}
                word if word.starts_with("--") => return Err(word),
                word if word.starts_with('-') && word.len() > 1 => call.take(word)?,
                path => call.paths.push(path),
            }
        }
        if call.paths.is_empty() {
            call.paths.push("-");
        }
        Ok(call)
    }

    fn take(&mut self, word: &'w str) -> Result<(), &'w str> {
        for letter in word[1..].chars() {
            match letter {
                'c' => self.checks = true,
                's' => self.is_silent = true,
                'w' => self.warns = true,
                'b' | 't' | 'z' => {}
                _ => return Err(word),
            }
        }
        Ok(())
    }
}

/// `md5sum [-c [--quiet | --status] [--ignore-missing] [--strict] [-w]] [--tag] [FILE...]`
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let Some(sum) = sum_of(name) else { return };
    let call = match SumCall::read(words) {
        Ok(call) => call,
        Err(word) => return player.fail(&format!("{name}: unrecognized option '{word}'\n")),
    };
    for path in &call.paths {
        let Some(text) = content(player, name, path) else { continue };
        if call.checks {
            let is_well = check(player, &call, (name, path), (&text, sum));
            player.status = if is_well { player.status } else { 1 };
            continue;
        }
        let digits = sum(&byte_text::bytes_of(&text));
        if call.is_tagged {
            let kind = name.trim_end_matches("sum").to_ascii_uppercase();
            player.say(&format!("{kind} ({path}) = {digits}\n"));
        } else {
            player.say(&format!("{digits}  {path}\n"));
        }
    }
}

/// Whether all files of a list are as it says.
fn check(
    player: &mut Player<'_>,
    call: &SumCall<'_>,
    (name, path): (&str, &str),
    (list, sum): (&str, Sum),
) -> bool {
    let is_gnu = player.dialect != Dialect::Ash;
    let mut all = SumCheck::default();
    for (at, line) in list.lines().enumerate() {
        let Some((wanted, file)) = entry(line, sum(b"").len()) else {
            all.malformed += 1;
            if call.warns && is_gnu {
                let kind = name.trim_end_matches("sum").to_ascii_uppercase();
                player.complain(&format!(
                    "{name}: {path}: {}: improperly formatted {kind} checksum line\n",
                    at + 1
                ));
            }
            continue;
        };
        if call.ignores_missing && player.file(file).is_none() {
            continue;
        }
        let status = player.status;
        let found = content(player, name, file).map(|text| sum(&byte_text::bytes_of(&text)));
        player.status = status;
        all.checked += 1;
        let told = match &found {
            Some(found) if found.eq_ignore_ascii_case(wanted) => "OK",
            None if is_gnu => {
                all.unread += 1;
                "FAILED open or read"
            }
            _ => {
                all.wrong += 1;
                "FAILED"
            }
        };
        let is_told = told != "OK" || !call.is_quiet;
        if is_told && !call.is_silent {
            player.say(&format!("{file}: {told}\n"));
        }
    }
    sum_up(player, call, (name, path), &all, is_gnu)
}

/// The sum and the file of a line.
fn entry(line: &str, digits: usize) -> Option<(&str, &str)> {
    let (sum, file) = match line.split_once(" = ") {
        // As `--tag` writes it.
        Some((tag, sum)) => (sum, tag.split_once(" (")?.1.strip_suffix(')')?),
        None => line.split_once([' ', '\t'])?,
    };
    let is_sum = sum.len() == digits && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let file = file.trim_start_matches([' ', '*']);
    (is_sum && !file.is_empty()).then_some((sum, file))
}

/// What is wrong with a list, in the words of whose program it is; whether nothing is.
fn sum_up(
    player: &mut Player<'_>,
    call: &SumCall<'_>,
    (name, path): (&str, &str),
    all: &SumCheck,
    is_gnu: bool,
) -> bool {
    let shown = if path == "-" { "'standard input'" } else { path };
    if all.checked == 0 && (!call.ignores_missing || all.malformed > 0) {
        let why =
            if is_gnu { "no properly formatted checksum lines found" } else { "no checksum lines found" };
        player.complain(&format!("{name}: {shown}: {why}\n"));
        return false;
    }
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("{name}: WARNING: 1 {one}\n")),
        count => Some(format!("{name}: WARNING: {count} {many}\n")),
    };
    let said = if is_gnu {
        vec![
            counted(all.malformed, "line is improperly formatted", "lines are improperly formatted"),
            counted(all.unread, "listed file could not be read", "listed files could not be read"),
            counted(all.wrong, "computed checksum did NOT match", "computed checksums did NOT match"),
            (all.checked == 0).then(|| format!("{name}: {shown}: no file was verified\n")),
        ]
    } else {
        let SumCheck { checked, wrong, .. } = all;
        let why = format!("{name}: WARNING: {wrong} of {checked} computed checksums did NOT match\n");
        vec![(*wrong > 0).then_some(why)]
    };
    if !call.is_silent {
        said.into_iter().flatten().for_each(|text| player.complain(&text));
    }
    all.wrong + all.unread == 0 && all.checked > 0 && !(call.is_strict && all.malformed > 0)
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
                "/f: FAILED\nsha256sum: WARNING: 1 of 1 computed checksums did NOT match\n",
            ),
            ("printf a > /f; md5sum --tag /f | md5sum -c", 0, "/f: OK\n"),
            (
                "printf a > /f; md5sum /f /f > /s; sed -i '1s,/f,/none,' /s; md5sum -c --ignore-missing /s",
                0,
                "/f: OK\n",
            ),
            (
                "echo x | md5sum -c --status; echo $?",
                0,
                "1\nmd5sum: 'standard input': no checksum lines found\n",
            ),
            ("md5sum --nonsense", 1, "md5sum: unrecognized option '--nonsense'\n"),
        ] {
            assert_eq!(said(script), (code, wanted.to_owned()), "{script}");
        }
    }

    #[test]
    fn gnus_words_are_others() {
        let around = Surroundings { image: "debian:12".to_owned(), ..Surroundings::default() };
        let said = |script: &str| {
            let words = ["bash", "-c", script].map(str::to_owned);
            let ran = exec(&words, &around, vec![], Some(vec![])).unwrap();
            (ran.end.unwrap().1, ran.out + &ran.errors)
        };
        let make = "printf a > /f; sha1sum /f > /s; sed 's,/f,/none,' /s >> /s; ";
        let (code, told) = said(&format!("{make} sha1sum -c /s"));
        let wanted = "/f: OK\n/none: FAILED open or read\nsha1sum: /none: No such file or directory\n\
            sha1sum: WARNING: 1 listed file could not be read\n";
        assert_eq!((code, told.as_str()), (1, wanted));
        assert_eq!(said(&format!("{make} sha1sum -c --ignore-missing /s")), (0, "/f: OK\n".to_owned()));
        let (code, told) = said("printf a > /f; sha1sum /f /f > /s; echo >> /f; sha1sum -c --quiet /s");
        let wanted = "/f: FAILED\n/f: FAILED\nsha1sum: WARNING: 2 computed checksums did NOT match\n";
        assert_eq!((code, told.as_str()), (1, wanted));
        let (code, told) = said("printf a > /f; { sha1sum /f; echo x; } > /s; sha1sum -cw --strict /s");
        let wanted = "/f: OK\nsha1sum: /s: 2: improperly formatted SHA1 checksum line\n\
            sha1sum: WARNING: 1 line is improperly formatted\n";
        assert_eq!((code, told.as_str()), (1, wanted));
    }
}
