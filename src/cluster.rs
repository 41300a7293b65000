//! `Cluster`: the composition root. Builds one cluster from a `Config`; the only file that knows every room.
//! Next: src/apiserver/server.rs
//!
//! The order is that of a real control plane: the store, the apiserver on it, the objects that every cluster
//! starts with (applied through the API), then the components, each a client in its own name, and last the
//! port. Whatever is started here belongs to the `Cluster` and ends with it.

pub mod config;
mod config_seeing;
pub mod difference;
pub mod etcd_api;
pub mod etcd_store_error;
pub mod explore;
pub mod export;
pub mod fork;
pub mod kwok_kinds;
pub mod manifests;
pub mod snapshot;
pub mod start_error;
pub mod stock;

pub(crate) mod apart;

mod api_endpoints;
mod authenticating;
mod authentication_trust;
mod background;
mod bootstrap;
mod bootstrap_roles;
mod changing_nodes;
mod claimed_files;
mod cluster_info;
mod component_choice;
mod component_handles;
mod component_health;
mod component_pages;
mod component_ports;
mod component_zpages;
mod components;
mod condition;
mod control_plane_pods;
mod data_dir;
mod data_plane;
mod debugging;
mod earlier_keys;
pub(crate) mod elections;
mod ending;
mod etcd_store;
mod exchange_handles;
mod extenders;
mod fault_handles;
mod fault_objects;
mod fault_resources;
mod flow_handles;
mod fork_handles;
mod forked;
mod forking;
mod front_door;
mod handles;
mod identity_lease;
mod inside;
mod interceptors;
mod kubeconfig;
mod kubelet_doors;
mod kubelet_gate;
mod kubelet_lookup;
mod leading;
mod legacy_token_tracking;
mod listener;
mod listening;
mod loads;
mod look;
mod metrics;
mod metrics_images;
mod network_faults;
mod node_addresses;
mod node_changes;
mod node_handles;
mod node_objects;
mod node_register;
mod opened;
mod origin;
mod otlp;
mod otlp_endpoint;
mod page;
mod page_handles;
mod pod_lines;
mod published;
mod publishing;
mod reading;
mod ready;
mod remote_kubelets;
mod saving;
mod seeing;
mod sent_bodies;
mod sent_spans;
mod service_cidr;
mod service_families;
mod service_repair;
mod serving;
mod settle;
mod signers;
mod snapshot_handles;
mod stage_objects;
mod stages;
mod starting;
mod step_handles;
mod stepping;
mod stocked;
pub(crate) mod store_copy;
mod stored;
mod switching;
mod system_objects;
mod system_pods;
mod taken_addresses;
mod time;
mod time_handles;
mod waiting;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::task::JoinSet;

use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiService, InProcessUser};
use apis::scheme::Scheme;
use apiserver::beside::Mounted;
use apiserver::config::{ApiserverConfig, ConfigError};
use apiserver::handler_chain::build_handler_chain;
use apiserver::post_start_hooks::StartStep;
use apiserver::registry::Registry;
use apiserver::server::{self, Server, Tls};
use apiserver::webhook::ServiceResolver;
use client_go::client::Client;
use clock::Clock;
use flow::Flow;
use kubelet::container_runtime::own_listeners::OwnListeners;
use pki::{self, Authority, Identity};

pub use component_ports::ComponentPorts;
pub use components::{COMPONENTS, ComponentState, UnknownComponent};
pub use condition::{BadCondition, WaitFor};
pub use config::{Access, Components, Config, Listen};
pub use difference::SnapshotDiff;
pub use export::Export;
pub use fork::ForkError;
pub use otlp_endpoint::OtlpEndpoint;
pub use published::Publish;
pub use settle::{Settle, Unsettled};
pub use snapshot::{Snapshot, SnapshotError};
pub use start_error::StartError;
pub use stock::ExportError;
pub use time::TimeError;

use authenticating::authentication;
use components::{AtWork, Parts, RunningComponents};
use data_plane::DataPlane;
use forked::{ForkedCluster, NamedForks};
use inside::{ADMIN, ForHandles, Inside, MASTERS};
use interceptors::Interceptors;
use kubelet_lookup::Kubelets;
use manifests::Manifest;
use origin::Origin;
use publishing::Publishing;
use remote_kubelets::RemoteKubelets;
use stocked::Stock;
use stored::APISERVER;

