//! The controllers on a real apiserver, with a stepped clock; the tests play scheduler and kubelet.

mod endpoints;
mod garbage;
mod mirroring;
mod namespaces;
mod nodes;
mod replicas;
mod rollout;
mod support;
