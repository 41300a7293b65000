//! Whoever started this process, and whether it is still there.

use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process};

use clock::Clock;

/// Set, kubarium ends as at SIGTERM when whoever started it is gone: for a test that may be killed.
const END_WITH_PARENT: &str = "KUBARIUM_END_WITH_PARENT";
/// How often it is looked who the parent is. A signal at the parent's death would be of the thread that made
/// this process, and threads of test suites end early.
const LOOK: Duration = Duration::from_millis(200);

/// The process that started this one. None when that is init, or nobody as in a container: then this is a
/// service of its own, which nobody leaves behind.
#[derive(Clone, Copy)]
pub(crate) struct Parent(Option<Pid>);

impl Parent {
    /// Who it is now: asked at the start.
    pub(crate) fn now() -> Parent {
        Parent(getppid().filter(|parent| !parent.is_init()))
    }

    /// Somebody who never goes.
    pub(crate) fn nobody() -> Parent {
        Parent(None)
    }

    fn is_there(self) -> bool {
        self.0.is_none() || self.0 == getppid()
    }

    /// Returns when it is gone.
    pub(crate) async fn gone(self) {
        let clock = Clock::real();
        while self.is_there() {
            clock.sleep(LOOK).await;
        }
    }
}

/// Ends this process with its parent, if the variable says so. Whatever it does, it is told by a signal.
pub(crate) fn end_with_parent() {
    if std::env::var_os(END_WITH_PARENT).is_none_or(|value| value.is_empty()) {
        return;
    }
    let parent = Parent::now();
    std::thread::spawn(move || {
        let clock = Clock::real();
        while parent.is_there() {
            clock.block_thread(LOOK);
        }
        let _ = kill_process(getpid(), Signal::TERM);
    });
}
