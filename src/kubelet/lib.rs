//! The kubelet: one for each simulated node, with an identity of its own.
//!
//! What comes in: the pods that are bound to its node, by a watch, and time. What goes out: its Node and its
//! Lease, the status of its pods, Events, and the deletes that end a graceful deletion. It must not know
//! other nodes, the scheduler or a controller: all that it knows of the cluster it learns from the
//! apiserver.
//!
//! Nothing runs: behind the seam of CRI (`container_runtime`) a simulated runtime plays sandboxes and
//! containers as state machines on the cluster's clock. What becomes of them is data, in `manifests/stages`.

#![warn(missing_docs)]

pub mod server;

pub mod attach;
pub mod exec;
mod hearing;
mod host_ports;
pub mod kubelet_api;
mod pleg;
mod port_forward;
pub mod ports;
mod talking;
pub mod terminals;

pub mod kubelet;

mod pod_manager;

mod events;

mod csi_node;
mod device_amounts;
pub mod device_counters;
pub mod device_group;
mod device_health;
pub mod device_plugins;
mod device_slices;
mod node_amounts;
pub mod node_config;
pub mod node_group;
mod node_lease;
pub mod node_refusal;
pub mod node_state;
mod node_status;
pub mod node_system_info;
pub mod options;

mod admission;
mod allocation;
mod allocation_manager;
mod container_collection;
mod container_gc;
mod cordon;
pub mod eviction;
pub mod eviction_manager;
mod image_gc;
mod local_storage;
mod memory_limits;
mod node_lookup;
pub mod pod_ending;
mod pod_importance;
mod pod_resources;
mod pod_sandbox;
pub mod pod_workers;
mod preemption;
mod qos;
mod resizing;
mod restart_all;
mod sandbox_state;
mod static_pods;
pub mod sysctl;

mod counted;
pub mod dependencies;
pub mod players;
mod resize_counts;

mod adopt;
mod played;
mod pod_answers;
mod pod_volumes;

mod pod_conditions;
pub mod pod_startup;
mod pod_status;
pub mod status_manager;

pub mod credential_provider;
pub mod kuberuntime;

pub mod backoff;
pub mod lifecycle;
mod probe_counts;
pub mod prober;

mod probing;

pub mod container_runtime;
pub mod volume_manager;

#[cfg(test)]
mod stories;
