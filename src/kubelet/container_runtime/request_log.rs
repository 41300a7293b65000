//! What servers write into their logs of those who ask them, beside what they say by themselves.

use apimachinery::time::Time;
use machine::logs::LogLine;
use machine::text_servers::TextStore;
use std::collections::VecDeque;
use sync::Mutex;

/// So many lines are kept of one run of a container; of more the older ones are gone, as after log rotation.
const MAX_LINES: usize = 5000;

/// What is kept of a run of a container that somebody has asked: its requests, and what its server was told.
#[derive(Debug, Default)]
pub(super) struct AskedRun {
    pub(super) log: RequestLog,
    pub(super) store: Mutex<TextStore>,
}

/// The requests of one run of a container.
#[derive(Debug, Default)]
pub(super) struct RequestLog(Mutex<VecDeque<LogLine>>);

impl RequestLog {
    pub(super) fn push(&self, line: LogLine) {
        let mut lines = self.0.lock();
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Puts them among what was said until then, in the order of time.
    pub(super) fn add_to(&self, said: &mut Vec<LogLine>, until: Time) {
        said.extend(self.0.lock().iter().filter(|line| line.at <= until).cloned());
        said.sort_by_key(|line| line.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn line(second: usize) -> LogLine {
        let at = Time::UNIX_EPOCH + Duration::from_secs(second as u64);
        LogLine { at, text: second.to_string() }
    }

    #[test]
    fn the_oldest_lines_are_gone_at_the_bound() {
        let log = RequestLog::default();
        (0..MAX_LINES + 2).for_each(|second| log.push(line(second)));
        let mut said = vec![line(7)];
        log.add_to(&mut said, line(9).at);
        let texts: Vec<&str> = said.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["2", "3", "4", "5", "6", "7", "7", "8", "9"]);
        log.add_to(&mut said, line(2 * MAX_LINES).at);
        assert_eq!(said.len(), 9 + MAX_LINES);
    }
}
