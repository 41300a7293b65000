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
#![doc = include_str!("ARCHITECTURE.md")]
#![warn(missing_docs)]

pub use {clock, entropy};

pub use {apimachinery, apis, cel, golang, openapi};

pub use etcd;

pub use {apiserver, client_go};

pub use {controllers, kubelet, machine, scheduler};

pub use flow;

pub mod cluster;

pub use {files, pki};

pub mod cli;

pub use cluster::{Cluster, Config};
