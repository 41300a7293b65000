//! Network policies: which pods may ask which (what the network plugin of a node enforces,
//! `sigs.k8s.io/kube-network-policies`).
//!
//! Comes in: NetworkPolicies, Pods and Namespaces from informers, and who asks whom. Goes out: whether he
//! may, and which policies say so. It must not know Services: what is asked about has been led to a pod.
//!
//! A policy isolates the pods that it selects, in the directions that it names; whoever is isolated is
//! reached, and reaches, only as some policy allows. Without any policy nothing else is watched.

#![warn(missing_docs)]

mod policy;

mod judge;

pub mod verdict;
mod verdicts;

pub mod policies;

#[cfg(test)]
mod tests;

pub use policies::{Policies, Residents};
pub use verdict::{Judgement, Verdict};
