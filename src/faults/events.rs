//! Watches that go wrong: what becomes of their events between the apiserver and whoever reads them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::fault::{WatchEnd, WatchFault};
use super::late::hold_up;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apiserver::request::WatchStage;
use clock::Clock;

/// How many events wait for their reader. At the bound the watch waits, and the apiserver ends one that is
/// too slow.
const WAITING: usize = 100;

/// Called when a watch is told that it is too old, with the revision of the last event that it was told; 0
/// before the first.
pub(crate) type OnExpiry = Arc<dyn Fn(u64) + Send + Sync>;

/// What a fault makes of a watch. `on_expiry` hears when it is told that it is too old.
pub(crate) fn stage(fault: &WatchFault, clock: &Clock, on_expiry: OnExpiry) -> WatchStage {
    let pump = WatchPump { fault: fault.clone(), clock: clock.clone(), on_expiry };
    Arc::new(move |events| {
        let (sender, receiver) = mpsc::channel(WAITING);
        pump.clock.spawn(pump.clone().run(events, sender));
        receiver
    })
}

#[derive(Clone)]
struct WatchPump {
    fault: WatchFault,
    clock: Clock,
    on_expiry: OnExpiry,
}

impl WatchPump {
    /// Until either side has gone, or the fault ends it.
    async fn run(self, mut events: Receiver<WatchEvent>, reader: Sender<WatchEvent>) {
        let mut late = LateEvents::default();
        let mut told = 0;
        let mut seen = 0;
        loop {
            if let Some(end) = self.fault.end.filter(|_| told >= self.fault.after_events) {
                return self.end(end, seen, &reader).await;
            }
            let event = tokio::select! {
                biased;
                event = late.next(&mut events, self.fault.delay.map(|delay| delay.0), &self.clock) => event,
                () = reader.closed() => return,
            };
            let Some(event) = event else { return };
            seen = revision(&event).max(seen);
            if !matches!(event, WatchEvent::Bookmark(_)) {
                told += 1;
            }
            let again = again(&event).filter(|_| self.fault.duplicate);
            for event in [Some(event), again].into_iter().flatten() {
                if reader.send(event).await.is_err() {
                    return;
                }
            }
        }
    }

    async fn end(&self, end: WatchEnd, seen: u64, reader: &Sender<WatchEvent>) {
        if end == WatchEnd::Expire {
            (self.on_expiry)(seen);
            let status = Status::expired("The resourceVersion for the provided watch is too old.");
            let _ = reader.send(WatchEvent::error(status)).await;
        }
    }
}

/// Events that are told later than they came, each by as much, with when their time has come.
#[derive(Default)]
struct LateEvents {
    waiting: VecDeque<(Duration, WatchEvent)>,
    has_ended: bool,
}

impl LateEvents {
    /// The next whose time has come; None when there are no more. May be dropped and asked again.
    async fn next(
        &mut self,
        events: &mut Receiver<WatchEvent>,
        delay: Option<Duration>,
        clock: &Clock,
    ) -> Option<WatchEvent> {
        let Some(delay) = delay else { return events.recv().await };
        loop {
            let left = self.waiting.front().map(|(due, _)| due.saturating_sub(clock.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return self.waiting.pop_front().map(|(_, event)| event);
            }
            if self.has_ended && left.is_none() {
                return None;
            }
            let has_room = !self.has_ended && self.waiting.len() < WAITING;
            tokio::select! {
                biased;
                event = events.recv(), if has_room => match event {
                    Some(event) => self.waiting.push_back((clock.elapsed() + delay, event)),
                    None => self.has_ended = true,
                },
                () = async { hold_up(clock, left.unwrap_or_default()).await }, if left.is_some() => {}
            }
        }
    }
}

fn revision(event: &WatchEvent) -> u64 {
    match event {
        WatchEvent::Bookmark(bookmark) => bookmark.resource_version,
        event => event.object().map_or(0, |object| object.metadata.resource_version),
    }
}

/// The event once more, as a real watch may tell it: the object has not changed.
fn again(event: &WatchEvent) -> Option<WatchEvent> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            Some(WatchEvent::Modified(object.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::watch::Bookmark;
    use chrono::DateTime;

    fn bookmark(resource_version: u64) -> WatchEvent {
        WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end: false })
    }

