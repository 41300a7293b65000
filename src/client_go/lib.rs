//! client_go: what every component stands on, under client-go's names.
//!
//! Comes in: an `ApiService` and an identity. Goes out: requests in that name, caches that follow the
//! apiserver, handlers that are told of changes, queues of what has to be looked at, Events. Must not know
//! the apiserver, the store or any component: the service it is given is all it sees of them.
//!
//! The way of a change, and the reading order: [`client`] asks, [`watch`] hears, [`reflector`] keeps list and
//! watch together, [`delta_fifo`] collects what happened to each object, [`indexer`] holds the objects,
//! [`shared_informer`] tells the handlers, [`workqueue`] hands keys to workers, which read through a
//! [`lister`], write through the client and tell people through an [`event_recorder`].

#![warn(missing_docs, unreachable_pub)]

pub mod client;
mod request;
mod response;
mod stream_watcher;

pub mod watch;

pub mod backoff;
pub mod reflector;

pub mod delta_fifo;
pub mod indexer;

pub mod informer_factory;
pub mod lister;
mod noted_source;
pub mod shared_informer;

pub mod workqueue;

pub mod event;
mod event_correlator;
mod event_patience;
pub mod event_recorder;
mod event_series;
pub mod reference;

mod lru;
pub mod token_bucket;

pub mod component;
pub mod leader_election;
pub mod leader_election_metrics;
pub mod leader_election_times;
pub mod lease_hold;
pub mod metrics;
mod shown_gates;
pub mod tasks;

#[cfg(test)]
mod fake;

pub use client::Client;
pub use component::ComponentContext;
pub use event_recorder::EventRecorder;
pub use informer_factory::SharedInformerFactory;
pub use lister::Lister;
pub use reference::ObjectReference;
pub use shared_informer::{Deleted, ResourceEventHandler, SharedInformer};
pub use tasks::Tasks;
pub use workqueue::{Key, WorkQueue};
