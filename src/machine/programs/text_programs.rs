//! Programs that read texts: `grep`, `head`, `wc` and their kin.

use super::awk;
use super::comparing;
use super::dumps;
use super::ends;
use super::input::{input, read};
use super::matching::compiled;
use super::names::base_name;
use crate::byte_text;
use crate::interpreter::player::Player;

const PROGRAMS: &[&str] =
    &["awk", "grep", "egrep", "fgrep", "head", "wc", "base64", "basename", "dirname", "diff", "cmp"];

pub(crate) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name) || dumps::is_known(name)
}

/// So long are the lines of `base64`.
const BASE64_COLUMNS: usize = 76;

/// Runs one of them.
pub(crate) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let (flags, rest): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    match name {
        "awk" => awk::run(player, words),
        "grep" | "egrep" | "fgrep" => grep(player, name, words),
        "head" => ends::head(player, words),
        "wc" => wc(player, &flags, &rest),
        "diff" => comparing::diff(player, &flags, &rest),
        "cmp" => comparing::cmp(player, &flags, &rest),
        "base64" => base64(player, words),
        _ if dumps::is_known(name) => dumps::run(player, name, words),
        "basename" => basename(player, words),
        "dirname" => {
            let folder =
                rest.first().and_then(|path| path.rsplit_once('/')).map_or(".", |(folder, _)| folder);
            player.say(&format!("{folder}\n"));
        }
        _ => {}
    }
}

/// `basename PATH [SUFFIX]`, `basename -a [-s SUFFIX] PATH...`
fn basename(player: &mut Player<'_>, words: &[&str]) {
    let mut suffix = None;
    let mut takes_all = false;
    let mut paths = vec![];
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-a" | "--multiple" => takes_all = true,
            "-s" => {
                suffix = words.next();
                takes_all = true;
            }
            "--" => {}
            path => paths.push(path),
        }
    }
    if paths.is_empty() {
        return player.fail("basename: missing operand\n");
    }
    if !takes_all {
        suffix = paths.get(1).copied();
        paths.truncate(1);
    }
    for path in paths {
        let whole = path.trim_end_matches('/');
        let name = if whole.is_empty() && !path.is_empty() { "/" } else { base_name(whole) };
        let stem = suffix.and_then(|suffix| name.strip_suffix(suffix)).filter(|stem| !stem.is_empty());
        player.say(&format!("{}\n", stem.unwrap_or(name)));
    }
}

/// What `grep` is told.
#[derive(Default)]
struct GrepCall<'w> {
    patterns: Vec<&'w str>,
    paths: Vec<&'w str>,
    flags: String,
    before: usize,
    after: usize,
    most: Option<usize>,
}

