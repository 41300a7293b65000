//! etcd's client (`etcd/client/v3`), as far as kube-apiserver uses it (`apiserver/pkg/storage/etcd3`): what
//! the store's own [`etcd::Kv`] is to one process, this is to several that share an etcd.
//!
//! In come keys, bytes and revisions, out go the same as etcd has them. It must not know Kubernetes, but for
//! where its keys begin. gRPC is spoken over the HTTP/2 that is in the tree anyway: the crate `etcd-client`
//! wants protoc at build time.
//!
//! Without the feature `client` (of the program: `etcd`) all of it is as small as can be: nobody is ever
//! connected, and `EtcdClient::open` says so. Who uses it need not know which of the two it has.
//!
//! Bounds: a call is given up after `MAX_CALL_TIME`, what may be asked again is for `MAX_RETRY_TIME`; a
//! range is read in pages of `PAGE_KEYS` keys; a watch that nobody reads holds `WATCH_WINDOW_BYTES` of
//! what etcd sends, and etcd the rest.

#![warn(missing_docs, unreachable_pub)]

pub mod absent;
pub mod config;

#[cfg(feature = "client")]
mod grpc;

#[cfg(not(feature = "client"))]
pub use absent::{
    AbsentChange as CopiedChange, AbsentClient as EtcdClient, AbsentError as OpenError,
    AbsentWatch as EtcdWatch,
};
pub use config::{EtcdConfig, EtcdEndpoint};
#[cfg(feature = "client")]
pub use grpc::{
    CopiedChange, EtcdClient, EtcdWatch, MAX_CALL_TIME, MAX_RETRY_TIME, OpenError, PAGE_KEYS,
    WATCH_WINDOW_BYTES,
};
