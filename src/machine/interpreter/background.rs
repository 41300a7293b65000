//! The background, and what is done about signals.

use std::time::Duration;

use super::jobs::FIRST_PID;
use super::killing::{is_signal, signal_name};
use super::player::{AfterCommand, Player};
use crate::signal_names;

impl Player<'_> {
    /// In the background: the time that it takes is not waited for.
    pub(super) fn beside(&mut self, play: impl FnOnce(&mut Self) -> AfterCommand) -> AfterCommand {
        let (begun, first) = (self.elapsed, self.lines.len());
        let (input, jobs) = (self.standard_input.take(), std::mem::take(&mut self.jobs));
        let heard = self.heard.take();
        let was_beside = std::mem::replace(&mut self.is_beside, true);
        let flow = self.isolated(play);
        (self.standard_input, self.jobs, self.heard) = (input, jobs, heard);
        self.is_beside = was_beside;
        let ended = if flow == AfterCommand::OutOfTime { Duration::MAX } else { self.elapsed };
        if flow == AfterCommand::Stopped || self.question.is_some() || self.steps_left == 0 {
            return flow;
        }
        self.jobs.add(ended, self.status, first..self.lines.len());
        (self.elapsed, self.status) = (begun, 0);
        AfterCommand::Go
    }

    /// `wait`: for all, or for those that are named.
    pub(crate) fn wait_for(&mut self, words: &[&str]) -> AfterCommand {
        let named: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
        if words.contains(&"-n") {
            let now = self.elapsed;
            let Some(next) = self.jobs.all.iter().map(|job| job.ended.max(now)).min() else {
                self.status = 127;
                return AfterCommand::Go;
            };
            let at = self.jobs.all.iter().position(|job| job.ended.max(now) == next).unwrap_or_default();
            let (flow, is_cut_short) = self.wait_for_job(next);
            // Who was not waited for to the end can be waited for again.
            if !is_cut_short {
                self.status = self.jobs.all.remove(at).status;
            }
            return flow;
        }
        if named.is_empty() {
            let end = self.jobs.all.iter().map(|job| job.ended).max().unwrap_or_default();
            self.status = 0;
            let (flow, is_cut_short) = self.wait_for_job(end);
            if !is_cut_short {
                self.jobs.all.clear();
            }
            return flow;
        }
        for word in named {
            let (ended, status) = match self.jobs.find(word) {
                Some(job) => (job.ended, job.status),
                None => (Duration::ZERO, 127),
            };
            match self.wait_for_job(ended) {
                (AfterCommand::Go, false) => self.status = status,
                (flow, _) => return flow,
            }
        }
        AfterCommand::Go
    }

    /// Waits for a job, and whether a signal came before its end.
    fn wait_for_job(&mut self, end: Duration) -> (AfterCommand, bool) {
        let now = self.elapsed;
        // Signals are for the container's own process.
        let is_first = self.pid == 1 && !self.is_beside;
        if let Some((at, status)) = self.wait_ends.take_if(|(at, _)| is_first && (now..end).contains(at)) {
            self.status = status;
            return (self.sleep(at - now), true);
        }
        let flow = self.sleep(end.saturating_sub(now));
        self.is_in_wait = is_first && flow == AfterCommand::OutOfTime;
        (flow, false)
    }

    /// `jobs`
    pub(crate) fn tell_jobs(&mut self) {
        let now = self.elapsed;
        let jobs = self.jobs.all.iter().filter(|job| job.ended > now);
        let said: String = jobs.map(|job| format!("[{}] Running\n", job.pid + 1 - FIRST_PID)).collect();
        self.say(&said);
    }

    pub(super) fn handle_signal(&mut self, handler: &str) -> AfterCommand {
        let status = self.status;
        match self.evaluate(handler) {
            AfterCommand::Go => {
                self.status = status;
                AfterCommand::Go
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
            ["-l"] => self.say(&signal_names::listed()),
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
                traps.retain(|signal, _| is_signal(signal));
            }
        }
    }

    /// What is to be done at the end of a shell, which ends with `flow`.
    pub(crate) fn finish(&mut self, flow: AfterCommand) -> AfterCommand {
        let code = match flow {
            AfterCommand::Exit(code) | AfterCommand::Return(code) => code,
            AfterCommand::Go | AfterCommand::Break(_) | AfterCommand::Continue(_) => self.status,
            AfterCommand::OutOfTime | AfterCommand::Stopped => return flow,
        };
        let Some(handler) = self.traps.get("EXIT").cloned() else { return flow };
        std::sync::Arc::make_mut(&mut self.traps).remove("EXIT");
        self.status = code;
        // What a key has ended has its end done all the same.
        self.interrupted = None;
        match self.evaluate(&handler) {
            AfterCommand::Exit(code) => AfterCommand::Exit(code),
            AfterCommand::OutOfTime => AfterCommand::OutOfTime,
            AfterCommand::Stopped => AfterCommand::Stopped,
            _ => AfterCommand::Exit(code),
        }
    }

    /// A command has failed (`trap ... ERR`).
    pub(super) fn handle_failure(&mut self) -> AfterCommand {
        match self.traps.get("ERR").cloned() {
            Some(handler) => {
                self.tested += 1;
                let flow = self.handle_signal(&handler);
                self.tested -= 1;
                flow
            }
            None => AfterCommand::Go,
        }
    }
}
