//! Storage: objects as keys and bytes in etcd, and the watch cache in front of it
//! (`k8s.io/apiserver/pkg/storage`).
//!
//! In come objects as trees and questions about revisions; out go shared
//! [`apimachinery::object::Object`]s and watch events. What is cached is a copy of etcd's log and
//! never ahead of it. It must not know a strategy, a request or a user, and it keeps every kind in its own
//! form: conversion is the registry's.
//!
//! Keys are upstream's, as `/registry/deployments/<namespace>/<name>` (`Kind::etcd_resource`); in this room a
//! key is what follows the resource.

pub mod interface;
pub mod request;

pub mod encryption;
pub mod options;

mod byte_store;
mod errors;
mod foreign;
mod fresh;

mod lease_manager;
mod master_leases;
mod metrics;
mod range_allocation;
mod recorder;
mod size_limit;
pub mod store;
mod watcher;

mod continue_token;
mod event;
mod page;

pub mod cacher;

mod cache_watcher;
mod lister_watcher;
mod watch_cache;

#[cfg(test)]
mod suite;

pub use byte_store::ByteStore;
pub use interface::{CachedObjects, Storage, WatchCaches};
pub use range_allocation::RangeAllocation;
pub use size_limit::is_too_large;
pub use store::Written;
