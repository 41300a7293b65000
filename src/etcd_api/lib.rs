//! etcd's API as it is on the wire (`etcd/api/v3`): its messages, how gRPC carries them, and its failures.
//! In come bytes, out go messages, and the other way round.
//!
//! Server and client share it. It must not know a connection, nor Kubernetes.

#![warn(missing_docs, unreachable_pub)]

pub mod frames;
pub mod wire;

pub mod messages;
pub mod status;

pub use wire::{MalformedMessage, MessageField, ProtoMessage, WireValue};
