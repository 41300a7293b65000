//! Notes in the causal record what is stored and what is delivered.
//!
//! A watcher may hear of a write before its writer does, and will ask the record what the revision came of.
//! So both the writer and the watch cache come by here, and whoever is first writes it down.

use apimachinery::object::{Object, split_key};
use apis::kind::Kind;
use etcd::Revision;
use flow::{Flow, HeldStage, HeldStep, Step, StepId, Uid, WriteOperation, is_renewal};
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
    /// The object as it is now, or was at last; none where it could not be read.
    pub object: Option<&'a Object>,
    /// How many bytes were put.
    pub bytes: usize,
}

impl RecordedChange<'_> {
    fn operation(&self) -> WriteOperation {
        match (self.deleted, self.replaced) {
            (true, _) => WriteOperation::Delete,
            (false, 0) => WriteOperation::Create,
            (false, _) => WriteOperation::Update,
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

    /// Waits in front of a write, while somebody steps the cluster. What comes of no request goes on, as what
    /// every cluster has and is made when it is first looked at: reads wait for that. So do renewals of
    /// leases, which are no steps.
    pub(super) async fn hold(
        &self,
        kind: &Kind,
        key: &str,
        (deleted, replaces): (bool, Revision),
        cause: Option<u64>,
    ) {
        let is_update = !deleted && replaces != 0;
        let is_step = cause.is_some() && !(is_update && is_renewal(kind.resource(), WriteOperation::Update));
        if !self.flow.is_stepped() || !is_step {
            return;
        }
        let step = || {
            let resource = self.flow.name(kind.resource());
            HeldStep::in_apiserver(HeldStage::Write, resource, key.into()).caused_by(cause.map(StepId))
        };
        self.flow.gate(step).await;
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
        let stored = self.flow.record(
            cause,
            Step::Stored {
                resource: self.flow.name(kind.resource()),
                namespace: self.flow.name(namespace),
                name: name.into(),
                revision: change.revision,
                operation,
                uid: change.object.and_then(|object| Uid::parse(&object.metadata.uid)),
                bytes: u32::try_from(change.bytes).unwrap_or(u32::MAX),
            },
        );
        if let Some(object) = change.object.filter(|object| !change.deleted && object.is_deleting()) {
            self.flow.record(stored.cause(), terminating(object));
        }
    }

    /// So many watchers were told of a change.
    pub(super) fn delivered(&self, kind: &Kind, object: &Object, watchers: usize) {
        if !self.is_on() || watchers == 0 {
            return;
        }
        let revision = object.metadata.resource_version;
        let stored = self.flow.stored(revision);
        if stored.is_none() && is_renewal(kind.resource(), WriteOperation::Update) {
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

/// What an object that was deleted waits for.
fn terminating(object: &Object) -> Step {
    let grace = object.metadata.deletion_grace_period_seconds;
    Step::Terminating {
        finalizers: object.metadata.finalizers.iter().map(|finalizer| finalizer.as_str().into()).collect(),
        grace_seconds: grace.and_then(|grace| u64::try_from(grace).ok()),
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

    fn object(more: serde_json::Value) -> Object {
        let mut metadata = json!({"name": "a", "namespace": "n", "uid": UID});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Object::from_value(&json!({"metadata": metadata}), vec![]).unwrap()
    }

    #[test]
    fn what_is_deleted_and_still_there_says_what_it_waits_for() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let recorder = Recorder::new(flow.clone());
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30,
            "finalizers": ["example.com/keep"]});
        let write = |revision, deleted| {
            let object = object(going.clone());
            let change = RecordedChange {
                key: "n/a",
                replaced: 3,
                revision,
                deleted,
                object: Some(&object),
                bytes: 5,
            };
            recorder.stored(&CONFIG_MAPS, change);
        };
        write(4, false);
        write(5, true);
        let steps = flow.trace("configmaps", "n", "a").steps;
        let kept: Vec<&Step> = steps.iter().map(|step| &step.step).collect();
        let [
            Step::Stored { bytes: 5, .. },
            Step::Terminating { finalizers, grace_seconds },
            Step::Stored { .. },
        ] = *kept
        else {
            panic!("{kept:?}")
        };
        assert_eq!((&*finalizers[0], *grace_seconds), ("example.com/keep", Some(30)));
    }

    #[test]
    fn a_write_is_noted_once_with_its_cause_whoever_is_first() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let recorder = Recorder::new(flow.clone());
        let cause = flow.record(None, Step::VALIDATED);
        recorder.begin("/registry/configmaps/n/a", 3, Some(cause.0));
        let object = object(json!({}));
        let object = Some(&object);
        let change =
            RecordedChange { key: "n/a", replaced: 3, revision: 7, deleted: false, object, bytes: 5 };
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
        let write = |replaced, revision: u64, deleted| {
            let object = object(json!({"resourceVersion": revision.to_string()}));
            let known = Some(&object);
            let change = RecordedChange { key: "n/a", replaced, revision, deleted, object: known, bytes: 5 };
            recorder.stored(&LEASES, change);
            recorder.delivered(&LEASES, &object, 1);
        };
        write(0, 7, false);
        for revision in 8..20 {
            write(revision - 1, revision, false);
        }
        assert_eq!(flow.record(None, Step::VALIDATED), StepId(3), "created and delivered");
        write(19, 20, true);
        let steps = flow.trace("leases.coordination.k8s.io", "n", "a").steps;
        assert_eq!(steps.len(), 4, "{steps:?}");
    }
}
