//! Programs that order, cut and exchange what is in lines: `sort`, `uniq`, `cut`, `tr` and their kin.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::input::input;
use crate::byte_text;
use crate::interpreter::pattern;
use crate::interpreter::player::Player;

pub(super) const NAMES: &[&str] = &["sort", "uniq", "tr", "cut", "paste", "rev", "tac", "nl", "envsubst"];
/// A set of letters has no more than these.
const MAX_LETTERS: usize = 4096;

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let said = match name {
        "sort" => sort(player, words),
        "uniq" => uniq(player, words),
        "cut" => cut(player, words),
        "tr" => tr(player, words),
        "paste" => paste(player, words),
        "envsubst" => Some(substituted(player)),
        _ => {
            let paths: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
            input(player, name, &paths).map(|text| turned(name, &text))
        }
    };
    if let Some(said) = said {
        player.say(&said);
    }
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn turned(name: &str, text: &str) -> String {
    match name {
        "tac" => joined(text.lines().rev()),
        "rev" => text.lines().map(|line| line.chars().rev().chain(['\n']).collect::<String>()).collect(),
        _ => text.lines().enumerate().map(|(at, line)| format!("{:>6}\t{line}\n", at + 1)).collect(),
    }
}

/// Variables of a text filled in.
fn substituted(player: &mut Player<'_>) -> String {
    let text = player.input();
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let is_braced = rest.starts_with('{');
        let inner = rest.strip_prefix('{').unwrap_or(rest);
        let length = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let is_whole = length > 0 && (!is_braced || inner[length..].starts_with('}'));
        if !is_whole {
            out.push('$');
            continue;
        }
        let value = player.variable(&inner[..length]);
        if !player.handle(value.len()) {
            break;
        }
        out.push_str(&value);
        rest = &inner[length + usize::from(is_braced)..];
    }
    out + rest
}

/// What `sort` goes by.
#[derive(Default)]
struct SortOrder {
    is_number: bool,
    is_reversed: bool,
    is_unique: bool,
    ignores_case: bool,
    is_version: bool,
    separator: Option<char>,
    /// The field, from 1, and the last one.
    key: Option<(usize, Option<usize>)>,
}

fn sort(player: &mut Player<'_>, words: &[&str]) -> Option<String> {
    let mut order = SortOrder::default();
    let mut paths = vec![];
    let mut target = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            paths.push(*word);
            continue;
        };
        let letters = flags.char_indices();
        for (at, letter) in letters {
            let mut value = || {
                let rest = &flags[at + 1..];
                if rest.is_empty() { words.next().copied().unwrap_or_default() } else { rest }
            };
            match letter {
                'k' => {
                    order.set_key(value());
                    break;
                }
                't' => {
                    order.separator = value().chars().next();
                    break;
                }
                'o' => {
                    target = Some(value());
                    break;
                }
                letter => order.set(letter),
            }
        }
    }
    let text = input(player, "sort", &paths)?;
    let mut lines: Vec<&str> = text.lines().collect();
    player.handle(text.len() * 4);
    lines.sort_by(|a, b| order.compare(a, b));
    if order.is_unique {
        lines.dedup_by(|a, b| order.compare_keys(a, b).is_eq());
    }
    let said = joined(lines.into_iter());
    match target {
        Some(path) => {
            if let Err(why) = player.write_file(path, byte_text::bytes_of(&said).into_owned()) {
                player.fail(&format!("sort: {path}: {why}\n"));
            }
            None
        }
        None => Some(said),
    }
}

impl SortOrder {
    fn set(&mut self, letter: char) {
        match letter {
            'n' | 'g' | 'h' => self.is_number = true,
            'r' => self.is_reversed = true,
            'u' => self.is_unique = true,
            'f' => self.ignores_case = true,
            'V' => self.is_version = true,
            _ => {}
        }
    }

