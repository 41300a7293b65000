//! `sed`: lines that are changed, printed or left out, by numbers and by patterns.

use super::input::{input, read};
use super::patterns;
use crate::interpreter::player::Player;

/// A pattern's program is no bigger.
const MAX_PATTERN_BYTES: usize = 1 << 18;
/// A script has no more commands than these.
const MAX_COMMANDS: usize = 500;

/// Which lines a command is for.
enum SedAddress {
    Number(usize),
    Last,
    Matching(regex::Regex),
}

struct SedCommand {
    from: Option<SedAddress>,
    to: Option<SedAddress>,
    is_negated: bool,
    does: SedAction,
    /// Whether the lines of a range are being passed.
    is_within: bool,
}

enum SedAction {
    /// The pattern, what is put instead, the number of the first one that is, whether all after it are, and
    /// whether the line is printed then.
    Substitute(regex::Regex, String, usize, bool, bool),
    Transliterate(Vec<char>, Vec<char>),
    Delete,
    Print,
    Number,
    Quit,
    Before(String),
    After(String),
    Instead(String),
}

/// What a command line says.
#[derive(Default)]
struct SedCall<'w> {
    is_quiet: bool,
    is_extended: bool,
    in_place: bool,
    script: String,
    paths: Vec<&'w str>,
}

pub(super) fn run(player: &mut Player<'_>, words: &[&str]) {
    let Some(call) = SedCall::read(player, words) else { return };
    let Some(mut commands) = commands(player, &call) else { return };
    if call.in_place {
        for path in &call.paths {
            let Some(text) = read(player, "sed", path) else { continue };
            let edited = edited(player, &mut commands, &text, call.is_quiet);
            if let Err(why) = player.write_file(path, edited.into_bytes()) {
                player.fail(&format!("sed: {path}: {why}\n"));
            }
        }
        return;
    }
    let Some(text) = input(player, "sed", &call.paths) else { return };
    let edited = edited(player, &mut commands, &text, call.is_quiet);
    player.say(&edited);
}

impl<'w> SedCall<'w> {
    fn read(player: &mut Player<'_>, words: &[&'w str]) -> Option<SedCall<'w>> {
        let mut call = SedCall::default();
        let mut has_script = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let script = match *word {
                "-e" | "--expression" => words.next().map(ToString::to_string),
                "-f" | "--file" => super::input::read(player, "sed", words.next()?),
                "--in-place" => {
                    call.in_place = true;
                    None
                }
                flags if flags.starts_with('-') && flags.len() > 1 => {
                    let letters = flags.trim_start_matches('-');
                    let in_place = letters.contains('i');
                    call.in_place |= in_place;
                    call.is_quiet |= letters.contains('n');
                    call.is_extended |= letters.contains(['E', 'r']);
                    if letters.ends_with('e') && !in_place {
                        words.next().map(ToString::to_string)
                    } else {
                        None
                    }
                }
                script if !has_script => Some(script.to_owned()),
                path => {
                    call.paths.push(path);
                    None
                }
            };
            if let Some(script) = script {
                has_script = true;
                call.script.push_str(&script);
                call.script.push('\n');
            }
        }
        if !has_script {
            player.fail("sed: no script\n");
            return None;
        }
        Some(call)
    }
}

fn commands(player: &mut Player<'_>, call: &SedCall<'_>) -> Option<Vec<SedCommand>> {
    let mut commands = Vec::new();
    let mut rest = call.script.as_str();
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
        let read = command(rest, call.is_extended).filter(|_| commands.len() < MAX_COMMANDS);
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
            let letters = |text: &str| text.replace("\\n", "\n").chars().collect::<Vec<char>>();
            let (from, to) = (letters(&parts[0]), letters(&parts[1]));
            (Some(SedAction::Transliterate(from, to)).filter(|_| parts[0].len() == parts[1].len())?, rest)
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
    Some((SedAction::Substitute(pattern, with, first, flags.contains('g'), flags.contains('p')), rest))
}

