//! Notes in the causal record what is stored and what is delivered.
//!
//! A watcher may hear of a write before its writer does, and will ask the record what the revision came of.
//! So both the writer and the watch cache come by here, and whoever is first writes it down.

use apimachinery::object::{Object, split_key};
use apis::kind::Kind;
use etcd::Revision;
use flow::{Flow, Operation, Step, StepId, Uid, is_renewal};
use sync::{Mutex, MutexGuard};

/// What a store tells the causal record.
#[derive(Debug)]
pub(super) struct Recorder {
    flow: Flow,
    /// The writes that are under way: as many as there are writers, which is few.
    under_way: Mutex<Vec<UnderWay>>,
}

/// A write that is under way.
#[derive(Debug)]
struct UnderWay {
    key: String,
    replaces: Revision,
    cause: Option<StepId>,
}

/// A change that etcd has committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedChange<'a> {
    /// The key, relative to its kind.
    pub key: &'a str,
    /// The revision that it replaced; 0: there was none.
    pub replaced: Revision,
    /// Its own.
    pub revision: Revision,
    /// Whether it was a deletion.
    pub deleted: bool,
    /// The object's uid; empty where it could not be read.
    pub uid: &'a str,
}

impl RecordedChange<'_> {
    fn operation(&self) -> Operation {
        match (self.deleted, self.replaced) {
            (true, _) => Operation::Delete,
            (false, 0) => Operation::Create,
            (false, _) => Operation::Update,
        }
    }
}

impl Recorder {
    /// Notes in `flow`; nothing, if that is off.
    pub(super) fn new(flow: Flow) -> Recorder {
        Recorder { flow, under_way: Mutex::default() }
    }

    /// Whether anything is noted.
    pub(super) fn is_on(&self) -> bool {
        self.flow.is_on()
    }

    /// A write begins. `key` is whole, as several kinds may have the same names.
    pub(super) fn begin(&self, key: &str, replaces: Revision, cause: Option<u64>) {
        if self.is_on() {
            self.lock().push(UnderWay { key: key.to_owned(), replaces, cause: cause.map(StepId) });
        }
    }

    /// It is over, whatever became of it.
    pub(super) fn end(&self, key: &str, replaces: Revision) {
        if self.is_on() {
            let mut under_way = self.lock();
            if let Some(at) = under_way.iter().position(|it| it.replaces == replaces && it.key == key) {
                under_way.swap_remove(at);
            }
        }
    }

    /// Something was stored. Said twice, it is noted once; a renewal is not.
    pub(super) fn stored(&self, kind: &Kind, change: RecordedChange<'_>) {
        let operation = change.operation();
        if !self.is_on() || is_renewal(kind.resource(), operation) {
            return;
        }
        let under_way = self.lock();
        if self.flow.stored(change.revision).is_some() {
            return;
        }
        let is_it = |it: &&UnderWay| {
            it.replaces == change.replaced
                && it.key.strip_prefix(&**kind.storage_prefix()) == Some(change.key)
        };
        let cause = under_way.iter().find(is_it).and_then(|it| it.cause);
        let (namespace, name) = split_key(change.key);
        self.flow.record(
            cause,
            Step::Stored {
                resource: self.flow.name(kind.resource()),
                namespace: self.flow.name(namespace),
                name: name.into(),
                revision: change.revision,
                operation,
                uid: Uid::parse(change.uid),
            },
        );
    }

    /// The watch cache told so many watchers of a change.
    pub(super) fn delivered(&self, kind: &Kind, object: &Object, watchers: usize) {
        if !self.is_on() || watchers == 0 {
            return;
        }
        let revision = object.metadata.resource_version;
        let stored = self.flow.stored(revision);
        if stored.is_none() && is_renewal(kind.resource(), Operation::Update) {
            return;
        }
        self.flow.record(
            stored,
            Step::WatchDelivered {
                resource: self.flow.name(kind.resource()),
                key: object.shared_key().clone(),
                revision,
                watchers: u32::try_from(watchers).unwrap_or(u32::MAX),
            },
        );
    }

    fn lock(&self) -> MutexGuard<'_, Vec<UnderWay>> {
        self.under_way.lock()
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use apis::coordination::lease::LEASES;
    use apis::core::config_map::CONFIG_MAPS;
    use clock::Clock;
    use serde_json::json;

    const UID: &str = "0b39a5c1-6a7f-4d8e-9a61-3c2f1d0e4b5a";

    #[test]
    fn a_write_is_noted_once_with_its_cause_whoever_is_first() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let recorder = Recorder::new(flow.clone());
        let cause = flow.record(None, Step::Validated);
        recorder.begin("/registry/configmaps/n/a", 3, Some(cause.0));
        let change = RecordedChange { key: "n/a", replaced: 3, revision: 7, deleted: false, uid: UID };
        recorder.stored(&CONFIG_MAPS, change);
        let noted = flow.stored(7).unwrap();
        recorder.stored(&CONFIG_MAPS, change);
        recorder.end("/registry/configmaps/n/a", 3);
        assert_eq!(flow.stored(7), Some(noted));
        let trace = flow.trace("configmaps", "n", "a");
        assert_eq!(trace.steps.len(), 2);
        assert_eq!(trace.uid, Uid::parse(UID));
    }

    #[test]
    fn a_renewal_of_a_lease_is_not_noted_but_its_begin_and_end_are() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let recorder = Recorder::new(flow.clone());
        let write = |replaced, revision, deleted| {
            let change = RecordedChange { key: "n/a", replaced, revision, deleted, uid: UID };
            recorder.stored(&LEASES, change);
            let metadata = json!({"name": "a", "namespace": "n", "resourceVersion": revision.to_string()});
            let object = Object::from_value(&json!({"metadata": metadata}), vec![]).unwrap();
            recorder.delivered(&LEASES, &object, 1);
        };
        write(0, 7, false);
        for revision in 8..20 {
            write(revision - 1, revision, false);
        }
        assert_eq!(flow.record(None, Step::Validated), StepId(3), "created and delivered");
        write(19, 20, true);
        let steps = flow.trace("leases.coordination.k8s.io", "n", "a").steps;
        assert_eq!(steps.len(), 4, "{steps:?}");
    }
}
