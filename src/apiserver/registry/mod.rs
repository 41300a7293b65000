//! The registry: what holds for every kind when it is read, written and deleted
//! (`k8s.io/apiserver/pkg/registry/generic/registry` and `registry/rest`).
//!
//! In comes a decoded, defaulted and mutated tree in the requested version's form; out goes the stored object
//! in that same form. Between them, in this order: metadata, the kind's strategy, validation, validating
//! admission, the write. It must not know HTTP, an admission plugin or a client.

pub mod rest;
pub mod store;

mod create;
mod put;
mod update;

mod deletion;

mod collection;

mod admin_access;
mod claim_rights;
mod lifted;
mod metadata;
mod metrics;
mod prepare;

mod auto_update;
mod bootstrap;
mod bootstrapped;
mod conversion;
mod converted_view;
mod custom_versions;
mod derived;
mod flow_schema;
mod own_labels;

mod binding;
mod eviction;
mod scale;

pub mod service;

#[cfg(test)]
mod tests;

pub use conversion::CustomResourceConverter;
pub use rest::{UpdatedObjectInfo, Validating};
pub use store::{DeleteOutcome, Part, Registry};
