//! The newest part of the log, in memory.
//!
//! Watches that keep up, and reads of what changed lately, are served from it without touching the files.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Event, KeyValue, Revision};

/// What an event costs beside its keys and values.
const EVENT_BYTES: usize = 256;

/// The newest events, without a gap. Bounded by `bound` bytes, what was there before the change counted as
/// well; at the bound the oldest are let go of, when they are in the log. The newest one always stays.
/// Cloning shares the events.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    events: VecDeque<Arc<Event>>,
    /// The revision of the first event, or of the next one if there is none.
    first: Revision,
    bytes: usize,
    bound: usize,
}

impl Recent {
    pub(super) fn new(next: Revision, bound: usize) -> Recent {
        Recent { events: VecDeque::new(), first: next, bytes: 0, bound }
    }

    /// Takes the next event. [`Recent::excess`] says what has to go for it.
    pub(super) fn push(&mut self, event: Event) {
        assert_eq!(event.revision(), self.first + self.events.len() as u64, "revisions have no gaps");
        self.bytes += cost(&event);
        self.events.push_back(Arc::new(event));
    }

    /// The oldest events that have to go: none until the bound is passed, and then an eighth of it beyond, so
    /// that this is seldom.
    pub(super) fn excess(&self) -> impl Iterator<Item = &Event> {
        let mut bytes = self.bytes;
        let is_over = bytes > self.bound;
        let target = self.bound - self.bound / 8;
        let old = self.events.len().saturating_sub(1);
        self.events.iter().map(|event| &**event).take(old).take_while(move |event| {
            let goes = is_over && bytes > target;
            bytes -= cost(event);
            goes
        })
    }

    /// Lets go of the oldest `count` events.
    pub(super) fn drop_oldest(&mut self, count: usize) {
        for event in self.events.drain(..count) {
            self.bytes -= cost(&event);
            self.first += 1;
        }
        // What a burst needed is given back.
        if self.events.capacity() / 4 > self.events.len() {
            self.events.shrink_to(self.events.len() * 2);
        }
    }

    /// What the change at a revision wrote, if it is still here.
    pub(super) fn get(&self, revision: Revision) -> Option<&KeyValue> {
        self.event(revision).map(|event| &event.kv)
    }

    /// The change at a revision, if it is still here.
    pub(super) fn event(&self, revision: Revision) -> Option<&Event> {
        let at = revision.checked_sub(self.first)?;
        self.events.get(usize::try_from(at).ok()?).map(|event| &**event)
    }

    /// The events from a revision on; None if some of them are no longer here.
    pub(super) fn since(&self, from: Revision) -> Option<impl Iterator<Item = &Event>> {
        let skip = usize::try_from(from.checked_sub(self.first)?).ok()?;
        Some(self.events.range(skip.min(self.events.len())..).map(|event| &**event))
    }

    /// The next event is that of the revision after this one; what is here comes before a gap, and goes.
    pub(super) fn begin_after(&mut self, revision: Revision) {
        if self.first + self.events.len() as u64 != revision + 1 {
            *self = Recent::new(revision + 1, self.bound);
        }
    }

    /// Forgets what happened after a revision.
    pub(super) fn rewind(&mut self, to: Revision) {
        while let Some(newest) = self.events.back().filter(|newest| newest.revision() > to) {
            self.bytes -= cost(newest);
            self.events.pop_back();
        }
        self.first = self.first.min(to + 1);
    }
}

fn cost(event: &Event) -> usize {
    let previous = event.previous.as_ref().map_or(0, |previous| previous.value.len());
    EVENT_BYTES + event.kv.key.len() + event.kv.value.len() + previous
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::EventKind;
    use super::*;

    fn event(mod_revision: Revision, len: usize) -> Event {
        let value = Bytes::from(vec![0; len]);
        let kv =
            KeyValue { key: "k".into(), value, create_revision: 2, mod_revision, version: 1, lease: None };
        Event { kind: EventKind::Put, kv, previous: None }
    }

    fn push(recent: &mut Recent, revision: Revision, len: usize) {
        recent.push(event(revision, len));
        let excess = recent.excess().count();
        recent.drop_oldest(excess);
    }

    #[test]
    fn it_keeps_the_newest_within_its_bound() {
        let mut recent = Recent::new(2, 8 * (EVENT_BYTES + 1 + 100));
        assert_eq!(recent.since(2).map(Iterator::count), Some(0));
        (2..=9).for_each(|revision| push(&mut recent, revision, 100));
        assert_eq!(recent.since(2).unwrap().count(), 8);
        push(&mut recent, 10, 100);
        assert!(recent.since(3).is_none());
        let kept: Vec<_> = recent.since(4).unwrap().map(Event::revision).collect();
        assert_eq!(kept, [4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(recent.since(11).map(Iterator::count), Some(0));
        assert!(recent.get(3).is_none() && recent.get(11).is_none());
        assert_eq!(recent.get(8).unwrap().mod_revision, 8);

        for (to, first, left) in [(9, 4, 6), (4, 4, 1), (3, 4, 0), (1, 2, 0)] {
            let mut rewound = recent.clone();
            rewound.rewind(to);
            assert_eq!(rewound.since(first).map(Iterator::count), Some(left), "to {to}");
            rewound.push(event(to + 1, 1));
            assert_eq!(rewound.get(to + 1).unwrap().value.len(), 1);
        }

        push(&mut recent, 11, 1 << 20);
        assert_eq!(recent.since(11).unwrap().count(), 1);
        assert!(recent.since(10).is_none());
    }
}
