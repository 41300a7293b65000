//! CoreDNS: the names of Services and pods, as its plugin `kubernetes` with kubeadm's configuration answers
//! (`cluster.local`, `pods insecure`, TTL 30).
//!
//! Comes in: messages of DNS; Services, EndpointSlices and Namespaces from informers. Goes out: messages of
//! DNS. It must not know who asks. What is not the cluster's has no name: nothing is resolved on the host.

#![warn(missing_docs)]

mod objects;
mod zone;

mod reverse;

pub mod server;

#[cfg(test)]
mod tests;

pub use server::NameServer;