    /// `2`, `2,3`, `2nr`
    fn set_key(&mut self, text: &str) {
        let number = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text[..end].parse::<usize>().ok()
        };
        let (first, last) = text.split_once(',').map_or((text, None), |(first, last)| (first, Some(last)));
        text.chars().filter(char::is_ascii_alphabetic).for_each(|letter| self.set(letter));
        self.key = number(first).map(|first| (first.max(1), last.and_then(number)));
    }

    fn key<'l>(&self, line: &'l str) -> &'l str {
        let Some((first, last)) = self.key else { return line };
        let place = |field: &str| field.as_ptr() as usize - line.as_ptr() as usize;
        let fields: Vec<&str> = match self.separator {
            Some(separator) => line.split(separator).collect(),
            None => line.split_whitespace().collect(),
        };
        let Some(from) = fields.get(first - 1) else { return "" };
        let end = last.and_then(|last| fields.get(last.max(first) - 1));
        &line[place(from)..end.map_or(line.len(), |end| place(end) + end.len())]
    }

    fn compare_keys(&self, a: &str, b: &str) -> Ordering {
        let (a, b) = (self.key(a), self.key(b));
        if self.is_number {
            return number(a).total_cmp(&number(b));
        }
        if self.is_version {
            return version(a).cmp(&version(b));
        }
        if self.ignores_case {
            return a.to_lowercase().cmp(&b.to_lowercase());
        }
        a.cmp(b)
    }

    fn compare(&self, a: &str, b: &str) -> Ordering {
        // Equal keys are ordered by the whole line.
        let order = self.compare_keys(a, b);
        let order = if order.is_eq() && !self.is_unique { a.cmp(b) } else { order };
        if self.is_reversed { order.reverse() } else { order }
    }
}

/// The number that a text begins with.
fn number(text: &str) -> f64 {
    let text = text.trim_start();
    let end = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || *at == 0 && *c == '-'))
        .map_or(text.len(), |(at, _)| at);
    text[..end].parse().unwrap_or(0.0)
}

/// Numbers within a text count as numbers.
fn version(text: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[letters..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - letters);
        let number = rest[letters..letters + digits].parse().unwrap_or(0);
        parts.push((rest[..letters].to_owned(), number));
        rest = &rest[letters + digits..];
    }
    parts
}

fn uniq(player: &mut Player<'_>, words: &[&str]) -> Option<String> {
    let has = |flag: &str| words.contains(&flag);
    let paths: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let text = input(player, "uniq", &paths)?;
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for line in text.lines() {
        match groups.last_mut().filter(|(last, _)| *last == line) {
            Some((_, count)) => *count += 1,
            None => groups.push((line, 1)),
        }
    }
    let is_shown = |count: usize| (!has("-d") || count > 1) && (!has("-u") || count == 1);
    let groups = groups.into_iter().filter(|(_, count)| is_shown(*count));
    let line = |(line, count)| if has("-c") { format!("{count:>7} {line}\n") } else { format!("{line}\n") };
    Some(groups.map(line).collect())
}

/// `cut -d: -f2-`, `cut -c1-3`
fn cut(player: &mut Player<'_>, words: &[&str]) -> Option<String> {
    let mut delimiter = "\t";
    let mut ranges = vec![];
    let mut by_letter = false;
    let mut paths = vec![];
    let (mut only_delimited, mut words) = (false, words.iter());
    while let Some(word) = words.next() {
        let mut value = |flag: &str| match word.strip_prefix(flag) {
            Some("") => words.next().copied(),
            value => value,
        };
        if let Some(given) = value("-d") {
            delimiter = given;
        } else if let Some(given) = value("-f") {
            ranges = self::ranges(given);
        } else if let Some(given) = value("-c").or_else(|| value("-b")) {
            (ranges, by_letter) = (self::ranges(given), true);
        } else if *word == "-s" {
            only_delimited = true;
        } else {
            paths.push(*word);
        }
    }
    let text = input(player, "cut", &paths)?;
    let is_in = |at: usize| ranges.iter().any(|(first, last)| (*first..=*last).contains(&at));
    let mut out = String::new();
    for line in text.lines() {
        if by_letter {
            out.extend(line.chars().enumerate().filter(|(at, _)| is_in(at + 1)).map(|(_, c)| c));
        } else if delimiter.is_empty() || !line.contains(delimiter) {
            if only_delimited {
                continue;
            }
            out.push_str(line);
        } else {
            let fields = line.split(delimiter).enumerate().filter(|(at, _)| is_in(at + 1));
            out.push_str(&fields.map(|(_, field)| field).collect::<Vec<_>>().join(delimiter));
        }
        out.push('\n');
    }
    Some(out)
}

