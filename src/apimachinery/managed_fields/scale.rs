//! Owners of a workload's replicas as owners of its Scale, and back (`managedfields.ScaleHandler`).

use serde_json::Value;

use super::managed::{Managed, ManagerEntry};
use super::path::path_of;
use super::set::Set;

const SCALE_VERSION: &str = "autoscaling/v1";
const REPLICAS: &str = "spec.replicas";

/// Where the replicas of one kind are, in each of its versions (`ResourcePathMappings`).
pub struct ScaleHandler<'a> {
    /// `metadata.managedFields` of the workload.
    pub parent: Option<&'a Value>,
    /// The workload's version in this request.
    pub api_version: &'a str,
    /// The path in a version; None where the version is unknown.
    pub replicas_path: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

impl ScaleHandler<'_> {
    /// The owners of the replicas, for the Scale.
    pub fn to_subresource(&self) -> Option<Value> {
        let parent = Managed::decode(self.parent.cloned()).unwrap_or_default();
        let mut scale = Managed::default();
        for entry in parent.0 {
            let Some(path) = (self.replicas_path)(&entry.id.api_version) else { continue };
            if entry.set().has(&path_of(&path)) {
                let mut id = entry.id.clone();
                id.api_version = SCALE_VERSION.into();
                scale.put(ManagerEntry::new(id, entry.time.clone(), Set::of(&[path_of(REPLICAS)])));
            }
        }
        scale.encode()
    }

    /// The workload's owners after a write of its Scale, whose owners `scale` are: who does not own the
    /// replicas there any more has lost them here.
    pub fn to_parent(&self, scale: Option<&Value>) -> Option<Value> {
        let parent = Managed::decode(self.parent.cloned()).unwrap_or_default();
        let mut left = Managed::decode(scale.cloned()).unwrap_or_default();
        let mut all = Managed::default();
        for mut entry in parent.0 {
            let Some(path) = (self.replicas_path)(&entry.id.api_version) else { continue };
            if entry.set().has(&path_of(&path)) {
                // Of a version of its own, an updater of the Scale is another than that of the workload, as
                // upstream: only who applied still has what it had.
                match left.position(&entry.id) {
                    Some(at) => {
                        left.0.remove(at);
                    }
                    None => entry.set_fields(entry.set().difference(&Set::of(&[path_of(&path)]))),
                }
            }
            all.put(entry);
        }
        let Some(path) = (self.replicas_path)(self.api_version) else { return all.encode() };
        for entry in left.0.into_iter().filter(|entry| entry.set().has(&path_of(REPLICAS))) {
            let mut id = entry.id;
            id.api_version = self.api_version.into();
            // Without a time, as upstream: it looks it up among the workload's owners. Beside an entry of the
            // same name, if there is one.
            all.0.push(ManagerEntry::new(id, None, Set::of(&[path_of(&path)])));
        }
        all.encode()
    }
}
