//! The scripts of `sed`.

use std::collections::BTreeMap;

use crate::interpreter::player::Player;
use crate::programs::patterns;

/// A pattern's program is no bigger.
const MAX_PATTERN_BYTES: usize = 1 << 18;
/// A script has no more commands than these.
const MAX_COMMANDS: usize = 500;

/// Which lines a command is for.
pub(super) enum SedAddress {
    Number(usize),
    Last,
    Matching(regex::Regex),
}

pub(super) struct SedCommand {
    pub(super) from: Option<SedAddress>,
    pub(super) to: Option<SedAddress>,
    pub(super) is_negated: bool,
    pub(super) does: SedAction,
    /// Whether the lines of a range are being passed.
    pub(super) is_within: bool,
}

pub(super) enum SedAction {
    /// What is put where, and whether the line is printed then.
    Substitute(SedSubstitution, bool),
    /// What letters become.
    Transliterate(BTreeMap<char, char>),
    Delete,
    Print,
    Number,
    Quit,
    Before(String),
    After(String),
    Instead(String),
}

pub(super) struct SedSubstitution {
    pub(super) pattern: regex::Regex,
    /// What is put instead.
    pub(super) with: Vec<SedPiece>,
    /// The number of the first one that is replaced, from 1.
    pub(super) first: usize,
    /// Whether all after it are, too.
    pub(super) is_global: bool,
}

/// A piece of what is put instead: a text, or what a group of the pattern has found.
#[derive(Debug, PartialEq)]
pub(super) enum SedPiece {
    Text(String),
    Group(usize),
}

/// The commands of a script; nothing when one of them is not understood, which is said.
pub(super) fn commands(player: &mut Player<'_>, script: &str, is_extended: bool) -> Option<Vec<SedCommand>> {
    let mut commands = Vec::new();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if rest.is_empty() {
            return Some(commands);
        }
        if let Some(comment) = rest.strip_prefix('#') {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            continue;
        }
        player.handle(MAX_PATTERN_BYTES / 8);
        let read = command(rest, is_extended).filter(|_| commands.len() < MAX_COMMANDS);
        let Some((own, after)) = read else {
            let shown = rest.lines().next().unwrap_or_default();
            player.fail(&format!("sed: unsupported command {shown}\n"));
            return None;
        };
        commands.push(own);
        rest = after;
    }
}

fn command(text: &str, is_extended: bool) -> Option<(SedCommand, &str)> {
    let (from, rest) = address(text, is_extended)?;
    let (to, rest) = match rest.strip_prefix(',') {
        Some(rest) => address(rest.trim_start(), is_extended)?,
        None => (None, rest),
    };
    let rest = rest.trim_start();
    let (is_negated, rest) = rest.strip_prefix('!').map_or((false, rest), |rest| (true, rest.trim_start()));
    let name = rest.chars().next()?;
    let behind = &rest[name.len_utf8()..];
    let (does, rest) = match name {
        's' => substitute(behind, is_extended)?,
        'y' => {
            let (parts, rest) = parted(behind, 2)?;
            (SedAction::Transliterate(letters(&parts[0], &parts[1])?), rest)
        }
        'd' => (SedAction::Delete, behind),
        'p' => (SedAction::Print, behind),
        '=' => (SedAction::Number, behind),
        'q' => (SedAction::Quit, behind),
        'a' | 'i' | 'c' => {
            let (line, rest) = behind.split_once('\n').unwrap_or((behind, ""));
            let line = line.trim_start().strip_prefix('\\').unwrap_or(line.trim_start());
            // The text may stand in the next line.
            let (line, rest) =
                if line.is_empty() { rest.split_once('\n').unwrap_or((rest, "")) } else { (line, rest) };
            let line = line.trim_start().to_owned();
            let does = match name {
                'a' => SedAction::After(line),
                'i' => SedAction::Before(line),
                _ => SedAction::Instead(line),
            };
            (does, rest)
        }
        _ => return None,
    };
    let rest = rest.trim_start_matches(' ');
    let is_over =
        rest.is_empty() || rest.starts_with([';', '\n', '#', '}']) || matches!(name, 'a' | 'i' | 'c');
    is_over.then_some((SedCommand { from, to, is_negated, does, is_within: false }, rest))
}

