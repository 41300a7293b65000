//! The registry: what holds for every kind when it is read, written and deleted
//! (`k8s.io/apiserver/pkg/registry/generic/registry` and `registry/rest`).
//!
//! In comes a decoded, defaulted and mutated tree in the requested version's form; out goes the stored object
//! in that same form. Between them, in this order: metadata, the kind's strategy, validation, validating
//! admission, the write. It must not know HTTP, an admission plugin or a client.

pub mod store;

mod create;
mod put;
mod update;

mod deletion;

mod collection;

mod metadata;
mod prepare;

mod auto_update;
mod bootstrap;
mod conversion;
mod custom_versions;
mod derived;
mod flow_schema;

mod binding;
mod eviction;
mod scale;

mod service;

#[cfg(test)]
mod tests;

use futures::future::BoxFuture;
use serde_json::Value;

use apimachinery::status::Status;

pub use custom_versions::Converter;
pub use store::{Deleted, Part, Registry};

/// Validating admission, called last, when the object is as it will be written (`rest.ValidateObjectFunc`).
pub trait Validating: Send + Sync {
    /// `new` is missing on a delete, `old` on a create. Trees are in the requested version's form.
    fn validate<'a>(
        &'a self,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

/// Admits everything.
impl Validating for () {
    fn validate<'a>(
        &'a self,
        _: Option<&'a Value>,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What an update makes of the current object (`rest.UpdatedObjectInfo`): a PUT replaces it, a patch changes
/// it. Mutating admission belongs in here. It is asked again when somebody else was faster.
pub trait Change: Send + Sync {
    /// `current` is missing when the object does not exist and the update may create it.
    fn change<'a>(&'a self, current: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>>;
}

impl<F: Fn(Option<&Value>) -> Result<Value, Status> + Send + Sync> Change for F {
    fn change<'a>(&'a self, current: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(self(current)))
    }
}
