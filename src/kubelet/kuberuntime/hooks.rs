//! Hooks that somebody asks, while it is not heard how they went.

use crate::container_runtime::services::Exit;
use apimachinery::time::Time;

/// A hook after the start that somebody asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PostStart {
    /// From when on the process serves.
    pub(crate) ready_at: Option<Time>,
    /// When it was heard how the hook went, and whether well.
    pub(crate) heard: Option<(Time, bool)>,
}

/// What a process is stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopPurpose {
    /// Its pod ends.
    End,
    /// It is started from another image.
    Replace,
    /// It failed a probe, and goes on as its restart policy says.
    Restart,
}

/// A hook before the end that somebody asks. It has as long as the process has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreStop {
    /// When the grace of the process is over.
    pub(crate) killed_at: Time,
    /// When it was heard how the hook went, and whether well.
    pub(crate) heard: Option<(Time, bool)>,
    /// When the process ends by itself, and how.
    pub(crate) ends: Option<(Time, Exit)>,
    pub(crate) purpose: StopPurpose,
}

impl PreStop {
    pub(crate) fn hear(&mut self, is_well: bool, now: Time) {
        self.heard = self.heard.or(Some((now, is_well)));
    }

    pub(crate) fn due(&self) -> Time {
        let heard = self.heard.map_or(self.killed_at, |(at, _)| at);
        let ends = self.ends.as_ref().map_or(heard, |(at, _)| *at);
        heard.min(ends).min(self.killed_at)
    }

    /// The pod is stopped now, and with no more grace than that.
    pub(crate) fn hurry(&mut self, killed_at: Time) {
        self.killed_at = self.killed_at.min(killed_at);
        self.purpose = StopPurpose::End;
    }
}