    fn error() -> WatchEvent {
        WatchEvent::error(Status::internal("x"))
    }

    async fn told(fault: WatchFault, sent: Vec<WatchEvent>) -> Vec<&'static str> {
        let (sender, events) = mpsc::channel(10);
        let mut events = stage(&fault, &Clock::stepped(DateTime::UNIX_EPOCH), Arc::new(|_| ()))(events);
        for event in sent {
            sender.send(event).await.unwrap();
        }
        drop(sender);
        let mut told = vec![];
        while let Some(event) = events.recv().await {
            told.push(event.type_name());
        }
        told
    }

    #[tokio::test]
    async fn a_watch_ends_behind_so_many_events() {
        let end = |end, after_events| WatchFault { end: Some(end), after_events, ..WatchFault::default() };
        let sent = || vec![error(), bookmark(1), error(), error()];
        assert_eq!(told(end(WatchEnd::Close, 0), sent()).await, [""; 0]);
        assert_eq!(told(end(WatchEnd::Close, 2), sent()).await, ["ERROR", "BOOKMARK", "ERROR"]);
        assert_eq!(told(end(WatchEnd::Expire, 0), sent()).await, ["ERROR"]);
    }

    #[tokio::test]
    async fn a_late_event_comes_when_its_time_has_come() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let fault = WatchFault { delay: Some(Duration::from_secs(5).into()), ..WatchFault::default() };
        let (sender, events) = mpsc::channel(10);
        let mut events = stage(&fault, &clock, Arc::new(|_| ()))(events);
        sender.send(bookmark(1)).await.unwrap();
        while clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        assert!(events.try_recv().is_err());
        clock.advance(Duration::from_secs(5));
        assert!(events.recv().await.is_some());
        drop(events);
        sender.closed().await;
    }

    /// On the machine's clock nothing has settled before it has come.
    #[tokio::test]
    async fn a_late_event_is_under_way() {
        let clock = Clock::real();
        let fault = WatchFault { delay: Some(Duration::from_secs(3600).into()), ..WatchFault::default() };
        let (sender, events) = mpsc::channel(10);
        let events = stage(&fault, &clock, Arc::new(|_| ()))(events);
        clock.work().idle().await;
        sender.send(bookmark(1)).await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(sender.capacity(), 10, "it has come");
        assert!(clock.work().count() > 0, "and is not told yet");
        drop(events);
        clock.work().idle().await;
    }

    /// Not one behind the other: a watch that is behind by five seconds stays so, however much is told.
    #[tokio::test]
    async fn events_that_came_together_are_late_together() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let fault = WatchFault { delay: Some(Duration::from_secs(5).into()), ..WatchFault::default() };
        let (sender, events) = mpsc::channel(10);
        let mut events = stage(&fault, &clock, Arc::new(|_| ()))(events);
        for revision in 1..=3 {
            sender.send(bookmark(revision)).await.unwrap();
        }
        while sender.capacity() < 10 || clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(2));
        sender.send(bookmark(4)).await.unwrap();
        while sender.capacity() < 10 {
            tokio::task::yield_now().await;
        }
        drop(sender);
        clock.advance(Duration::from_secs(3));
        for told in 1..=3 {
            assert_eq!(events.recv().await.map(|event| revision(&event)), Some(told));
        }
        while clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        assert!(events.try_recv().is_err(), "it came two seconds after them");
        clock.advance(Duration::from_secs(2));
        assert_eq!(events.recv().await.map(|event| revision(&event)), Some(4));
        assert!(events.recv().await.is_none());
    }
}
