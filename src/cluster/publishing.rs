//! Opens ports of Services on the host, for those who ask for it (`--publish`): whoever connects there comes
//! in as from outside of the cluster, at a port of a node or at a load balancer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

use super::kubelet_lookup::Kubelets;
use super::published::{Publish, PublishedPorts, PublishedTarget};
use super::start_error::StartError;
use apimachinery::object::Object;
use apimachinery::user::UserInfo;
use apis::core::service::SERVICES;
use apis::views::service::{Service, ServicePort};
use client_go::ComponentContext;
use client_go::client::Client;
use client_go::lister::Lister;
use client_go::shared_informer::{Deleted, ResourceEventHandler};
use clock::Clock;
use entropy::Entropy;
use network::Network;

/// So many connections from the host may be open at once, at all ports together; one more is hung up on.
pub(super) const MAX_PUBLISHED_CONNECTIONS: usize = 1_000;
/// So many ports are opened for `nodeports` and `loadbalancers`; Services beyond are told so in an Event.
const MAX_PUBLISHED_PORTS: usize = 1_000;
/// Who is on the other side of the nodes' network: the host, as docker has it.
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 18, 0, 1));
const HOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfc00, 0xf853, 0xccd, 0xe793, 0, 0, 0, 1));
/// Until somebody has given back a descriptor, when there are no more.
const RETRY: Duration = Duration::from_millis(50);
const COMPONENT: &str = "kubarium-publish";

/// What is open. Dropped, it is closed, with its connections.
pub(super) struct Publishing {
    /// What was asked for by its number, and where that leads.
    fixed: Vec<(SocketAddr, String)>,
    doors: Vec<Door>,
    context: Option<ComponentContext>,
}

/// What publishing stands on.
pub(super) struct PublishingParts {
    pub(super) network: Network,
    pub(super) kubelets: Arc<Kubelets>,
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
}

/// An address that two Services want, and the one that does not get it.
type TakenPort = (SocketAddr, Arc<Object>);

impl Publishing {
    /// Opens what is asked for by its number, and whatever else comes from now on.
    ///
    /// # Errors
    /// That a port is taken, or may not be.
    pub(super) async fn begin(wishes: &[Publish], parts: PublishingParts) -> Result<Publishing, StartError> {
        let mut bound = vec![];
        for wish in wishes {
            let Some((address, target)) = wish.fixed() else { continue };
            let failed = |error| StartError::Publish(wish.to_string(), address, error);
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            bound.push((listener.local_addr().map_err(failed)?, listener, target.clone()));
        }
        let context = needs_services(wishes).then(|| parts.context());
        let services = context.as_ref().map(|context| context.informers.informer(&SERVICES).lister());
        let PublishingParts { network, kubelets, clock, .. } = parts;
        let places = Arc::new(Semaphore::new(MAX_PUBLISHED_CONNECTIONS));
        let ways = Arc::new(Ways { network, kubelets, clock, services, places });
        if let Some(context) = &context {
            follow(context, wishes, &ways);
        }
        let fixed = bound.iter().map(|(address, _, target)| (*address, target.to_string())).collect();
        let door = |(_, listener, target)| Door::open(listener, target, ways.clone());
        Ok(Publishing { fixed, doors: bound.into_iter().map(door).collect(), context })
    }

    /// What was asked for by its number, and where that leads.
    pub(super) fn fixed(&self) -> &[(SocketAddr, String)] {
        &self.fixed
    }
}

impl Publishing {
    /// Closes what is open; when it returns, the ports that were asked for by their numbers are free.
    pub(super) async fn close(mut self) {
        for door in std::mem::take(&mut self.doors) {
            door.close().await;
        }
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.context.iter().for_each(ComponentContext::stop);
    }
}

impl PublishingParts {
    /// It knows of Services what the proxy of every node does.
    fn context(&self) -> ComponentContext {
        let client = self.client.acting_as(UserInfo::authenticated("system:kube-proxy", &[]));
        ComponentContext::new(COMPONENT, (COMPONENT, ""), client, self.clock.clone(), self.entropy.clone())
    }
}

fn needs_services(wishes: &[Publish]) -> bool {
    wishes.iter().any(|wish| match &wish.what {
        PublishedPorts::One(_, target) => target.is_balancer(),
        _ => true,
    })
}

