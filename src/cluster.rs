//! `Cluster`: the composition root. Builds one cluster from a `Config`; the only file that knows every room.
//! Next: src/apiserver/server.rs
//!
//! The order is that of a real control plane: the store, the apiserver on it, the objects that every cluster
//! starts with (applied through the API), then the components, each a client in its own name, and last the
//! port. Whatever is started here belongs to the `Cluster` and ends with it.

pub mod config;
pub mod explore;
pub mod manifests;

mod api_endpoints;
mod authentication_trust;
mod bootstrap;
mod bootstrap_roles;
mod cluster_info;
mod components;
mod condition;
mod data_dir;
mod data_plane;
mod fault_handles;
mod fault_objects;
mod handles;
mod inside;
mod interceptors;
mod kubelet_lookup;
mod listening;
mod look;
mod node_addresses;
mod ready;
mod seeing;
mod service_cidr;
mod service_families;
mod settle;
mod signers;
mod stages;
mod start_error;
mod time;
mod time_handles;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiService, InProcessUser};
use apis::scheme::Scheme;
use apiserver::authentication::{self, Authentication};
use apiserver::authorization::config::Mode;
use apiserver::beside::Mounted;
use apiserver::config::{ApiserverConfig, ConfigError};
use apiserver::handler_chain::build_handler_chain;
use apiserver::registry::Registry;
use apiserver::server::{self, Server, Tls};
use apiserver::storage::Storage;
use apiserver::storage::encryption::Encryption;
use apiserver::storage::store::Store;
use client_go::client::Client;
use clock::Clock;
use etcd::{self, Kv};
use faults::Faults;
use flow::Flow;
use kubelet::container_runtime::own_listeners::OwnListeners;
use network::Network;
use pki::{self, Authority, Identity};

pub use components::{COMPONENTS, UnknownComponent};
pub use condition::{BadCondition, WaitFor};
pub use config::{Access, Components, Config, Listen};

pub use settle::{Settle, Unsettled};
pub use start_error::StartError;
pub use time::TimeError;

use components::{Parts, Running};
use data_dir::{authority, pki_folder, store_options, takes_writes};
use data_plane::DataPlane;
use inside::{ADMIN, Inside, MASTERS, OwnTime};
use interceptors::Interceptors;
use kubelet_lookup::Kubelets;
use manifests::Manifest;
use service_families::check_families;

/// Who waits by the clock where no component does.
const APISERVER: &str = "kube-apiserver";

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
    /// What goes on beside the requests. Dropped, it ends.
    _background: JoinSet<()>,
}