/// One whole cluster. Dropping it ends everything that it started.
///
/// ```
/// use kubarium::kinds::{NODES, PODS};
/// use kubarium::{Cluster, Config, ListOptions};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let cluster = Cluster::start(Config::new().nodes(2)).await?;
/// let nodes = cluster.client().list(&NODES, "", &ListOptions::default()).await?;
/// assert_eq!(nodes.items.len(), 2);
///
/// cluster.stop_component("kube-scheduler")?;
/// let spec = serde_json::json!({"containers": [{"name": "c", "image": "nginx"}]});
/// let pod = serde_json::json!({"metadata": {"name": "web"}, "spec": spec});
/// let pod = cluster.client().create(&PODS, "default", pod).await?;
/// assert_eq!(pod.to_value()["status"]["phase"], "Pending");
/// cluster.stop().await;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct Cluster {
    inside: Arc<Inside>,
    server: Option<Server>,
    access: Option<Access>,
    /// Its handles over HTTP.
    _mounted: Mounted,
    listeners: OwnListeners,
    /// Where etcd's API is served.
    etcd: Vec<Server>,
    /// Where components have pages of their own.
    component_ports: Vec<(&'static str, Server)>,
    /// What is open on the host.
    publishing: Option<Publishing>,
    /// What goes on beside the requests. Dropped, it ends.
    _background: JoinSet<()>,
}

