//! What a script hears of whoever is attached to it: lines, from a pipe or a terminal. A terminal echoes what
//! is typed, gives lines to whoever reads, and interrupts a command.

use std::time::Duration;

use super::line_editor::{KeyEffect, LineEditor};
use super::player::{AfterCommand, Player};
use crate::standard_input::{HeardSoFar, TerminalSize};

/// A line that is typed into a terminal is no longer (`N_TTY_BUF_SIZE`); of a longer one the rest is lost.
const MAX_LINE_BYTES: usize = 4095;
/// The status of a command that was interrupted.
pub(crate) const INTERRUPTED: i32 = 130;
/// And of one that was told to quit.
const TOLD_TO_QUIT: i32 = 131;
const END_OF_TRANSMISSION: char = '\u{4}';
/// Control-C.
pub(crate) const INTERRUPT: char = '\u{3}';
const QUIT: char = '\u{1c}';
const KILL_LINE: char = '\u{15}';

/// A line for a process.
#[derive(Debug, PartialEq)]
pub(crate) enum HeardLine {
    Line(String),
    /// Control-C or control-\, of which the terminal makes a signal.
    Interrupted(char),
    End,
    /// There is none yet.
    Nothing,
}

enum HeardLetter {
    Typed(char),
    End,
    Nothing,
}

/// What was said at once, or as much of it as is taken.
enum HeardPiece<'a> {
    Text(&'a str),
    End,
    Nothing,
}

impl<'a> Player<'a> {
    /// What is read comes from whoever is attached.
    pub(crate) fn listening(mut self) -> Self {
        self.heard = self.around.input.is_some().then(HeardSoFar::default);
        self
    }

    /// Whether what is read now comes from whoever is attached.
    pub(crate) fn hears(&self) -> bool {
        self.heard.is_some() && self.standard_input.is_none()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.around.input.as_deref().is_some_and(|input| input.is_terminal)
    }

    /// The window that it is shown in by now; nothing where that is none.
    pub(crate) fn terminal(&self) -> Option<TerminalSize> {
        let input = self.around.input.as_deref();
        self.around.terminal.or_else(|| input.and_then(|input| input.size_at(self.elapsed)))
    }

    /// Until then nothing happens. Whether that comes.
    fn wait_until(&mut self, after: Duration) -> bool {
        let comes = self.sleep(after.saturating_sub(self.elapsed)) == AfterCommand::Go;
        self.is_blocked |= !comes;
        comes
    }

    fn letter(&mut self) -> HeardLetter {
        let first = |text: &str| text.chars().next().map_or(0, char::len_utf8);
        match self.take_piece(first) {
            HeardPiece::Text(text) => text.chars().next().map_or(HeardLetter::Nothing, HeardLetter::Typed),
            HeardPiece::End => HeardLetter::End,
            HeardPiece::Nothing => HeardLetter::Nothing,
        }
    }

