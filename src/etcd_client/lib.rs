//! etcd's client (`etcd/client/v3`), as far as kube-apiserver uses it (`apiserver/pkg/storage/etcd3`): what
//! the store's own [`etcd::Kv`] is to one process, this is to several that share an etcd.
//!
//! In come keys, bytes and revisions, out go the same as etcd has them. It must not know Kubernetes, but for
//! where its keys begin. gRPC is spoken over the HTTP/2 that is in the tree anyway: the crate `etcd-client`
//! wants protoc at build time.
//!
//! Bounds: a call is given up after [`MAX_CALL_TIME`], what may be asked again is for [`MAX_RETRY_TIME`]; a
//! range is read in pages of [`PAGE_KEYS`] keys; a watch that nobody reads holds [`WATCH_WINDOW_BYTES`] of
//! what etcd sends, and etcd the rest.

#![warn(missing_docs, unreachable_pub)]

pub mod config;

mod ask;
mod body;
mod call;
mod client;
mod compaction;
mod connection;
mod connections;
mod convert;
mod keys;
mod member;
mod opening;
mod progress;
mod range;
mod whole;
mod write;

mod watch;

pub use call::{MAX_CALL_TIME, MAX_RETRY_TIME};
pub use client::EtcdClient;
pub use config::{EtcdConfig, EtcdEndpoint};
pub use connection::WATCH_WINDOW_BYTES;
pub use opening::OpenError;
pub use range::PAGE_KEYS;
pub use watch::EtcdWatch;
pub use whole::CopiedChange;
