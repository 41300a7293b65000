//! etcd's server (`etcd/server/etcdserver/api/v3rpc`): its API v3 on a store that is there. What comes in are
//! requests of gRPC over HTTP/2, what goes out are their answers, in etcd's words and codes.
//!
//! It must not know Kubernetes, nor who listens: a listener with or without TLS hands requests in
//! ([`EtcdServer::serve`]). Nothing is kept here but alarms and what a request needs; the store is the state.
//!
//! Bounds: a message has at most [`frames::MAX_RECEIVED_BYTES`], what is written by one
//! [`status::MAX_REQUEST_BYTES`], a transaction [`check::MAX_TXN_OPS`] operations, a stream
//! [`watch::MAX_WATCHES`] watches. Answers are made when the client has room for them: who reads nothing
//! costs a position in the log.

#![warn(missing_docs, unreachable_pub)]

pub mod check;
pub mod frames;

mod alarms;
mod bolt;
mod bolt_reader;
mod cluster;
mod exposition;
mod hash;
mod history;
mod http1;
mod keys;
mod kv;
mod lease;
mod maintenance;
mod metrics;
pub mod options;
pub mod quota;
mod range;
pub mod restored;
mod routes;
mod server;
mod snapshot;
#[cfg(test)]
mod tests;
mod txn;
mod unary;
pub mod values;
pub mod watch;
mod watched;

pub use etcd_api::{MalformedMessage, MessageField, ProtoMessage, WireValue, messages, status, wire};
pub use server::{CLUSTER_VERSION, EtcdServer, PROGRESS_INTERVAL, ServerOptions, StoreSource, VERSION};
