//! `EventCorrelator`: keeps events from flooding the apiserver (client-go's `record/events_cache.go`).
//!
//! In this order: events of one reason about one object that differ only in their text are told as one from
//! the tenth on, if less than ten minutes lie between any two; an event that was told before is counted up
//! instead of told again; a component may tell 25 things about an object, and then one more every five
//! minutes.
//!
//! What was told is remembered by fingerprints: a component tells of thousands of objects, and nobody asks
//! which they were.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::event::Event;
use super::lru::Lru;
use super::token_bucket::TokenBucket;
use apimachinery::time::Time;
use clock::Clock;

/// How many keys each of the three caches remembers; those used longest ago are forgotten for a new one.
const MAX_CACHE_ENTRIES: usize = 4096;
/// So many different texts make an aggregate.
const AGGREGATE_MAX_EVENTS: usize = 10;
/// An aggregate that was quiet for longer begins anew.
const AGGREGATE_INTERVAL: Duration = Duration::from_secs(600);
/// What one source may tell about one object at once,
const SPAM_BURST: u32 = 25;
/// and a second after that.
const SPAM_PER_SECOND: f64 = 1.0 / 300.0;

/// What to write.
#[derive(Debug)]
pub(super) struct Correlated {
    /// With its count, its first time and the name it was first told under.
    pub(super) event: Event,
    /// Under which it is remembered.
    pub(super) key: EventFingerprint,
    /// Whether it was told before.
    pub(super) is_update: bool,
}

/// Of a source, an object and more; the same for the same.
pub(super) type EventFingerprint = u64;

/// What was told before, and how often.
pub(super) struct EventCorrelator {
    clock: Clock,
    aggregates: Lru<EventFingerprint, Aggregate>,
    told: Lru<EventFingerprint, Told>,
    spam: Lru<EventFingerprint, TokenBucket>,
}

struct Aggregate {
    /// The different ones, oldest first. Bound: [`AGGREGATE_MAX_EVENTS`].
    texts: Vec<EventFingerprint>,
    last: Duration,
}

struct Told {
    name: Box<str>,
    first_timestamp: Time,
    count: u32,
}

impl EventCorrelator {
    pub(super) fn new(clock: Clock) -> EventCorrelator {
        let (aggregates, told) = (Lru::new(MAX_CACHE_ENTRIES), Lru::new(MAX_CACHE_ENTRIES));
        EventCorrelator { clock, aggregates, told, spam: Lru::new(MAX_CACHE_ENTRIES) }
    }

    /// None if the source tells too much about the object.
    pub(super) fn correlate(&mut self, event: Event) -> Option<Correlated> {
        let about = source_and_object(&event);
        let (event, key) = self.aggregate(event, &about);
        let correlated = self.observe(event, key);
        self.accepts(about.finish()).then_some(correlated)
    }

    /// The server took it under `name`.
    pub(super) fn update_state(&mut self, key: EventFingerprint, event: &Event, name: String) {
        let name = name.into_boxed_str();
        self.told.put(key, Told { name, first_timestamp: event.first_timestamp, count: event.count });
    }

    /// `EventAggregator.EventAggregate`: the event to tell, and the key that equal ones share.
    fn aggregate(&mut self, mut event: Event, about: &DefaultHasher) -> (Event, EventFingerprint) {
        let now = self.clock.elapsed();
        let mut shared = about.clone();
        (&event.event_type, &event.reason).hash(&mut shared);
        let shared_key = shared.finish();
        let text = fingerprint(&event.message);
        let aggregate = self.aggregates.get_or_put(shared_key, || Aggregate { texts: Vec::new(), last: now });
        if now.saturating_sub(aggregate.last) > AGGREGATE_INTERVAL {
            aggregate.texts.clear();
        }
        aggregate.last = now;
        if !aggregate.texts.contains(&text) {
            // Most have one, for ever.
            aggregate.texts.reserve_exact(1);
            aggregate.texts.push(text);
        }
        if aggregate.texts.len() < AGGREGATE_MAX_EVENTS {
            (&event.involved_object.field_path, text).hash(&mut shared);
            return (event, shared.finish());
        }
        // Enough to know that there are many.
        aggregate.texts.remove(0);
        event.message.insert_str(0, "(combined from similar events): ");
        (event, shared_key)
    }

