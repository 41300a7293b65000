//! The kubelet: one for each simulated node, with an identity of its own.
//!
//! What comes in: the pods that are bound to its node, by a watch, and time. What goes out: its Node and its
//! Lease, the status of its pods, Events, and the deletes that end a graceful deletion. It must not know
//! other nodes, the scheduler or a controller: all that it knows of the cluster it learns from the
//! apiserver.
//!
//! Nothing runs: a simulated runtime plays sandboxes and containers as state machines on the cluster's
//! clock. What becomes of them is data, in `manifests/stages`.

#![warn(missing_docs)]

#[expect(clippy::module_inception, reason = "upstream's file is pkg/kubelet/kubelet.go")]
pub mod kubelet;

pub mod node_config;
mod node_lease;
mod node_status;

mod admission;
mod lending;
pub mod players;
pub mod pod_workers;
mod telling;
mod turns;

pub mod runtime;
pub mod world;

mod hooks;
mod probes;
mod pulling;
mod running;

pub mod container_runtime;
pub mod volume_manager;

pub mod exec;
mod mounting;

pub mod backoff;
mod image_names;

pub mod pod_status;
pub mod status_manager;

pub mod server;

mod adopt;
mod pod_conditions;
#[cfg(test)]
mod stories;