impl Cluster {
    /// Starts a cluster; when it returns, the apiserver is ready and the components are at work.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub async fn start(config: Config) -> Result<Cluster, StartError> {
        let Config { clock, entropy, .. } = &config;
        let exposed = exposed(&config)?;
        check_families(&config)?;
        let flow = if config.flow { Flow::new(clock.clone()) } else { Flow::off() };
        let options = &config.apiserver;
        let runtime_config = options.api_enablement.complete().map_err(ConfigError)?;
        let encryption = options.encryption.complete().map_err(ConfigError)?;
        let serving = options.secure_serving.complete().map_err(ConfigError)?;
        let kv = Kv::open(store_options(&config), clock.clone())?;
        let authority = Arc::new(authority(&config)?);
        let scheme = Arc::new(Scheme::of(&runtime_config.served()));
        let store = Store::new(kv.clone(), clock.named(APISERVER))
            .recording(flow.clone())
            .encrypting(encryption.clone())
            .keeping_events(options.event_ttl);
        let storage = Storage::over(store, entropy.clone());
        let registry = Registry::new(storage, scheme.clone(), clock.named(APISERVER), entropy.clone());
        let own = registry.clone();
        let kubelets = Arc::new(Kubelets::default());
        let mut apiserver =
            ApiserverConfig::new(scheme.clone(), registry, clock.named(APISERVER), entropy.clone());
        apiserver.authentication = authentication(&config, &authority, &apiserver)?;
        apiserver.kubelets = kubelets.clone();
        apiserver.flow = flow.clone();
        let interceptors = Interceptors::join(&mut apiserver);
        apiserver.follow(options)?;
        apiserver.health = apiserver.health.with("etcd", takes_writes(kv.clone()), false);
        apiserver.exposed = exposed.map(|listen| listen.address);
        let token_issuer = apiserver.authentication.issuer.clone();
        let (beside, traffic) = (apiserver.beside.clone(), apiserver.traffic.clone());
        let service = build_handler_chain(apiserver)?;
        let data_plane = DataPlane::new(&config, kubelets.clone(), &service, &flow);
        let parts = Parts {
            network: data_plane.network(),
            service: service.clone(),
            scheme: scheme.clone(),
            authority: authority.clone(),
            token_issuer,
            clock: clock.clone(),
            entropy: entropy.clone(),
            flow: flow.clone(),
        };
        let running = Running::new(&config, parts, kubelets).map_err(StartError::Stages)?;
        let clock = clock.clone();
        let background = background(&kv, &encryption, &clock);
        let own_time = OwnTime::default();
        let inside =
            Inside { running, service, scheme, clock, flow, kv, data_plane, interceptors, traffic, own_time };
        let inside = Arc::new(inside);
        let _mounted = beside.mount(handles::service(&inside));
        let listeners = config.listeners.clone();
        let server = None;
        let access = None;
        let mut cluster = Cluster { inside, server, access, _mounted, listeners, _background: background };
        cluster.begin(&config, &own).await?;
        if let Some(listen) = config.listen {
            cluster.open(listen, &config, &authority, serving).await?;
        }
        ready::wait(&cluster.client(), &config).await?;
        cluster.ready(&config);
        Ok(cluster)
    }

    /// What every cluster has from the start, and its components.
    async fn begin(&self, config: &Config, own: &Registry) -> Result<(), StartError> {
        bootstrap::before_components(&self.client(), own).await?;
        ready::wait_for_roles(&self.client()).await;
        self.inside.running.start_all(config).expect("its own components have names that it knows");
        let ranges = config.apiserver.services.service_cluster_ip_range;
        if config.data_dir.is_some() {
            service_cidr::keep(&self.client(), &ranges).await?;
        }
        bootstrap::beside_components(&self.client(), ranges.api_server()).await?;
        if config.default_storage_class {
            bootstrap::default_storage_class(&self.client()).await?;
        }
        Ok(())
    }

    /// What nobody waits for begins.
    fn ready(&mut self, config: &Config) {
        self.inside.running.ready();
        if config.fault_objects {
            self._background.spawn(fault_objects::follow(self.inside.clone()));
        }
    }

    /// Takes connections, and publishes what clients have to know of that.
    async fn open(
        &mut self,
        listen: Listen,
        config: &Config,
        authority: &Authority,
        serving: Option<Identity>,
    ) -> Result<(), StartError> {
        let authentication = &config.apiserver.authentication;
        let client_authorities = authentication.client_authorities(authority.certificate_pem())?;
        let service = config.apiserver.services.service_cluster_ip_range.api_server();
        self.listen(listen, service, (authority, serving), client_authorities).await?;
        let trust = authentication_trust::data(authentication, authority.certificate_pem())?;
        authentication_trust::publish(&self.client(), trust).await?;
        if let Some(access) = self.access().filter(|_| authentication.bootstrap_tokens) {
            cluster_info::publish(&self.client(), &access).await?;
        }
        if let Some(address) = self.address().and_then(server::advertised) {
            api_endpoints::publish(&self.client(), address).await?;
        }
        Ok(())
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

    /// What the data dir had lost, if the cluster was started all the same ([`Config::recover`]).
    pub fn recovery(&self) -> Option<&etcd::Recovery> {
        self.inside.kv.recovery()
    }

    /// What connects its pods, for a program that wants to reach one, or to make it harder.
    pub fn network(&self) -> Network {
        self.inside.data_plane.network()
    }

    /// The kinds that it serves just now.
    pub fn scheme(&self) -> &Scheme {
        &self.inside.scheme
    }

    /// Writes all that is stored into a new data dir, which another cluster can be started with
    /// ([`Config::data_dir`]).
    ///
    /// # Errors
    /// What the disk says, or that there is a store already.
    pub fn keep(&self, data_dir: &Path) -> Result<(), etcd::Error> {
        self.inside.kv.image()?.restore(&data_dir.join("etcd"), &self.inside.clock)
    }

    /// The time of this cluster.
    pub fn clock(&self) -> &Clock {
        &self.inside.clock
    }

    /// What happened and why.
    pub fn flow(&self) -> &Flow {
        &self.inside.flow
    }

    /// What goes wrong on purpose.
    pub fn faults(&self) -> &Faults {
        &self.inside.interceptors.faults
    }

    /// Where it listens, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::address)
    }

    /// How to reach it from outside as an administrator, if it listens.
    pub fn access(&self) -> Option<Access> {
        self.access.clone()
    }

    /// Waits until nothing moves: no request in the chain, no undelivered event, no queue with work that is
    /// due, no busy worker, nothing of a pod that is due. What waits for time does not move.
    ///
    /// # Errors
    /// What keeps moving.
    pub async fn settled(&self) -> Result<(), Unsettled> {
        self.settle(Settle::new()).await
    }

    /// Waits until nothing moves, with a bound of one's own, and with clients in other processes.
    ///
    /// # Errors
    /// What keeps moving.
    pub async fn settle(&self, settle: Settle) -> Result<(), Unsettled> {
        self.inside.settle(&settle).await
    }

    /// Lets so much time pass on a stepped clock, from wake to wake, with a settle between: nothing sees time
    /// jump. Says how often somebody woke.
    ///
    /// # Errors
    /// On the machine's clock; and what keeps moving.
    pub async fn pass(&self, duration: Duration) -> Result<usize, TimeError> {
        self.inside.pass(duration).await
    }

    /// Waits until a condition is true, for at most so much of the cluster's time; on a stepped clock that
    /// passes meanwhile.
    ///
    /// # Errors
    /// When it does not come true, and who would wake next; what keeps moving.
    pub async fn until(&self, condition: &WaitFor, within: Duration) -> Result<(), TimeError> {
        self.inside.until(condition, within).await
    }

    /// Runs a future to its end, and on a stepped clock lets time pass to the next wake whenever neither it
    /// nor anything else moves. For what waits for the cluster, and for nobody outside of this process.
    pub async fn while_time_passes<T>(&self, future: impl Future<Output = T>) -> T {
        time::while_time_passes(&self.inside.clock, future).await
    }

    /// Applies a manifest as `kubectl apply` does, unknown fields refused; tells what was done, an object a
    /// line.
    ///
    /// # Errors
    /// The first thing that goes wrong; what was applied before stays.
    pub async fn apply(&self, manifest: &Manifest, tell: impl FnMut(&str)) -> Result<(), manifests::Error> {
        manifests::apply(&self.client(), &self.inside.scheme, manifest, tell).await
    }

    /// Stops a component: one of [`COMPONENTS`], or `kubelet/NODE`. One that is not running stays so.
    ///
    /// # Errors
    /// A name that no component has.
    pub fn stop_component(&self, name: &str) -> Result<(), UnknownComponent> {
        self.inside.running.stop(name)
    }

    /// Starts a component again. One that is running goes on.
    ///
    /// # Errors
    /// A name that no component has.
    pub fn start_component(&self, name: &str) -> Result<(), UnknownComponent> {
        self.inside.running.start(name)
    }

    /// Ends it in order: the components, then the port, then the store. Dropping a cluster ends it too, but
    /// does not wait.
    pub async fn stop(self) {
        let Cluster { inside, server, _mounted, .. } = self;
        drop(_mounted);
        inside.data_plane.stop();
        inside.interceptors.faults.clear();
        inside.running.stop_all();
        if let Some(server) = server {
            server.stop().await;
        }
        inside.kv.close().await;
    }

    async fn listen(
        &mut self,
        listen: Listen,
        service_address: IpAddr,
        (authority, serving): (&Authority, Option<Identity>),
        client_authorities: Vec<String>,
    ) -> Result<(), StartError> {
        let failed = |error| StartError::Listen(listen.address, error);
        let listener = server::bind(listen.address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (tls, service) = if listen.tls {
            let identity = match &serving {
                Some(given) => given.clone(),
                None => self.server_identity([bound.ip(), service_address], authority)?,
            };
            (Some(Tls { identity, client_authorities }), self.inside.service.clone())
        } else {
            (None, self.service())
        };
        self.server =
            Some(Server::start_on(&self.inside.clock, listener, tls.as_ref(), service).map_err(failed)?);
        self.access = Some(self.access_to(bound, tls.is_some(), authority, serving.as_ref())?);
        Ok(())
    }

    fn server_identity(&self, own: [IpAddr; 2], authority: &Authority) -> Result<Identity, pki::Error> {
        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        for address in own.into_iter().filter(|address| !address.is_unspecified()) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        authority.server(&names, &addresses, self.inside.clock.now())
    }

    fn access_to(
        &self,
        bound: SocketAddr,
        tls: bool,
        authority: &Authority,
        serving: Option<&Identity>,
    ) -> Result<Access, StartError> {
        let reachable = match bound.ip() {
            ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bound.port()),
            _ => bound,
        };
        if !tls {
            let server = format!("http://{reachable}");
            return Ok(Access { server, authority_pem: None, identity: None });
        }
        let identity = authority.client(ADMIN, MASTERS, self.inside.clock.now())?;
        // Who gives a certificate has signed it, or names those who have after it.
        let trusted = serving.map_or(authority.certificate_pem(), |serving| &serving.certificate_pem);
        let authority_pem = Some(trusted.to_owned());
        Ok(Access { server: format!("https://{reachable}"), authority_pem, identity: Some(identity) })
    }
}

