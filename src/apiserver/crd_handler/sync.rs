//! Follows the definitions and keeps the [`Scheme`] and their status in step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::conditions::with_status;
use super::finalizer::finalize;
use super::identity::context;
use super::naming::Taken;
use super::owners::own_status;
use crate::registry::{Part, Registry};
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::apiextensions::custom_resource::CustomResource;
use apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use apis::apiextensions::kinds::{self, ServedKinds};
use apis::apiextensions::view::CustomResourceDefinition;
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;

/// Before a watch that broke is opened again, and before a write that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Sync {
    registry: Registry,
    scheme: Arc<Scheme>,
    clock: Clock,
    synced: watch::Sender<bool>,
    /// By name. Bound: one for each definition.
    known: BTreeMap<String, KnownDefinition>,
    /// Definitions whose instances are being deleted, one task each.
    ending: JoinSet<String>,
    being_ended: BTreeSet<String>,
}

/// One definition, and what is served of it.
struct KnownDefinition {
    object: Arc<Object>,
    crd: CustomResourceDefinition,
    /// What the kinds were made from: they are made anew when it changes.
    made_from: Option<Value>,
    served: ServedKinds,
}

impl Sync {
    pub(super) fn new(
        registry: Registry,
        scheme: Arc<Scheme>,
        clock: Clock,
        synced: watch::Sender<bool>,
    ) -> Sync {
        let known = BTreeMap::new();
        let being_ended = BTreeSet::new();
        Sync { registry, scheme, clock, synced, known, ending: JoinSet::new(), being_ended }
    }

    pub(super) async fn run(mut self) {
        loop {
            if let Ok(events) = self.open().await {
                self.follow(events).await;
            }
            self.clock.sleep(RETRY_AFTER).await;
        }
    }

    async fn open(&self) -> Result<mpsc::Receiver<WatchEvent>, Status> {
        let options = ListOptions {
            send_initial_events: Some(true),
            resource_version_match: Some("NotOlderThan".into()),
            allow_watch_bookmarks: true,
            ..ListOptions::default()
        };
        self.registry.watch(&CUSTOM_RESOURCE_DEFINITIONS, "", &options).await
    }

