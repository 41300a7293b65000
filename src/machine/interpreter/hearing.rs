//! What a script hears of whoever is attached to it: lines, from a pipe or a terminal. A terminal echoes what
//! is typed, gives lines to whoever reads, and interrupts a command.

use std::time::Duration;

use super::player::{Flow, Player};
use crate::standard_input::{HeardSoFar, TerminalSize};

/// A line that is typed into a terminal is no longer (`N_TTY_BUF_SIZE`); of a longer one the rest is lost.
const MAX_LINE_BYTES: usize = 4095;
/// The status of a command that was interrupted.
pub(crate) const INTERRUPTED: i32 = 130;
const END_OF_TRANSMISSION: char = '\u{4}';
const INTERRUPT: char = '\u{3}';

/// A line for a process.
#[derive(Debug, PartialEq)]
pub(crate) enum HeardLine {
    Line(String),
    /// Control-C.
    Interrupted,
    End,
    /// There is none yet.
    Nothing,
}

enum HeardLetter {
    Typed(char),
    End,
    Nothing,
}

impl Player<'_> {
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
        let comes = self.sleep(after.saturating_sub(self.elapsed)) == Flow::Go;
        self.is_blocked |= !comes;
        comes
    }

    fn letter(&mut self) -> HeardLetter {
        let (Some(input), Some(mut heard)) = (self.around.input.as_deref(), self.heard) else {
            return HeardLetter::End;
        };
        while let Some((after, text)) = input.pieces.get(heard.pieces) {
            if let Some(letter) = text[heard.bytes..].chars().next() {
                heard.bytes += letter.len_utf8();
                self.heard = Some(heard);
                return if self.wait_until(*after) {
                    HeardLetter::Typed(letter)
                } else {
                    HeardLetter::Nothing
                };
            }
            heard = HeardSoFar { pieces: heard.pieces + 1, bytes: 0 };
        }
        self.heard = Some(heard);
        match input.closed {
            Some(at) if self.wait_until(at) => HeardLetter::End,
            _ => {
                self.is_blocked = true;
                HeardLetter::Nothing
            }
        }
    }

    /// The next line, as soon as somebody has said it.
    pub(crate) fn hear_line(&mut self) -> HeardLine {
        let line = if self.is_terminal() { self.typed_line() } else { self.piped_line() };
        if let HeardLine::Line(line) = &line {
            self.handle(line.len());
        }
        line
    }

    fn piped_line(&mut self) -> HeardLine {
        let mut line = String::new();
        loop {
            match self.letter() {
                HeardLetter::Typed(letter) => line.push(letter),
                HeardLetter::End if line.is_empty() => return HeardLine::End,
                HeardLetter::End => return HeardLine::Line(line),
                HeardLetter::Nothing => return HeardLine::Nothing,
            }
            if line.ends_with('\n') {
                return HeardLine::Line(line);
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
                INTERRUPT => {
                    self.echo("^C\n");
                    return HeardLine::Interrupted;
                }
                '\u{7f}' | '\u{8}' => {
                    if line.pop().is_some() {
                        self.echo("\u{8} \u{8}");
                    }
                }
                letter if letter.is_control() || line.len() >= MAX_LINE_BYTES => {}
                letter => {
                    line.push(letter);
                    self.echo(letter.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// All that is said until there is no more.
    pub(crate) fn hear_all(&mut self) -> String {
        let mut all = String::new();
        while let HeardLine::Line(line) = self.hear_line() {
            all.push_str(&line);
        }
        all
    }

    /// `cat`: what is said is said again.
    pub(crate) fn repeat_heard(&mut self) -> Flow {
        loop {
            match self.hear_line() {
                HeardLine::Line(line) => self.say(&line),
                HeardLine::Interrupted => return self.interrupt(),
                HeardLine::End => return Flow::Go,
                HeardLine::Nothing => return Flow::OutOfTime,
            }
        }
    }

    /// When somebody interrupts what takes until `end`, if they do.
    pub(crate) fn interrupted_before(&self, end: Duration) -> Option<Duration> {
        let (input, heard) = (self.around.input.as_deref()?, self.heard?);
        if !input.is_terminal || !self.is_interactive {
            return None;
        }
        let mut pieces = input.pieces.iter().skip(heard.pieces).enumerate();
        let is_interrupt = |(at, (_, text)): &(usize, &(Duration, String))| {
            let from = if *at == 0 { heard.bytes } else { 0 };
            text[from..].contains(INTERRUPT)
        };
        let (_, (after, _)) = pieces.find(is_interrupt)?;
        Some(*after).filter(|after| *after < end)
    }

    /// Control-C, while a command is busy: what was typed before it is lost.
    pub(crate) fn interrupt_at(&mut self, after: Duration) -> Flow {
        self.elapsed = self.elapsed.max(after);
        if self.elapsed > self.until {
            return Flow::OutOfTime;
        }
        while !matches!(
            self.letter(),
            HeardLetter::Typed(INTERRUPT) | HeardLetter::End | HeardLetter::Nothing
        ) {}
        self.echo("^C\n");
        self.interrupt()
    }

    pub(super) fn interrupt(&mut self) -> Flow {
        self.status = INTERRUPTED;
        if self.is_interactive {
            self.is_interrupted = true;
            return Flow::Exit(INTERRUPTED);
        }
        // A process that handles no signal and is the first of its container does not hear it.
        Flow::Go
    }
}
