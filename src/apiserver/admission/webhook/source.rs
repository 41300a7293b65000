//! `WebhookSource`: what is made of all objects of one configuration kind, made anew when one of them changes
//! (`admission/configuration`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::registry::Registry;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::{Builtin, Kind};
use sync::Mutex;

/// Compiled configurations, by name. As long as there never was one, a request costs one load of a flag.
pub(crate) struct WebhookSource<C> {
    registry: Registry,
    kind: &'static Builtin,
    compile: Box<dyn Fn(&Object) -> C + Send + Sync>,
    /// Whether the store was looked at once.
    was_checked: AtomicBool,
    /// Whether there may be one: there was one at the start, or somebody tried to make one since.
    is_used: AtomicBool,
    /// By revision, so that what did not change keeps its connections and programs. Bound: the objects of the
    /// kind.
    compiled: Mutex<BTreeMap<u64, Arc<C>>>,
}

impl<C> WebhookSource<C> {
    /// Of a kind; `compile` runs once for each revision of each object.
    pub(crate) fn new(
        registry: &Registry,
        kind: &'static Builtin,
        compile: impl Fn(&Object) -> C + Send + Sync + 'static,
    ) -> WebhookSource<C> {
        WebhookSource {
            registry: registry.clone(),
            kind,
            compile: Box::new(compile),
            was_checked: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            compiled: Mutex::default(),
        }
    }

    /// Somebody writes an object of `kind`: if it is this source's, it is used from now on.
    pub(crate) fn notice(&self, kind: &Kind) {
        let ours: &Kind = self.kind;
        if kind.plural == ours.plural && kind.group_version.group == ours.group_version.group {
            self.is_used.store(true, Ordering::Release);
        }
    }

    /// Whether there may be anything.
    pub(crate) fn may_have_any(&self) -> bool {
        !self.was_checked.load(Ordering::Acquire) || self.is_used.load(Ordering::Acquire)
    }

    /// All that there are, ordered by name.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn current(&self) -> Result<Vec<Arc<C>>, Status> {
        if !self.was_checked.load(Ordering::Acquire) {
            // Where others make them, too, nobody notices it here.
            if !self.registry.is_known_to_be_empty(self.kind) {
                self.is_used.store(true, Ordering::Release);
            }
            self.was_checked.store(true, Ordering::Release);
        }
        if !self.is_used.load(Ordering::Acquire) {
            return Ok(vec![]);
        }
        // What a writer was answered is in it: who has made a webhook may expect it to be asked.
        let options = ListOptions { resource_version: Some("0".into()), ..ListOptions::default() };
        let objects = self.registry.list(self.kind, "", &options).await?.items;
        let mut compiled = self.compiled.lock();
        let known = std::mem::take(&mut *compiled);
        let make = |object: &Arc<Object>| {
            let revision = object.metadata.resource_version;
            let made = known.get(&revision).cloned();
            (revision, made.unwrap_or_else(|| Arc::new((self.compile)(object))))
        };
        let made: Vec<(u64, Arc<C>)> = objects.iter().map(make).collect();
        *compiled = made.iter().cloned().collect();
        Ok(made.into_iter().map(|(_, compiled)| compiled).collect())
    }
}
