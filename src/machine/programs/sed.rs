//! `sed`: lines that are changed, printed or left out, by numbers and by patterns.

mod syntax;

use super::input::{input, read};
use crate::bounds::{MAX_MEMORY_BYTES, ScriptFault};
use crate::byte_text;
use crate::interpreter::player::Player;
use syntax::{SedAction, SedAddress, SedCommand, SedPiece, SedSubstitution, commands};

/// What it costs to find a place where something is put, beside the text that is.
const BYTES_OF_MATCH: usize = 32;

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
    let Some(mut commands) = commands(player, &call.script, call.is_extended) else { return };
    if call.in_place {
        for path in &call.paths {
            let Some(text) = read(player, "sed", path) else { continue };
            let edited = edited(player, &mut commands, &text, call.is_quiet);
            if let Err(why) = player.write_file(path, byte_text::bytes_of(&edited).into_owned()) {
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

impl SedSubstitution {
    /// What the line becomes; nothing when it stays, or when the script is stopped for it: at
    /// [`MAX_MEMORY_BYTES`], with what the other lines have `kept` already, or without steps.
    fn substituted(&self, player: &mut Player<'_>, line: &str, kept: usize) -> Option<String> {
        let mut out = String::new();
        let mut from = 0;
        let mut is_changed = false;
        let count = if self.is_global { usize::MAX } else { 1 };
        let places = self.pattern.captures_iter(line).enumerate();
        for (at, found) in places.take((self.first - 1).saturating_add(count)) {
            if !player.handle(BYTES_OF_MATCH) {
                return None;
            }
            if at + 1 < self.first {
                continue;
            }
            let whole = found.get(0)?;
            out.push_str(&line[from..whole.start()]);
            from = whole.end();
            self.put(player, &found, &mut out, kept)?;
            is_changed = true;
        }
        out.push_str(&line[from..]);
        is_changed.then_some(out)
    }

    /// Nothing when that is too much.
    fn put(
        &self,
        player: &mut Player<'_>,
        found: &regex::Captures<'_>,
        out: &mut String,
        kept: usize,
    ) -> Option<()> {
        for piece in &self.with {
            let text = match piece {
                SedPiece::Text(text) => text,
                SedPiece::Group(number) => found.get(*number).map_or("", |group| group.as_str()),
            };
            out.push_str(text);
            let has_place = player.handle(text.len() + 1) && is_in_memory(player, out.len() + kept);
            has_place.then_some(())?;
        }
        Some(())
    }
}

/// Whether a script may hold so much; one that may not is stopped.
fn is_in_memory(player: &mut Player<'_>, bytes: usize) -> bool {
    if bytes > MAX_MEMORY_BYTES {
        player.stop(ScriptFault::Memory);
    }
    bytes <= MAX_MEMORY_BYTES
}

fn edited(player: &mut Player<'_>, commands: &mut [SedCommand], text: &str, is_quiet: bool) -> String {
    commands.iter_mut().for_each(|command| command.is_within = false);
    let count = text.lines().count();
    let mut said = String::new();
    for (at, line) in text.lines().enumerate() {
        let is_last = at + 1 == count;
        let (text, after) = (line.to_owned(), String::new());
        let mut line = SedLine { number: at + 1, is_last, text, is_shown: !is_quiet, after, quits: false };
        if !player.handle(line.text.len()) || line.edit(player, commands, &mut said) {
            break;
        }
    }
    if !text.is_empty() && !text.ends_with('\n') && said.ends_with('\n') && !is_quiet {
        said.pop();
    }
    said
}

/// A line while it is edited.
struct SedLine {
    number: usize,
    is_last: bool,
    text: String,
    is_shown: bool,
    /// What is said after it.
    after: String,
    /// It is the last one that is read.
    quits: bool,
}

impl SedLine {
    /// Whether it was the last one. A command costs what it takes to read the line as it is by then.
    fn edit(&mut self, player: &mut Player<'_>, commands: &mut [SedCommand], said: &mut String) -> bool {
        for command in commands {
            if !player.handle(self.text.len()) {
                return true;
            }
            if !command.fits(self.number, self.is_last, &self.text) {
                continue;
            }
            let goes_on = self.does(player, &command.does, said);
            if !is_in_memory(player, self.text.len() + self.after.len() + said.len()) {
                return true;
            }
            if !goes_on {
                break;
            }
        }
        if self.is_shown {
            said.extend([self.text.as_str(), "\n"]);
        }
        said.push_str(&self.after);
        self.quits
    }

    /// Whether the next command is for the line, too.
    fn does(&mut self, player: &mut Player<'_>, action: &SedAction, said: &mut String) -> bool {
        match action {
            SedAction::Substitute(substitution, prints) => {
                if let Some(text) = substitution.substituted(player, &self.text, said.len()) {
                    self.text = text;
                    said.extend([self.text.as_str(), "\n"].into_iter().filter(|_| *prints));
                }
            }
            SedAction::Transliterate(letters) => {
                self.text = self.text.chars().map(|c| letters.get(&c).copied().unwrap_or(c)).collect();
            }
            SedAction::Print => said.extend([self.text.as_str(), "\n"]),
            SedAction::Number => said.push_str(&format!("{}\n", self.number)),
            SedAction::Before(text) => said.extend([text.as_str(), "\n"]),
            SedAction::After(text) => self.after.extend([text.as_str(), "\n"]),
            SedAction::Instead(text) => {
                said.extend([text.as_str(), "\n"]);
                self.is_shown = false;
            }
            SedAction::Delete => self.is_shown = false,
            SedAction::Quit => self.quits = true,
        }
        !matches!(action, SedAction::Instead(_) | SedAction::Delete | SedAction::Quit)
    }
}
