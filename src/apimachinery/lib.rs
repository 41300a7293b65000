//! apimachinery: what every component agrees on. Pure data, no IO; imports nothing else of ours.
//!
//! Upstream's `k8s.io/apimachinery` and the shared types of `k8s.io/api`: the object and its metadata, names
//! of groups, versions and resources, the `Status` every error becomes, selectors, patches, schemas,
//! quantities.

#![warn(missing_docs, unreachable_pub)]

pub mod gvk;
pub mod list;
pub mod object;
mod object_meta;
mod stored_bytes;

pub mod status;
mod status_cause;

pub mod fields;
pub mod labels;
pub mod pick;
pub mod selectable;

pub use golang::duration;

pub mod field_error;
pub mod int_or_string;
pub mod json_bytes;
pub mod names;
pub mod repeats;
pub mod time;
pub mod time_zone;

pub mod der;

pub mod accept;
pub mod connection_cut;
pub mod options;
pub mod user;
pub mod watch;
pub mod wire;
pub mod yaml;

pub mod feature_gates;
pub mod fingerprint;

pub mod schema;

pub mod decode;
pub mod managed_fields;
pub mod patch;
pub mod protobuf;
pub mod quantity;
