//! What a cluster is made from, and what is told of it.

use std::net::SocketAddr;
use std::path::PathBuf;

use apiserver::options::ServerRunOptions;
use clock::Clock;
use controllers::options::ControllerManagerOptions;
use entropy::Entropy;
use pki::Identity;

/// What a cluster is made from. The default is a cluster for a test: one node, in memory, no port, no file.
#[derive(Clone, Debug)]
pub struct Config {
    /// Simulated nodes, `node-1` and on.
    pub nodes: u32,
    /// Pods that a node takes (`status.capacity.pods`).
    pub pods_per_node: u32,
    /// Where everything is kept; without, it ends with the cluster.
    pub data_dir: Option<PathBuf>,
    /// etcd's `--unsafe-no-fsync`: what is acknowledged survives the process, but no power cut. Only for a
    /// `data_dir`.
    pub unsafe_no_fsync: bool,
    /// Goes on with what is there if the `data_dir` has lost something that was acknowledged, instead of
    /// refusing to start; [`super::Cluster::recovery`] says what is gone.
    pub recover: bool,
    /// A port to listen on; without, the cluster is reached through its service alone.
    pub listen: Option<Listen>,
    /// A folder of stages beside the built-in ones.
    pub stages: Option<PathBuf>,
    /// The time that all components share.
    pub clock: Clock,
    /// The numbers that all components draw.
    pub entropy: Entropy,
    /// Whether the flow record is kept.
    pub flow: bool,
    /// What kube-apiserver's flags say.
    pub apiserver: ServerRunOptions,
    /// What kube-controller-manager's flags say.
    pub controller_manager: ControllerManagerOptions,
    /// The components that run from the start; see [`super::COMPONENTS`].
    pub components: Components,
    /// Whether there is a class of volumes that claims get which name none: `standard`, of simulated disks.
    pub default_storage_class: bool,
}

/// Which components run from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components {
    /// kube-controller-manager
    pub controllers: bool,
    /// kube-scheduler
    pub scheduler: bool,
    /// The kubelets
    pub kubelets: bool,
}

impl Components {
    /// All: a whole cluster.
    pub const ALL: Components = Components { controllers: true, scheduler: true, kubelets: true };
    /// None: an apiserver alone, as envtest has it.
    pub const NONE: Components = Components { controllers: false, scheduler: false, kubelets: false };
}

/// Where and how to listen.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// Port 0 takes a free one.
    pub address: SocketAddr,
    /// Without TLS everybody who reaches the port is an administrator: only for loopback.
    pub tls: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            nodes: 1,
            pods_per_node: 110,
            data_dir: None,
            unsafe_no_fsync: false,
            recover: false,
            listen: None,
            stages: None,
            clock: Clock::real(),
            entropy: Entropy::from_system(),
            flow: true,
            apiserver: ServerRunOptions::default(),
            controller_manager: ControllerManagerOptions::default(),
            components: Components::ALL,
            default_storage_class: false,
        }
    }
}

/// How to reach a cluster from outside: what a kubeconfig holds.
#[derive(Clone)]
pub struct Access {
    /// As `https://127.0.0.1:40123`.
    pub server: String,
    /// Whom to trust.
    pub authority_pem: Option<String>,
    /// An administrator.
    pub identity: Option<Identity>,
}