/// Opens and closes as Services come and go.
fn follow(context: &ComponentContext, wishes: &[Publish], ways: &Arc<Ways>) {
    let changed = Arc::new(Notify::new());
    context.informers.informer(&SERVICES).add_handler(ChangeHandler(changed.clone()));
    let whole = |wish: &Publish| match wish.what {
        PublishedPorts::NodePorts => Some((wish.address, false)),
        PublishedPorts::LoadBalancers => Some((wish.address, true)),
        PublishedPorts::One(..) => None,
    };
    let wanted: Vec<(IpAddr, bool)> = wishes.iter().filter_map(whole).collect();
    if !wanted.is_empty() {
        let follower = PublishedFollower { context: context.clone(), ways: ways.clone(), wanted };
        context.tasks.spawn("publish", follower.run(changed));
    }
    context.informers.start(&context.tasks);
}

struct ChangeHandler(Arc<Notify>);

impl ResourceEventHandler for ChangeHandler {
    fn on_add(&self, _: &Arc<Object>, _is_initial_list: bool) {
        self.0.notify_one();
    }

    fn on_update(&self, _: &Arc<Object>, _: &Arc<Object>) {
        self.0.notify_one();
    }

    fn on_delete(&self, _: &Deleted) {
        self.0.notify_one();
    }
}

/// Keeps open what all Services of a kind have.
struct PublishedFollower {
    context: ComponentContext,
    ways: Arc<Ways>,
    /// At which address; and whether load balancers, or else ports of nodes.
    wanted: Vec<(IpAddr, bool)>,
}

/// What should be open at an address.
struct Wished {
    service: Arc<Object>,
    target: PublishedTarget,
}

impl PublishedFollower {
    async fn run(self, changed: Arc<Notify>) {
        let mut open: BTreeMap<SocketAddr, (PublishedTarget, Door)> = BTreeMap::new();
        let mut told: BTreeSet<(SocketAddr, String)> = BTreeSet::new();
        loop {
            let (wished, crossed) = self.wished();
            // First what goes, since what comes may want its port.
            open.retain(|at, (target, _)| wished.get(at).is_some_and(|wish| wish.target == *target));
            told.retain(|(at, key)| {
                wished.get(at).is_some_and(|wish| wish.service.key() == *key)
                    || crossed.iter().any(|(other, service)| other == at && service.key() == *key)
            });
            for (at, wish) in wished.iter().filter(|(at, _)| !open.contains_key(at)).collect::<Vec<_>>() {
                match self.open(*at, wish, open.len()).await {
                    Ok(door) => drop(open.insert(*at, (wish.target.clone(), door))),
                    Err(why) => self.complain(&mut told, *at, &wish.service, &why),
                }
            }
            for (at, service) in &crossed {
                self.complain(&mut told, *at, service, "another Service has that port");
            }
            changed.notified().await;
        }
    }

    async fn open(&self, at: SocketAddr, wish: &Wished, count: usize) -> Result<Door, String> {
        if count >= MAX_PUBLISHED_PORTS {
            return Err(format!("{MAX_PUBLISHED_PORTS} ports are open already"));
        }
        let Wished { service, target } = wish;
        let listener = TcpListener::bind(at).await.map_err(|error| error.to_string())?;
        let message = format!("Port {target} is open at {at}");
        tracing::info!(service = service.key(), %at, %target, "published");
        self.context.recorder.event((&SERVICES, &**service), "Normal", "Published", message);
        Ok(Door::open(listener, target.clone(), self.ways.clone()))
    }

    /// Once for each port of a Service. It is tried again when Services change.
    fn complain(
        &self,
        told: &mut BTreeSet<(SocketAddr, String)>,
        at: SocketAddr,
        service: &Arc<Object>,
        why: &str,
    ) {
        if told.insert((at, service.key())) {
            let message = format!("Cannot open {at}: {why}; --publish PORT:TARGET chooses another port");
            tracing::warn!(service = service.key(), "{message}");
            self.context.recorder.event((&SERVICES, &**service), "Warning", "PublishFailed", message);
        }
    }

    /// By address; and those who want what another has, who comes before them by namespace and name.
    fn wished(&self) -> (BTreeMap<SocketAddr, Wished>, Vec<TakenPort>) {
        let mut wished: BTreeMap<SocketAddr, Wished> = BTreeMap::new();
        let mut crossed = vec![];
        for service in self.ways.all_services() {
            let view = service.view::<Service>();
            for (address, balancer) in &self.wanted {
                for (port, target) in ports(&view, &service, *balancer) {
                    let at = SocketAddr::new(*address, port);
                    let wish = Wished { service: service.clone(), target };
                    match wished.get(&at) {
                        Some(other) if other.service.key() == service.key() => {}
                        Some(_) => crossed.push((at, service.clone())),
                        None => drop(wished.insert(at, wish)),
                    }
                }
            }
        }
        (wished, crossed)
    }
}

