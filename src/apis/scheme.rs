//! `Scheme`: finds kinds by path and by name; grows at run time for custom resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use sync::{RwLock, RwLockReadGuard};
use tokio::sync::watch;

use super::kind::{Builtin, Kind};
use apimachinery::gvk::GroupVersion;

/// By version and plural.
type Kinds = BTreeMap<(GroupVersion, Arc<str>), Arc<Kind>>;

/// All kinds that one cluster serves. Readers take an `Arc<Kind>` and keep it through a request.
pub struct Scheme {
    kinds: RwLock<Kinds>,
    generation: watch::Sender<u64>,
}

impl Scheme {
    /// With the built-in kinds.
    pub fn builtin() -> Scheme {
        Scheme::of(&super::all())
    }

    /// With these kinds.
    pub fn of(builtins: &[&'static Builtin]) -> Scheme {
        let entry = |kind: &&'static Builtin| {
            let kind: Arc<Kind> = Arc::clone(*kind);
            ((kind.group_version.clone(), kind.plural.clone()), kind)
        };
        Scheme { kinds: RwLock::new(builtins.iter().map(entry).collect()), generation: watch::Sender::new(1) }
    }

    /// The kind behind a path: group, version, plural.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.read().get(&(GroupVersion::new(group, version), plural.into())).cloned()
    }

    /// The kind that an object's `apiVersion` and `kind` name.
    pub fn kind(&self, group_version: &GroupVersion, kind: &str) -> Option<Arc<Kind>> {
        let of_version = |(key, _): &(&(GroupVersion, Arc<str>), &Arc<Kind>)| key.0 == *group_version;
        let kinds = self.read();
        kinds.iter().filter(of_version).map(|(_, found)| found).find(|found| &*found.kind == kind).cloned()
    }

    /// The kind that a person names as kubectl lets them: plural, singular, short name or kind, and behind a
    /// dot a group, or a version and its group (`deployments.v1.apps`, `pods.v1.`), where that is not enough.
    /// The core group goes first, then the groups by name.
    pub fn named(&self, name: &str) -> Option<Arc<Kind>> {
        let wanted = name.to_lowercase();
        let (word, group) =
            wanted.split_once('.').map_or((&*wanted, None), |(word, group)| (word, Some(group)));
        let is_meant = |kind: &&Arc<Kind>| {
            let mut words = [&kind.plural, &kind.singular].into_iter().chain(&kind.short_names);
            (words.any(|known| &**known == word) || kind.kind.to_lowercase() == word)
                && group.is_none_or(|wanted| {
                    let GroupVersion { group, version } = &kind.group_version;
                    wanted == &**group || wanted.split_once('.') == Some((&**version, &**group))
                })
        };
        self.read().values().find(is_meant).cloned()
    }

    /// Every kind, ordered by group, version and plural.
    pub fn all(&self) -> Vec<Arc<Kind>> {
        self.read().values().cloned().collect()
    }

    /// One kind for each place in the store: what garbage collection and namespace deletion walk.
    pub fn storage_kinds(&self) -> Vec<Arc<Kind>> {
        let all = self.all();
        let is_first = |at: usize, kind: &Kind| {
            let same = |other: &Kind| other.group_resource() == kind.group_resource();
            let stored = all.iter().find(|other| same(other) && std::ptr::eq(&***other, kind.storage_kind()));
            match stored {
                Some(stored) => std::ptr::eq(&**stored, kind),
                // The storage version of a custom kind need not be served.
                None => !all[..at].iter().any(|other| same(other)),
            }
        };
        let is_kept = |(at, kind): &(usize, &Arc<Kind>)| {
            kind.stored.is_none() && kind.derived.is_none() && (!kind.is_custom || is_first(*at, kind))
        };
        all.iter().enumerate().filter(is_kept).map(|(_, kind)| kind.clone()).collect()
    }

    /// Adds or replaces a kind.
    pub fn register(&self, kind: Arc<Kind>) {
        let key = (kind.group_version.clone(), kind.plural.clone());
        self.kinds.write().insert(key, kind);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Removes a kind.
    pub fn unregister(&self, group_version: &GroupVersion, plural: &str) {
        let key = (group_version.clone(), Arc::from(plural));
        self.kinds.write().remove(&key);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Changes whenever a kind comes or goes: what caches of discovery and OpenAPI compare.
    pub fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Tells of each change of [`Scheme::generation`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    fn read(&self) -> RwLockReadGuard<'_, Kinds> {
        self.kinds.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_as_kubectl_lets_people() {
        let scheme = Scheme::builtin();
        let plural = |name: &str| scheme.named(name).map(|kind| kind.plural.to_string());
        for name in ["deploy", "Deployment", "deployments.apps", "deployments.v1.apps", "deploy.v1.apps"] {
            assert_eq!(plural(name).as_deref(), Some("deployments"), "{name}");
        }
        assert_eq!(plural("pods.v1.").as_deref(), Some("pods"));
        for name in ["deployments.v2.apps", "deployments.v1.batch", "pods.v1.apps", "deployments.v1", "thing"]
        {
            assert_eq!(plural(name), None, "{name}");
        }
    }
}