    /// The beginning of what was said next: so many bytes of it are taken.
    fn take_piece(&mut self, taken: impl Fn(&str) -> usize) -> HeardPiece<'a> {
        let around = self.around;
        let (Some(input), Some(mut heard)) = (around.input.as_deref(), self.heard) else {
            return HeardPiece::End;
        };
        while let Some((after, text)) = input.pieces.get(heard.pieces) {
            let rest = &text[heard.bytes..];
            if !rest.is_empty() {
                let length = taken(rest);
                heard.bytes += length;
                self.heard = Some(heard);
                let comes = self.wait_until(*after);
                return if comes { HeardPiece::Text(&rest[..length]) } else { HeardPiece::Nothing };
            }
            heard = HeardSoFar { pieces: heard.pieces + 1, bytes: 0 };
        }
        self.heard = Some(heard);
        match input.closed {
            Some(at) if self.wait_until(at) => HeardPiece::End,
            _ => {
                self.is_blocked = true;
                HeardPiece::Nothing
            }
        }
    }

    /// The next line, as soon as somebody has said it.
    pub(crate) fn hear_line(&mut self) -> HeardLine {
        let mut begun = String::new();
        let line = if self.is_terminal() { self.typed_line() } else { self.piped_line(&mut begun) };
        if let HeardLine::Line(line) = &line {
            self.handle(line.len());
        }
        line
    }

    /// What there is of a line that is not whole yet is left in `begun`.
    fn piped_line(&mut self, begun: &mut String) -> HeardLine {
        let line = |text: &str| text.find('\n').map_or(text.len(), |at| at + 1);
        loop {
            match self.take_piece(line) {
                HeardPiece::Text(text) => begun.push_str(text),
                HeardPiece::End if begun.is_empty() => return HeardLine::End,
                HeardPiece::End => return HeardLine::Line(std::mem::take(begun)),
                HeardPiece::Nothing => return HeardLine::Nothing,
            }
            if begun.ends_with('\n') {
                return HeardLine::Line(std::mem::take(begun));
            }
        }
    }

    /// A terminal gives a line when it is whole, and shows what is typed meanwhile.
    fn typed_line(&mut self) -> HeardLine {
        let mut line = String::new();
        loop {
            let letter = match self.letter() {
                HeardLetter::Typed(letter) => letter,
                HeardLetter::End => return HeardLine::End,
                HeardLetter::Nothing => return HeardLine::Nothing,
            };
            match letter {
                '\r' | '\n' => {
                    self.echo("\n");
                    return HeardLine::Line(line + "\n");
                }
                END_OF_TRANSMISSION if line.is_empty() => return HeardLine::End,
                // Whoever reads is given what there is of the line.
                END_OF_TRANSMISSION => return HeardLine::Line(line),
                INTERRUPT | QUIT => return HeardLine::Interrupted(letter),
                '\u{7f}' | '\u{8}' => {
                    let erased = line.pop();
                    erased.into_iter().for_each(|letter| self.echo(&rubbed_out(letter)));
                }
                KILL_LINE => {
                    let erased = std::mem::take(&mut line);
                    self.echo(&erased.chars().map(rubbed_out).collect::<String>());
                }
                _ if line.len() >= MAX_LINE_BYTES => {}
                letter => {
                    line.push(letter);
                    self.echo(&shown(letter));
                }
            }
        }
    }

    /// The next line for a shell that shows this prompt, and is at it; of no terminal the next line.
    pub(crate) fn hear_command_line(&mut self, prompt: &str) -> HeardLine {
        self.is_at_prompt = false;
        if !self.is_terminal() {
            return self.hear_piped_command();
        }
        let mut editor = LineEditor::default();
        loop {
            let letter = match self.letter() {
                HeardLetter::Typed(letter @ (INTERRUPT | QUIT)) => return HeardLine::Interrupted(letter),
                HeardLetter::Typed(letter) => letter,
                HeardLetter::End => return HeardLine::End,
                HeardLetter::Nothing => {
                    self.is_at_prompt = editor.is_empty();
                    return HeardLine::Nothing;
                }
            };
            match editor.key(letter, &self.history, prompt) {
                KeyEffect::Shows(shown) => self.echo(&shown),
                KeyEffect::Ends => return HeardLine::End,
                KeyEffect::Entered => {
                    self.echo("\n");
                    let line = editor.line() + "\n";
                    self.handle(line.len());
                    self.history.add(&line);
                    return HeardLine::Line(line);
                }
            }
        }
    }

    fn hear_piped_command(&mut self) -> HeardLine {
        let mut begun = String::new();
        let line = self.piped_line(&mut begun);
        self.is_at_prompt = line == HeardLine::Nothing && begun.is_empty();
        if let HeardLine::Line(line) = &line {
            self.handle(line.len());
        }
        line
    }

    /// All that comes through a pipe. Before its end nobody knows what that is.
    fn hear_pipe(&mut self) -> String {
        let mut all = String::new();
        if self.around.input.as_deref().is_some_and(|input| input.closed.is_none()) {
            self.is_blocked = true;
            return all;
        }
        while let HeardPiece::Text(text) = self.take_piece(str::len) {
            all.push_str(text);
        }
        self.handle(all.len());
        all
    }

    /// All that is said until there is no more.
    pub(crate) fn hear_all(&mut self) -> String {
        if !self.is_terminal() {
            return self.hear_pipe();
        }
        let mut all = String::new();
        loop {
            match self.hear_line() {
                HeardLine::Line(line) => all.push_str(&line),
                HeardLine::Interrupted(letter) => match self.interrupt(letter) {
                    // What was typed is gone.
                    AfterCommand::Go => all.clear(),
                    AfterCommand::Exit(code) if self.interrupted.is_none() => {
                        self.abort = Some(code);
                        return String::new();
                    }
                    _ => return String::new(),
                },
                HeardLine::End | HeardLine::Nothing => return all,
            }
        }
    }

    /// What comes through a pipe is said again as it comes, whole lines or not.
    fn repeat_pipe(&mut self) -> AfterCommand {
        loop {
            match self.take_piece(str::len) {
                HeardPiece::Text(text) => self.say(text),
                HeardPiece::End => return AfterCommand::Go,
                HeardPiece::Nothing => return AfterCommand::OutOfTime,
            }
        }
    }

    /// `cat`: what is said is said again.
    pub(crate) fn repeat_heard(&mut self) -> AfterCommand {
        if !self.is_terminal() {
            return self.repeat_pipe();
        }
        loop {
            match self.hear_line() {
                HeardLine::Line(line) => self.say(&line),
                HeardLine::Interrupted(letter) => match self.interrupt(letter) {
                    AfterCommand::Go => {}
                    flow => return flow,
                },
                HeardLine::End => return AfterCommand::Go,
                HeardLine::Nothing => return AfterCommand::OutOfTime,
            }
        }
    }

    /// When somebody interrupts what takes until `end`, if they do.
    pub(crate) fn interrupted_before(&self, end: Duration) -> Option<Duration> {
        let (input, heard) = (self.around.input.as_deref()?, self.heard?);
        if !input.is_terminal || !self.hears_signals() {
            return None;
        }
        let mut pieces = input.pieces.iter().skip(heard.pieces).enumerate();
        let is_interrupt = |(at, (_, text)): &(usize, &(Duration, String))| {
            let from = if *at == 0 { heard.bytes } else { 0 };
            text[from..].contains([INTERRUPT, QUIT])
        };
        let (_, (after, _)) = pieces.find(is_interrupt)?;
        Some(*after).filter(|after| *after < end)
    }

    /// Whether a signal of the terminal does anything to what runs in front: the first process of a container
    /// has no default action.
    fn hears_signals(&self) -> bool {
        self.is_interactive || self.pid != 1 || self.traps.contains_key("INT")
    }

    /// Control-C, while a command is busy: what was typed before it is lost.
    pub(crate) fn interrupt_at(&mut self, after: Duration) -> AfterCommand {
        self.meet_foreign(after);
        self.elapsed = self.elapsed.max(after);
        if self.elapsed > self.until {
            return AfterCommand::OutOfTime;
        }
        loop {
            match self.letter() {
                HeardLetter::Typed(letter @ (INTERRUPT | QUIT)) => return self.interrupt(letter),
                HeardLetter::Typed(_) => {}
                HeardLetter::End | HeardLetter::Nothing => return AfterCommand::OutOfTime,
            }
        }
    }

    /// What runs in front gets the signal of this letter.
    pub(crate) fn interrupt(&mut self, letter: char) -> AfterCommand {
        let (signal, code) = if letter == QUIT { ("QUIT", TOLD_TO_QUIT) } else { ("INT", INTERRUPTED) };
        self.echo(&shown(letter));
        if self.is_interactive {
            self.echo("\n");
        }
        self.interrupt_with(signal, code)
    }

    /// What runs in front ends with `code`, unless it is the first process of its container, or has a trap.
    pub(super) fn interrupt_with(&mut self, signal: &str, code: i32) -> AfterCommand {
        self.status = code;
        match self.traps.get(signal).cloned() {
            Some(handler) if !self.is_interactive => self.handle_signal(&handler),
            _ if self.is_interactive || self.pid != 1 => {
                self.interrupted = Some(code);
                AfterCommand::Exit(code)
            }
            _ => AfterCommand::Go,
        }
    }
}

/// What a terminal shows of a letter: of keys that are none their name.
fn shown(letter: char) -> String {
    match letter {
        '\t' => letter.into(),
        letter if letter.is_ascii_control() => format!("^{}", char::from(letter as u8 ^ 0x40)),
        letter => letter.into(),
    }
}

/// What takes a letter from a terminal again.
fn rubbed_out(letter: char) -> String {
    "\u{8} \u{8}".repeat(shown(letter).chars().count())
}