/// The ports of a Service that are opened, each with where it leads; of TCP alone.
fn ports(view: &Service, service: &Object, is_balancer: bool) -> Vec<(u16, PublishedTarget)> {
    let spec = &view.spec;
    let is_wanted = if is_balancer {
        spec.service_type == "LoadBalancer"
    } else {
        matches!(spec.service_type.as_str(), "NodePort" | "LoadBalancer")
    };
    let tcp = spec.ports.iter().filter(|port| is_wanted && port.is_tcp());
    let own = |port: &ServicePort| {
        if is_balancer {
            let number = u16::try_from(port.port).unwrap_or_default();
            (number, PublishedTarget::Service(service.key(), number))
        } else {
            (port.node_port, PublishedTarget::NodePort(None, port.node_port))
        }
    };
    tcp.map(own).filter(|(port, _)| *port != 0).collect()
}

/// A port of the host that is open. Dropped, it is closed, with its connections.
struct Door(JoinHandle<()>);

impl Door {
    fn open(listener: TcpListener, target: PublishedTarget, ways: Arc<Ways>) -> Door {
        Door(ways.clock.clone().spawn(attend(listener, target, ways)))
    }
}

impl Door {
    async fn close(mut self) {
        self.0.abort();
        // It was told to end.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn attend(listener: TcpListener, target: PublishedTarget, ways: Arc<Ways>) {
    let mut open = JoinSet::new();
    let real = Clock::real();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                while open.try_join_next().is_some() {}
                // There may be no place: then it is hung up on.
                if let Ok(place) = ways.places.clone().try_acquire_owned() {
                    let passing = ways.clone().pass(stream, target.clone(), place);
                    open.spawn(ways.clock.tracked(passing));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for a Service");
                real.sleep(RETRY).await;
            }
        }
    }
}

/// How a connection from the host finds its way.
struct Ways {
    network: Network,
    kubelets: Arc<Kubelets>,
    clock: Clock,
    /// None where nobody needs them.
    services: Option<Lister>,
    places: Arc<Semaphore>,
}

impl Ways {
    /// Hands on what both sides say. Where nobody answers it is hung up, as docker's proxy does.
    async fn pass(self: Arc<Ways>, mut host: TcpStream, target: PublishedTarget, _: OwnedSemaphorePermit) {
        let Some(to) = self.address(&target) else {
            tracing::debug!(%target, "nobody is where a published port leads");
            return;
        };
        let from = if to.is_ipv4() { HOST } else { HOST_V6 };
        let waiting = host_hangs_up(&host);
        let connected = tokio::select! {
            connected = self.network.connect(from, to) => connected,
            () = waiting => return,
        };
        match connected {
            Ok(mut pod) => drop(copy_bidirectional(&mut host, &mut pod).await),
            Err(refusal) => tracing::debug!(%to, ?refusal, "nobody answers where a published port leads"),
        }
    }

    fn address(&self, target: &PublishedTarget) -> Option<SocketAddr> {
        match target {
            PublishedTarget::NodePort(node, port) => {
                let address = match node {
                    Some(node) => self.kubelets.address_of(node, None),
                    None => self.kubelets.first_address(),
                };
                Some(SocketAddr::new(address?, *port))
            }
            PublishedTarget::LoadBalancer(port) => {
                let services = self.all_services();
                services.iter().find_map(|service| self.balancer(&service.view(), *port))
            }
            PublishedTarget::Service(key, port) => {
                let service = self.services.as_ref()?.get_by_key(key)?;
                self.balancer(&service.view(), *port)
            }
        }
    }

    /// The address of a load balancer; of one that has none the port of a node, to which it would send.
    fn balancer(&self, service: &Service, port: u16) -> Option<SocketAddr> {
        let is_it = |own: &&ServicePort| own.port == i64::from(port) && own.is_tcp();
        let own = service.spec.ports.iter().find(is_it)?;
        if service.spec.service_type != "LoadBalancer" {
            return None;
        }
        match service.balancer_address() {
            Some(address) => Some(SocketAddr::new(address, port)),
            None if own.node_port == 0 => None,
            None => Some(SocketAddr::new(self.kubelets.first_address()?, own.node_port)),
        }
    }

    fn all_services(&self) -> Vec<Arc<Object>> {
        self.services.as_ref().map(Lister::all).unwrap_or_default()
    }
}

/// Whoever has gone while nobody answers is not waited for.
async fn host_hangs_up(host: &TcpStream) {
    let mut byte = [0];
    if let Ok(1..) = host.peek(&mut byte).await {
        std::future::pending::<()>().await;
    }
}
