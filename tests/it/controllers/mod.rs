//! The controllers on a real apiserver, with a stepped clock; the tests play scheduler and kubelet.

mod attachments;
mod autoscaling;
mod bootstrap;
mod budgets;
mod consumers;
mod counted;
mod devices;
mod endpoints;
mod example_driver;
mod extended_devices;
mod garbage;
mod kept_disks;
mod load_balancers;
mod lost_claims;
mod metrics;
mod mirroring;
mod namespaces;
mod nodes;
mod quotas;
mod recycled;
mod replicas;
mod rollout;
mod storage;
pub(crate) mod support;
mod volume_snapshots;
