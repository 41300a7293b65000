//! What the audit logs of all servers tell of one component: its writes, and between which revisions each was
//! made.

use super::*;

/// A request of a component that was done, or a write of its Lease.
struct Event {
    /// When it came and when it was answered, as texts that are in their order.
    came: String,
    answered: String,
    server: usize,
    verb: String,
    /// What is in the answer.
    revision: Option<u64>,
    /// What was written over.
    before: Option<u64>,
    /// Of its Lease: who holds it from then on.
    holder: Option<String>,
    what: String,
}

/// One write: it has a revision of these.
pub(in crate::etcd_store) struct Written {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) server: usize,
    pub(super) holder: Option<String>,
    pub(super) what: String,
}

/// What was written by a component, whichever of all its candidates did it, and who came to hold its Lease.
pub(super) fn written(servers: &Servers, component: &str) -> Vec<Written> {
    let logs = servers.logs().iter().enumerate();
    let logged = logs.flat_map(|(server, log)| events_in(log).map(move |event| (event, server)));
    written_in(logged, component)
}

/// What a log tells.
pub(in crate::etcd_store) fn events_in(log: &Path) -> impl Iterator<Item = Value> + use<> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    events.into_iter()
}

/// In events, each with the server that has told it.
pub(in crate::etcd_store) fn written_in(
    logged: impl Iterator<Item = (Value, usize)>,
    component: &str,
) -> Vec<Written> {
    let events: Vec<Event> =
        logged.filter_map(|(event, server)| event_of(&event, component, server)).collect();
    let times = Times::of(&events);
    let mut all: Vec<Written> = events.iter().filter_map(|event| times.write_of(event, &events)).collect();
    all.sort_by_key(|written| written.from);
    all
}

fn event_of(event: &Value, component: &str, server: usize) -> Option<Event> {
    let (about, answer) = (&event["objectRef"], &event["responseObject"]);
    let code = event["responseStatus"]["code"].as_u64()?;
    let is_lease = about["resource"] == "leases" && about["name"] == component;
    if code >= 300 || !is_lease && !leaders::is_of_leader(event, component) {
        return None;
    }
    let revision = |object: &Value| object["metadata"]["resourceVersion"].as_str()?.parse().ok();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(Event {
        came: text(&event["requestReceivedTimestamp"]),
        answered: text(&event["stageTimestamp"]),
        server,
        verb: text(&event["verb"]),
        revision: revision(answer),
        before: revision(&event["requestObject"]),
        holder: is_lease.then(|| text(&answer["spec"]["holderIdentity"])),
        what: format!("{} {about}", event["verb"]),
    })
}

/// Which revisions there were when. All clocks are this machine's.
struct Times {
    /// When an answer told of a revision; each with the newest so far.
    told: Vec<(String, u64)>,
    /// When a Lease came to be written, which always is a new revision; each with the oldest from there on.
    begun: Vec<(String, u64)>,
}

impl Times {
    fn of(events: &[Event]) -> Times {
        let known = |time: fn(&Event) -> &String, is_wanted: fn(&Event) -> bool| {
            let wanted = events.iter().filter(|event| is_wanted(event));
            let mut times: Vec<(String, u64)> =
                wanted.filter_map(|event| Some((time(event).clone(), event.revision?))).collect();
            times.sort();
            times
        };
        let mut told = known(|event| &event.answered, |_| true);
        let mut newest = 0;
        for (_, revision) in &mut told {
            newest = newest.max(*revision);
            *revision = newest;
        }
        let mut begun = known(|event| &event.came, |event| event.holder.is_some());
        let mut oldest = u64::MAX;
        for (_, revision) in begun.iter_mut().rev() {
            oldest = oldest.min(*revision);
            *revision = oldest;
        }
        Times { told, begun }
    }

    /// The newest revision that is known to have been there before a time.
    fn before(&self, time: &String) -> u64 {
        let at = self.told.partition_point(|(told, _)| told < time);
        self.told[..at].last().map_or(0, |(_, revision)| *revision)
    }

    /// The oldest revision that is known to have been made after a time.
    fn after(&self, time: &String) -> u64 {
        let at = self.begun.partition_point(|(begun, _)| begun <= time);
        self.begun.get(at).map_or(u64::MAX, |(_, revision)| *revision)
    }

    /// What changes nothing is answered with a revision of somebody else's, and is no write.
    fn write_of(&self, event: &Event, all: &[Event]) -> Option<Written> {
        let Event { server, revision, holder, what, .. } = event;
        let of = |from, to| Written { from, to, server: *server, holder: holder.clone(), what: what.clone() };
        let exactly = |revision: u64| of(revision, revision);
        match (&*event.verb, *revision) {
            ("update", Some(revision)) => {
                event.before.is_some_and(|before| before != revision).then(|| exactly(revision))
            }
            ("patch", Some(revision)) => {
                let is_new = revision > self.before(&event.came);
                let is_elsewhere =
                    |other: &Event| other.revision == Some(revision) && other.server != event.server;
                (is_new && !all.iter().any(is_elsewhere)).then(|| exactly(revision))
            }
            ("create", Some(revision)) => Some(exactly(revision)),
            // Bindings and deletions are answered without one, or with an older one.
            _ => Some(of(self.before(&event.came), self.after(&event.answered))),
        }
    }
}
