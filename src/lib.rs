//! kubarium: a whole Kubernetes in one process.
#![warn(missing_docs)]

pub mod clock;
pub mod entropy;
pub mod flow;

pub mod apimachinery;
pub mod apis;

pub mod etcd;

pub mod apiserver;
pub mod client_go;

pub mod files;
pub mod pki;

pub mod controllers;
pub mod kubelet;
pub mod scheduler;

pub mod cluster;

pub mod cli;

pub use cluster::{Cluster, Config};
