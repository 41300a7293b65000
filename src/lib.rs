//! kubarium: a whole Kubernetes in one process.
//!
//! One process is one or many clusters. A [`Cluster`] holds every component that a real cluster runs as a
//! process of its own, and they talk as the real ones do: everything goes through the apiserver, everything
//! is learnt from a watch.
//!
//! ```
//! use kubarium::apis::core::config_map::CONFIG_MAPS;
//! use kubarium::{Cluster, Config};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let cluster = Cluster::start(Config::default()).await?;
//! let settings = serde_json::json!({"metadata": {"name": "settings"}, "data": {"greeting": "hello"}});
//! let created = cluster.client().create(&CONFIG_MAPS, "default", settings).await?;
//! assert_eq!(created.key(), "default/settings");
//! cluster.stop().await;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # The rooms, in reading order
//!
//! | room | what it is in Kubernetes |
//! | --- | --- |
//! | [`clock`], [`entropy`] | time and chance, one of each per cluster |
//! | [`apimachinery`] | objects, names, `Status`, selectors, patches, schemas: pure data |
//! | [`apis`] | the kinds, each one declaration |
//! | [`etcd`] | revisions, compare-and-put, the log |
//! | [`apiserver`] | kube-apiserver: server, handler chain, endpoints, admission, registry, storage |
//! | [`client_go`] | client-go: client, reflector, informers, work queues, events |
//! | [`controllers`], [`scheduler`], [`kubelet`] | the components: they know only `client_go` |
//! | [`flow`] | ours: the causal record of what happened and why |
//! | [`cluster`] | ours: builds one cluster; the only file that knows every room |
//! | [`cli`] | the command line |
//!
//! [`pki`] and [`files`] make certificates and write secrets.
//!
//! # Invariants
//!
//! Held by `tests/it/tidy.rs` where a test can see them:
//!
//! - only the server knows sockets, only the store knows sled, only the clock waits for time;
//! - no path reaches the store except through the handler chain;
//! - no state in statics, thread-locals or task-locals: clusters share nothing;
//! - a revision is born in one place, in the same batch as its value, and watches are reads of the log;
//! - a write is acknowledged only when it is as durable as the cluster promises;
//! - cached objects are never changed: a change is a new object with a new resourceVersion;
//! - every queue and buffer has a bound, and what happens at the bound is written beside it.
#![warn(missing_docs)]

pub mod clock;
pub mod entropy;

pub mod apimachinery;
pub mod apis;

pub mod etcd;

pub mod apiserver;
pub mod client_go;

pub mod controllers;
pub mod kubelet;
pub mod scheduler;

pub mod flow;

pub mod cluster;

pub mod files;
pub mod pki;

pub mod cli;

pub use cluster::{Cluster, Config};
