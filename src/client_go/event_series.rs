//! `EventSeries`: what `events.k8s.io/v1` Events have in place of counts (client-go's `tools/events`,
//! `eventBroadcasterImpl`).
//!
//! What is told for the second time becomes a series, which is written; further ones are only counted, and
//! the count is written every half hour, and once nothing more was told for six minutes.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::event::Event;
use apimachinery::time::Time;
use clock::Clock;

/// A series to which nothing came for so long is over (`finishTime`).
const FINISH_TIME: Duration = Duration::from_secs(6 * 60);
/// How often the count of one that goes on is written (`refreshTime`).
const REFRESH_TIME: Duration = Duration::from_secs(30 * 60);
/// So many different events are known at a time. At the bound those that are over are forgotten, and if none
/// is, all: what is told then is told as new.
const MAX_KNOWN: usize = 4096;

/// Which events were told, and how often.
pub(super) struct EventSeriesBook {
    clock: Clock,
    known: HashMap<u64, KnownEvent>,
    /// Those whose count is to be written. Bound: a few more than are known, until they would be written.
    unwritten: HashSet<u64>,
}

struct KnownEvent {
    name: String,
    namespace: String,
    last_told: Duration,
    last_written: Duration,
    /// None while it was told once.
    series: Option<EventSeries>,
}

/// How often, and when last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventSeries {
    pub(super) count: u32,
    pub(super) last_observed: Time,
}

/// A series whose count is to be written.
#[derive(Debug, PartialEq)]
pub(super) struct SeriesNews {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) series: EventSeries,
}

/// What is to be done about an event.
#[derive(Debug, PartialEq)]
pub(super) enum SeriesVerdict {
    /// It is told for the first time.
    Create,
    /// It is told for the second time.
    Begin(SeriesNews),
    /// It was counted.
    Counted,
}

impl EventSeriesBook {
    pub(super) fn new(clock: Clock) -> EventSeriesBook {
        EventSeriesBook { clock, known: HashMap::new(), unwritten: HashSet::new() }
    }

    /// One more.
    pub(super) fn observe(&mut self, event: &Event) -> SeriesVerdict {
        let now = self.clock.elapsed();
        let last_observed = self.clock.now();
        let key = key_of(event);
        let known = self.known.get_mut(&key);
        let Some(known) = known.filter(|known| now < known.last_told + FINISH_TIME) else {
            return SeriesVerdict::Create;
        };
        known.last_told = now;
        if let Some(series) = &mut known.series {
            *series = EventSeries { count: series.count.saturating_add(1), last_observed };
            self.unwritten.insert(key);
            return SeriesVerdict::Counted;
        }
        known.series = Some(EventSeries { count: 2, last_observed });
        known.last_written = now;
        known.news().map_or(SeriesVerdict::Counted, SeriesVerdict::Begin)
    }

    /// It was written under this name.
    pub(super) fn created(&mut self, event: &Event, name: String) {
        let now = self.clock.elapsed();
        if self.known.len() >= MAX_KNOWN {
            self.known.retain(|_, known| now < known.last_told + FINISH_TIME);
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let namespace = event.namespace.clone();
        let known = KnownEvent { name, namespace, last_told: now, last_written: now, series: None };
        let key = key_of(event);
        self.known.insert(key, known);
        self.unwritten.remove(&key);
    }

    /// When the next count is to be written, if any is.
    pub(super) fn due(&self) -> Option<Duration> {
        self.unwritten.iter().filter_map(|key| self.known.get(key)).map(KnownEvent::due).min()
    }

    /// The counts that are to be written now.
    pub(super) fn news(&mut self) -> Vec<SeriesNews> {
        let now = self.clock.elapsed();
        let mut news = Vec::new();
        let EventSeriesBook { known, unwritten, .. } = self;
        unwritten.retain(|key| {
            let Some(known) = known.get_mut(key) else { return false };
            let is_due = known.due() <= now;
            if is_due {
                known.last_written = now;
                news.extend(known.news());
            }
            !is_due
        });
        news.sort_by(|a, b| a.name.cmp(&b.name));
        news
    }
}

impl KnownEvent {
    fn due(&self) -> Duration {
        (self.last_told + FINISH_TIME).min(self.last_written + REFRESH_TIME)
    }

    fn news(&self) -> Option<SeriesNews> {
        let series = self.series.clone()?;
        Some(SeriesNews { name: self.name.clone(), namespace: self.namespace.clone(), series })
    }
}

/// All but the note and the time (`getKey`).
fn key_of(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    let action = event.action.as_ref().map(|action| (&action.action, &action.related));
    (&event.event_type, &event.reason, &event.component, &event.host).hash(&mut hasher);
    (&event.involved_object, action).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::event::EventAction;
    use crate::reference::ObjectReference;

    fn event(clock: &Clock, reason: &str) -> Event {
        Event {
            name: String::new(),
            namespace: "ns".into(),
            involved_object: ObjectReference { name: "a".into(), ..ObjectReference::default() },
            reason: reason.into(),
            message: clock.now().to_string(),
            event_type: "Warning".into(),
            component: "default-scheduler".into(),
            host: "".into(),
            first_timestamp: clock.now(),
            last_timestamp: clock.now(),
            count: 1,
            action: Some(EventAction { action: "Scheduling".into(), related: None }),
        }
    }

    #[test]
    fn the_second_begins_a_series_and_further_ones_are_counted() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut book = EventSeriesBook::new(clock.clone());
        let tell = |book: &mut EventSeriesBook, reason: &str| {
            let event = event(&clock, reason);
            let verdict = book.observe(&event);
            if verdict == SeriesVerdict::Create {
                book.created(&event, format!("a.{reason}"));
            }
            clock.advance(Duration::from_secs(60));
            verdict
        };
        assert_eq!(tell(&mut book, "One"), SeriesVerdict::Create);
        assert_eq!(tell(&mut book, "Two"), SeriesVerdict::Create);
        let SeriesVerdict::Begin(begun) = tell(&mut book, "One") else { panic!("a series") };
        assert_eq!((begun.name.as_str(), begun.series.count), ("a.One", 2));
        assert_eq!(book.due(), None);
        assert_eq!(tell(&mut book, "One"), SeriesVerdict::Counted);
        // Six minutes after the last.
        assert_eq!(book.due(), Some(Duration::from_secs(180 + 360)));
        assert_eq!(book.news(), []);
        clock.advance(Duration::from_secs(360));
        let news = book.news();
        assert_eq!((news.len(), news[0].series.count), (1, 3));
        assert_eq!((book.news(), book.due()), (vec![], None));
        // It is over.
        assert_eq!(book.observe(&event(&clock, "One")), SeriesVerdict::Create);
    }

    #[test]
    fn one_that_goes_on_is_written_each_half_hour_and_at_the_bound_all_are_new() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut book = EventSeriesBook::new(clock.clone());
        book.created(&event(&clock, "One"), "a.1".into());
        for _ in 0..10 {
            clock.advance(Duration::from_secs(180));
            book.observe(&event(&clock, "One"));
        }
        assert_eq!(book.due(), Some(Duration::from_secs(180 + 1800)));
        clock.advance(Duration::from_secs(180));
        book.observe(&event(&clock, "One"));
        assert_eq!(book.news()[0].series.count, 12);
        for number in 0..MAX_KNOWN {
            book.created(&event(&clock, &number.to_string()), "a".into());
        }
        assert!(book.known.len() <= MAX_KNOWN);
        assert_eq!(book.observe(&event(&clock, "One")), SeriesVerdict::Create);
    }
}
