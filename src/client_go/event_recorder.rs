//! `EventRecorder`: tells people what a component did, as Events (client-go's `tools/record`).
//!
//! Fire and forget: a recorder puts an event into its broadcaster's queue and goes on; the broadcaster's task
//! correlates it with those before it ([`super::event_correlator`]) and writes it through the API.
//! Guarantees: an event is written at most once; events of one component about one object are written in
//! their order; nobody waits for them. While nobody can be asked all are held up for a while
//! ([`super::event_patience`]); what is refused is dropped.
//!
//! Events with an action are those of `events.k8s.io/v1` (client-go's `tools/events`), as the scheduler tells
//! them; their repetitions are series ([`super::event_series`]).

use std::sync::Arc;

use chrono::{DateTime, Utc};
use golang::first_bytes::first_bytes;
use serde_json::json;
use tokio::sync::mpsc;

use super::client::Client;
use super::event::{Event, EventAction};
use super::event_correlator::{Correlated, EventCorrelator};
use super::event_patience::{Asked, EventPatience};
use super::event_series::{EventSeriesBook, SeriesNews, SeriesVerdict};
use super::reference::ObjectReference;
use super::tasks::{Tasks, run_once};
use apimachinery::names;
use apimachinery::object::{Object, object_key};
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::rfc3339_micro;
use apis::core::event::EVENTS;
use apis::events::event::EVENTS as EVENTS_OF_GROUP;
use clock::Clock;
use entropy::Entropy;
use flow::{EventHost, Flow, Step, StepId};

/// How many events may wait to be written. At the bound further ones are dropped, with a line in the debug
/// log.
const MAX_QUEUED_EVENTS: usize = 1000;

/// So many names are tried for an event. When others have taken them all, it is dropped.
const MAX_NAMES: usize = 100;

/// So much of a message is kept in the flow record; as long as an Event's note may be
/// (`core/validation.NoteLengthLimit`).
const MAX_RECORDED_BYTES: usize = 1024;

/// An event that waits to be written, and what caused it. In a box: a channel makes room for 32 at once, and
/// there is one for each node.
type QueuedEvent = Box<(Event, StepId)>;

/// Makes events in the name of one component. Cloning shares it.
#[derive(Clone)]
pub struct EventRecorder {
    component: Arc<str>,
    host: Arc<str>,
    clock: Clock,
    flow: Flow,
    cause: StepId,
    queue: mpsc::Sender<QueuedEvent>,
}

/// Takes the events of recorders and writes them through the API (`record.EventBroadcaster`).
pub struct EventBroadcaster {
    client: Client,
    clock: Clock,
    entropy: Entropy,
    queue: mpsc::Sender<QueuedEvent>,
    events: mpsc::Receiver<QueuedEvent>,
}

impl EventBroadcaster {
    /// Writes through `client`, as `v1` Events.
    pub fn new(client: Client, clock: Clock, entropy: Entropy) -> EventBroadcaster {
        let (queue, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        EventBroadcaster { client, clock, entropy, queue, events }
    }

    /// A recorder for a component; `host` is the node of a kubelet, else empty.
    pub fn recorder(&self, component: &str, host: &str) -> EventRecorder {
        let flow = self.client.flow().clone();
        let (component, host) = (flow.name(component), flow.name(host));
        let (clock, queue) = (self.clock.clone(), self.queue.clone());
        EventRecorder { component, host, clock, flow, cause: StepId::NONE, queue }
    }

    /// Writes events until every recorder is gone (`StartRecordingToSink`).
    pub fn start(self, tasks: &Tasks) {
        let EventBroadcaster { client, clock, entropy, mut events, .. } = self;
        let correlator = EventCorrelator::new(clock.clone());
        let series = EventSeriesBook::new(clock.clone());
        let patience = EventPatience::new(clock.clone(), entropy.clone());
        let mut sink = EventSink { client, entropy, correlator, series, patience, last_nanoseconds: 0 };
        tasks.spawn("event broadcaster", async move {
            loop {
                let due = sink.series.due();
                // A panic over one event must not silence all that come after it.
                tokio::select! {
                    biased;
                    event = events.recv() => match event {
                        Some(queued) => {
                            let (event, cause) = *queued;
                            run_once("event broadcaster", Box::pin(sink.record(event, cause))).await;
                        }
                        None => return,
                    },
                    () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                        run_once("event broadcaster", Box::pin(sink.write_series())).await;
                    }
                }
            }
        });
    }
}

impl EventRecorder {
    /// A recorder of this component, whose events are caused by `cause` in the flow record.
    pub fn caused_by(&self, cause: StepId) -> EventRecorder {
        EventRecorder { cause, ..self.clone() }
    }