    /// `eventLogger.eventObserve`: counts what was told before.
    fn observe(&mut self, mut event: Event, key: EventFingerprint) -> Correlated {
        let told = self.told.get(&key);
        let is_update = told.is_some();
        if let Some(told) = told {
            event.name = told.name.to_string();
            event.first_timestamp = told.first_timestamp;
            event.count = told.count + 1;
        }
        self.update_state(key, &event, event.name.clone());
        Correlated { event, key, is_update }
    }

    /// `EventSourceObjectSpamFilter.Filter`
    fn accepts(&mut self, about: EventFingerprint) -> bool {
        let now = self.clock.elapsed();
        let full = || TokenBucket::new(SPAM_PER_SECOND, SPAM_BURST, now);
        self.spam.get_or_put(about, full).try_accept(now)
    }
}

/// What the fingerprints of an event begin with.
fn source_and_object(event: &Event) -> DefaultHasher {
    let object = &event.involved_object;
    let mut hasher = DefaultHasher::new();
    (&event.component, &event.host, &object.kind, &object.namespace).hash(&mut hasher);
    (&object.name, &object.uid, &object.api_version).hash(&mut hasher);
    hasher
}

fn fingerprint(text: &str) -> EventFingerprint {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::reference::ObjectReference;

    fn event(clock: &Clock, reason: &str, message: &str) -> Event {
        let object = ObjectReference { kind: "Pod".into(), name: "a".into(), ..ObjectReference::default() };
        Event {
            name: format!("a.{reason}.{message}"),
            namespace: "default".into(),
            involved_object: object,
            reason: reason.into(),
            message: message.into(),
            event_type: "Normal".into(),
            component: "tester".into(),
            host: "".into(),
            first_timestamp: clock.now(),
            last_timestamp: clock.now(),
            count: 1,
            action: None,
        }
    }

    /// Name, message and count of what is to be written; what is not shows as `-`.
    fn tell(correlator: &mut EventCorrelator, event: Event) -> String {
        correlator.correlate(event).map_or("-".into(), |correlated| {
            let Event { name, message, count, .. } = correlated.event;
            format!("{name} {message} {count}{}", if correlated.is_update { " again" } else { "" })
        })
    }

    #[test]
    fn the_same_again_is_counted_under_its_first_name_and_time() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut correlator = EventCorrelator::new(clock.clone());
        assert_eq!(tell(&mut correlator, event(&clock, "R", "m")), "a.R.m m 1");
        clock.advance(Duration::from_secs(60));
        let again = Event { name: "other".into(), ..event(&clock, "R", "m") };
        let correlated = correlator.correlate(again).unwrap();
        assert_eq!((correlated.event.name.as_str(), correlated.event.count), ("a.R.m", 2));
        assert_eq!(correlated.event.first_timestamp, DateTime::UNIX_EPOCH);
        assert_eq!(correlated.event.last_timestamp, clock.now());
        assert_eq!(tell(&mut correlator, event(&clock, "S", "m")), "a.S.m m 1", "another reason");
    }

    #[test]
    fn from_the_tenth_text_on_they_are_combined() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut correlator = EventCorrelator::new(clock.clone());
        let mut told: Vec<String> = vec![];
        for number in 1..=11 {
            told.push(tell(&mut correlator, event(&clock, "R", &format!("m{number}"))));
        }
        assert_eq!(told[8], "a.R.m9 m9 1");
        assert_eq!(told[9], "a.R.m10 (combined from similar events): m10 1");
        assert_eq!(told[10], "a.R.m10 (combined from similar events): m11 2 again");
        clock.advance(Duration::from_secs(601));
        assert_eq!(tell(&mut correlator, event(&clock, "R", "m12")), "a.R.m12 m12 1", "ten quiet minutes");
    }

    #[test]
    fn one_source_may_tell_25_things_about_an_object_and_then_one_in_five_minutes() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut correlator = EventCorrelator::new(clock.clone());
        let mut accepted = || tell(&mut correlator, event(&clock, "R", "m")) != "-";
        assert!((0..25).all(|_| accepted()));
        assert!(!accepted());
        clock.advance(Duration::from_secs(300));
        assert!(accepted());
        assert!(!accepted());
    }
}
