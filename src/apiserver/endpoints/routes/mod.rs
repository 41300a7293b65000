//! Paths that are no resources: what the server says of itself (`server/routes`, `server/healthz`,
//! `endpoints/discovery`).
//!
//! In comes a path, out goes a document. They are answered from what the endpoints have; none of them reads
//! objects.

pub(crate) mod index;

mod aggregated_discovery;
mod discovery;
mod groups;

mod command_line;
mod content;
pub mod debug;
pub mod kept_memory;
mod openapi;
pub(crate) mod openapi_documents;
mod openid;
mod pprof;
mod pprof_text;
mod process;
mod profiles;

mod flow_control;
mod flowz;
pub mod healthz;
mod metrics;
pub mod version;
pub mod zpages;
