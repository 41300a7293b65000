//! The background, and what is done about signals.

use std::ops::Range;
use std::time::Duration;

use super::jobs::FIRST_PID;
use super::player::{Flow, Player};

impl Player<'_> {
    /// In the background: the time that it takes is not waited for.
    pub(super) fn beside(&mut self, play: impl FnOnce(&mut Self) -> Flow) -> Flow {
        let (begun, first) = (self.elapsed, self.lines.len());
        let (input, jobs) = (self.standard_input.take(), std::mem::take(&mut self.jobs));
        let heard = self.heard.take();
        let flow = self.isolated(play);
        (self.standard_input, self.jobs, self.heard) = (input, jobs, heard);
        let ended = if flow == Flow::OutOfTime { Duration::MAX } else { self.elapsed };
        if flow == Flow::Stopped || self.question.is_some() || self.steps_left == 0 {
            return flow;
        }
        self.jobs.add(ended, self.status, first..self.lines.len());
        (self.elapsed, self.status) = (begun, 0);
        Flow::Go
    }

    /// `wait`: for all, or for those that are named.
    pub(crate) fn wait_for(&mut self, words: &[&str]) -> Flow {
        let named: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
        if words.contains(&"-n") {
            let now = self.elapsed;
            let Some(next) = self.jobs.all.iter().map(|job| job.ended.max(now)).min() else {
                self.status = 127;
                return Flow::Go;
            };
            let at = self.jobs.all.iter().position(|job| job.ended.max(now) == next).unwrap_or_default();
            let job = self.jobs.all.remove(at);
            self.status = job.status;
            return self.sleep(next.saturating_sub(now));
        }
        if named.is_empty() {
            let end = self.jobs.all.drain(..).map(|job| job.ended).max().unwrap_or_default();
            self.status = 0;
            return self.sleep(end.saturating_sub(self.elapsed));
        }
        for word in named {
            let (ended, status) = match self.jobs.find(word) {
                Some(job) => (job.ended, job.status),
                None => (Duration::ZERO, 127),
            };
            match self.sleep(ended.saturating_sub(self.elapsed)) {
                Flow::Go => self.status = status,
                flow => return flow,
            }
        }
        Flow::Go
    }

    /// `jobs`
    pub(crate) fn tell_jobs(&mut self) {
        let now = self.elapsed;
        let jobs = self.jobs.all.iter().filter(|job| job.ended > now);
        let said: String = jobs.map(|job| format!("[{}] Running\n", job.pid + 1 - FIRST_PID)).collect();
        self.say(&said);
    }

    /// `kill`: a job ends, or the shell itself does what it has said that it would.
    pub(crate) fn kill(&mut self, words: &[&str]) -> Flow {
        let mut signal = "TERM".to_owned();
        let mut words = words;
        while let [flag, rest @ ..] = words
            && let Some(name) = flag.strip_prefix('-')
        {
            words = match (name, rest) {
                ("l", _) => {
                    self.say("HUP INT QUIT KILL USR1 USR2 TERM\n");
                    return Flow::Go;
                }
                ("s" | "n", [name, rest @ ..]) => {
                    signal = signal_name(name);
                    rest
                }
                ("-", rest) => rest,
                (name, rest) => {
                    signal = signal_name(name);
                    rest
                }
            };
        }
        for word in words {
            match self.signal(word, &signal) {
                Flow::Go => {}
                flow => return flow,
            }
        }
        Flow::Go
    }

    fn signal(&mut self, word: &str, signal: &str) -> Flow {
        let now = self.elapsed;
        if word == "1" || word == "0" {
            // The first process of a container has no default action for a signal.
            return match self.traps.get(signal).cloned() {
                Some(handler) if signal != "EXIT" => self.handle_signal(&handler),
                _ => Flow::Go,
            };
        }
        let Some(job) = self.jobs.find(word).filter(|job| job.ended > now) else {
            let said = self.says_shell(&format!("kill: ({word}) - No such process"));
            self.complain(&said);
            self.status = 1;
            return Flow::Go;
        };
        if signal == "EXIT" {
            return Flow::Go;
        }
        job.ended = now;
        job.status = if signal == "KILL" { 137 } else { 143 };
        let said = job.said.clone();
        self.unsay(said);
        Flow::Go
    }

    /// What would have been said from now on is not.
    fn unsay(&mut self, said: Range<usize>) {
        let now = self.elapsed;
        let mut at = 0;
        // Of a log that was cut meanwhile nobody knows whose lines are whose.
        if said.end <= self.lines.len() {
            self.lines.retain(|line| {
                at += 1;
                !(said.contains(&(at - 1)) && line.after > now)
            });
        }
    }

    fn handle_signal(&mut self, handler: &str) -> Flow {
        let status = self.status;
        match self.evaluate(handler) {
            Flow::Go => {
                self.status = status;
                Flow::Go
            }
            flow => flow,
        }
    }

    /// `trap`
    pub(crate) fn trap(&mut self, words: &[&str]) {
        let words = words.strip_prefix(&["--"]).unwrap_or(words);
        match words {
            [] | ["-p", ..] => {
                let line = |(signal, handler): (&String, &String)| format!("trap -- '{handler}' {signal}\n");
                let said: String = self.traps.iter().map(line).collect();
                self.say(&said);
            }
            ["-l"] => self.say("HUP INT QUIT KILL USR1 USR2 TERM\n"),
            signals if signals[0] == "-" || signals.len() == 1 => {
                let signals = if signals.len() == 1 { signals } else { &signals[1..] };
                let traps = std::sync::Arc::make_mut(&mut self.traps);
                signals.iter().for_each(|signal| drop(traps.remove(&signal_name(signal))));
            }
            [handler, signals @ ..] => {
                if !self.handle(handler.len() * signals.len()) {
                    return;
                }
                let traps = std::sync::Arc::make_mut(&mut self.traps);
                for signal in signals {
                    traps.insert(signal_name(signal), (*handler).to_owned());
                }
                // There are no more signals than these.
                traps.retain(|signal, _| SIGNALS.iter().any(|(name, _)| name == signal));
            }
        }
    }

    /// What is to be done at the end of a shell, which ends with `flow`.
    pub(crate) fn finish(&mut self, flow: Flow) -> Flow {
        let code = match flow {
            Flow::Exit(code) | Flow::Return(code) => code,
            Flow::Go | Flow::Break(_) | Flow::Continue(_) => self.status,
            Flow::OutOfTime | Flow::Stopped => return flow,
        };
        let Some(handler) = self.traps.get("EXIT").cloned() else { return flow };
        std::sync::Arc::make_mut(&mut self.traps).remove("EXIT");
        self.status = code;
        match self.evaluate(&handler) {
            Flow::Exit(code) => Flow::Exit(code),
            Flow::OutOfTime => Flow::OutOfTime,
            Flow::Stopped => Flow::Stopped,
            _ => Flow::Exit(code),
        }
    }

    /// A command has failed (`trap ... ERR`).
    pub(super) fn handle_failure(&mut self) -> Flow {
        match self.traps.get("ERR").cloned() {
            Some(handler) => {
                self.tested += 1;
                let flow = self.handle_signal(&handler);
                self.tested -= 1;
                flow
            }
            None => Flow::Go,
        }
    }
}

/// Signals with their numbers, and what shells count among them.
const SIGNALS: [(&str, &str); 15] = [
    ("EXIT", "0"),
    ("HUP", "1"),
    ("INT", "2"),
    ("QUIT", "3"),
    ("KILL", "9"),
    ("USR1", "10"),
    ("USR2", "12"),
    ("PIPE", "13"),
    ("ALRM", "14"),
    ("TERM", "15"),
    ("CHLD", "17"),
    ("WINCH", "28"),
    ("ERR", "ERR"),
    ("DEBUG", "DEBUG"),
    ("RETURN", "RETURN"),
];

/// `SIGTERM`, `term` and `15` are `TERM`; 0 stays, since it is no signal for `kill`.
fn signal_name(word: &str) -> String {
    let upper = word.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = SIGNALS.iter().find(|(_, number)| *number == bare);
    known.map_or(bare, |(name, _)| name).to_owned()
}