/// What each letter becomes; the first place of one is what counts.
fn letters(from: &str, to: &str) -> Option<BTreeMap<char, char>> {
    let (from, to) = (from.replace("\\n", "\n"), to.replace("\\n", "\n"));
    let is_even = from.chars().count() == to.chars().count();
    let mut letters = BTreeMap::new();
    for (letter, instead) in from.chars().zip(to.chars()).filter(|_| is_even) {
        letters.entry(letter).or_insert(instead);
    }
    is_even.then_some(letters)
}

fn compiled(pattern: &str, is_extended: bool, ignores_case: bool) -> Option<regex::Regex> {
    let pattern = if is_extended { pattern.to_owned() } else { patterns::basic(pattern) };
    let mut builder = regex::RegexBuilder::new(&pattern);
    builder.size_limit(MAX_PATTERN_BYTES).case_insensitive(ignores_case).build().ok()
}

fn address(text: &str, is_extended: bool) -> Option<(Option<SedAddress>, &str)> {
    if let Some(rest) = text.strip_prefix('$') {
        return Some((Some(SedAddress::Last), rest));
    }
    if text.starts_with('/') {
        let (parts, rest) = parted(text, 1)?;
        return Some((Some(SedAddress::Matching(compiled(&parts[0], is_extended, false)?)), rest));
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    match end {
        0 => Some((None, text)),
        end => Some((Some(SedAddress::Number(text[..end].parse().ok()?)), &text[end..])),
    }
}

/// So many texts between separators, the first letter being one; and what comes behind.
fn parted(text: &str, count: usize) -> Option<(Vec<String>, &str)> {
    let separator =
        text.chars().next().filter(|c| !c.is_alphanumeric() && !c.is_whitespace() && *c != '\\')?;
    let mut parts = vec![String::new()];
    let mut in_set = false;
    let mut letters = text.char_indices().skip(1);
    while let Some((at, c)) = letters.next() {
        let own = parts.last_mut()?;
        match c {
            '\\' => match letters.next()? {
                (_, next) if next == separator => own.push(next),
                (_, next) => own.extend(['\\', next]),
            },
            c if c == separator && !in_set => {
                if parts.len() == count {
                    return Some((parts, &text[at + c.len_utf8()..]));
                }
                parts.push(String::new());
            }
            c => {
                // In the brackets of a pattern a separator is itself.
                in_set = parts.len() == 1 && count == 2 && (c == '[' || in_set && c != ']');
                parts.last_mut()?.push(c);
            }
        }
    }
    None
}

fn substitute(text: &str, is_extended: bool) -> Option<(SedAction, &str)> {
    let (parts, rest) = parted(text, 2)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (flags, rest) = rest.split_at(end);
    if !flags.chars().all(|c| matches!(c, 'g' | 'p' | 'i' | 'I') || c.is_ascii_digit()) {
        return None;
    }
    let number: String = flags.chars().filter(char::is_ascii_digit).collect();
    let pattern = compiled(&parts[0], is_extended, flags.contains(['i', 'I']))?;
    let first = number.parse().unwrap_or(1).max(1);
    let with = replacement(&parts[1]);
    let own = SedSubstitution { pattern, with, first, is_global: flags.contains('g') };
    Some((SedAction::Substitute(own, flags.contains('p')), rest))
}

/// What is put instead: `&` and `\1` are groups.
fn replacement(text: &str) -> Vec<SedPiece> {
    let mut pieces = Vec::new();
    let mut own = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        let group = match c {
            '&' => Some(0),
            '\\' => match letters.next() {
                Some('n') => letter(&mut own, '\n'),
                Some('t') => letter(&mut own, '\t'),
                Some(other) => other.to_digit(10).or_else(|| letter(&mut own, other)),
                None => None,
            },
            c => letter(&mut own, c),
        };
        if let Some(group) = group {
            pieces.extend([SedPiece::Text(std::mem::take(&mut own)), SedPiece::Group(group as usize)]);
        }
    }
    pieces.push(SedPiece::Text(own));
    pieces.retain(|piece| *piece != SedPiece::Text(String::new()));
    pieces
}

/// One that is itself, and no group.
fn letter(text: &mut String, letter: char) -> Option<u32> {
    text.push(letter);
    None
}