/// `1,3-5,7-`
fn ranges(text: &str) -> Vec<(usize, usize)> {
    let range = |part: &str| {
        let Some((first, last)) = part.split_once('-') else {
            return part.parse().ok().map(|at| (at, at));
        };
        let first = if first.is_empty() { Some(1) } else { first.parse().ok() };
        let last = if last.is_empty() { Some(usize::MAX) } else { last.parse().ok() };
        first.zip(last)
    };
    text.split(',').filter_map(range).collect()
}

/// Letters exchanged, left out (`-d`) or said once (`-s`); of all but those that are named with `-c`.
fn tr(player: &mut Player<'_>, words: &[&str]) -> Option<String> {
    let flags: String = words
        .iter()
        .filter(|word| word.starts_with('-') && word.len() > 1)
        .flat_map(|word| word[1..].chars())
        .collect();
    let sets: Vec<Vec<char>> = words
        .iter()
        .filter(|word| !(word.starts_with('-') && word.len() > 1))
        .map(|word| letters(word))
        .collect();
    let has = |flag: char| flags.contains(flag);
    let text = player.input();
    let from = sets.first().cloned().unwrap_or_default();
    // Of a letter that is named twice the first place counts.
    let places: HashMap<char, usize> =
        from.iter().copied().enumerate().rev().map(|(at, c)| (c, at)).collect();
    let is_in = |c: char| places.contains_key(&c) != (has('c') || has('C'));
    let to = sets.get(1).cloned().unwrap_or_default();
    let exchanged: String = if has('d') {
        text.chars().filter(|c| !is_in(*c)).collect()
    } else if to.is_empty() {
        text
    } else {
        let swap = |c: char| match places.get(&c) {
            _ if !is_in(c) => c,
            Some(at) => to.get(*at).or(to.last()).copied().unwrap_or(c),
            None => to.last().copied().unwrap_or(c),
        };
        text.chars().map(swap).collect()
    };
    if !has('s') {
        return Some(exchanged);
    }
    let squeezed: Vec<char> = if to.is_empty() { from } else { to };
    let mut last = None;
    let is_kept = |c: &char| {
        let is_again = last == Some(*c) && (squeezed.contains(c) || squeezed.is_empty());
        last = Some(*c);
        !is_again
    };
    Some(exchanged.chars().filter(is_kept).collect())
}

/// `a-z`, `[:digit:]`, `\n`
fn letters(text: &str) -> Vec<char> {
    let (text, _) = super::words::unescape(text);
    let mut out = Vec::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        if out.len() > MAX_LETTERS {
            break;
        }
        if let Some((name, after)) = rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
            pattern::class_of(name).into_iter().for_each(|(first, last)| out.extend(first..=last));
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let last = rest.strip_prefix('-').and_then(|rest| rest.chars().next()).filter(|last| *last >= c);
        match last {
            Some(last) => {
                out.extend((c..=last).take(MAX_LETTERS));
                rest = &rest[1 + last.len_utf8()..];
            }
            None => out.push(c),
        }
    }
    out
}

/// `paste -sd, file`: lines one behind the other, or those of files beside each other.
fn paste(player: &mut Player<'_>, words: &[&str]) -> Option<String> {
    let (mut is_serial, mut delimiter, mut paths) = (false, "\t".to_owned(), vec![]);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix('-').filter(|flags| !flags.is_empty()) {
            Some(flags) => {
                is_serial |= flags.contains('s');
                if let Some((_, given)) = flags.split_once('d') {
                    let given =
                        if given.is_empty() { words.next().copied().unwrap_or_default() } else { given };
                    delimiter = super::words::unescape(given).0;
                }
            }
            None => paths.push(*word),
        }
    }
    let mut columns: Vec<String> = Vec::new();
    for path in if paths.is_empty() { vec!["-"] } else { paths } {
        columns.push(if path == "-" { player.input() } else { super::input::read(player, "paste", path)? });
    }
    if is_serial {
        return Some(
            columns.iter().map(|text| text.lines().collect::<Vec<_>>().join(&delimiter) + "\n").collect(),
        );
    }
    let rows = columns.iter().map(|text| text.lines().count()).max().unwrap_or_default();
    let mut all: Vec<std::str::Lines<'_>> = columns.iter().map(|text| text.lines()).collect();
    let row = |_| {
        all.iter_mut().map(|lines| lines.next().unwrap_or_default()).collect::<Vec<_>>().join(&delimiter)
            + "\n"
    };
    Some((0..rows).map(row).collect())
}
