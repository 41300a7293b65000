//! The handles of a cluster over HTTP, below `/kubarium/v1/`: what a test does to a cluster as a whole, and
//! what no API object says. Ours: upstream has no such paths.
//!
//! In comes a list of [`ClusterHandle`]s, each with what does it; out goes one service that routes among
//! them, lists them, describes them as OpenAPI, and fails with a `Status` as everything else does. It must
//! not know what a cluster is: `cluster` says what each does, and mounts the service on its apiserver,
//! behind authorization.

#![warn(missing_docs)]

mod call;
mod document;
mod handle;
mod router;

pub use call::{HandleCall, MAX_BODY_BYTES};
pub use handle::{ClusterHandle, ROOT};
pub use router::{Handles, answer};
