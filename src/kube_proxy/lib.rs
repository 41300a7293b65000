//! kube-proxy: where the addresses and ports of Services lead (`pkg/proxy`).
//!
//! Comes in: Services, EndpointSlices and Nodes from informers, and who asks whom. Goes out: which endpoint
//! that is, and in whose name it is asked. It must not know who listens there, nor what is said.
//!
//! Upstream writes rules for a kernel; here the rules are the tables themselves, one for the whole cluster:
//! on which node traffic comes in is asked for each passage. They are found by address and port, so that ten
//! thousand Services cost one connection nothing.

#![warn(missing_docs)]

mod service_port;
mod slice;

mod tables;
mod topology;

mod affinity;

pub mod proxier;

#[cfg(test)]
mod tests;

pub use proxier::{Proxier, Whereabouts};
