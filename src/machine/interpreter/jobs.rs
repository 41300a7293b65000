//! What was sent to the background.

use std::ops::Range;
use std::time::Duration;

/// So many are remembered of what was sent to the background; of more the oldest are forgotten, as after a
/// `wait` for them.
const MAX_JOBS: usize = 256;
/// The first number of a process that is not the first one.
pub(super) const FIRST_PID: usize = 7;

/// One command in the background.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundJob {
    pub(crate) pid: usize,
    /// When it ends; never is the end of time.
    pub(crate) ended: Duration,
    pub(crate) status: i32,
    /// What it says, among the lines of the log.
    pub(super) said: Range<usize>,
}

/// All of them, the oldest first. Bound: [`MAX_JOBS`].
#[derive(Clone, Debug, Default)]
pub(crate) struct BackgroundJobs {
    pub(super) all: Vec<BackgroundJob>,
    begun: usize,
}

impl BackgroundJobs {
    pub(crate) fn last_pid(&self) -> Option<usize> {
        self.all.last().map(|job| job.pid)
    }

    /// Whether any has not ended by then.
    pub(crate) fn are_running(&self, now: Duration) -> bool {
        self.all.iter().any(|job| job.ended > now)
    }

    /// As who begins anew remembers them: all have ended, and what they said is said.
    pub(crate) fn ended(&self) -> BackgroundJobs {
        let mut jobs = self.clone();
        for job in &mut jobs.all {
            job.ended = Duration::ZERO;
            job.said = 0..0;
        }
        jobs
    }

    pub(super) fn add(&mut self, ended: Duration, status: i32, said: Range<usize>) {
        if self.all.len() == MAX_JOBS {
            self.all.remove(0);
        }
        self.all.push(BackgroundJob { pid: FIRST_PID + self.begun, ended, status, said });
        self.begun += 1;
    }

    /// By its number, or as `%1`.
    pub(super) fn find(&mut self, word: &str) -> Option<&mut BackgroundJob> {
        let pid = match word.strip_prefix('%') {
            Some("" | "%" | "+") => self.last_pid()?,
            Some(number) => FIRST_PID + number.parse::<usize>().ok()?.checked_sub(1)?,
            None => word.parse().ok()?,
        };
        self.all.iter_mut().find(|job| job.pid == pid)
    }
}
