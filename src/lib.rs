//! kubarium: a whole Kubernetes in one process.
//!
//! One process is one or many clusters. A [`Cluster`] holds every component that a real cluster runs as a
//! process of its own, and they talk as the real ones do: everything goes through the apiserver, everything
//! is learnt from a watch.
//!
//! ```
//! use kubarium::kinds::CONFIG_MAPS;
//! use kubarium::{Cluster, Config};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let cluster = Cluster::start(Config::new()).await?;
//! let settings = serde_json::json!({"metadata": {"name": "settings"}, "data": {"greeting": "hello"}});
//! let created = cluster.client().create(&CONFIG_MAPS, "default", settings).await?;
//! assert_eq!(created.key(), "default/settings");
//! cluster.stop().await;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! What a user needs stands at the top: [`Cluster`] and its [`Config`], a [`Client`] that speaks of [`kinds`]
//! and fails with a [`Status`], and the [`Clock`] and the [`Entropy`] that make a cluster run alike twice:
//!
//! ```
//! use kubarium::kinds::PODS;
//! use kubarium::{Client, Cluster, Components, Config, Entropy, Status};
//!
//! async fn is_missing(client: &Client, name: &str) -> bool {
//!     let found: Result<_, Status> = client.get(&PODS, "default", name).await;
//!     found.is_err_and(|status| status.is_not_found())
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let config = Config::new().components(Components::NONE).entropy(Entropy::seeded(7));
//! let cluster = Cluster::start(config).await?;
//! assert!(is_missing(&cluster.client(), "web").await);
//! cluster.stop().await;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! The rooms below are how it is made: they change as they need to.
//!
#![doc = include_str!("ARCHITECTURE.md")]
#![warn(missing_docs)]

#[doc(inline)]
pub use apimachinery::object::Object;
#[doc(inline)]
pub use apimachinery::options::{DeleteOptions, ListOptions, PatchType};
#[doc(inline)]
pub use apimachinery::status::Status;
#[doc(inline)]
pub use client_go::Client;
#[doc(inline)]
pub use clock::Clock;
pub use cluster::config::{Access, Components, Listen};
pub use cluster::explore::{Explorer, FailingSchedule};
pub use cluster::kwok_kinds::KwokKind;
pub use cluster::manifests::Manifest;
pub use cluster::{BadCondition, Settle, TimeError, Unsettled, WaitFor};
pub use cluster::{COMPONENTS, Cluster, ComponentState, Config, StartError, UnknownComponent};
pub use cluster::{Export, ExportError, ForkError, OtlpEndpoint, Snapshot, SnapshotDiff, SnapshotError};
#[doc(inline)]
pub use entropy::Entropy;
pub use faults::{Fault, Faults, Schedule};
#[doc(inline)]
pub use kubelet::node_group::NodeGroup;
#[doc(inline)]
pub use kubelet::node_state::SaidCondition;
pub use witness::why::Explanation;
pub use witness::{SeenRequest, SeenRequests};

/// What the flags of the components say, each a struct of fields that [`Config`] holds whole.
///
/// ```
/// let mut controllers = kubarium::options::ControllerManagerOptions::default();
/// controllers.controllers = vec!["*".into(), "-job-controller".into()];
/// let config = kubarium::Config::new().controller_manager(controllers);
/// # assert_eq!(config.controller_manager.controllers.len(), 2);
/// ```
pub mod options {
    #[doc(inline)]
    pub use apiserver::options::ServerRunOptions;
    #[doc(inline)]
    pub use controllers::options::ControllerManagerOptions;
    #[doc(inline)]
    pub use kubelet::options::KubeletOptions;
    #[doc(inline)]
    pub use scheduler::options::SchedulerOptions;
}

