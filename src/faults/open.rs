//! `OpenWatches`: the watches that go on, so that a fault that comes later can end them.

use std::sync::{Arc, Weak};

use super::asked::AskedFor;
use super::body::BodyGate;
use apimachinery::options::{WatchCut, WeakWatchCut};
use sync::Mutex;

/// All of a cluster. Those that have ended are dropped when the list would grow.
#[derive(Default)]
pub(super) struct OpenWatches(Mutex<Vec<OpenWatch>>);

struct OpenWatch {
    way: WayToEnd,
    asked: AskedFor,
}

enum WayToEnd {
    /// Over a connection.
    Gate(Weak<BodyGate>),
    /// In this process, where events are read as they are.
    Cut(WeakWatchCut),
}

impl OpenWatches {
    /// One that is sent over a connection.
    pub(super) fn sent(&self, asked: AskedFor) -> Arc<BodyGate> {
        let gate = Arc::new(BodyGate::default());
        self.add(WayToEnd::Gate(Arc::downgrade(&gate)), asked);
        gate
    }

    /// One in this process.
    pub(super) fn inside(&self, asked: AskedFor) -> WatchCut {
        let cut = WatchCut::default();
        self.add(WayToEnd::Cut(cut.downgrade()), asked);
        cut
    }

    fn add(&self, way: WayToEnd, asked: AskedFor) {
        let mut open = self.0.lock();
        if open.len() == open.capacity() {
            open.retain(|watch| watch.way.is_open());
        }
        open.push(OpenWatch { way, asked });
    }

    /// Ends those that are hit, asked once about each that is open, oldest first; a connection breaks off, or
    /// its answer ends as if there were no more.
    pub(super) fn end(&self, breaks_off: bool, is_hit: &dyn Fn(&AskedFor) -> bool) {
        let open = self.0.lock();
        for watch in open.iter().filter(|watch| watch.way.is_open() && is_hit(&watch.asked)) {
            match &watch.way {
                WayToEnd::Cut(cut) => cut.cut(),
                WayToEnd::Gate(gate) => match gate.upgrade() {
                    Some(gate) if breaks_off => gate.break_off(),
                    Some(gate) => gate.close(),
                    None => {}
                },
            }
        }
    }
}

impl WayToEnd {
    fn is_open(&self) -> bool {
        match self {
            WayToEnd::Gate(gate) => gate.upgrade().is_some_and(|gate| gate.is_open()),
            WayToEnd::Cut(cut) => cut.is_open(),
        }
    }
}
