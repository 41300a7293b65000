//! The client itself, over gRPC, which is HTTP/2 that is in the tree anyway.

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
pub use connection::WATCH_WINDOW_BYTES;
pub use opening::OpenError;
pub use range::PAGE_KEYS;
pub use watch::EtcdWatch;
pub use whole::CopiedChange;
