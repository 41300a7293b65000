//! `Strategy`: what the server does to an object of a kind on a write, and what it refuses
//! (`k8s.io/apiserver/pkg/registry/rest.RESTCreateStrategy` and its siblings).
//!
//! The registry already does what holds for every kind: metadata, uid, timestamps, generation, leaving
//! `status` to its subresource. A strategy says only what is special. Trees are without `apiVersion` and
//! `kind` and in the storage version's form.

use serde_json::Value;

use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::time::Time;
use apimachinery::user::UserInfo;

/// What becomes of an object's dependents when a delete does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GarbageCollectionPolicy {
    /// The garbage collector deletes them afterwards.
    Background,
    /// They stay (ReplicationController and Job, for the sake of old clients).
    Orphan,
    /// There are none, whatever a delete says of them (Event, which is a leaf).
    Unsupported,
}

/// The special rules of a kind. All methods are pure.
pub trait Strategy: Send + Sync {
    /// Writes down who creates it, where a kind keeps that.
    fn claim(&self, _new: &mut Value, _user: &UserInfo) {}

    /// Clears what a client may not set and sets what only the server may, before validation.
    fn prepare_for_create(&self, _new: &mut Value) {}

    /// What is wrong with an update of the main resource.
    fn prepare_for_update(&self, _new: &mut Value, _old: &Value) {}

    /// What is wrong with an update of `status`; everything but status and metadata already stands as it was.
    fn prepare_for_status_update(&self, _new: &mut Value, _old: &Value) {}

    /// What is wrong with a new object. Metadata is checked by the registry.
    fn validate(&self, _new: &Value) -> FieldErrors {
        FieldErrors::default()
    }

    /// What is wrong with a change; immutable fields. The default checks the new object as if it were
    /// created.
    fn validate_update(&self, new: &Value, _old: &Value) -> FieldErrors {
        self.validate(new)
    }

    /// What is wrong with a change of status.
    fn validate_status_update(&self, _new: &Value, _old: &Value) -> FieldErrors {
        FieldErrors::default()
    }

    /// What is wrong with a change of a part that only one kind has: `ephemeralcontainers` and `resize` of
    /// pods. Everything outside of the part already stands as it was.
    fn validate_part_update(&self, _part: &str, _new: &Value, _old: &Value) -> FieldErrors {
        FieldErrors::default()
    }

    /// Warnings for the client, sent as `Warning` headers. `old` is there on an update.
    fn warnings(&self, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        vec![]
    }

    /// Brings what was found to be valid into the form in which it is kept.
    fn canonicalize(&self, _new: &mut Value) {}

    /// What is wrong with a name.
    fn validate_name(&self, name: &str) -> Vec<String> {
        names::dns1123_subdomain(name)
    }

    /// Whether a PUT to a name that does not exist creates the object.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT may leave out `resourceVersion`.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Whether a create keeps the `status` that the client sent although there is a status subresource.
    fn keeps_status_on_create(&self) -> bool {
        false
    }

    /// The seconds that a delete gives the object when the client does not say; `None` deletes at once,
    /// whatever the client says (only Pods are deleted gracefully). `requested` is what the client asked for.
    fn grace_period_seconds(&self, _object: &Value, _requested: Option<i64>) -> Option<i64> {
        None
    }

    /// Changes the object when its deletion is first asked for: finalizers that hold it, conditions that
    /// say so. True when that is all that the first request does.
    fn begin_deletion(&self, _object: &mut Value, _now: Time) -> bool {
        false
    }

    /// What becomes of dependents by default.
    fn default_garbage_collection(&self) -> GarbageCollectionPolicy {
        GarbageCollectionPolicy::Background
    }
}

/// Nothing special.
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {}
