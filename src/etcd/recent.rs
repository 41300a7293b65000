//! The newest part of the log, in memory.
//!
//! Watches that keep up, and reads of what changed lately, are served from it without touching the files.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{KeyEvent, KeyValue, Revision};

/// What an event costs beside its keys and values.
const EVENT_BYTES: usize = 256;

/// The newest events, those of a revision together, without a gap. Bounded by `bound` bytes, what was there
/// before the change counted as well; at the bound the oldest are let go of, when they are in the log. The
/// newest revision always stays. Cloning shares it, until one of the two changes.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    revisions: Arc<VecDeque<Arc<[KeyEvent]>>>,
    /// The revision of the first events, or of the next ones if there are none.
    first: Revision,
    bytes: usize,
    bound: usize,
}

impl Recent {
    pub(super) fn new(next: Revision, bound: usize) -> Recent {
        Recent { revisions: Arc::default(), first: next, bytes: 0, bound }
    }

    /// Takes the events of the next revision. [`Recent::excess`] says what has to go for them.
    pub(super) fn push(&mut self, events: Arc<[KeyEvent]>) {
        let next = self.first + self.revisions.len() as u64;
        assert!(events.iter().all(|event| event.revision() == next), "revisions have no gaps");
        self.bytes += cost(&events);
        Arc::make_mut(&mut self.revisions).push_back(events);
    }

    /// The oldest revisions that have to go: none until the bound is passed, and then an eighth of it beyond,
    /// so that this is seldom.
    pub(super) fn excess(&self) -> impl Iterator<Item = &Arc<[KeyEvent]>> {
        let mut bytes = self.bytes;
        let is_over = bytes > self.bound;
        let target = self.bound - self.bound / 8;
        let old = self.revisions.len().saturating_sub(1);
        self.revisions.iter().take(old).take_while(move |events| {
            let goes = is_over && bytes > target;
            bytes -= cost(events);
            goes
        })
    }

    /// Lets go of the oldest `count` revisions.
    pub(super) fn drop_oldest(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let revisions = Arc::make_mut(&mut self.revisions);
        for events in revisions.drain(..count) {
            self.bytes -= cost(&events);
            self.first += 1;
        }
        // What a burst needed is given back.
        if revisions.capacity() / 4 > revisions.len() {
            revisions.shrink_to(revisions.len() * 2);
        }
    }

    /// What the change of a key at a revision wrote, if it is still here.
    pub(super) fn get(&self, key: &str, revision: Revision) -> Option<&KeyValue> {
        self.event(key, revision).map(|event| &event.kv)
    }

    /// The change of a key at a revision, if it is still here.
    pub(super) fn event(&self, key: &str, revision: Revision) -> Option<&KeyEvent> {
        match self.events(revision)? {
            [only] => Some(only),
            several => several.iter().find(|event| *event.kv.key == *key),
        }
    }

    /// The changes at a revision, if they are still here.
    pub(super) fn events(&self, revision: Revision) -> Option<&[KeyEvent]> {
        let at = revision.checked_sub(self.first)?;
        self.revisions.get(usize::try_from(at).ok()?).map(|events| &**events)
    }

    /// The events from a revision on; None if some of them are no longer here.
    pub(super) fn since(&self, from: Revision) -> Option<impl Iterator<Item = &KeyEvent>> {
        let skip = usize::try_from(from.checked_sub(self.first)?).ok()?;
        Some(self.revisions.range(skip.min(self.revisions.len())..).flat_map(|events| &**events))
    }

    /// All that are here, oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &KeyEvent> {
        self.revisions.iter().flat_map(|events| &**events)
    }

    /// The next event is that of the revision after this one; what is here comes before a gap, and goes.
    pub(super) fn begin_after(&mut self, revision: Revision) {
        if self.first + self.revisions.len() as u64 != revision + 1 {
            *self = Recent::new(revision + 1, self.bound);
        }
    }

    /// Forgets what happened after a revision.
    pub(super) fn rewind(&mut self, to: Revision) {
        let is_later = |events: &&Arc<[KeyEvent]>| events.first().is_none_or(|event| event.revision() > to);
        while let Some(newest) = self.revisions.back().filter(is_later) {
            self.bytes -= cost(newest);
            Arc::make_mut(&mut self.revisions).pop_back();
        }
        self.first = self.first.min(to + 1);
    }
}

fn cost(events: &[KeyEvent]) -> usize {
    let previous = |event: &KeyEvent| event.previous.as_ref().map_or(0, |previous| previous.value.len());
    let cost = |event: &KeyEvent| EVENT_BYTES + event.kv.key.len() + event.kv.value.len() + previous(event);
    events.iter().map(cost).sum()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::EventKind;
    use super::*;

    fn event(mod_revision: Revision, len: usize) -> KeyEvent {
        let value = Bytes::from(vec![0; len]);
        let kv =
            KeyValue { key: "k".into(), value, create_revision: 2, mod_revision, version: 1, lease: None };
        KeyEvent { kind: EventKind::Put, kv, previous: None }
    }

    fn push(recent: &mut Recent, revision: Revision, len: usize) {
        recent.push(Arc::new([event(revision, len)]));
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
        let kept: Vec<_> = recent.since(4).unwrap().map(KeyEvent::revision).collect();
        assert_eq!(kept, [4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(recent.since(11).map(Iterator::count), Some(0));
        assert!(recent.get("k", 3).is_none() && recent.get("k", 11).is_none());
        assert_eq!(recent.get("k", 8).unwrap().mod_revision, 8);

        for (to, first, left) in [(9, 4, 6), (4, 4, 1), (3, 4, 0), (1, 2, 0)] {
            let mut rewound = recent.clone();
            rewound.rewind(to);
            assert_eq!(rewound.since(first).map(Iterator::count), Some(left), "to {to}");
            rewound.push(Arc::new([event(to + 1, 1)]));
            assert_eq!(rewound.get("k", to + 1).unwrap().value.len(), 1);
        }

        push(&mut recent, 11, 1 << 20);
        assert_eq!(recent.since(11).unwrap().count(), 1);
        assert!(recent.since(10).is_none());
    }
}
