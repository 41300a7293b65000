//! What a script reads and says, and where that goes.

use super::dialect::Dialect;
use super::player::{Line, Player, Sink};
use crate::bounds::{MAX_EXEC_BYTES, MAX_LOG_BYTES, MAX_MEMORY_BYTES, ScriptFault};
use crate::byte_text;
use crate::shell::{Redirect, Target, Word};

/// A line of the log is no longer than so.
const MAX_LINE_BYTES: usize = 1 << 20;
/// What is read of a file that never ends.
const PIPE_BYTES: usize = 64 << 10;
/// What a line of the log takes beside its text.
const BYTES_OF_LINE: usize = 64;

impl Player<'_> {
    /// Whether it could be done. `is_read` is whether the command may read its input.
    pub(crate) fn redirect(&mut self, redirect: &Redirect, is_read: bool) -> bool {
        let descriptor = redirect.descriptor;
        let sink = match &redirect.target {
            Target::Descriptor(other) => return self.duplicate(descriptor, *other),
            Target::Closed => return self.close(descriptor),
            Target::Text(word) => {
                let text = format!("{}\n", self.text(word));
                return self.read_text(descriptor, text);
            }
            Target::Here(word) => {
                let text = self.text(word);
                return self.read_text(descriptor, text);
            }
            Target::Read(word) => return self.read_from(descriptor, word, is_read),
            Target::Write(word) | Target::Append(word) => {
                let keeps = matches!(redirect.target, Target::Append(_));
                self.sink(word, keeps)
            }
            Target::Anything(word) => {
                let text = self.text(word);
                match text.parse() {
                    Ok(other) => return self.duplicate(descriptor, other),
                    Err(_) if text == "-" => return self.close(descriptor),
                    Err(_) => self.sink(word, false),
                }
            }
        };
        let Some(sink) = sink else { return false };
        self.set_sink(descriptor, sink);
        true
    }

    /// Where a file leads; says why not, when it cannot be.
    fn sink(&mut self, word: &Word, keeps: bool) -> Option<Sink> {
        let path = self.text(word);
        if let Some(dialled) = self.dial(&path, false) {
            return dialled.map(Sink::Connection);
        }
        Some(match path.as_str() {
            "/dev/stdout" | "/proc/self/fd/1" | "/dev/fd/1" => self.out.clone(),
            "/dev/stderr" | "/proc/self/fd/2" | "/dev/fd/2" => self.errors.clone(),
            "/proc/1/fd/1" => Sink::Log,
            "/proc/1/fd/2" => Sink::ErrorLog,
            "/dev/null" => Sink::Nowhere,
            _ => match self.open_file(&path, keeps) {
                Ok(path) => Sink::File(path),
                Err(why) => {
                    let said = match self.dialect {
                        Dialect::Bash => self.says_shell(&format!("{path}: {why}")),
                        Dialect::Dash => self.says_shell(&format!("cannot create {path}: {why}")),
                        Dialect::Ash => format!("/bin/sh: can't create {path}: {why}\n"),
                    };
                    self.complain(&said);
                    return None;
                }
            },
        })
    }

    fn set_sink(&mut self, descriptor: u8, sink: Sink) {
        match descriptor {
            0 => {}
            1 => self.out = sink,
            2 => self.errors = sink,
            more => drop(self.more_sinks.insert(more, sink)),
        }
    }

    /// `2>&1`, `3>&1`, `<&3`
    fn duplicate(&mut self, descriptor: u8, other: u8) -> bool {
        if descriptor == 0 || other == 0 {
            if !self.hear_descriptor(other) {
                return false;
            }
            let input = match other {
                0 => self.standard_input.clone(),
                other => self.more_inputs.get(&other).cloned(),
            };
            return match input {
                Some(input) => self.read_text(descriptor, input),
                None => other == 0 || self.bad_descriptor(other),
            };
        }
        let sink = match other {
            1 => self.out.clone(),
            2 => self.errors.clone(),
            other => match self.more_sinks.get(&other) {
                Some(sink) => sink.clone(),
                None => return self.bad_descriptor(other),
            },
        };
        self.set_sink(descriptor, sink);
        true
    }

    fn bad_descriptor(&mut self, descriptor: u8) -> bool {
        let said = match self.dialect {
            Dialect::Bash => self.says_shell(&format!("{descriptor}: Bad file descriptor")),
            Dialect::Dash => self.says_shell(&format!("{descriptor}: Bad file descriptor")),
            Dialect::Ash => self.says_shell(&format!("can't dup({descriptor}): Bad file descriptor")),
        };
        self.complain(&said);
        false
    }

    fn close(&mut self, descriptor: u8) -> bool {
        match descriptor {
            0 => self.standard_input = Some(String::new()),
            1 | 2 => self.set_sink(descriptor, Sink::Nowhere),
            more => {
                if let Some(Sink::Connection(at)) = self.more_sinks.remove(&more) {
                    self.connections[at].hears = false;
                }
                self.more_inputs.remove(&more);
            }
        }
        true
    }

    fn read_text(&mut self, descriptor: u8, text: String) -> bool {
        match descriptor {
            0 => self.standard_input = Some(text),
            more => drop(self.more_inputs.insert(more, text)),
        }
        let bytes: usize = self.more_inputs.values().map(String::len).sum();
        if bytes > MAX_MEMORY_BYTES {
            self.stop(ScriptFault::Memory);
        }
        true
    }

    /// To the standard output.
    pub(crate) fn say(&mut self, text: &str) {
        self.put(&self.out.clone(), text);
    }

    /// To the standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        self.put(&self.errors.clone(), text);
    }

    /// To the terminal, wherever the output goes.
    pub(crate) fn echo(&mut self, text: &str) {
        self.put(&Sink::Log, text);
    }

    fn read_from(&mut self, descriptor: u8, word: &Word, is_read: bool) -> bool {
        let path = self.text(word);
        if let Some(dialled) = self.dial(&path, true) {
            return dialled.is_some_and(|at| self.read_connection(descriptor, at, is_read));
        }
        if path == "/dev/null" {
            return self.read_text(descriptor, String::new());
        }
        if let Some(text) = self.endless_text(&path) {
            return self.read_text(descriptor, text);
        }
        let Some(file) = self.file(&path) else {
            let said = match self.dialect {
                Dialect::Bash => self.says_shell(&format!("{path}: No such file or directory")),
                Dialect::Dash => self.says_shell(&format!("cannot open {path}: No such file")),
                Dialect::Ash => format!("/bin/sh: can't open {path}: no such file\n"),
            };
            self.complain(&said);
            return false;
        };
        self.handle_file(&file);
        self.read_text(descriptor, file.text())
    }

    /// What comes over a connection is waited for only where somebody reads it.
    fn read_connection(&mut self, descriptor: u8, at: usize, is_read: bool) -> bool {
        if descriptor != 0 {
            self.set_sink(descriptor, Sink::Connection(at));
            return true;
        }
        let heard = if is_read { self.hear_connection(at) } else { Some(String::new()) };
        heard.is_some_and(|heard| self.read_text(0, heard))
    }

    /// As much of what never ends as a pipe takes.
    pub(crate) fn endless_text(&mut self, path: &str) -> Option<String> {
        match path {
            "/dev/zero" => self.handle(PIPE_BYTES).then(|| "\0".repeat(PIPE_BYTES)),
            "/dev/urandom" | "/dev/random" => Some(byte_text::text_of(&self.random_bytes(PIPE_BYTES))),
            _ => None,
        }
    }

    fn put(&mut self, sink: &Sink, text: &str) {
        if !self.handle(text.len()) {
            return;
        }
        match sink {
            Sink::Nowhere => {}
            Sink::Gathered(at) => {
                let bytes = byte_text::bytes_of(text);
                let most = if self.is_executed { MAX_EXEC_BYTES } else { MAX_MEMORY_BYTES };
                self.gathered
                    .get_mut(*at)
                    .into_iter()
                    .for_each(|gathered| gathered.extend_from_slice(&bytes));
                if self.gathered.iter().map(Vec::len).sum::<usize>() > most {
                    self.stop(ScriptFault::Memory);
                }
            }
            Sink::File(path) => self.append_file(path, text),
            Sink::Connection(at) => self.put_into_connection(*at, text),
            Sink::Log | Sink::ErrorLog => {
                let is_error = *sink == Sink::ErrorLog;
                let after = self.elapsed;
                self.transcript.iter_mut().for_each(|said| said.add(after, is_error, text));
                self.log(text);
            }
        }
    }

    fn log(&mut self, text: &str) {
        let mut pieces = text.split('\n');
        self.unfinished.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            self.finish_line();
            self.unfinished.push_str(piece);
        }
        // The runtime cuts lines, too.
        if self.unfinished.len() > MAX_LINE_BYTES {
            self.finish_line();
        }
    }

    /// What was said without an end of its line. Whether there was any.
    pub(crate) fn flush(&mut self) -> bool {
        let is_unfinished = !self.unfinished.is_empty();
        if is_unfinished {
            self.finish_line();
        }
        is_unfinished
    }

    fn finish_line(&mut self) {
        let text = byte_text::shown(&std::mem::take(&mut self.unfinished)).into_owned();
        self.log_bytes += text.len() + BYTES_OF_LINE;
        self.lines.push(Line { after: self.elapsed, text });
        if self.log_bytes > MAX_LOG_BYTES {
            self.rotate();
        }
    }

    /// The older half of the log is gone.
    fn rotate(&mut self) {
        let mut gone = 0;
        while self.log_bytes > MAX_LOG_BYTES / 2 && gone < self.lines.len() {
            self.log_bytes -= self.lines[gone].text.len() + BYTES_OF_LINE;
            gone += 1;
        }
        self.lines.drain(..gone);
    }

    /// Bytes to the standard output, whether they are a text or not.
    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        self.say(&byte_text::text_of(bytes));
    }

    /// Bytes to the standard error, whether they are a text or not.
    pub(crate) fn complain_bytes(&mut self, bytes: &[u8]) {
        self.complain(&byte_text::text_of(bytes));
    }

    /// All that is to be read, as the bytes that it is.
    pub(crate) fn input_bytes(&mut self) -> Vec<u8> {
        byte_text::bytes_of(&self.input()).into_owned()
    }

    /// All that is to be read.
    pub(crate) fn input(&mut self) -> String {
        if self.hears() {
            return self.hear_all();
        }
        self.is_waiting |= self.standard_input.is_none();
        let input = self.standard_input.take().unwrap_or_default();
        self.handle(input.len());
        input
    }
}
