//! The newest part of the log, in memory.
//!
//! Watches that keep up, and reads of what changed lately, are served from it without touching the files.

use std::collections::VecDeque;

use super::{Event, KeyValue, Revision};

/// What an event costs beside its keys and values.
const EVENT_BYTES: usize = 256;

/// The newest events, without a gap. Bounded by `bound` bytes, what was there before the change counted as
/// well; at the bound the oldest are let go of, for they are in the log. The newest one always stays.
#[derive(Debug)]
pub(super) struct Recent {
    events: VecDeque<Event>,
    /// The revision of the first event, or of the next one if there is none.
    first: Revision,
    bytes: usize,
    bound: usize,
}

impl Recent {
    pub(super) fn new(next: Revision, bound: usize) -> Recent {
        Recent { events: VecDeque::new(), first: next, bytes: 0, bound }
    }

    pub(super) fn push(&mut self, event: Event) {
        assert_eq!(event.revision(), self.first + self.events.len() as u64, "revisions have no gaps");
        self.bytes += cost(&event);
        self.events.push_back(event);
        while self.bytes > self.bound && self.events.len() > 1 {
            let oldest = self.events.pop_front().expect("more than one");
            self.bytes -= cost(&oldest);
            self.first += 1;
        }
    }

    /// What the change at a revision wrote, if it is still here.
    pub(super) fn get(&self, revision: Revision) -> Option<&KeyValue> {
        let at = revision.checked_sub(self.first)?;
        self.events.get(usize::try_from(at).ok()?).map(|event| &event.kv)
    }

    /// The events from a revision on; None if some of them are no longer here.
    pub(super) fn since(&self, from: Revision) -> Option<impl Iterator<Item = &Event>> {
        let skip = usize::try_from(from.checked_sub(self.first)?).ok()?;
        Some(self.events.range(skip.min(self.events.len())..))
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

    #[test]
    fn it_keeps_the_newest_within_its_bound() {
        let mut recent = Recent::new(2, 4 * (EVENT_BYTES + 1 + 100));
        assert_eq!(recent.since(2).map(Iterator::count), Some(0));
        for revision in 2..=10 {
            recent.push(event(revision, 100));
        }
        assert!(recent.since(6).is_none());
        let kept: Vec<_> = recent.since(7).unwrap().map(Event::revision).collect();
        assert_eq!(kept, [7, 8, 9, 10]);
        assert_eq!(recent.since(11).map(Iterator::count), Some(0));
        assert!(recent.get(6).is_none() && recent.get(11).is_none());
        assert_eq!(recent.get(8).unwrap().mod_revision, 8);

        recent.push(event(11, 1 << 20));
        assert_eq!(recent.since(11).unwrap().count(), 1);
        assert!(recent.since(10).is_none());
    }
}
