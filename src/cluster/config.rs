//! What a cluster is made from, and what is told of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

pub use super::component_choice::Components;
use super::component_ports::ComponentPorts;
use super::kwok_kinds::KwokKind;
use super::otlp_endpoint::OtlpEndpoint;
use super::published::Publish;
use super::snapshot::Snapshot;
use apiserver::admission::own::OwnAdmission;
use apiserver::endpoints::routes::debug::Verbosity;
use apiserver::options::ServerRunOptions;
use client_go::leader_election_times::LeaderElectionTimes;
use clock::Clock;
use controllers::options::ControllerManagerOptions;
use controllers::own::OwnControllers;
use entropy::Entropy;
use etcd_server::options::ListenOptions;
use kubelet::container_runtime::{own_listeners::OwnListeners, own_runtime::OwnRuntime};
use kubelet::node_group::NodeGroup;
use kubelet::options::KubeletOptions;
use pki::Identity;
use scheduler::options::SchedulerOptions;
use scheduler::own::OwnPlugins;

/// What a cluster is made from. The default is a cluster for a test: one node, in memory, no port, no file;
/// each method changes one thing of it.
///
/// ```
/// use kubarium::{Clock, Cluster, Components, Config, Entropy, Listen};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// // As envtest has it: an apiserver alone.
/// let bare = Config::new().components(Components::NONE);
/// // The same story each time: chance is seeded, and time passes when the test says so.
/// let clock = Clock::stepped("2026-01-01T00:00:00Z".parse()?);
/// let stepped = Config::new().nodes(3).clock(clock).entropy(Entropy::seeded(7));
/// // Reached by kubectl: `Cluster::access` says where, and as whom.
/// let open = Config::new().listen(Listen::loopback());
/// let cluster = Cluster::start(open).await?;
/// assert!(cluster.access().is_some());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// What has no method is a field: flags of kube-apiserver are `config.apiserver`, for example.
///
/// ```
/// let mut config = kubarium::Config::new();
/// config.apiserver.flow_control.max_requests = 10;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Simulated nodes, `node-1` and on.
    pub nodes: u32,
    /// Nodes beside those that are numbered, in groups of their own kind.
    pub node_groups: Vec<NodeGroup>,
    /// Where everything is kept; without, it ends with the cluster.
    pub data_dir: Option<PathBuf>,
    /// etcd's `--unsafe-no-fsync`: what is acknowledged in a `data_dir` survives no power cut.
    pub unsafe_no_fsync: bool,
    /// Goes on with what is there if the `data_dir` has lost something that was acknowledged, instead of
    /// refusing to start; [`super::Cluster::recovery`] says what is gone.
    pub recover: bool,
    /// What the cluster begins with. The number of nodes and what they take are the snapshot's. With a
    /// `data_dir` that is not there yet or empty, it is written there first.
    pub snapshot: Option<Snapshot>,
    /// Shows what is there: no component runs, nothing is made at the start, and writes are refused.
    pub read_only: bool,
    /// A port to listen on; without, the cluster is reached through its service alone.
    pub listen: Option<Listen>,
    /// Where etcd's API is served on the cluster's store; a fork serves none.
    pub etcd: ListenOptions,
    /// What of its Services is opened on the host; a fork opens nothing.
    pub publish: Vec<Publish>,
    /// A folder of stages beside the built-in ones; objects of kwok's kinds in it are created.
    pub stages: Option<PathBuf>,
    /// Listeners at ports of pods that are given in Rust, and where pods may lead outside.
    pub listeners: OwnListeners,
    /// Where the page listens that shows the cluster, once it is opened: an address of loopback.
    pub ui_listen: SocketAddr,
    /// Where spans are sent of what happens, if anywhere; of a fork, nowhere.
    pub otlp_endpoint: Option<OtlpEndpoint>,
    /// Whether it is held between two steps from when it is ready (`kubarium step`); a fork is not.
    pub step: bool,
    /// Controllers of the user's in Rust, beside those of kube-controller-manager.
    pub controllers: OwnControllers,
    /// Plugins of the user's in Rust, for kube-scheduler.
    pub scheduler_plugins: OwnPlugins,
    /// Admission plugins of the user's in Rust.
    pub admission: OwnAdmission,
    /// What runs containers, if the user says so in Rust.
    pub runtime: OwnRuntime,
    /// The time that all components share.
    pub clock: Clock,
    /// The numbers that all components draw.
    pub entropy: Entropy,
    /// Whether the flow record is kept.
    pub flow: bool,
    /// Whether it keeps headers and bodies of writes, also while nobody asks for them.
    pub keep_bodies: bool,
    /// Whether faults may be objects, `faults.kubarium.dev/v1alpha1 Fault`.
    pub fault_objects: bool,
    /// Which of kwok's kinds are served.
    pub kwok_kinds: Vec<KwokKind>,
    /// What kube-apiserver's flags say.
    pub apiserver: ServerRunOptions,
    /// Sets how much is logged (`/debug/flags/v`), where the log is for the cluster to set.
    pub verbosity: Option<Verbosity>,
    /// What kube-controller-manager's flags say.
    pub controller_manager: ControllerManagerOptions,
    /// What kube-scheduler's flags say.
    pub scheduler: SchedulerOptions,
    /// What the kubelets' flags say, all alike.
    pub kubelet: KubeletOptions,
    /// The components that run from the start; see [`super::COMPONENTS`].
    pub components: Components,
    /// Which of them have pages at a port of their own.
    pub component_ports: ComponentPorts,
    /// On an etcd that other clusters share: how long everything takes by which one of them runs the
    /// controllers, and one the scheduler. On a store of its own nothing waits for that, and the Leases only
    /// say who runs them. None: they run in this one, whoever else runs them, and there are no Leases.
    pub leader_election: Option<LeaderElectionTimes>,
    /// Whether what every cluster has comes back when it is deleted, and nodes that users create get
    /// kubelets.
    pub(crate) looks_after_itself: bool,
    /// Whether coredns, kube-proxy, etcd and their like appear as pods in kube-system, as kubeadm has them.
    pub system_pods: bool,
    /// Whether there is a class of volumes that claims get which name none: `standard`, of simulated disks.
    pub default_storage_class: bool,
    /// Whether `metrics.k8s.io` is served, for `kubectl top` and autoscalers, as metrics-server would.
    pub metrics_server: bool,
    /// Whether `custom.metrics.k8s.io` and `external.metrics.k8s.io` are, from annotations and ConfigMaps.
    pub metrics_adapter: bool,
}

