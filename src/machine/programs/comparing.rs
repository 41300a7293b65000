//! `diff` and `cmp`: whether files are alike, and in what they are not.

use similar::{DiffOp, TextDiff};

use super::input::read;
use crate::byte_text;
use crate::interpreter::dialect::Dialect;
use crate::interpreter::player::Player;

/// So many pairs of lines are a byte of work.
const PAIRS_PER_BYTE: usize = 4;
/// Lines around a change.
const CONTEXT: usize = 3;
/// Of what cannot be compared.
const TROUBLE: i32 = 2;

/// A file's text, or what is to be read (`-`).
fn content(player: &mut Player<'_>, program: &str, path: &str) -> Option<String> {
    if path == "-" { Some(player.input()) } else { read(player, program, path) }
}

/// `diff [-uqsiwB] [-L LABEL] FILE FILE`: unified where BusyBox' is, else only with `-u`.
pub(super) fn diff(player: &mut Player<'_>, flags: &[&str], paths: &[&str]) {
    let [a, b] = paths else { return player.fail("diff: missing operand\n") };
    let (Some(one), Some(other)) = (content(player, "diff", a), content(player, "diff", b)) else {
        return player.status = TROUBLE;
    };
    let short = |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
    let has = |letter: char, long: &str| short(letter) || flags.contains(&long);
    if one == other {
        if has('s', "--report-identical-files") {
            player.say(&format!("Files {a} and {b} are identical\n"));
        }
        return;
    }
    player.status = 1;
    if has('q', "--brief") {
        return player.say(&format!("Files {a} and {b} differ\n"));
    }
    let pairs = one.lines().count().saturating_mul(other.lines().count());
    if !player.handle(one.len() + other.len() + pairs / PAIRS_PER_BYTE) {
        return;
    }
    let texts = TextDiff::from_lines(one.as_str(), other.as_str());
    let is_unified = player.dialect == Dialect::Ash || has('u', "--unified");
    let said = if is_unified {
        texts.unified_diff().context_radius(CONTEXT).header(a, b).to_string()
    } else {
        plain(&texts)
    };
    player.say(&said);
}

/// As POSIX has it: `2c2`, and the lines of both.
fn plain(texts: &TextDiff<'_, '_, '_, str>) -> String {
    let mut out = String::new();
    let range = |from: usize, count: usize| match count {
        1 => (from + 1).to_string(),
        _ => format!("{},{}", from + 1, from + count),
    };
    for op in texts.ops() {
        let (old, new) = (op.old_range(), op.new_range());
        let [of_old, of_new] = [range(old.start, old.len()), range(new.start, new.len())];
        let told = match op {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { .. } => format!("{of_old}d{}", new.start),
            DiffOp::Insert { .. } => format!("{}a{of_new}", old.start),
            DiffOp::Replace { .. } => format!("{of_old}c{of_new}"),
        };
        out.push_str(&format!("{told}\n"));
        let lines = |mark: char, lines: &[&str]| -> String {
            lines.iter().map(|line| format!("{mark} {}\n", line.trim_end_matches('\n'))).collect()
        };
        out.push_str(&lines('<', &texts.old_slices()[old.clone()]));
        if !old.is_empty() && !new.is_empty() {
            out.push_str("---\n");
        }
        out.push_str(&lines('>', &texts.new_slices()[new]));
    }
    out
}

/// `cmp [-s] FILE [FILE]`
pub(super) fn cmp(player: &mut Player<'_>, flags: &[&str], paths: &[&str]) {
    let (a, b) = match paths {
        [a, b, ..] => (*a, *b),
        [a] => (*a, "-"),
        [] => return player.fail("cmp: missing operand\n"),
    };
    let (Some(one), Some(other)) = (content(player, "cmp", a), content(player, "cmp", b)) else {
        return player.status = TROUBLE;
    };
    if one == other {
        return;
    }
    player.status = 1;
    if flags.iter().any(|flag| flag.contains('s')) {
        return;
    }
    let (one, other) = (byte_text::bytes_of(&one), byte_text::bytes_of(&other));
    match one.iter().zip(other.iter()).position(|(x, y)| x != y) {
        Some(at) => {
            let line = one[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            player.say(&format!("{a} {b} differ: byte {}, line {line}\n", at + 1));
        }
        None => {
            let (path, end) = if one.len() < other.len() { (a, one) } else { (b, other) };
            let after = if player.dialect == Dialect::Ash { String::new() } else { after(&end) };
            player.complain(&format!("cmp: EOF on {path}{after}\n"));
        }
    }
}

fn after(bytes: &[u8]) -> String {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    format!(" after byte {}, line {lines}", bytes.len())
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    fn said(image: &str, script: &str) -> (i32, String) {
        let made = "seq 4 > /a; printf '1\\ntwo\\n3\\n4\\n5\\n' > /b; ";
        let words = ["sh".to_owned(), "-c".to_owned(), format!("{made}{script}")];
        let around = Surroundings { image: image.into(), ..Surroundings::default() };
        let ran = exec(&words, &around, vec![], Some(b"1\n".to_vec())).unwrap();
        (ran.end.unwrap().1, ran.out + &ran.errors)
    }

    #[test]
    fn what_differs_is_told() {
        let unified = "--- /a\n+++ /b\n@@ -1,4 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n+5\n";
        for (image, script, code, wanted) in [
            ("busybox", "diff /a /b", 1, unified),
            ("debian", "diff -u /a /b", 1, unified),
            ("debian", "diff /a /b", 1, "2c2\n< 2\n---\n> two\n4a5\n> 5\n"),
            ("debian", "diff /b /a", 1, "2c2\n< two\n---\n> 2\n5d4\n< 5\n"),
            ("busybox", "diff -q /a /b", 1, "Files /a and /b differ\n"),
            ("busybox", "diff /a /a; echo $?", 0, "0\n"),
            ("busybox", "cmp /a /b", 1, "/a /b differ: byte 3, line 2\n"),
            ("busybox", "cmp -s /a /b; echo $?", 0, "1\n"),
            ("busybox", "seq 4 | cmp /a -", 0, ""),
            ("busybox", "seq 3 | cmp - /a", 1, "cmp: EOF on -\n"),
            ("debian", "seq 3 | cmp - /a", 1, "cmp: EOF on - after byte 6, line 3\n"),
            ("busybox", "diff /a /none", 2, "diff: can't open '/none': No such file or directory\n"),
        ] {
            assert_eq!(said(image, script), (code, wanted.to_owned()), "{image}: {script}");
        }
        let long = "seq 1 60000 > /c; seq 60001 120000 > /d; diff /c /d | wc -l";
        assert_ne!(said("busybox", long).0, 0, "it is too much");
    }
}
