//! What a cluster is made from, and what is told of it.

use std::net::SocketAddr;
use std::path::PathBuf;

use apimachinery::feature_gates::FeatureGates;
use apis::networking::service_ranges::ServiceRanges;
use apis::runtime_config::RuntimeConfig;
use apiserver::admission::AdmissionConfig;
use apiserver::audit::AuditConfig;
use apiserver::authentication::AuthenticationConfig;
use apiserver::authorization::config::AuthorizationConfig;
use apiserver::filters::browsers::BrowserConfig;
use apiserver::flow_control::config::FlowControlConfig;
use apiserver::storage::encryption::Encryption;
use clock::Clock;
use controllers::selection::Selection;
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
    /// Who may do what.
    pub authorization: AuthorizationConfig,
    /// Whether the flow record is kept.
    pub flow: bool,
    /// How users prove who they are.
    pub authentication: AuthenticationConfig,
    /// Which APIs are served.
    pub runtime_config: RuntimeConfig,
    /// The components that run from the start; see [`super::COMPONENTS`].
    pub components: Components,
    /// Which of the controllers run, when they do (`--controllers`).
    pub controllers: Selection,
    /// The ranges that Services take their addresses from (`--service-cluster-ip-range`). A data dir that was
    /// made with other ones keeps them.
    pub service_cluster_ip_range: ServiceRanges,
    /// Which admission plugins run, and what each is told.
    pub admission: AdmissionConfig,
    /// What is told in the audit log.
    pub audit: AuditConfig,
    /// Whether there is a class of volumes that claims get which name none: `standard`, of simulated disks.
    pub default_storage_class: bool,
    /// Which resources are encrypted in the store.
    pub encryption: Encryption,
    /// `--feature-gates`
    pub feature_gates: FeatureGates,
    /// How many requests are worked on at once.
    pub flow_control: FlowControlConfig,
    /// What browsers are told.
    pub browsers: BrowserConfig,
    /// The certificate and the key that aggregated servers are shown (`--proxy-client-cert-file`,
    /// `--proxy-client-key-file`).
    pub proxy_client: Option<[PathBuf; 2]>,
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
            authorization: AuthorizationConfig::default(),
            flow: true,
            authentication: AuthenticationConfig::default(),
            runtime_config: RuntimeConfig::default(),
            components: Components::ALL,
            controllers: Selection::default(),
            service_cluster_ip_range: ServiceRanges::default(),
            admission: AdmissionConfig::default(),
            audit: AuditConfig::default(),
            default_storage_class: false,
            encryption: Encryption::default(),
            feature_gates: FeatureGates::default(),
            flow_control: FlowControlConfig::default(),
            browsers: BrowserConfig::default(),
            proxy_client: None,
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