/// Where and how to listen.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Listen {
    /// Port 0 takes a free one.
    pub address: SocketAddr,
    /// Without TLS everybody who reaches the port is an administrator: only for loopback.
    pub tls: bool,
}

impl Listen {
    /// Listens with TLS at a free port of 127.0.0.1.
    pub fn loopback() -> Listen {
        Listen::tls((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Listens with TLS; port 0 takes a free one.
    pub fn tls(address: SocketAddr) -> Listen {
        Listen { address, tls: true }
    }

    /// Listens without TLS, which lets everybody in as an administrator: refused but for loopback.
    pub fn insecure_http(address: SocketAddr) -> Listen {
        Listen { address, tls: false }
    }
}

impl Config {
    /// A cluster for a test: one node, in memory, no port, no file.
    pub fn new() -> Config {
        Config::default()
    }

    /// Says how many simulated nodes there are.
    #[must_use]
    pub fn nodes(self, nodes: u32) -> Config {
        Config { nodes, ..self }
    }

    /// Says which nodes there are beside the numbered ones.
    #[must_use]
    pub fn node_groups(self, node_groups: impl Into<Vec<NodeGroup>>) -> Config {
        Config { node_groups: node_groups.into(), ..self }
    }

    /// Says how many pods a node takes.
    #[must_use]
    pub fn pods_per_node(mut self, pods_per_node: u32) -> Config {
        self.kubelet.max_pods = pods_per_node;
        self
    }

    /// Says in which folder everything is kept over restarts.
    #[must_use]
    pub fn data_dir(self, folder: impl Into<PathBuf>) -> Config {
        Config { data_dir: Some(folder.into()), ..self }
    }

    /// Adds what is opened of its Services on the host.
    #[must_use]
    pub fn publish(mut self, publish: Publish) -> Config {
        self.publish.push(publish);
        self
    }

    /// Says whether writes are answered before the disk has them.
    #[must_use]
    pub fn unsafe_no_fsync(self, unsafe_no_fsync: bool) -> Config {
        Config { unsafe_no_fsync, ..self }
    }

    /// Says whether to go on with what is left of a data dir that has lost something.
    #[must_use]
    pub fn recover(self, recover: bool) -> Config {
        Config { recover, ..self }
    }

    /// Says what the cluster begins with.
    #[must_use]
    pub fn snapshot(self, snapshot: Snapshot) -> Config {
        Config { snapshot: Some(snapshot), ..self }
    }

    /// Says where the apiserver listens.
    #[must_use]
    pub fn listen(self, listen: Listen) -> Config {
        Config { listen: Some(listen), ..self }
    }

    /// Says in which folder there are stages beside the built-in ones.
    #[must_use]
    pub fn stages(self, folder: impl Into<PathBuf>) -> Config {
        Config { stages: Some(folder.into()), ..self }
    }

    /// Says what listens at ports of pods, and where pods may lead outside.
    #[must_use]
    pub fn listeners(self, listeners: OwnListeners) -> Config {
        Config { listeners, ..self }
    }

    /// Takes controllers of one's own: each is a component `controller/NAME`.
    #[must_use]
    pub fn controllers(self, controllers: OwnControllers) -> Config {
        Config { controllers, ..self }
    }

    /// Takes scheduler plugins of one's own.
    #[must_use]
    pub fn scheduler_plugins(self, scheduler_plugins: OwnPlugins) -> Config {
        Config { scheduler_plugins, ..self }
    }

    /// Takes admission plugins of one's own.
    #[must_use]
    pub fn admission(self, admission: OwnAdmission) -> Config {
        Config { admission, ..self }
    }

    /// Takes what is to run containers, in place of the simulated runtime or around it.
    #[must_use]
    pub fn runtime(self, runtime: OwnRuntime) -> Config {
        Config { runtime, ..self }
    }

    /// Says whose time it is; with [`Clock::stepped`] it passes when the test says so.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Config {
        Config { clock, ..self }
    }

    /// Says where chance comes from; with [`Entropy::seeded`] names, UIDs and jitter are the same each time.
    #[must_use]
    pub fn entropy(self, entropy: Entropy) -> Config {
        Config { entropy, ..self }
    }

    /// Says whether faults may be objects, `faults.kubarium.dev/v1alpha1 Fault`.
    #[must_use]
    pub fn fault_objects(self, fault_objects: bool) -> Config {
        Config { fault_objects, ..self }
    }

    /// Says which of kwok's kinds are served, as `Stage` (`kwok.x-k8s.io/v1alpha1`).
    #[must_use]
    pub fn kwok_kinds(self, kwok_kinds: impl Into<Vec<KwokKind>>) -> Config {
        Config { kwok_kinds: kwok_kinds.into(), ..self }
    }

    /// Takes kube-apiserver's flags.
    #[must_use]
    pub fn apiserver(self, apiserver: ServerRunOptions) -> Config {
        Config { apiserver, ..self }
    }

    /// Takes kube-controller-manager's flags.
    #[must_use]
    pub fn controller_manager(self, controller_manager: ControllerManagerOptions) -> Config {
        Config { controller_manager, ..self }
    }

    /// Takes kube-scheduler's flags.
    #[must_use]
    pub fn scheduler(self, scheduler: SchedulerOptions) -> Config {
        Config { scheduler, ..self }
    }

    /// Takes the flags of all kubelets.
    #[must_use]
    pub fn kubelet(self, kubelet: KubeletOptions) -> Config {
        Config { kubelet, ..self }
    }

    /// Gives components ports of their own.
    #[must_use]
    pub fn component_ports(self, component_ports: ComponentPorts) -> Config {
        Config { component_ports, ..self }
    }

    /// Says which components run from the start.
    #[must_use]
    pub fn components(self, components: Components) -> Config {
        Config { components, ..self }
    }

    /// Says whether the pods of the system appear in kube-system.
    #[must_use]
    pub fn system_pods(self, system_pods: bool) -> Config {
        Config { system_pods, ..self }
    }

    /// Says whether there is a class of volumes for claims that name none.
    #[must_use]
    pub fn default_storage_class(self, default_storage_class: bool) -> Config {
        Config { default_storage_class, ..self }
    }

    /// Says whether `metrics.k8s.io` is served.
    #[must_use]
    pub fn metrics_server(self, metrics_server: bool) -> Config {
        Config { metrics_server, ..self }
    }

    /// Says whether `custom.metrics.k8s.io` and `external.metrics.k8s.io` are served.
    #[must_use]
    pub fn metrics_adapter(self, metrics_adapter: bool) -> Config {
        Config { metrics_adapter, ..self }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            nodes: 1,
            node_groups: vec![],
            data_dir: None,
            unsafe_no_fsync: false,
            recover: false,
            snapshot: None,
            read_only: false,
            listen: None,
            etcd: ListenOptions::default(),
            publish: vec![],
            stages: None,
            listeners: OwnListeners::default(),
            ui_listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            otlp_endpoint: None,
            step: false,
            controllers: OwnControllers::default(),
            scheduler_plugins: OwnPlugins::default(),
            admission: OwnAdmission::default(),
            runtime: OwnRuntime::default(),
            clock: Clock::real(),
            entropy: Entropy::from_system(),
            flow: true,
            keep_bodies: false,
            verbosity: None,
            fault_objects: false,
            kwok_kinds: Vec::new(),
            apiserver: ServerRunOptions::default(),
            controller_manager: ControllerManagerOptions::default(),
            scheduler: SchedulerOptions::default(),
            kubelet: KubeletOptions::default(),
            components: Components::ALL,
            component_ports: ComponentPorts::default(),
            leader_election: Some(LeaderElectionTimes::default()),
            looks_after_itself: true,
            system_pods: false,
            default_storage_class: false,
            metrics_server: false,
            metrics_adapter: false,
        }
    }
}

/// How to reach a cluster from outside: what a kubeconfig holds.
#[derive(Clone)]
#[non_exhaustive]
pub struct Access {
    /// As `https://127.0.0.1:40123`.
    pub server: String,
    /// Whom to trust.
    pub authority_pem: Option<String>,
    /// An administrator.
    pub identity: Option<Identity>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_method_changes_what_it_is_named_after() {
        let config = Config::new()
            .nodes(3)
            .pods_per_node(7)
            .data_dir("data")
            .unsafe_no_fsync(true)
            .recover(true)
            .listen(Listen::loopback())
            .stages("stages")
            .flow(false)
            .components(Components::NONE.scheduler(true))
            .default_storage_class(true);
        assert_eq!((config.nodes, config.kubelet.max_pods), (3, 7));
        assert_eq!(config.data_dir.as_deref(), Some(Path::new("data")));
        assert_eq!(config.stages.as_deref(), Some(Path::new("stages")));
        assert!(config.unsafe_no_fsync && config.recover && !config.flow && config.default_storage_class);
        assert!(config.listen.is_some_and(|listen| listen.tls && listen.address.ip().is_loopback()));
        assert_eq!(config.components, Components { controllers: false, scheduler: true, kubelets: false });
        let kubelets = Components::NONE.kubelets(true).controllers(true);
        assert_eq!(kubelets, Components::ALL.scheduler(false));
    }

    #[test]
    fn options_clock_and_entropy_are_those_that_are_given() {
        let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
        let mut options = ServerRunOptions::default();
        options.flow_control.max_requests = 12;
        let mut of_controllers = ControllerManagerOptions::default();
        of_controllers.controllers = vec!["-*".into()];
        let config = Config::new()
            .apiserver(options)
            .controller_manager(of_controllers)
            .clock(clock.clone())
            .entropy(Entropy::seeded(7));
        assert_eq!(config.apiserver.flow_control.max_requests, 12);
        assert_eq!(config.controller_manager.controllers, ["-*"]);
        assert_eq!(config.clock.now(), clock.now());
        assert_eq!(config.entropy.uid(), Entropy::seeded(7).uid());
    }
}
