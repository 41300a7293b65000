//! What a script reads and says, and where that goes.

use super::player::{Line, Player, Sink};
use crate::bounds::{Fault, MAX_FILE_BYTES, MAX_LOG_BYTES, MAX_MEMORY_BYTES};
use crate::shell::{Redirect, Target, Word};

/// A line of the log is no longer than so.
const MAX_LINE_BYTES: usize = 1 << 20;
/// What a line of the log takes beside its text.
const BYTES_OF_LINE: usize = 64;

impl Player<'_> {
    /// Whether it could be done.
    pub(crate) fn redirect(&mut self, redirect: &Redirect) -> bool {
        let sink = match &redirect.target {
            Target::Descriptor(1) => self.out.clone(),
            Target::Descriptor(2) => self.errors.clone(),
            Target::Descriptor(_) => return true,
            Target::Text(word) => {
                self.standard_input = Some(format!("{}\n", self.text(word)));
                return true;
            }
            Target::Here(word) => {
                self.standard_input = Some(self.text(word));
                return true;
            }
            Target::Read(word) => return self.read_from(word),
            Target::Write(word) | Target::Append(word) => {
                let path = self.text(word);
                let keeps = matches!(redirect.target, Target::Append(_));
                match path.as_str() {
                    "/dev/stdout" | "/proc/1/fd/1" => Sink::Log,
                    "/dev/stderr" | "/proc/1/fd/2" => Sink::ErrorLog,
                    "/dev/null" => Sink::Nowhere,
                    _ => match self.open_file(&path, keeps) {
                        Ok(()) => Sink::File(path),
                        Err(why) => {
                            self.complain(&format!("/bin/sh: can't create {path}: {why}\n"));
                            return false;
                        }
                    },
                }
            }
        };
        match redirect.descriptor {
            2 => self.errors = sink,
            _ => self.out = sink,
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

    fn read_from(&mut self, word: &Word) -> bool {
        let path = self.text(word);
        let Some(file) = self.file(&path) else {
            self.complain(&format!("/bin/sh: can't open {path}: no such file\n"));
            return false;
        };
        self.handle(file.content.len());
        self.standard_input = Some(file.text());
        true
    }

    fn put(&mut self, sink: &Sink, text: &str) {
        if !self.handle(text.len()) {
            return;
        }
        match sink {
            Sink::Nowhere => {}
            Sink::Gathered(at) => {
                self.gathered.get_mut(*at).into_iter().for_each(|gathered| gathered.push_str(text));
                if self.gathered.iter().map(String::len).sum::<usize>() > MAX_MEMORY_BYTES {
                    self.stop(Fault::Memory);
                }
            }
            Sink::File(path) => self.append_file(path, text),
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
        let text = std::mem::take(&mut self.unfinished);
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

    /// To the standard output, where bytes stay what they are as far as whoever takes them can.
    pub(crate) fn say_bytes(&mut self, bytes: Vec<u8>) {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return self.say(&text),
            Err(error) => error.into_bytes(),
        };
        self.say_raw(bytes);
    }

    /// Bytes to the standard output behind all texts, whether they are one or not.
    pub(crate) fn say_raw(&mut self, bytes: Vec<u8>) {
        if !self.handle(bytes.len()) {
            return;
        }
        match (self.out.clone(), &mut self.raw_out) {
            (Sink::Gathered(0), Some(raw)) if raw.len() + bytes.len() <= 2 * MAX_FILE_BYTES => {
                raw.extend(bytes)
            }
            (Sink::File(path), _) => self.append_bytes(&path, &bytes),
            _ => self.say(&String::from_utf8_lossy(&bytes)),
        }
    }

    /// All that is to be read, as it came.
    pub(crate) fn input_bytes(&mut self) -> Vec<u8> {
        let is_it = |raw: &Vec<u8>| self.standard_input.as_deref() == Some(&*String::from_utf8_lossy(raw));
        match self.raw_input.take_if(|raw| is_it(raw)) {
            Some(raw) => {
                self.standard_input = None;
                self.handle(raw.len());
                raw
            }
            None => self.input().into_bytes(),
        }
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