impl<'w> GrepCall<'w> {
    fn read(words: &[&'w str]) -> GrepCall<'w> {
        let mut call = GrepCall::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word.starts_with("--") || !word.starts_with('-') || word.len() == 1 {
                match *word {
                    "--" | "--color=auto" | "--line-buffered" => {}
                    word if call.patterns.is_empty() && !call.flags.contains('e') => call.patterns.push(word),
                    word => call.paths.push(word),
                }
                continue;
            }
            let letters = word[1..].char_indices();
            for (at, letter) in letters {
                let mut value = || {
                    let rest = &word[at + 2..];
                    if rest.is_empty() { words.next().copied().unwrap_or_default() } else { rest }
                };
                match letter {
                    'e' => {
                        call.flags.push('e');
                        call.patterns.push(value());
                        break;
                    }
                    'A' | 'B' | 'C' | 'm' => {
                        let count = value().parse().unwrap_or(0);
                        call.before = if matches!(letter, 'B' | 'C') { count } else { call.before };
                        call.after = if matches!(letter, 'A' | 'C') { count } else { call.after };
                        call.most = if letter == 'm' { Some(count) } else { call.most };
                        break;
                    }
                    letter => call.flags.push(letter),
                }
            }
        }
        call
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// All patterns as one; nothing when none was given.
    fn pattern(&self, name: &str) -> Option<String> {
        let one = |pattern: &&str| match name {
            "fgrep" => regex::escape(pattern),
            _ if self.has('F') => regex::escape(pattern),
            "egrep" => (*pattern).to_owned(),
            _ if self.has('E') || self.has('P') => (*pattern).to_owned(),
            _ => super::patterns::basic(pattern),
        };
        let all: Vec<String> = self.patterns.iter().map(one).collect();
        let joined = all.join("|");
        let whole = match (self.has('x'), self.has('w')) {
            (true, _) => format!("^(?:{joined})$"),
            (_, true) => format!(r"\b(?:{joined})\b"),
            _ => joined,
        };
        let case = if self.has('i') { "(?i)" } else { "" };
        (!all.is_empty()).then(|| format!("{case}{whole}"))
    }
}

fn grep(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let call = GrepCall::read(words);
    let Some(pattern) = call.pattern(name) else { return player.status = 2 };
    let Some(pattern) = compiled(player, pattern) else { return player.status = 2 };
    let paths = grepped(player, &call);
    let named = (paths.len() > 1 || call.has('r') || call.has('R') || call.has('H')) && !call.has('h');
    let mut said = String::new();
    let mut is_found = false;
    for path in if paths.is_empty() { vec![None] } else { paths.iter().map(Some).collect() } {
        let text = match path {
            None => Some(player.input()),
            Some(path) if call.has('s') && player.file(path).is_none() => None,
            Some(path) => read(player, "grep", path),
        };
        let Some(text) = text else {
            player.status = 2;
            continue;
        };
        let before = path.filter(|_| named).map(|path| format!("{path}:")).unwrap_or_default();
        is_found |= grep_text(player, &call, (&pattern, &before), &text, &mut said);
        if let Some(path) = path.filter(|_| call.has('l') && is_found) {
            said = format!("{said}{path}\n");
        }
    }
    if player.status != 2 {
        player.status = i32::from(!is_found);
    }
    if !call.has('q') {
        player.say(&said);
    }
}

/// The files that are named; of folders all below them.
fn grepped(player: &mut Player<'_>, call: &GrepCall<'_>) -> Vec<String> {
    if !call.has('r') && !call.has('R') {
        return call.paths.iter().map(ToString::to_string).collect();
    }
    let roots = if call.paths.is_empty() { vec!["."] } else { call.paths.clone() };
    let mut all = Vec::new();
    for root in roots {
        let full = player.real_path(root);
        let files = player.files();
        let below =
            files.iter().filter(|(path, file)| !file.is_folder && crate::file_system::is_within(&full, path));
        all.extend(below.map(|(path, _)| path.clone()));
    }
    all
}

/// Says what is found in one text. Whether anything is.
fn grep_text(
    player: &mut Player<'_>,
    call: &GrepCall<'_>,
    (pattern, before): (&regex::Regex, &str),
    text: &str,
    said: &mut String,
) -> bool {
    let all: Vec<&str> = text.lines().collect();
    let hits = all.iter().enumerate().filter(|(_, line)| pattern.is_match(line) != call.has('v'));
    let hits: Vec<usize> = hits.map(|(at, _)| at).take(call.most.unwrap_or(usize::MAX)).collect();
    player.handle(text.len());
    if call.has('c') {
        said.push_str(&format!("{before}{}\n", hits.len()));
    } else if call.has('o') {
        let found = hits.iter().flat_map(|at| pattern.find_iter(all[*at]));
        let found = found.filter(|found| !found.is_empty());
        said.extend(found.map(|found| format!("{before}{}\n", found.as_str())));
    } else if !call.has('l') && !call.has('q') {
        let mut shown = std::collections::BTreeSet::new();
        for at in &hits {
            shown.extend(at.saturating_sub(call.before)..=at.saturating_add(call.after).min(all.len() - 1));
            if !player.handle(32 * (call.before.min(all.len()) + call.after.min(all.len()))) {
                break;
            }
        }
        for at in shown {
            let number = if call.has('n') { format!("{}:", at + 1) } else { String::new() };
            said.push_str(&format!("{before}{number}{}\n", all[at]));
        }
    }
    !hits.is_empty()
}

/// Lines, words, letters and bytes.
type Counts = [usize; 4];

/// Each file for itself, and all of them together when there are several.
fn wc(player: &mut Player<'_>, flags: &[&str], paths: &[&str]) {
    let asked: String = flags.iter().flat_map(|flag| flag.chars()).collect();
    let said = |counts: &Counts| {
        let wanted = ['l', 'w', 'm', 'c'].iter().zip(counts).filter(|(flag, _)| asked.contains(**flag));
        let numbers: Vec<String> = wanted.map(|(_, count)| count.to_string()).collect();
        match numbers.as_slice() {
            [] => [counts[0], counts[1], counts[3]].map(|count| format!("{count:>9}")).join(" "),
            [number] => number.clone(),
            numbers => numbers.iter().map(|number| format!("{number:>9}")).collect::<Vec<_>>().join(" "),
        }
    };
    if paths.is_empty() {
        let counts = counted(&player.input());
        return player.say(&format!("{}\n", said(&counts)));
    }
    let mut total = Counts::default();
    let mut status = 0;
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
    let letters = byte_text::shown(text).chars().count();
    [text.matches('\n').count(), text.split_whitespace().count(), letters, byte_text::byte_count(text)]
}

/// `base64 [-d] [-w COLUMNS] [FILE]`
fn base64(player: &mut Player<'_>, words: &[&str]) {
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    let mut columns = BASE64_COLUMNS;
    let mut decodes = false;
    let mut paths = vec![];
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let width = match word {
            "-" => continue,
            "-w" | "--wrap" => words.next(),
            _ => word.strip_prefix("--wrap=").or(word.strip_prefix("-w")),
        };
        match width {
            Some(width) => columns = width.parse().unwrap_or(BASE64_COLUMNS),
            None if word.starts_with('-') => decodes |= word == "--decode" || word.contains('d'),
            None => paths.push(word),
        }
    }
    let Some(text) = input(player, "base64", &paths) else { return };
    if !decodes {
        return player.say(&wrapped(&engine.encode(byte_text::bytes_of(&text).as_ref()), columns));
    }
    let letters: String = text.split_whitespace().collect();
    match engine.decode(letters) {
        Ok(bytes) => player.say_bytes(&bytes),
        Err(_) => player.fail("base64: invalid input\n"),
    }
}

/// Lines of so many letters; of none, one that has no end.
fn wrapped(letters: &str, columns: usize) -> String {
    if columns == 0 {
        return letters.to_owned();
    }
    let lines = letters.as_bytes().chunks(columns).map(String::from_utf8_lossy);
    lines.flat_map(|line| [line, "\n".into()]).collect()
}
