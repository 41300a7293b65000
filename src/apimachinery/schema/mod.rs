//! Schemas: what Kubernetes knows about the fields of a kind, as OpenAPI publishes it and a little beyond.
//!
//! In come the definitions of every published type (packed by `build.rs`, with the tables of
//! `manifests/schemas` laid over them) or, for a custom resource, its `openAPIV3Schema`. Out go
//! [`Schema`]s, which decoding, patching, defaulting and OpenAPI publication read. Nothing here knows what
//! an object *means*: which kinds are served, how they are defaulted by code or validated, is `apis`' and
//! the registry's.
//!
//! Start-up pays nothing: a definition is read when it is first needed, on its own.

mod builtin;
mod defaults;
mod fits;
mod lower;
mod presence;
mod types;

#[cfg(test)]
mod tests;

pub use builtin::Schemas;
pub use defaults::apply_defaults;
pub use fits::fits;
pub use presence::{complete, zero_object};
pub use presence::{is_dropped, zero_value};
pub use types::{Facts, Fields, ListType, MapType, Presence, Schema, Shape};
