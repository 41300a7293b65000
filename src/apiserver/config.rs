//! What an apiserver is made of (`controlplane.Config`).

use std::net::SocketAddr;
use std::sync::Arc;

use super::admission::AdmissionOptions;
use super::admission::own::OwnAdmission;
use super::aggregator::{InProcessServers, ProxyIdentity};
use super::audit::AuditConfig;
use super::authentication::Authentication;
use super::authorization::config::AuthorizationOptions;
use super::beside::Beside;
use super::endpoints::routes::debug::Debugging;
use super::endpoints::routes::healthz::HealthChecks;
use super::endpoints::routes::version::VersionInfo;
use super::endpoints::routes::zpages::ShownFlags;
use super::filters::browsers::BrowserConfig;
use super::filters::interceptor::Interceptor;
use super::flow_control::config::FlowControlOptions;
use super::kubelet_client::KubeletLookup;
use super::options::ServerRunOptions;
use super::post_start_hooks::PostStartHooks;
use super::registry::Registry;
use super::shutdown::{Shutdown, ShutdownOptions};
use super::traffic::Traffic;
use super::webhook::PodNetwork;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::schema::Schemas;
use apis::scheme::Scheme;
use clock::Clock;
use entropy::Entropy;
use flow::Flow;

/// The parts that `cluster` hands to the apiserver.
pub struct ApiserverConfig {
    /// The kinds that are served.
    pub scheme: Arc<Scheme>,
    /// Over the store.
    pub registry: Registry,
    /// The cluster's clock.
    pub clock: Clock,
    /// Draws audit ids and names of token volumes.
    pub entropy: Entropy,
    /// The schemas of built-in kinds.
    pub schemas: Arc<Schemas>,
    /// How users prove who they are.
    pub authentication: Authentication,
    /// Who may do what.
    pub authorization: AuthorizationOptions,
    /// Whom to ask for logs; `Arc::new(())` knows nobody.
    pub kubelets: Arc<dyn KubeletLookup>,
    /// The cluster's causal record.
    pub flow: Flow,
    /// What is told in the audit log.
    pub audit: AuditConfig,
    /// What `/version` says.
    pub version: VersionInfo,
    /// What `/healthz`, `/livez` and `/readyz` ask, beside `ping`.
    pub health: HealthChecks,
    /// How far the start has come; each hook is a check of its own.
    pub post_start_hooks: PostStartHooks,
    /// How it ends, and how far that has come.
    pub shutdown: (ShutdownOptions, Shutdown),
    /// Which admission plugins run, and what each is told.
    pub admission: AdmissionOptions,
    /// Admission plugins of the user's.
    pub own_admission: OwnAdmission,
    /// What `/flagz` shows; without, there is none.
    pub flags: Option<ShownFlags>,
    /// What `/debug` shows.
    pub debugging: Debugging,
    /// `--feature-gates`
    pub feature_gates: FeatureGates,
    /// How many requests are worked on at once.
    pub flow_control: FlowControlOptions,
    /// What browsers are told.
    pub browsers: BrowserConfig,
    /// What aggregated servers are shown.
    pub proxy_identity: ProxyIdentity,
    /// Where pods behind Services are reached: by webhooks' clients and the aggregator.
    pub pods: PodNetwork,
    /// Servers of other APIs in this process, which APIServices name.
    pub in_process: InProcessServers,
    /// Who else answers, below a path that is not the API's.
    pub beside: Beside,
    /// Who sees the requests of known users, whether they are allowed or not.
    pub witness: Option<Arc<dyn Interceptor>>,
    /// Who may do something else with requests that are allowed than to serve them.
    pub interceptor: Option<Arc<dyn Interceptor>>,
    /// Who asks for what just now.
    pub traffic: Traffic,
    /// Where strangers will reach it, if they will: then it is none that lets them do everything.
    pub exposed: Option<SocketAddr>,
}

/// Flags or files that make no server. The text says what is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl ApiserverConfig {
    /// Takes over the options and the user's own plugins, but for who may come in: that needs keys, which the
    /// options do not have.
    ///
    /// # Errors
    /// What is wrong with them, or with a file that they name.
    pub fn follow(&mut self, options: &ServerRunOptions, own: &OwnAdmission) -> Result<(), ConfigError> {
        self.authorization = options.authorization.clone();
        self.admission = options.admission.complete().map_err(|why| ConfigError(why.into()))?;
        self.own_admission = own.clone();
        self.audit = options.audit.complete().map_err(|why| ConfigError(why.into()))?;
        self.feature_gates = options.features.gates.clone();
        let shown = options.clone();
        self.flags = Some(Arc::new(move || shown.flags()));
        self.registry.set_feature_gates(options.features.gates.clone());
        self.registry.set_service_options(options.services);
        self.debugging.options = options.debugging;
        self.flow_control = options.flow_control;
        self.shutdown.0 = options.shutdown;
        self.browsers = options.browsers.complete().map_err(|why| ConfigError(why.into()))?;
        self.proxy_identity = options.proxy_client.complete().map_err(|why| ConfigError(why.into()))?;
        Ok(())
    }

    /// With defaults for everything that is not asked for here.
    pub fn new(scheme: Arc<Scheme>, registry: Registry, clock: Clock, entropy: Entropy) -> ApiserverConfig {
        let authentication = Authentication::in_process(&clock);
        let ServerRunOptions { authorization, admission, flow_control, shutdown, .. } =
            ServerRunOptions::default();
        ApiserverConfig {
            scheme,
            registry,
            clock,
            entropy,
            schemas: Schemas::builtin(),
            authentication,
            authorization,
            kubelets: Arc::new(()),
            flow: Flow::off(),
            audit: AuditConfig::default(),
            version: VersionInfo::default(),
            health: HealthChecks::default(),
            post_start_hooks: PostStartHooks::default(),
            shutdown: (shutdown, Shutdown::default()),
            admission,
            own_admission: OwnAdmission::default(),
            flags: None,
            debugging: Debugging::default(),
            feature_gates: FeatureGates::default(),
            flow_control,
            browsers: BrowserConfig::default(),
            proxy_identity: ProxyIdentity::default(),
            pods: PodNetwork::default(),
            in_process: InProcessServers::default(),
            beside: Beside::default(),
            witness: None,
            interceptor: None,
            traffic: Traffic::default(),
            exposed: None,
        }
    }
}