/// What goes on beside the requests.
fn background(kv: &Kv, encryption: &Encryption, clock: &Clock) -> JoinSet<()> {
    let mut background = JoinSet::new();
    background.spawn(clock.tracked(etcd::compactor(kv, etcd::COMPACTION_INTERVAL)));
    encryption.follow(clock).map(|following| background.spawn(clock.tracked(following)));
    background
}

/// Where it can be reached from outside of this machine, if it can: never without TLS.
fn exposed(config: &Config) -> Result<Option<Listen>, StartError> {
    let exposed = config.listen.filter(|listen| !listen.address.ip().is_loopback());
    match exposed {
        Some(Listen { address, tls: false }) => Err(StartError::Exposed(address)),
        exposed => Ok(exposed),
    }
}

fn authentication(
    config: &Config,
    authority: &Authority,
    apiserver: &ApiserverConfig,
) -> Result<Authentication, StartError> {
    let signing_key_pem = match &config.data_dir {
        Some(dir) => pki::load_signing_key(&pki_folder(dir))?,
        None => pki::generate_signing_key()?,
    };
    let parts = authentication::Parts {
        registry: &apiserver.registry,
        clock: &apiserver.clock,
        entropy: &apiserver.entropy,
        authority_pem: authority.certificate_pem(),
        signing_key_pem: &signing_key_pem,
    };
    let mut flags = config.apiserver.authentication.clone();
    // Upstream's ApplyAuthorization: nobody in particular may not do everything.
    let allows_all = config.apiserver.authorization.modes().contains(&Mode::AlwaysAllow);
    if flags.anonymous.unwrap_or(true) && allows_all {
        tracing::warn!("AnonymousAuth is not allowed with the AlwaysAllow authorizer: it is off");
        flags.anonymous = Some(false);
    }
    Ok(Authentication::new(&flags, &parts)?)
}
