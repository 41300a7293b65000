//! What servers write into their logs of those who ask them, beside what they say by themselves.

use apimachinery::time::Time;
use golang::first_bytes::first_bytes;
use machine::bounds::MAX_LOG_BYTES;
use machine::logs::LogLine;
use machine::server_state::ServerState;
use machine::servers::ContainerServer;
use machine::text_store::TextStore;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::services::ProcessExit;
use network::tls::TlsIdentity;
use sync::Mutex;
use tokio::sync::watch;

/// So many lines are kept of one run of a container; of more the older ones are gone, as after log rotation.
const MAX_LINES: usize = 5000;
/// So long may a line be; of a longer one the rest is cut off.
const MAX_LINE_BYTES: usize = 8 << 10;

/// What is kept of a run of a container that somebody has asked: its requests, and what its server was told.
#[derive(Default)]
pub(super) struct AskedRun {
    pub(super) log: RequestLog,
    pub(super) store: Mutex<TextStore>,
    pub(super) state: Mutex<ServerState>,
    /// What its image serves, and what its files configure: each is read with the first connection, since a
    /// server reads them when it starts.
    pub(super) served: OnceLock<Option<Arc<ContainerServer>>>,
    pub(super) configured: OnceLock<Option<Arc<ContainerServer>>>,
    /// The certificate that its image has, or made when it started; nothing while nobody asked for that.
    pub(super) identity: OnceLock<Option<TlsIdentity>>,
    /// Whenever a server that its server has begun is done.
    pub(super) runner_ends: watch::Sender<()>,
    /// Its process ends when somebody asks it to.
    pub(super) exit: Arc<ProcessExit>,
}

/// The requests of one run of a container.
#[derive(Debug, Default)]
pub(super) struct RequestLog {
    kept: Mutex<KeptLines>,
    grows: watch::Sender<()>,
}

/// Bound: [`MAX_LINES`], and [`MAX_LOG_BYTES`] for their texts.
#[derive(Debug, Default)]
struct KeptLines {
    lines: VecDeque<LogLine>,
    bytes: usize,
}

impl RequestLog {
    pub(super) fn push(&self, mut line: LogLine) {
        if line.text.len() > MAX_LINE_BYTES {
            line.text.truncate(first_bytes(&line.text, MAX_LINE_BYTES).len());
            line.text.shrink_to_fit();
        }
        self.kept.lock().push(line);
        self.grows.send_replace(());
    }

    /// Told of each line from now on.
    pub(super) fn grows(&self) -> watch::Receiver<()> {
        self.grows.subscribe()
    }

    /// Puts them among what was said until then, in the order of time.
    pub(super) fn add_to(&self, said: &mut Vec<LogLine>, until: Time) {
        said.extend(self.kept.lock().lines.iter().filter(|line| line.at <= until).cloned());
        said.sort_by_key(|line| line.at);
    }
}

impl KeptLines {
    fn push(&mut self, line: LogLine) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > MAX_LINES || self.bytes > MAX_LOG_BYTES {
            self.bytes -= self.lines.pop_front().map_or(self.bytes, |old| old.text.len());
        }
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

    #[test]
    fn long_lines_are_cut_and_many_of_them_are_not_kept() {
        let log = RequestLog::default();
        let text = format!("x{}", "\u{e9}".repeat(MAX_LINE_BYTES));
        for second in 0..MAX_LINES {
            log.push(LogLine { text: text.clone(), ..line(second) });
        }
        let mut said = vec![];
        log.add_to(&mut said, line(MAX_LINES).at);
        assert!(said.iter().all(|line| line.text.len() == MAX_LINE_BYTES - 1));
        assert_eq!(said.len(), MAX_LOG_BYTES / (MAX_LINE_BYTES - 1));
        assert_eq!(said.last().unwrap().at, line(MAX_LINES - 1).at);
    }
}