/// What is put instead, as the library wants it: `&` and `\1` are groups.
fn replacement(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '$' => out.push_str("$$"),
            '&' => out.push_str("${0}"),
            '\\' => match letters.next() {
                Some(digit) if digit.is_ascii_digit() => out.push_str(&format!("${{{digit}}}")),
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

impl SedAddress {
    fn fits(&self, number: usize, is_last: bool, line: &str) -> bool {
        match self {
            SedAddress::Number(wanted) => *wanted == number,
            SedAddress::Last => is_last,
            SedAddress::Matching(pattern) => pattern.is_match(line),
        }
    }
}

impl SedCommand {
    fn fits(&mut self, number: usize, is_last: bool, line: &str) -> bool {
        let is_meant = match (&self.from, &self.to) {
            (None, _) => true,
            (Some(from), None) => from.fits(number, is_last, line),
            (Some(_), Some(to)) if self.is_within => {
                // A number that is passed already ends it, too.
                let is_over = matches!(to, SedAddress::Number(last) if *last <= number);
                self.is_within = !is_over && !to.fits(number, is_last, line);
                !matches!(to, SedAddress::Number(last) if *last < number)
            }
            (Some(from), Some(to)) => {
                let begins = from.fits(number, is_last, line);
                self.is_within = begins && !matches!(to, SedAddress::Number(last) if *last <= number);
                begins
            }
        };
        is_meant != self.is_negated
    }
}

fn edited(player: &mut Player<'_>, commands: &mut [SedCommand], text: &str, is_quiet: bool) -> String {
    commands.iter_mut().for_each(|command| command.is_within = false);
    let count = text.lines().count();
    let mut said = String::new();
    for (at, line) in text.lines().enumerate() {
        if !player.handle(line.len() * commands.len()) {
            break;
        }
        let (number, is_last) = (at + 1, at + 1 == count);
        if edit_line(commands, (number, is_last), line, is_quiet, &mut said) {
            break;
        }
    }
    if !text.is_empty() && !text.ends_with('\n') && said.ends_with('\n') && !is_quiet {
        said.pop();
    }
    said
}

/// Whether it was the last one.
fn edit_line(
    commands: &mut [SedCommand],
    (number, is_last): (usize, bool),
    line: &str,
    is_quiet: bool,
    said: &mut String,
) -> bool {
    let mut line = line.to_owned();
    let (mut is_shown, mut quits) = (!is_quiet, false);
    let mut after = String::new();
    for command in commands {
        if !command.fits(number, is_last, &line) {
            continue;
        }
        match &command.does {
            SedAction::Substitute(pattern, with, first, is_global, prints) => {
                let before = pattern.find_iter(&line).nth(first - 1).map(|found| found.start());
                let Some(from) = before else { continue };
                let limit = usize::from(!is_global);
                let tail = pattern.replacen(&line[from..], limit, with.as_str()).into_owned();
                line.replace_range(from.., &tail);
                if *prints {
                    said.extend([line.as_str(), "\n"]);
                }
            }
            SedAction::Transliterate(from, to) => {
                let swap = |c: char| from.iter().position(|own| *own == c).map_or(c, |at| to[at]);
                line = line.chars().map(swap).collect();
            }
            SedAction::Delete => {
                is_shown = false;
                break;
            }
            SedAction::Print => said.extend([line.as_str(), "\n"]),
            SedAction::Number => said.push_str(&format!("{number}\n")),
            SedAction::Before(text) => said.extend([text.as_str(), "\n"]),
            SedAction::After(text) => after.extend([text.as_str(), "\n"]),
            SedAction::Instead(text) => {
                said.extend([text.as_str(), "\n"]);
                is_shown = false;
                break;
            }
            SedAction::Quit => {
                quits = true;
                break;
            }
        }
    }
    if is_shown {
        said.extend([line.as_str(), "\n"]);
    }
    said.push_str(&after);
    quits
}
