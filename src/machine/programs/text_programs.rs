//! Programs that read texts: `grep`, `head`, `wc` and their kin.

use std::collections::HashMap;

use super::awk;
use super::input::{input, read};
use super::names::base_name;
use crate::interpreter::player::Player;

const PROGRAMS: &[&str] =
    &["awk", "grep", "head", "wc", "sort", "uniq", "tr", "cut", "base64", "basename", "dirname", "hexdump"];
/// A compiled pattern is no bigger, and making one is counted as so many bytes of text.
const MAX_PATTERN_BYTES: usize = 1 << 18;

pub(crate) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name)
}

/// Runs one of them.
pub(crate) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let (flags, rest): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    match name {
        "awk" => awk::run(player, words),
        "grep" => grep(player, &flags, &rest),
        "head" => {
            let (count, paths) = count(words);
            let Some(text) = input(player, name, &paths) else { return };
            lines(player, text.lines().take(count));
        }
        "wc" => wc(player, &flags, &rest),
        "sort" | "uniq" => {
            let Some(text) = input(player, name, &rest) else { return };
            let mut all: Vec<&str> = text.lines().collect();
            if name == "sort" {
                all.sort_unstable();
            }
            if name == "uniq" || flags.contains(&"-u") {
                all.dedup();
            }
            lines(player, all.into_iter());
        }
        "tr" => tr(player, &flags, &rest),
        "cut" => cut(player, words),
        "base64" => base64(player, &flags, &rest),
        "hexdump" => hexdump(player, &rest),
        "basename" => {
            let name = rest.first().map(|path| base_name(path)).unwrap_or_default();
            player.say(&format!("{name}\n"));
        }
        "dirname" => {
            let folder =
                rest.first().and_then(|path| path.rsplit_once('/')).map_or(".", |(folder, _)| folder);
            player.say(&format!("{folder}\n"));
        }
        _ => {}
    }
}

/// Whether `tail` with these words follows nothing.
pub(crate) fn is_plain_tail(words: &[&str]) -> bool {
    !words.iter().any(|word| matches!(*word, "-f" | "-F"))
}

/// `tail` without following.
pub(crate) fn tail(player: &mut Player<'_>, words: &[&str]) {
    let (count, paths) = count(words);
    if let Some(text) = input(player, "tail", &paths) {
        let all: Vec<&str> = text.lines().collect();
        lines(player, all[all.len().saturating_sub(count)..].iter().copied());
    }
}

/// `-n 3`, `-n3` or `-3`, and the other words.
fn count<'a>(words: &[&'a str]) -> (usize, Vec<&'a str>) {
    let (mut count, mut paths, mut words) = (10, vec![], words.iter());
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some("n") => count = words.next().and_then(|number| number.parse().ok()).unwrap_or(count),
            Some(flag) => count = flag.trim_start_matches('n').parse().unwrap_or(count),
            None => paths.push(*word),
        }
    }
    (count, paths)
}

fn lines<'a>(player: &mut Player<'_>, lines: impl Iterator<Item = &'a str>) {
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    player.say(&text);
}

fn grep(player: &mut Player<'_>, flags: &[&str], rest: &[&str]) {
    let Some((pattern, paths)) = rest.split_first() else { return };
    let has = |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
    let Some(text) = input(player, "grep", paths) else { return player.status = 2 };
    let pattern = if has('F') { regex::escape(pattern) } else { (*pattern).to_owned() };
    let pattern = if has('i') { format!("(?i){pattern}") } else { pattern };
    let Some(pattern) = compiled(player, pattern) else { return player.status = 2 };
    let found: Vec<&str> = text.lines().filter(|line| pattern.is_match(line) != has('v')).collect();
    player.status = i32::from(found.is_empty());
    if has('c') {
        player.say(&format!("{}\n", found.len()));
    } else if !has('q') {
        lines(player, found.into_iter());
    }
}

/// The pattern that was looked for last is at hand.
fn compiled(player: &mut Player<'_>, pattern: String) -> Option<regex::Regex> {
    if let Some((_, last)) = player.last_pattern.as_ref().filter(|(last, _)| *last == pattern) {
        return Some(last.clone());
    }
    player.handle(MAX_PATTERN_BYTES);
    let regex = regex::RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_BYTES).build().ok()?;
    player.last_pattern = Some((pattern, regex.clone()));
    Some(regex)
}

/// Lines, words and bytes.
type Counts = [usize; 3];