    /// A recorder on this queue, for another component of the process: `deployment-controller`,
    /// `replicaset-controller`.
    pub fn named(&self, component: &str) -> EventRecorder {
        EventRecorder { component: self.flow.name(component), ..self.clone() }
    }

    /// As [`EventRecorder::event`], told as `events.k8s.io/v1` has it (`events.EventRecorder.Eventf`): what
    /// was done or tried, and another object that has to do with it.
    pub fn event_of(
        &self,
        about: impl Into<ObjectReference>,
        (action, related): (&str, Option<ObjectReference>),
        event_type: &str,
        reason: &str,
        note: impl Into<String>,
    ) {
        let action = EventAction { action: action.to_owned(), related };
        let event = self.make(about.into(), event_type, reason, note.into());
        self.tell(Event { action: Some(action), ..event });
    }

    /// Tells of something about an object: an [`ObjectReference`], or `(&KIND, &object)`. `event_type` is
    /// `Normal` or `Warning`; `reason` is for machines, in CamelCase; `message` is for people.
    pub fn event(
        &self,
        about: impl Into<ObjectReference>,
        event_type: &str,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.tell(self.make(about.into(), event_type, reason, message.into()));
    }

    fn tell(&self, event: Event) {
        self.log(&event);
        let reason = event.reason.clone();
        let step = self.flow.record_with(self.cause.cause(), || {
            let ObjectReference { namespace, name, .. } = &event.involved_object;
            let object = object_key(namespace, name).into();
            Step::EventRecorded {
                component: self.component.clone(),
                object,
                reason: self.flow.name(&event.reason),
                message: first_bytes(&event.message, MAX_RECORDED_BYTES).into(),
                warning: event.event_type == "Warning",
                host: (!self.host.is_empty()).then(|| Box::new(EventHost(self.host.clone()))),
            }
        });
        if let Err(error) = self.queue.try_send(Box::new((event, step))) {
            tracing::debug!(component = %self.component, %reason, %error, "unable to record an event, dropped it");
        }
    }

    /// `StartStructuredLogging`
    fn log(&self, Event { involved_object, event_type, reason, message, .. }: &Event) {
        tracing::debug!(
            object = %object_key(&involved_object.namespace, &involved_object.name),
            kind = %involved_object.kind,
            "type" = event_type,
            reason,
            message,
            component = %self.component,
            "Event occurred"
        );
    }

    /// `makeEvent`: an event about a cluster-scoped object lives in the namespace `default`.
    fn make(&self, about: ObjectReference, event_type: &str, reason: &str, message: String) -> Event {
        let now = self.clock.now();
        let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
        Event {
            name: String::new(),
            namespace: namespace.to_owned(),
            involved_object: about,
            reason: reason.to_owned(),
            message,
            event_type: event_type.to_owned(),
            component: self.component.clone(),
            host: self.host.clone(),
            first_timestamp: now,
            last_timestamp: now,
            count: 1,
            action: None,
        }
    }
}

/// Writes correlated events.
struct EventSink {
    client: Client,
    entropy: Entropy,
    correlator: EventCorrelator,
    series: EventSeriesBook,
    patience: EventPatience,
    /// The time in the last event's name.
    last_nanoseconds: i64,
}

impl EventSink {
    async fn record(&mut self, mut event: Event, cause: StepId) {
        event.name = self.name(&event);
        let client = self.client.caused_by(cause);
        if event.action.is_some() {
            let name = event.name.clone();
            return told(&name, self.record_series(&client, event).await);
        }
        let Some(Correlated { mut event, key, is_update }) = self.correlator.correlate(event) else { return };
        match self.write(&client, &mut event, is_update).await {
            Ok(written) => self.correlator.update_state(key, &event, written.metadata.name.clone()),
            Err(status) => told(&event.name, Err(status)),
        }
    }

    /// What was told before is a series; one that has expired meanwhile is told anew.
    async fn record_series(&mut self, client: &Client, mut event: Event) -> Result<(), Status> {
        match self.series.observe(&event) {
            SeriesVerdict::Counted => return Ok(()),
            SeriesVerdict::Begin(news) => match self.write_news(client, &news).await {
                Err(status) if status.is_not_found() => {}
                written => return written,
            },
            SeriesVerdict::Create => {}
        }
        let created = self.create(client, &mut event).await?;
        self.series.created(&event, created.metadata.name.clone());
        Ok(())
    }

    /// The counts whose time has come.
    async fn write_series(&mut self) {
        for news in self.series.news() {
            told(&news.name, self.write_news(&self.client, &news).await);
        }
    }

