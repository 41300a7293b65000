//! What a container is busy with.

use super::hooks::{PostStart, PreStop};
use super::image_manager::Pull;
use crate::container_runtime::services::{Call, ContainerId, Exit, RuntimeContainerStatus};
use crate::prober::Probers;
use apimachinery::time::Time;

/// What it is busy with, and until when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Task {
    /// It is not its turn.
    Idle,
    Pull(Pull),
    Create {
        began: Time,
        call: Call<ContainerId>,
    },
    StartBackOff {
        until: Time,
    },
    Run(Box<WhileRunning>),
    /// Its hook before its end is asked.
    PreStop(Box<PreStop>),
    Stop {
        until: Time,
        exit: Exit,
    },
    /// It is stopped to be started from another image.
    Replace {
        until: Time,
        exit: Exit,
    },
    /// It is stopped because a probe failed, and goes on as its restart policy says.
    Restart {
        until: Time,
        exit: Exit,
    },
    CrashLoopBackOff {
        until: Time,
    },
    /// It has ended for good.
    Done,
}

/// What is due while its process runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WhileRunning {
    pub(crate) ready_at: Option<Time>,
    pub(crate) ends: Option<(Time, Exit)>,
    /// When it asks the network something; nothing while it waits for the answer.
    pub(crate) asks_at: Option<Time>,
    /// It waits for the answer: whatever it hears meanwhile, it does not ask again.
    pub(crate) is_asking: bool,
    pub(crate) probers: Option<Box<Probers>>,
    /// Its hook is asked; until it is heard how that went nobody probes it.
    pub(crate) hook: Option<PostStart>,
}

impl Task {
    /// When its next step is due; nothing while somebody else has to act.
    pub(crate) fn due(&self) -> Option<Time> {
        match self {
            Task::Idle | Task::Done => None,
            Task::Run(running) => running.due(),
            Task::PreStop(hook) => Some(hook.due()),
            Task::Pull(pull) => pull.due(),
            Task::Create { call, .. } => call.returns_at,
            Task::StartBackOff { until }
            | Task::Stop { until, .. }
            | Task::Replace { until, .. }
            | Task::Restart { until, .. }
            | Task::CrashLoopBackOff { until } => Some(*until),
        }
    }
}

impl WhileRunning {
    /// What is ahead of it is another now.
    pub(crate) fn note(&mut self, status: RuntimeContainerStatus) {
        self.ends = status.ends;
        self.is_asking &= status.asks_at.is_some();
        self.asks_at = status.asks_at.filter(|_| !self.is_asking);
    }

    pub(crate) fn due(&self) -> Option<Time> {
        let ends = self.ends.as_ref().map(|(at, _)| *at);
        let probers = self.probers.as_ref().and_then(|probers| probers.due());
        let hook = self.hook.as_ref().and_then(|hook| hook.heard).map(|(at, _)| at);
        [self.ready_at, ends, self.asks_at, probers, hook].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_meanwhile_makes_nobody_ask_twice() {
        let asks = |at| RuntimeContainerStatus { ready_at: None, ends: None, asks_at: at };
        let begun = Some(Time::UNIX_EPOCH);
        let mut running = WhileRunning {
            ready_at: None,
            ends: None,
            asks_at: None,
            is_asking: true,
            probers: None,
            hook: None,
        };
        running.note(asks(begun));
        assert_eq!((running.asks_at, running.is_asking), (None, true));
        // It has the answer, and asks the next.
        running.is_asking = false;
        running.note(asks(begun));
        assert_eq!((running.asks_at, running.due()), (begun, begun));
        // What it asked for is not asked any more.
        running.is_asking = true;
        running.note(asks(None));
        assert_eq!((running.asks_at, running.is_asking), (None, false));
    }
}
