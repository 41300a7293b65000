//! `FieldManager`: keeps `metadata.managedFields` as objects are written
//! (`k8s.io/apimachinery/pkg/util/managedfields`).

use std::sync::LazyLock;

use serde_json::Value;

use super::atom::SchemaType;
use super::cap::cap_update_managers;
use super::managed::{Managed, ManagedFieldsOperation, ManagerEntry, ManagerId};
use super::path::path_of;
use super::set::Set;
use super::updater::Updater;
use super::validate::validate_live;

/// The manager of what was there before the first apply to an object that nobody's ownership was known of.
pub(super) const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Metadata that the server sets, and type: nobody owns these (`stripMetaManager`).
static STRIPPED: LazyLock<Set> = LazyLock::new(|| {
    let paths: Vec<_> = STRIPPED_FIELDS.iter().map(|field| path_of(field)).collect();
    Set::of(&paths)
});

const STRIPPED_FIELDS: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

/// What one request needs to keep track of owners.
pub struct FieldManager<'a> {
    /// How ownership moves.
    pub updater: Updater<'a>,
    /// The group of `updater.api_version`, its version and the kind, as upstream prints it:
    /// `apps/v1, Kind=Deployment`.
    pub gvk: &'a str,
    /// As `status`; empty for the object itself.
    pub subresource: &'a str,
    /// Who writes; empty is `unknown`.
    pub manager: &'a str,
    /// RFC 3339, whole seconds.
    pub now: &'a str,
}

impl FieldManager<'_> {
    /// Sets the owners of `new`, which is to replace `live`. Without a live object `empty` makes what the
    /// kind looks like when nothing is set.
    pub fn update(&self, live: Option<&Value>, empty: impl FnOnce() -> Value, new: &mut Value) {
        let given = take_managed_fields(new);
        let managed = self.start_from(live, given);
        let is_create = live.is_none_or(|live| live["metadata"]["uid"].as_str().is_none_or(str::is_empty));
        if managed.0.is_empty() && !is_create {
            return;
        }
        // What is not of its type is owned by nobody (`UpdateNoErrors`).
        if !self.is_typed(new) || !live.is_none_or(|live| self.is_typed(live)) {
            return;
        }
        let managed = match live {
            Some(live) => self.updated(live, new, managed, self.manager),
            None => self.updated(&empty(), new, managed, self.manager),
        };
        put_managed_fields(new, cap_update_managers(managed));
    }

    /// Whether the object is one of its type; that of a built-in kind cannot be anything else.
    fn is_typed(&self, object: &Value) -> bool {
        !matches!(self.updater.kind, SchemaType::Custom(_))
            || validate_live(self.updater.kind, object).is_ok()
    }

    /// The owners as the request found them (`decodeLiveOrNew`): a request may set them, clear them with one
    /// empty entry, and leave them out.
    fn start_from(&self, live: Option<&Value>, given: Option<Value>) -> Managed {
        let current =
            live.map(|live| &live["metadata"]["managedFields"]).filter(|entries| !entries.is_null());
        if given.as_ref() == current {
            return Managed::decode(given).unwrap_or_default();
        }
        if self.subresource.is_empty() && given.is_some() {
            if given.as_ref().is_some_and(is_reset) {
                return Managed::default();
            }
            if let Ok(managed) = Managed::decode(given)
                && !managed.0.is_empty()
            {
                return managed;
            }
        }
        Managed::decode(current.cloned()).unwrap_or_default()
    }

    /// The owners after a write of `manager` that is no apply.
    pub(super) fn updated(&self, live: &Value, new: &Value, mut managed: Managed, manager: &str) -> Managed {
        let id = self.id(manager, ManagedFieldsOperation::Update);
        let Some(comparison) = self.updater.update(live, new, &mut managed, &id) else { return managed };
        let removed = comparison.removed.clone();
        let written = comparison.written().without(&STRIPPED);
        let mut entry = match managed.position(&id) {
            Some(at) => managed.0.remove(at),
            None => ManagerEntry::new(id, None, Set::default()),
        };
        // What it owned and others changed in another version is not looked after: it wrote last.
        if !written.is_empty() {
            entry.time = Some(self.now.to_owned());
        }
        entry.write(&removed, written);
        managed.put(entry);
        managed
    }

    pub(super) fn id(&self, manager: &str, operation: ManagedFieldsOperation) -> ManagerId {
        ManagerId {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: self.updater.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }
}

/// Takes what nobody owns from a manager.
pub(super) fn strip(managed: &mut Managed, who: &ManagerId) {
    let Some(at) = managed.position(who) else { return };
    let left = managed.0[at].set().into_owned().without(&STRIPPED);
    let time = managed.0[at].time.clone();
    managed.put(ManagerEntry::new(who.clone(), time, left));
}

/// `metadata.managedFields`, taken out.
pub(super) fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields").filter(|entries| !entries.is_null())
}

/// Puts it back; nothing when nobody owns anything.
pub(super) fn put_managed_fields(object: &mut Value, managed: Managed) {
    if let Some(entries) = managed.encode()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("managedFields".into(), entries);
    }
}

/// No entry, or one that says nothing: the client wants it forgotten.
fn is_reset(given: &Value) -> bool {
    match given.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.values().all(|value| value.is_null() || value == ""),
        _ => false,
    }
}