impl Cluster {
    /// Starts a cluster; when it returns, the apiserver is ready and the components are at work.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub async fn start(config: Config) -> Result<Cluster, StartError> {
        // On the heap: whoever waits for it would hold the room that all of it needs.
        Box::pin(Cluster::begin(config, None)).await
    }

    /// From an origin, or from what the config says.
    async fn begin(mut config: Config, origin: Option<Origin>) -> Result<Cluster, StartError> {
        let exposed = listener::check(&config)?;
        let enabled = config.apiserver.api_enablement.complete().map_err(|why| ConfigError(why.into()))?;
        let encryption = config.apiserver.encryption.complete().map_err(|why| ConfigError(why.into()))?;
        let serving = config.apiserver.secure_serving.complete().map_err(|why| ConfigError(why.into()))?;
        let is_new = config.data_dir.is_none() && config.snapshot.is_none();
        let Origin { kv, keys, caches, running: at_work, nodes } = Origin::or_of(origin, &mut config).await?;
        let began_at = kv.seen_revision();
        let Config { clock, entropy, apiserver: options, .. } = &config;
        let flow = if config.flow { Flow::new(clock.clone()) } else { Flow::off() };
        let scheme = Arc::new(Scheme::of(&enabled.served()));
        let storage = stored::storage(&config, &kv, &flow, &encryption, caches);
        let own = Registry::new(storage.clone(), scheme.clone(), clock.named(APISERVER), entropy.clone());
        let kubelets = Arc::new(Kubelets::default());
        let mut apiserver =
            ApiserverConfig::new(scheme.clone(), own.clone(), clock.named(APISERVER), entropy.clone());
        apiserver.authentication = authentication(&config, &keys, &apiserver)?;
        apiserver.kubelets = kubelets.clone();
        debugging::observe(&mut apiserver, &config, (&kv, &storage), &flow);
        let interceptors = Interceptors::join(&mut apiserver);
        authenticating::follow(&mut apiserver, &config, &keys)?;
        let hooks = starting::checks(&mut apiserver, &config, &kv);
        apiserver.exposed = exposed.map(|listen| listen.address);
        let component_keys = keys.for_components(apiserver.authentication.issuer.clone());
        let (beside, traffic, pods) =
            (apiserver.beside.clone(), apiserver.traffic.clone(), apiserver.pods.clone());
        let (shutdown, debugging) = (apiserver.shutdown.1.clone(), apiserver.debugging.clone());
        kubelets.reach(RemoteKubelets::new(&config, &own, &keys.authority)?);
        let service = starting::built(build_handler_chain(apiserver)?, &flow, &scheme, began_at);
        let data_plane = DataPlane::new(&config, kubelets.clone(), &service, &flow, &pods);
        data_plane.open_doors(options, (keys.authority.clone(), serving.clone()), debugging);
        let parts = Parts {
            network: data_plane.network(),
            service: service.clone(),
            scheme: scheme.clone(),
            keys: component_keys,
            clock: clock.clone(),
            entropy: entropy.clone(),
            flow: flow.clone(),
            outside: ServiceResolver::new(&own, entropy).over(&pods),
        };
        let background = background::begin(&kv, &config, &encryption);
        let inside = Arc::new(Inside {
            for_handles: ForHandles::keeping(&flow, config.keep_bodies),
            running: RunningComponents::new(&config, parts, kubelets, nodes)?,
            service,
            scheme,
            clock: clock.clone(),
            flow,
            kv,
            storage,
            keys,
            config,
            data_plane,
            interceptors,
            traffic,
            forks: NamedForks::default(),
            starter: start_fork,
            began_at,
            hooks,
            shutdown,
        });
        let mut cluster = Cluster::around(beside.mount(handles::service(&inside)), background, inside);
        match at_work {
            _ if cluster.inside.config.read_only => Box::pin(cluster.show(serving)).await?,
            Some(at_work) => Box::pin(cluster.go_on(&at_work, serving)).await?,
            None => Box::pin(cluster.set_up(&own, is_new, serving)).await?,
        }
        Ok(cluster)
    }

    /// Without a port yet.
    fn around(_mounted: Mounted, _background: JoinSet<()>, inside: Arc<Inside>) -> Cluster {
        let listeners = inside.config.listeners.clone();
        metrics::serve(&inside);
        fault_handles::connect(&inside);
        let (server, access, publishing, etcd, component_ports) = Default::default();
        Cluster {
            inside,
            server,
            access,
            _mounted,
            listeners,
            etcd,
            component_ports,
            publishing,
            _background,
        }
    }

    /// What nobody waits for begins.
    fn ready(&mut self) {
        let inside = self.inside.clone();
        starting::ready(&inside);
        let address = self.address();
        background::follow_objects(&mut self._background, &inside, address);
        inside.hooks.reach(StartStep::LooksAfterObjects);
        inside.hooks.reach(StartStep::IdentityKept);
    }

    /// What every cluster starts with, then the components, then the port.
    async fn set_up(
        &mut self,
        own: &Registry,
        is_new: bool,
        serving: Option<Identity>,
    ) -> Result<(), StartError> {
        let inside = self.inside.clone();
        let config = &inside.config;
        bootstrap::before_components(&self.client(), own).await?;
        inside.hooks.reach(StartStep::NamespacesMade);
        starting::wait_for_roles(&inside).await;
        node_changes::create_nodes(&inside, is_new).await?;
        inside.running.start_all(config).expect("its own components have names that it knows");
        leading::begin(&inside, &mut self._background);
        let ranges = config.apiserver.services.service_cluster_ip_range;
        if !is_new {
            service_cidr::keep(&self.client(), &ranges).await?;
            background::repair_stored(&mut self._background, &inside);
        }
        bootstrap::beside_components(&self.client(), ranges.api_server()).await?;
        inside.hooks.reach(StartStep::ServiceMade);
        bootstrap::by_choice(&self.client(), &inside.scheme, config, is_new).await?;
        inside.create_system_pods().await?;
        self.publish().await?;
        self.open(serving).await?;
        self.open_beside().await?;
        self.open_component_ports().await?;
        ready::wait(&self.client(), config, &inside.running.nodes.names()).await?;
        self.ready();
        self.inside.step_from_the_start().await;
        Ok(())
    }

    /// Everything is there and stays as it is.
    async fn show(&mut self, serving: Option<Identity>) -> Result<(), StartError> {
        starting::wait_for_informers(&self.inside).await;
        self.open(serving).await
    }

    /// Everything is there, and these were at work: they are again, from what their caches inherit.
    async fn go_on(&mut self, at_work: &AtWork, serving: Option<Identity>) -> Result<(), StartError> {
        let inside = self.inside.clone();
        // Custom kinds are not waited for: a fork answers at once, and who asks for one of theirs waits.
        ready::wait_for_roles(&self.client()).await;
        node_changes::heed_stored(&inside).await?;
        inside.running.start_each(at_work);
        inside.hooks.reach_all();
        self.open(serving).await?;
        self.ready();
        Ok(())
    }

    /// Takes connections, if it is to, and publishes what clients have to know of that.
    async fn open(&mut self, serving: Option<Identity>) -> Result<(), StartError> {
        let inside = self.inside.clone();
        let Config { listen: Some(listen), apiserver, .. } = &inside.config else { return Ok(()) };
        let (authority, authentication) = (&*inside.keys.authority, &apiserver.authentication);
        let client_authorities = authentication.client_authorities(authority.certificate_pem())?;
        let service = apiserver.services.service_cluster_ip_range.api_server();
        self.listen(*listen, service, (authority, serving), client_authorities).await?;
        if inside.config.read_only { Ok(()) } else { self.tell_clients().await }
    }

    /// A client in the name of an administrator (`system:masters`).
    pub fn client(&self) -> Client {
        self.inside.client()
    }

    /// The apiserver as a service: `http::Request` to `http::Response`, in the name of an administrator. A
    /// stock `kube::Client` can be made of it.
    pub fn service(&self) -> ApiService {
        let admin = InProcessUser(Arc::new(UserInfo::authenticated(ADMIN, &[MASTERS])));
        let service = self.inside.service.clone();
        ApiService::new(tower::service_fn(move |mut request: http::Request<axum::body::Body>| {
            request.extensions_mut().insert(admin.clone());
            tower::ServiceExt::oneshot(service.clone(), request)
        }))
    }

    /// A stock kube-rs client over memory.
    #[cfg(feature = "kube")]
    pub fn kube_client(&self) -> kube::Client {
        let to_ours = |request: http::Request<kube::client::Body>| request.map(axum::body::Body::new);
        kube::Client::new(tower::util::MapRequest::new(self.service(), to_ours), "default")
    }

    /// The kinds that it serves just now.
    pub fn scheme(&self) -> &Scheme {
        &self.inside.scheme
    }

    /// The time of this cluster.
    pub fn clock(&self) -> &Clock {
        &self.inside.clock
    }

    /// What happened and why.
    pub fn flow(&self) -> &Flow {
        &self.inside.flow
    }

    /// Where it listens, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::address)
    }

    /// How to reach it from outside as an administrator, if it listens.
    pub fn access(&self) -> Option<Access> {
        self.access.clone()
    }

    /// Applies a manifest as `kubectl apply` does, unknown fields refused; tells what was done, an object a
    /// line.
    ///
    /// # Errors
    /// The first thing that goes wrong; what was applied before stays.
    pub async fn apply(&self, manifest: &Manifest, tell: impl FnMut(&str)) -> Result<(), manifests::Error> {
        manifests::apply(&self.client(), &self.inside.scheme, manifest, tell).await
    }

    async fn listen(
        &mut self,
        listen: Listen,
        service_address: IpAddr,
        (authority, serving): (&Authority, Option<Identity>),
        client_authorities: Vec<String>,
    ) -> Result<(), StartError> {
        let (failed, clock) = (|error| StartError::Listen(listen.address, error), &self.inside.clock);
        let listener = server::bind(listen.address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (tls, service) = if listen.tls {
            let identity = match &serving {
                Some(given) => given.clone(),
                None => front_door::serving_identity([bound.ip(), service_address], authority, clock)?,
            };
            (
                Some(Tls { identity, client_authorities, demands_client_certificates: false }),
                self.inside.service.clone(),
            )
        } else {
            (None, self.service())
        };
        self.server = Some(Server::start_on(clock, listener, tls.as_ref(), service).map_err(failed)?);
        self.access = Some(serving::access(bound, tls.is_some(), authority, serving.as_ref(), clock)?);
        Ok(())
    }
}

/// Boxed, since what starts a cluster is within what it starts.
fn start_fork(
    config: Config,
    origin: Origin,
) -> BoxFuture<'static, Result<Box<dyn ForkedCluster>, StartError>> {
    Box::pin(async move {
        let fork: Box<dyn ForkedCluster> = Box::new(Cluster::begin(config, Some(origin)).await?);
        Ok(fork)
    })
}

impl ForkedCluster for Cluster {
    fn access(&self) -> Option<Access> {
        self.access()
    }

    fn resource_version(&self) -> u64 {
        self.inside.kv.seen_revision()
    }

    fn stock(&self) -> BoxFuture<'static, Result<Stock, Status>> {
        let inside = self.inside.clone();
        Box::pin(async move { inside.collect().await })
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin((*self).stop())
    }
}
