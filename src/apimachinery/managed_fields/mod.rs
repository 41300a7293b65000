//! managedFields: who owns which field of an object, and server-side apply
//! (`sigs.k8s.io/structured-merge-diff` and `k8s.io/apimachinery/pkg/util/managedfields`). Pure data.
//!
//! In come an object as it is, an object as it is to be or a configuration, and who writes. Out comes the
//! object to be written, with its `metadata.managedFields`, or the conflicts that refuse it. Not here: HTTP,
//! decoding, defaulting, which kinds are served; the clock's time is passed in.
//!
//! A *field* is a path of [`PathElement`]s; what somebody owns is a [`Set`] of them, which is written as
//! FieldsV1. What counts as one field follows from the schema ([`SchemaType`]): an atomic list is one, a
//! keyed list has one per element and per field in it. [`compare()`] says what changed between two states,
//! [`Updater`] moves ownership accordingly, [`FieldManager`] adds what Kubernetes makes of it: names of
//! managers, times, bounds, subresources, the migration from client-side apply.
//!
//! Every write of the cluster passes here, so whatever is untouched stays a text: see [`Managed`].

mod path;
mod set;

mod fields_v1;

mod atom;
mod element;

mod compare;
mod field_set;
mod merge;
mod reconcile;
mod remove;
mod validate;

mod conflict;
mod managed;
mod reset;
mod text;
mod updater;

mod cap;

mod apply;
mod manager;

mod scale;

#[cfg(test)]
mod tests;

pub use apply::{ApplyError, LAST_APPLIED_CONFIG, apply};
pub use atom::SchemaType;
pub use compare::{Comparison, compare};
pub use conflict::{Conflict, Conflicts};
pub use field_set::field_set;
pub use fields_v1::{BadFieldSet, decode, encode};
pub use managed::{BadManagedFields, Managed, ManagedFieldsOperation, ManagerEntry, ManagerId};
pub use manager::FieldManager;
pub use merge::merge;
pub use path::{Path, PathElement, path_of, print_path};
pub use reset::ResetFields;
pub use scale::ScaleHandler;
pub use set::Set;
pub use text::expand;
pub(crate) use text::{read_tree, write_entries};
pub use updater::{ApplyRefusal, Converter, OneVersion, Updater};
pub use validate::{ValidationErrors, validate};
