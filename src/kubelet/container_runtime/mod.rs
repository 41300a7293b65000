//! The container runtime, behind the seam of CRI (`k8s.io/cri-api`), and the simulated one behind it.
//!
//! What comes in: the verbs of `services`, with the pod and the container that are meant. What goes out: when
//! a call returns and with what, and what is known of a container that runs. It must not know pod workers,
//! restarts or back-offs: those are the kubelet's. Read `services` first; `simulated` implements it, with
//! `stages` for how steps go and `played` for what processes do.

pub mod forecasts;
pub mod process_exit;
pub mod sandbox_status;
pub mod unused_images;

pub mod services;
pub mod stats;

pub(crate) mod container_limit;
pub(crate) mod cpu_quota;
pub(crate) mod invocation;

mod selector;
pub mod stages;

mod image_store;
pub mod pod_addresses;

pub mod declared;

pub mod own_listeners;
pub mod own_runtime;

mod answered;
pub(crate) mod answers;
mod consumed;
mod forward_testing;
pub(crate) mod health_messages;
mod listeners;
mod listening;
mod played;
mod request_log;
mod scripted;

mod ports;
mod usage_problems;
pub(crate) mod used;

pub mod simulated;
mod simulated_container;

mod chaos;
mod joined;
mod layer;
mod measured;

#[cfg(test)]
pub(crate) mod given;
#[cfg(test)]
mod tests;