    async fn write_news(
        &self,
        client: &Client,
        SeriesNews { name, namespace, series }: &SeriesNews,
    ) -> Result<(), Status> {
        let last = rfc3339_micro(series.last_observed);
        let patch = json!({ "series": { "count": series.count, "lastObservedTime": last } });
        let patching = || client.patch(&EVENTS_OF_GROUP, namespace, name, PatchType::StrategicMerge, &patch);
        self.patience.ask(patching).await.answer.map(drop)
    }

    /// An event that was told before is counted up; when it has expired meanwhile, it is told anew.
    async fn write(
        &mut self,
        client: &Client,
        event: &mut Event,
        is_update: bool,
    ) -> Result<Arc<Object>, Status> {
        if is_update {
            let (namespace, name, patch) = (&event.namespace, &event.name, event.to_patch());
            let patching = || client.patch(&EVENTS, namespace, name, PatchType::StrategicMerge, &patch);
            match self.patience.ask(patching).await.answer {
                Err(status) if status.is_not_found() => {}
                patched => return patched,
            }
        }
        self.create(client, event).await
    }

    /// Another broadcaster may have told of the object at the same time, and taken the name: a clock that is
    /// stepped stands still for all of them.
    async fn create(&mut self, client: &Client, event: &mut Event) -> Result<Arc<Object>, Status> {
        let mut tries = 0;
        loop {
            let kind = if event.action.is_some() { &EVENTS_OF_GROUP } else { &EVENTS };
            let value = event.to_value();
            let creating = || client.create(kind, &event.namespace, value.clone());
            let Asked { answer: created, is_repeated } = self.patience.ask(creating).await;
            tries += 1;
            if !matches!(&created, Err(status) if status.is_already_exists()) || tries == MAX_NAMES {
                return created;
            }
            // The one before was perhaps done, though nobody heard it.
            if is_repeated {
                return client.get(kind, &event.namespace, &event.name).await;
            }
            event.name = self.name(event);
        }
    }

    /// `<object>.<nanoseconds in hexadecimal>`; never the same twice, even if time stands still. An object's
    /// name that an Event cannot bear (`system:node:a`) is left out for a UUID
    /// (`record/util.GenerateEventName`).
    fn name(&mut self, event: &Event) -> String {
        let now = nanoseconds(event.last_timestamp);
        self.last_nanoseconds = now.max(self.last_nanoseconds + 1);
        let name = format!("{}.{:x}", event.involved_object.name, self.last_nanoseconds);
        if names::dns1123_subdomain(&name).is_empty() { name } else { self.entropy.uid() }
    }
}

/// What cannot be written is dropped.
fn told(event: &str, written: Result<(), Status>) {
    match written {
        Ok(()) => {}
        Err(status) if status.is_already_exists() || is_terminating(&status) => {
            tracing::debug!(event, %status, "server rejected event (will not retry!)");
        }
        Err(status) => tracing::error!(event, %status, "server rejected event (will not retry!)"),
    }
}

fn nanoseconds(time: DateTime<Utc>) -> i64 {
    time.timestamp_nanos_opt().unwrap_or(i64::MAX)
}

