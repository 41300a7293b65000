//! The scheduler (kube-scheduler): finds a node for every pod that has none.
//!
//! What comes in: pods and nodes, by watches. What goes out: bindings, the `PodScheduled` condition and
//! Events of pods that fit nowhere, and now and then the deletion of a pod that must make room. It must not
//! know a kubelet or a controller, and decides one pod at a time on what its cache knows; only the bindings
//! are written side by side.

#![warn(missing_docs, unreachable_pub)]

pub mod scheduler;

pub mod options;

pub mod config;
pub mod own;

pub mod schedule_one;

mod schedule_pod;

pub mod extender;

pub mod backoff;
pub mod queue;

pub mod cache;

pub mod framework;

pub mod plugins;

mod dra;

pub mod failure;

mod event_handlers;
mod metrics;
mod metrics_page;
mod parts;
mod told;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod profile_tests;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;
