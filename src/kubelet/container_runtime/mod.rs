//! The container runtime that kubelets talk to, and the simulated one behind it.

pub mod stages;

pub mod selector;

pub mod image_store;
pub mod pod_addresses;

pub(crate) mod answers;
pub(crate) mod invocation;
mod listeners;