/// Its namespace is being deleted (`v1.NamespaceTerminatingCause`).
fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake::FakeApi;

    pub(crate) struct Recording {
        pub(crate) api: Arc<FakeApi>,
        pub(crate) clock: Clock,
        pub(crate) recorder: EventRecorder,
        pub(crate) tasks: Tasks,
    }

    impl Recording {
        pub(crate) fn new() -> (Recording, EventBroadcaster) {
            let clock = Clock::stepped(DateTime::UNIX_EPOCH);
            let api = FakeApi::new(&EVENTS, false);
            let client = api.client(&clock, &Flow::off());
            let broadcaster = EventBroadcaster::new(client, clock.clone(), Entropy::seeded(1));
            let recorder = broadcaster.recorder("kubelet", "node-1");
            let tasks = Tasks::new(clock.clone(), Entropy::seeded(1));
            (Recording { api, clock, recorder, tasks }, broadcaster)
        }

        /// Waits until so many requests were made.
        async fn requests(&self, count: usize) {
            while self.api.requests().len() < count {
                tokio::task::yield_now().await;
            }
        }
    }

    pub(crate) fn pod(name: &str) -> ObjectReference {
        let (kind, api_version) = ("Pod".into(), "v1".into());
        let (namespace, name) = ("ns".into(), name.into());
        ObjectReference { kind, api_version, namespace, name, ..ObjectReference::default() }
    }

    #[tokio::test]
    async fn an_event_is_written_as_upstream_writes_it_and_counted_by_a_patch() {
        let (recording, broadcaster) = Recording::new();
        broadcaster.start(&recording.tasks);
        recording.clock.advance(Duration::from_secs(1));
        let about = pod("a").part("spec.containers{c}");
        recording.recorder.event(&about, "Normal", "Pulled", "Image is here");
        recording.requests(1).await;
        recording.clock.advance(Duration::from_secs(9));
        recording.recorder.event(&about, "Normal", "Pulled", "Image is here");
        recording.requests(2).await;
        let requests = recording.api.requests();
        assert_eq!(requests[0], "POST /api/v1/namespaces/ns/events");
        assert_eq!(requests[1], "PATCH /api/v1/namespaces/ns/events/a.3b9aca00");
        let mut written = recording.api.objects()[0].to_value();
        written["metadata"]["resourceVersion"].take();
        let expected = json!({
            "metadata": { "name": "a.3b9aca00", "namespace": "ns", "resourceVersion": null },
            "involvedObject": { "kind": "Pod", "namespace": "ns", "name": "a", "apiVersion": "v1",
                "fieldPath": "spec.containers{c}" },
            "reason": "Pulled", "message": "Image is here", "type": "Normal", "count": 2,
            "source": { "component": "kubelet", "host": "node-1" },
            "firstTimestamp": "1970-01-01T00:00:01Z", "lastTimestamp": "1970-01-01T00:00:10Z",
            "eventTime": null, "reportingComponent": "kubelet", "reportingInstance": "node-1",
        });
        assert_eq!(written, expected);
        recording.tasks.stop_and_wait().await;
    }

    #[tokio::test]
    async fn names_differ_though_time_stands_still_and_are_names() {
        let (recording, broadcaster) = Recording::new();
        broadcaster.start(&recording.tasks);
        recording.recorder.event(pod("a"), "Normal", "One", "1");
        recording.recorder.event(pod("a"), "Normal", "Two", "2");
        recording.recorder.event(pod("system:a"), "Normal", "Three", "3");
        recording.requests(3).await;
        let names: Vec<String> =
            recording.api.objects().iter().map(|object| object.metadata.name.clone()).collect();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| names::dns1123_subdomain(name).is_empty()), "{names:?}");
        recording.tasks.stop_and_wait().await;
    }

    #[tokio::test]
    async fn a_name_that_another_has_taken_is_changed() {
        let (recording, broadcaster) = Recording::new();
        broadcaster.start(&recording.tasks);
        recording.clock.advance(Duration::from_secs(1));
        recording.api.fail_with(vec![Status::already_exists(&EVENTS.group_resource(), "a.3b9aca00")]);
        recording.recorder.event(pod("a"), "Normal", "Pulled", "2");
        recording.requests(2).await;
        assert_eq!(recording.api.objects()[0].metadata.name, "a.3b9aca01");
        recording.tasks.stop_and_wait().await;
    }

    #[tokio::test]
    async fn what_expired_is_told_anew_and_what_is_refused_is_dropped() {
        let (recording, broadcaster) = Recording::new();
        broadcaster.start(&recording.tasks);
        recording.api.fail_with(vec![Status::bad_request("no")]);
        recording.recorder.event(pod("a"), "Normal", "Refused", "1");
        recording.recorder.event(pod("a"), "Normal", "Kept", "2");
        recording.requests(2).await;
        recording.api.delete(&recording.api.objects()[0].key());
        recording.recorder.event(pod("a"), "Normal", "Kept", "2");
        recording.requests(4).await;
        assert!(recording.api.requests()[2].starts_with("PATCH"));
        assert_eq!(recording.api.objects()[0].to_value()["count"], 2);
        recording.tasks.stop_and_wait().await;
    }

    #[tokio::test]
    async fn above_the_bound_events_are_dropped() {
        let (recording, broadcaster) = Recording::new();
        for number in 0..MAX_QUEUED_EVENTS + 5 {
            recording.recorder.event(pod(&format!("p{number}")), "Normal", "Reason", "m");
        }
        broadcaster.start(&recording.tasks);
        recording.requests(MAX_QUEUED_EVENTS).await;
        recording.recorder.event(pod("last"), "Normal", "Reason", "m");
        recording.requests(MAX_QUEUED_EVENTS + 1).await;
        let objects = recording.api.objects();
        assert_eq!(objects.len(), MAX_QUEUED_EVENTS + 1);
        assert!(objects.iter().any(|object| object.metadata.name.starts_with("last.")));
        recording.tasks.stop_and_wait().await;
    }
}