/// Each file for itself, and all of them together when there are several.
fn wc(player: &mut Player<'_>, flags: &[&str], paths: &[&str]) {
    let asked: String = flags.iter().flat_map(|flag| flag.chars()).collect();
    let said = |counts: &Counts| {
        let wanted = ['l', 'w', 'c'].iter().zip(counts).filter(|(flag, _)| asked.contains(**flag));
        let numbers: Vec<String> = wanted.map(|(_, count)| count.to_string()).collect();
        match numbers.as_slice() {
            [] => counts.map(|count| format!("{count:>9}")).join(" "),
            [number] => number.clone(),
            numbers => numbers.iter().map(|number| format!("{number:>9}")).collect::<Vec<_>>().join(" "),
        }
    };
    if paths.is_empty() {
        let counts = counted(&player.input());
        return player.say(&format!("{}\n", said(&counts)));
    }
    let (mut total, mut status) = ([0; 3], 0);
    for path in paths {
        let Some(text) = read(player, "wc", path) else {
            status = 1;
            continue;
        };
        let counts = counted(&text);
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        player.say(&format!("{} {path}\n", said(&counts)));
    }
    if paths.len() > 1 {
        player.say(&format!("{} total\n", said(&total)));
    }
    player.status = status;
}

fn counted(text: &str) -> Counts {
    [text.matches('\n').count(), text.split_whitespace().count(), text.len()]
}

/// Single characters, the usual classes, and `-d`.
fn tr(player: &mut Player<'_>, flags: &[&str], rest: &[&str]) {
    let set = |text: &str| -> Vec<char> {
        match text {
            "[:lower:]" | "a-z" => ('a'..='z').collect(),
            "[:upper:]" | "A-Z" => ('A'..='Z').collect(),
            "\\n" => vec!['\n'],
            text => text.chars().collect(),
        }
    };
    let text = player.input();
    let from = rest.first().map(|text| set(text)).unwrap_or_default();
    // Of a character that is named twice the first place counts.
    let from: HashMap<char, usize> = from.into_iter().enumerate().rev().map(|(at, c)| (c, at)).collect();
    let to = rest.get(1).map(|text| set(text)).unwrap_or_default();
    let said: String = if flags.contains(&"-d") {
        text.chars().filter(|c| !from.contains_key(c)).collect()
    } else {
        let swap = |c: char| match from.get(&c) {
            Some(at) => to.get(*at).or(to.last()).copied().unwrap_or(c),
            None => c,
        };
        text.chars().map(swap).collect()
    };
    player.say(&said);
}

/// `cut -d: -f2`
fn cut(player: &mut Player<'_>, words: &[&str]) {
    let (mut delimiter, mut field, mut paths, mut words) = ("\t", 1usize, vec![], words.iter());
    while let Some(word) = words.next() {
        let mut value = |flag: &str| match word.strip_prefix(flag) {
            Some("") => words.next().copied(),
            value => value,
        };
        if let Some(given) = value("-d") {
            delimiter = given;
        } else if let Some(given) = value("-f") {
            field = given.parse().unwrap_or(1);
        } else {
            paths.push(*word);
        }
    }
    let Some(text) = input(player, "cut", &paths) else { return };
    let piece = |line: &str| {
        if line.contains(delimiter) {
            line.split(delimiter).nth(field.saturating_sub(1)).unwrap_or_default().to_owned()
        } else {
            line.to_owned()
        }
    };
    let pieces: Vec<String> = text.lines().map(piece).collect();
    lines(player, pieces.iter().map(String::as_str));
}

fn base64(player: &mut Player<'_>, flags: &[&str], paths: &[&str]) {
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    let Some(text) = input(player, "base64", paths) else { return };
    if !flags.iter().any(|flag| matches!(*flag, "-d" | "--decode")) {
        return player.say(&format!("{}\n", engine.encode(text)));
    }
    match engine.decode(text.trim()) {
        Ok(bytes) => player.say(&String::from_utf8_lossy(&bytes)),
        Err(_) => player.fail("base64: invalid input\n"),
    }
}

/// `hexdump -C`, of a file that a volume shows.
fn hexdump(player: &mut Player<'_>, paths: &[&str]) {
    let Some(file) = paths.first().and_then(|path| player.file(path)) else {
        return player.fail("hexdump: No such file or directory\n");
    };
    let mut said = String::new();
    for (at, row) in file.content.chunks(16).enumerate() {
        let half =
            |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let hex = format!("{}  {}", half(&row[..row.len().min(8)]), half(row.get(8..).unwrap_or_default()));
        let shown = |byte: &u8| if (0x20..0x7f).contains(byte) { *byte as char } else { '.' };
        let text: String = row.iter().map(shown).collect();
        said.push_str(&format!("{:08x}  {hex:<48}  |{text}|\n", at * 16));
    }
    said.push_str(&format!("{:08x}\n", file.content.len()));
    player.say(&said);
}
