//! What is said below `/debug/pprof` of this process' memory: who keeps what, as far as that is known.
//!
//! In one process the store, the watch caches and the informers of all components share objects, which count
//! once, with the cache; so informers are asked in a process of components alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::components::RunningComponents;
use super::config::Config;
use super::stored::APISERVER;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apiserver::config::ApiserverConfig;
use apiserver::endpoints::routes::debug::Debugging;
use apiserver::endpoints::routes::kept_memory::{HeapCount, KeptMemory, KeptShare};
use apiserver::storage::{ByteStore, CachedObjects, Storage};
use client_go::ComponentContext;
use flow::Flow;

/// Whose keys are those of no kind.
const NO_KIND: &str = "(keys of no kind)";

/// Has an apiserver keep this record, and say what it and the components beside it keep.
pub(super) fn observe(
    apiserver: &mut ApiserverConfig,
    config: &Config,
    stores: (&ByteStore, &Storage),
    flow: &Flow,
) {
    apiserver.flow = flow.clone();
    apiserver.debugging = debugging(config, stores, flow, &apiserver.scheme);
}

/// What an apiserver says, and the components beside it.
pub(super) fn debugging(
    config: &Config,
    (kv, storage): (&ByteStore, &Storage),
    flow: &Flow,
    scheme: &Arc<Scheme>,
) -> Debugging {
    let (kv, storage, flow, scheme) = (kv.clone(), storage.clone(), flow.clone(), scheme.clone());
    let memory = move |count: &mut HeapCount| {
        count_caches(count, &storage);
        count_store(count, &kv, &scheme);
        let (objects, bytes) = flow.held();
        count.add(&["flow", "steps"], KeptShare { objects, bytes });
    };
    let mut debugging = Debugging::new(config.apiserver.debugging, config.verbosity.clone());
    debugging.memory = Some(KeptMemory(Arc::new(memory)));
    debugging
}

/// What components say that are in a process of their own.
pub(super) fn memory_of_components(running: &Arc<RunningComponents>) -> KeptMemory {
    let running: Weak<RunningComponents> = Arc::downgrade(running);
    KeptMemory(Arc::new(move |count| {
        let Some(running) = running.upgrade() else { return };
        let of_component = |(component, context): (&String, &ComponentContext)| {
            (component.clone(), context.informers.caches())
        };
        let caches: Vec<_> = running.lock().iter().map(of_component).collect();
        for (component, caches) in caches {
            for (kind, cache) in caches {
                let share = share(count, &mut cache.list().iter());
                count.add(&[&component, "informer", kind.resource()], share);
            }
        }
    }))
}

fn count_caches(count: &mut HeapCount, storage: &Storage) {
    let caches = storage.watch_caches();
    // All that is current first, so that of what happened lately only what was superseded is left.
    caches.each_kind(|kind, current, _| add_cache(count, "watch cache", kind, current));
    caches.each_kind(|kind, _, lately| add_cache(count, "watch cache: what was there lately", kind, lately));
}

fn add_cache(count: &mut HeapCount, cache: &str, kind: &Kind, objects: &mut CachedObjects<'_>) {
    let share = share(count, objects);
    count.add(&[APISERVER, cache, kind.resource()], share);
}

fn share(count: &mut HeapCount, objects: &mut CachedObjects<'_>) -> KeptShare {
    objects.flat_map(|object| object.bytes_in_memory()).map(|bytes| count.share_of(&bytes)).sum()
}

/// What a store of our own has in memory beside what caches hold of it; an etcd is elsewhere.
fn count_store(count: &mut HeapCount, kv: &ByteStore, scheme: &Scheme) {
    let ByteStore::Own(kv) = kv else { return };
    let kinds = scheme.storage_kinds();
    let resources: BTreeMap<&str, &str> =
        kinds.iter().map(|kind| (&**kind.storage_prefix(), &**kind.resource())).collect();
    let mut shares: BTreeMap<&str, KeptShare> = BTreeMap::new();
    kv.each_value_in_memory(|key, value| {
        let resource = resource_of(&resources, key).unwrap_or(NO_KIND);
        *shares.entry(resource).or_default() += count.share_of(value);
    });
    for (resource, share) in shares {
        count.add(&["etcd", "recent changes", resource], share);
    }
    let held = kv.keys_in_memory();
    count.add(&["etcd", "keys"], KeptShare { objects: held.keys, bytes: held.bytes });
}

/// Whose prefix a key begins with: of prefixes within one another the longest.
fn resource_of<'a>(resources: &BTreeMap<&str, &'a str>, key: &str) -> Option<&'a str> {
    let mut before = resources.range(..=key).rev();
    before.find(|(prefix, _)| key.starts_with(**prefix)).map(|(_, resource)| *resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_counted_with_one_kind() {
        let resources =
            BTreeMap::from([("/registry/a/", "a"), ("/registry/a/b/", "b"), ("/registry/c/", "c")]);
        for (key, resource) in [
            ("/registry/a/ns/x", Some("a")),
            ("/registry/a/b/x", Some("b")),
            ("/registry/a/a", Some("a")),
            ("/registry/c/x", Some("c")),
            ("/registry/b/x", None),
            ("/a", None),
        ] {
            assert_eq!(resource_of(&resources, key), resource, "{key}");
        }
    }
}