    async fn follow(&mut self, mut events: mpsc::Receiver<WatchEvent>) {
        let mut initial = Some(BTreeSet::new());
        loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => event,
                Some(ended) = self.ending.join_next() => {
                    self.being_ended.remove(&ended.unwrap_or_default());
                    continue;
                }
            };
            match event {
                None | Some(WatchEvent::Error(_)) => return,
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    if let Some(seen) = &mut initial {
                        seen.insert(object.metadata.name.clone());
                    }
                    self.changed(&object).await;
                }
                Some(WatchEvent::Deleted(object)) => self.removed(&object.metadata.name).await,
                Some(WatchEvent::Bookmark(bookmark)) if bookmark.initial_events_end => {
                    // What was known and is no longer there was deleted while the watch was broken.
                    let seen = initial.take().unwrap_or_default();
                    let gone: Vec<String> =
                        self.known.keys().filter(|name| !seen.contains(*name)).cloned().collect();
                    for name in gone {
                        self.removed(&name).await;
                    }
                    self.synced.send_replace(true);
                }
                Some(WatchEvent::Bookmark(_)) => {}
            }
        }
    }

    async fn changed(&mut self, object: &Arc<Object>) {
        let name = object.metadata.name.clone();
        let tree = object.to_value();
        let before = self.known.get(&name).map(|known| known.crd.status.accepted_names.clone());
        let wanted = with_status(&tree, &self.taken_by_others(&name, &tree), self.clock.now());
        let crd = CustomResourceDefinition::read(&wanted);
        let frees_names = before.is_some_and(|before| before != crd.status.accepted_names);
        self.serve(object, crd);
        // Served first, told then: who reads `Established` may go on at once.
        if wanted["status"] != tree["status"] {
            self.write_status(&name, &tree).await;
        }
        self.end(object);
        if frees_names {
            self.look_again(&name).await;
        }
    }

    async fn write_status(&self, name: &str, tree: &Value) {
        let taken = self.taken_by_others(name, tree);
        let (clock, kind) = (&self.clock, &CUSTOM_RESOURCE_DEFINITIONS);
        let change = |current: Option<&Value>| {
            let Some(current) = current else { return Ok(Value::Null) };
            let mut new = with_status(current, &taken, clock.now());
            own_status(current, &mut new, clock.now());
            Ok(new)
        };
        let written =
            self.registry.update(&context(), kind, "", name, Part::Status, &change, &(), false).await;
        if let Err(status) = written.map(drop).or_else(ignore_not_found) {
            tracing::warn!("the status of {name} could not be written: {}", status.message);
        }
    }

    fn taken_by_others(&self, name: &str, tree: &Value) -> Taken {
        let group = tree["spec"]["group"].as_str().unwrap_or_default();
        let mut taken = Taken::default();
        let others =
            self.known.iter().filter(|(other, known)| *other != name && known.crd.spec.group == group);
        others.for_each(|(_, known)| taken.add(&known.crd.status.accepted_names));
        taken
    }

    /// Names became free: the others of the group may have waited for them.
    async fn look_again(&mut self, name: &str) {
        let others: Vec<Arc<Object>> = self
            .known
            .iter()
            .filter(|(other, known)| *other != name && !known.crd.is("NamesAccepted"))
            .map(|(_, known)| known.object.clone())
            .collect();
        for object in others {
            let tree = object.to_value();
            let taken = self.taken_by_others(&object.metadata.name, &tree);
            if with_status(&tree, &taken, self.clock.now())["status"] != tree["status"] {
                self.write_status(&object.metadata.name, &tree).await;
            }
        }
    }

    /// Puts the kinds of a definition into the scheme, if they are others than before.
    fn serve(&mut self, object: &Arc<Object>, crd: CustomResourceDefinition) {
        let name = object.metadata.name.clone();
        let established = crd.is("Established");
        let made_from = established.then(|| made_from(object, &crd));
        let known = self.known.remove(&name);
        let (served, made_from) = match known {
            Some(known) if known.made_from == made_from => (known.served, made_from),
            known => {
                let served = if established { kinds::served(object, &crd) } else { ServedKinds::default() };
                let before = known.map(|known| known.served).unwrap_or_default();
                self.replace(&before, &served);
                (served, made_from)
            }
        };
        let terminating = crd.is("Terminating");
        for kind in served.all() {
            if let Some(custom) = CustomResource::of(kind) {
                custom.terminating.store(terminating, Ordering::Relaxed);
            }
        }
        self.known.insert(name, KnownDefinition { object: object.clone(), crd, made_from, served });
    }

    fn replace(&self, before: &ServedKinds, now: &ServedKinds) {
        let same = |left: &Kind, right: &Kind| {
            left.group_version == right.group_version && left.plural == right.plural
        };
        for old in &before.served {
            if !now.served.iter().any(|new| same(new, old)) {
                self.scheme.unregister(&old.group_version, &old.plural);
            }
        }
        now.served.iter().for_each(|kind| self.scheme.register(kind.clone()));
        if let (Some(old), None) = (&before.storage, &now.storage) {
            self.registry.forget(old);
        }
    }

    async fn removed(&mut self, name: &str) {
        let Some(known) = self.known.remove(name) else { return };
        self.replace(&known.served, &ServedKinds::default());
        self.look_again(name).await;
    }

    /// Begins to end a definition that is being deleted.
    fn end(&mut self, object: &Arc<Object>) {
        let metadata = &object.metadata;
        let holds = metadata
            .finalizers
            .iter()
            .any(|name| name == apis::apiextensions::custom_resource_definition::CLEANUP_FINALIZER);
        if !object.is_deleting() || !holds || !self.being_ended.insert(metadata.name.clone()) {
            return;
        }
        let instances = self.known.get(&metadata.name).and_then(|known| known.served.storage.clone());
        let (registry, clock, name) = (self.registry.clone(), self.clock.clone(), metadata.name.clone());
        self.ending.spawn(self.clock.tracked(async move {
            while let Err(status) = finalize(&registry, &clock, &name, instances.clone()).await {
                tracing::warn!("{name} could not be finalized yet: {}", status.message);
                clock.sleep(RETRY_AFTER).await;
            }
            name
        }));
    }
}

/// Everything that the kinds follow from.
fn made_from(object: &Object, crd: &CustomResourceDefinition) -> Value {
    serde_json::json!({
        "uid": object.metadata.uid,
        "generation": object.to_value()["metadata"]["generation"],
        "names": kinds::accepted_names(&crd.status.accepted_names),
    })
}

fn ignore_not_found(status: Status) -> Result<(), Status> {
    if status.is_not_found() { Ok(()) } else { Err(status) }
}