/// Parts of a cluster that are one's own, in Rust: what [`Config`] takes, and the traits behind them.
///
/// ```
/// use kubarium::own::{AdmissionAttributes, AdmissionPlugin, OwnAdmission};
/// use kubarium::{Cluster, Config, Status};
/// use futures::future::{BoxFuture, ready};
/// use serde_json::{Value, json};
///
/// struct SeenLabel;
///
/// impl AdmissionPlugin for SeenLabel {
///     fn handles(&self, attributes: &AdmissionAttributes) -> bool {
///         attributes.writes("", "configmaps")
///     }
///
///     fn admit<'a>(
///         &'a self,
///         _: &'a AdmissionAttributes,
///         object: Option<&'a mut Value>,
///         _: Option<&'a Value>,
///     ) -> BoxFuture<'a, Result<(), Status>> {
///         object.into_iter().for_each(|map| map["metadata"]["labels"]["seen"] = "yes".into());
///         Box::pin(ready(Ok(())))
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let config = Config::new().admission(OwnAdmission::new().with("SeenLabel", |_| SeenLabel));
/// let cluster = Cluster::start(config).await?;
/// let settings = json!({"metadata": {"name": "settings"}});
/// let made = cluster.client().create(&kubarium::kinds::CONFIG_MAPS, "default", settings).await?;
/// assert_eq!(made.to_value()["metadata"]["labels"]["seen"], "yes");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub mod own {
    #[doc(inline)]
    pub use apiserver::admission::own::OwnAdmission;
    #[doc(inline)]
    pub use apiserver::admission::{AdmissionPlugin, Attributes as AdmissionAttributes, forbidden};
    #[doc(inline)]
    pub use client_go::ComponentContext;
    #[doc(inline)]
    pub use controllers::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
    #[doc(inline)]
    pub use controllers::own::OwnControllers;
    #[doc(inline)]
    pub use kubelet::container_runtime::own_listeners::{OwnListener, OwnListeners, PodTarget};
    #[doc(inline)]
    pub use kubelet::container_runtime::own_runtime::OwnRuntime;
    #[doc(inline)]
    pub use scheduler::framework;
    #[doc(inline)]
    pub use scheduler::own::OwnPlugins;

    /// The seam between a kubelet and what runs its containers, and what its verbs speak of.
    pub mod cri {
        #[doc(inline)]
        pub use apimachinery::time::Time;
        #[doc(inline)]
        pub use apis::views::pod::{Container, Pod};
        #[doc(inline)]
        pub use apis::views::probe::Probe;
        #[doc(inline)]
        pub use kubelet::container_runtime::services::*;
        #[doc(inline)]
        pub use kubelet::container_runtime::stats::*;
        #[doc(inline)]
        pub use machine::file_system::{Left, MountedVolume, Tree};
        #[doc(inline)]
        pub use machine::logs::LogLine;
        #[doc(inline)]
        pub use machine::questions::{Answered, Question};
        #[doc(inline)]
        pub use machine::surroundings::Surroundings;
    }
}

/// The kinds that are asked for most; the others are in the folders of their groups, [`apis`].
///
/// ```
/// use kubarium::kinds::{DEPLOYMENTS, PODS};
///
/// assert_eq!(DEPLOYMENTS.group_resource().to_string(), "deployments.apps");
/// assert_eq!(PODS.group_resource().to_string(), "pods");
/// ```
pub mod kinds {
    pub use apis::apps::daemon_set::DAEMON_SETS;
    pub use apis::apps::deployment::DEPLOYMENTS;
    pub use apis::apps::replica_set::REPLICA_SETS;
    pub use apis::apps::stateful_set::STATEFUL_SETS;
    pub use apis::batch::cron_job::CRON_JOBS;
    pub use apis::batch::job::JOBS;
    pub use apis::coordination::lease::LEASES;
    pub use apis::core::config_map::CONFIG_MAPS;
    pub use apis::core::event::EVENTS;
    pub use apis::core::namespace::NAMESPACES;
    pub use apis::core::node::NODES;
    pub use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
    pub use apis::core::pod::PODS;
    pub use apis::core::secret::SECRETS;
    pub use apis::core::service::SERVICES;
    pub use apis::core::service_account::SERVICE_ACCOUNTS;
}

#[doc(hidden)]
pub mod cluster;

/// A test that is given a cluster of its own, in memory: no port, no file, nothing that another test could
/// meet, so that tests run beside each other, in threads or with nextest in processes. The cluster ends with
/// the test, whether it passes, fails or panics.
///
/// ```
/// use kubarium::kinds::CONFIG_MAPS;
/// use kubarium::{Client, Status};
///
/// #[kubarium::test(nodes = 2, seed = 7)]
/// async fn settings_are_kept(client: Client) -> Result<(), Status> {
///     let settings = serde_json::json!({"metadata": {"name": "settings"}});
///     client.create(&CONFIG_MAPS, "default", settings).await?;
///     Ok(())
/// }
/// # fn main() {}
/// ```
///
/// It may ask for any of `&Cluster` and `Arc<Cluster>`, a [`Client`], a [`Clock`] and, with the feature
/// `kube`, a stock `kube::Client`. In the brackets, all of them by choice: `nodes = N`, `seed = N` (the same
/// UIDs and names each time), `stepped` (time stands still until the test moves it), `apiserver_only`, and
/// `config = EXPRESSION`, a [`Config`] for all else.
#[cfg(feature = "macros")]
pub use kubarium_macros::test;

#[cfg(feature = "macros")]
pub mod testing;

#[doc(hidden)]
pub use {clock, entropy, faults, witness};

#[doc(hidden)]
pub use {apimachinery, apis, cel, golang, openapi};

#[doc(hidden)]
pub use etcd;

#[doc(hidden)]
pub use {apiserver, client_go};

#[doc(hidden)]
pub use {controllers, kubelet, machine, network, scheduler};

#[doc(hidden)]
pub use flow;

#[doc(hidden)]
pub use {files, pki};

#[doc(hidden)]
pub mod cli;
