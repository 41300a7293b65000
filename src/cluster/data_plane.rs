//! What connects pods: who is at which address, and where Services lead. It is begun at the first connection,
//! so that a cluster without traffic pays nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::config::Config;
use super::front_door::FrontDoor;
use super::kubelet_doors::KubeletDoors;
use super::kubelet_lookup::Kubelets;
use super::pod_lines::PodLines;
use apimachinery::object::Object;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiService;
use apiserver::endpoints::routes::debug::Debugging;
use apiserver::options::ServerRunOptions;
use apiserver::webhook::PodNetwork;
use client_go::ComponentContext;
use client_go::client::Client;
use clock::Clock;
use coredns::NameServer;
use entropy::Entropy;
use flow::{Flow, TrafficSort};
use kube_proxy::{Proxier, Whereabouts};
use kubelet::kubelet::Kubelet;
use network::network::NetworkParts;
use network::resolver::DNS_PORT;
use network::{Accept, Firewall, Hosts, Network, Obstacle, Passage, Protocol, Route, Routing};
use network_policies::{Judgement, Policies, Residents, Verdict};
use pki::{Authority, Identity};

/// Who they are, as flow and logs call them, and as users: those of kubeadm and kind.
const KUBE_PROXY: (&str, &str) = ("kube-proxy", "system:kube-proxy");
const COREDNS: (&str, &str) = ("coredns", "system:serviceaccount:kube-system:coredns");
const KINDNET: (&str, &str) = ("kindnet", "system:serviceaccount:kube-system:kindnet");

/// So long a connection waits for caches, which may never be filled: whoever fills them may have lost his
/// role. Then it goes on without what is in them, and so do all others until they are filled.
const HEARD_WITHIN: Duration = Duration::from_secs(30);

/// The network of one cluster, and what it needs.
pub(crate) struct DataPlane {
    network: Network,
    lines: Arc<Lines>,
    /// The apiserver's way to pods is there for as long as this is.
    _pods: Arc<PodLines>,
}

/// What the network asks.
struct Lines {
    kubelets: Arc<Kubelets>,
    client: Client,
    clock: Clock,
    entropy: Entropy,
    /// Where the name server is.
    cluster_dns: IpAddr,
    flow: Flow,
    /// Where Services lead.
    proxier: Begun<Proxier>,
    /// Names, and what they mean.
    names: Begun<NameServer>,
    policies: Begun<Policies>,
    /// The apiserver, where it is in this process.
    front_door: OnceLock<Arc<FrontDoor>>,
    /// The ports of kubelets, where they have none on the host.
    kubelet_doors: OnceLock<Arc<KubeletDoors>>,
    is_stopped: AtomicBool,
}

/// What watches the cluster in a name of its own, once somebody needs it.
struct Begun<T> {
    who: (&'static str, &'static str),
    make: fn(&ComponentContext, &Lines) -> T,
    /// It is begun without waiting, so that whoever hangs up meanwhile loses nothing of it.
    begun: OnceLock<(ComponentContext, T)>,
    /// Set once what is watched was heard.
    heard: OnceCell<()>,
    /// Somebody has waited for that in vain.
    is_deaf: AtomicBool,
}

impl DataPlane {
    /// One that nobody has used yet; the apiserver reaches its pods by `pods`.
    pub(super) fn new(
        config: &Config,
        kubelets: Arc<Kubelets>,
        service: &ApiService,
        flow: &Flow,
        pods: &PodNetwork,
    ) -> Arc<DataPlane> {
        let Config { clock, entropy, .. } = config;
        let cluster_dns = config.apiserver.services.service_cluster_ip_range.cluster_dns();
        // Each component says for itself who it is.
        let nobody = Arc::new(UserInfo::authenticated(KUBE_PROXY.1, &[]));
        let client = Client::new(service.clone(), nobody, clock.clone(), flow.clone());
        let (clock, entropy) = (clock.clone(), entropy.clone());
        let lines = Arc::new(Lines {
            kubelets,
            client,
            clock: clock.clone(),
            entropy: entropy.clone(),
            cluster_dns,
            flow: flow.clone(),
            proxier: Begun::new(KUBE_PROXY, |context, lines| Proxier::new(context, lines.kubelets.clone())),
            names: Begun::new(COREDNS, |context, _| NameServer::new(context)),
            policies: Begun::new(KINDNET, |context, _| Policies::new(context)),
            front_door: OnceLock::new(),
            kubelet_doors: OnceLock::new(),
            is_stopped: AtomicBool::new(false),
        });
        let (hosts, routes, firewall) = (lines.clone(), lines.clone(), lines.clone());
        let network = Network::new(NetworkParts { hosts, routes, firewall, clock, entropy });
        let _pods = PodLines::new(&network, &lines.kubelets);
        pods.join(_pods.handle());
        Arc::new(DataPlane { network, lines, _pods })
    }

    /// The apiserver shows what this authority has signed, or what it was given, to whoever comes to its
    /// Service; kubelets do at their nodes' addresses, and believe whose clients it has signed.
    pub(super) fn open_doors(
        &self,
        options: &ServerRunOptions,
        shown: (Arc<Authority>, Option<Identity>),
        debugging: Debugging,
    ) {
        let Lines { kubelets, client, clock, .. } = &*self.lines;
        let at = options.services.service_cluster_ip_range.api_server();
        let doors = KubeletDoors::new(kubelets.clone(), shown.0.clone(), debugging, clock.clone());
        // There is one apiserver, and all kubelets are here.
        drop(self.lines.kubelet_doors.set(Arc::new(doors)));
        drop(self.lines.front_door.set(Arc::new(FrontDoor::new(at, shown, (client, clock)))));
    }

    pub(super) fn network(&self) -> Network {
        self.network.clone()
    }

    pub(super) fn kubelets(&self) -> Arc<Kubelets> {
        self.lines.kubelets.clone()
    }

    /// Ends all connections, and what watches.
    pub(super) fn stop(&self) {
        self.network.close();
        // Whoever begins just now sees it, or is seen.
        self.lines.is_stopped.store(true, Ordering::SeqCst);
        self.lines.proxier.stop();
        self.lines.names.stop();
        self.lines.policies.stop();
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<T> Begun<T> {
    fn new(who: (&'static str, &'static str), make: fn(&ComponentContext, &Lines) -> T) -> Begun<T> {
        Begun { who, make, begun: OnceLock::new(), heard: OnceCell::new(), is_deaf: AtomicBool::new(false) }
    }

    /// It, once it knows the cluster; none when it does not get to know it in time.
    async fn get(&self, lines: &Lines) -> Option<&T> {
        let (context, begun) = self.begun.get_or_init(|| self.begin(lines));
        if lines.is_stopped.load(Ordering::SeqCst) {
            // Nobody is told anything any more.
            context.stop();
            return Some(begun);
        }
        if self.heard.initialized() {
            return Some(begun);
        }
        let heard = self.heard.get_or_init(|| context.informers.wait_for_cache_sync());
        let is_heard = if self.is_deaf.load(Ordering::Relaxed) {
            heard.now_or_never().is_some()
        } else {
            // The ports of the host are used by somebody who does not step the clock.
            lines.clock.timeout_for_client(HEARD_WITHIN, heard).await.is_ok()
        };
        if !is_heard && !self.is_deaf.swap(true, Ordering::Relaxed) {
            let (name, user) = self.who;
            tracing::warn!(
                "{name} has not heard what it watches within {HEARD_WITHIN:?}: the network goes on without it; \
                 see whether {user} may list and watch that"
            );
        }
        is_heard.then_some(begun)
    }

    fn begin(&self, lines: &Lines) -> (ComponentContext, T) {
        let (name, user) = self.who;
        let (clock, entropy) = (lines.clock.clone(), lines.entropy.clone());
        let client = lines.client.acting_as(component(user));
        let context = ComponentContext::new(name, (name, ""), client, clock, entropy);
        let begun = (self.make)(&context, lines);
        context.informers.start(&context.tasks);
        (context, begun)
    }

    fn stop(&self) {
        self.begun.get().iter().for_each(|(context, _)| context.stop());
    }
}

/// A service account is of the groups of all such.
fn component(user: &str) -> UserInfo {
    let accounts = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
    let is_account = user.starts_with("system:serviceaccount:");
    UserInfo::authenticated(user, if is_account { &accounts } else { &[] })
}

impl Lines {
    /// Whether an address is a pod's: it leads to nobody else, whatever the Services are.
    fn is_of_pod(&self, address: IpAddr) -> bool {
        self.kubelets.at(address).is_some_and(|kubelet| !kubelet.is_own(address))
    }
}

impl Lines {
    /// A port of a node that leads to a pod (`portmap`): it leads there before policies are asked, so that
    /// they judge it. Whoever comes from another node comes in the name of that, since what leaves a node for
    /// no pod is masqueraded; on the own node a pod stays who it is.
    fn host_port(&self, passage: Passage) -> Option<Route> {
        let kubelet = self.kubelets.at(passage.to.ip()).filter(|kubelet| kubelet.is_own(passage.to.ip()))?;
        let to = kubelet.behind_host_port(passage.to, told_protocol(passage.protocol))?;
        let asker = passage.from.ip();
        let own = self.kubelets.at(asker).filter(|own| own.node_name() != kubelet.node_name());
        let masked = own.and_then(|own| Kubelets::address_of(&self.kubelets, own.node_name(), Some(asker)));
        Some(Route::To { to, from: masked.unwrap_or(asker) })
    }

    /// A kubelet has had its ports since before there were pods.
    fn kubelet_door(&self, kubelet: &Kubelet, passage: Passage) -> Option<Accept> {
        let doors = self.kubelet_doors.get().filter(|_| kubelet.is_own(passage.to.ip()))?;
        doors.at(kubelet, passage)
    }

    fn door_at(&self, address: SocketAddr) -> Option<&Arc<FrontDoor>> {
        self.front_door.get().filter(|door| door.is_at(address))
    }
}

impl Routing for Lines {
    fn route(&self, passage: Passage) -> BoxFuture<'_, Route> {
        async move {
            let is_door = passage.protocol == Protocol::Tcp && self.door_at(passage.to).is_some();
            if is_door || self.is_of_pod(passage.to.ip()) {
                return Route::Direct;
            }
            // Without it nobody is at the address of a Service, and everybody else where he is.
            let route = self.proxier.get(self).await.map_or(Route::Direct, |proxier| proxier.route(passage));
            if route == Route::Direct { self.host_port(passage).unwrap_or(route) } else { route }
        }
        .boxed()
    }
}

impl Residents for Lines {
    fn pod_at(&self, address: IpAddr) -> BoxFuture<'_, Option<Arc<Object>>> {
        let kubelet = self.kubelets.at(address);
        async move { kubelet?.pod_at(address).await }.boxed()
    }

    /// The name server is a pod of kubeadm's, as policies see it.
    fn well_known(&self, address: IpAddr) -> Option<(String, BTreeMap<String, String>)> {
        let labels = || [("k8s-app".to_owned(), "kube-dns".to_owned())].into();
        (address == self.cluster_dns).then(|| ("kube-system".to_owned(), labels()))
    }
}

impl Lines {
    /// A node always reaches its own pods, since its kubelet probes them, and everybody himself. Who is only
    /// passed on in the node's name is not the node.
    fn is_exempt(&self, to: IpAddr, asker: IpAddr) -> bool {
        asker == to || self.kubelets.at(to).is_some_and(|kubelet| kubelet.is_own(asker))
    }
}

impl Lines {
    /// For `kubarium trace` of the pods, and of the policies.
    fn remember(&self, passage: Passage, verdict: &Verdict, is_allowed: bool, by: &[String]) {
        let Passage { from, to, protocol } = passage;
        if !is_allowed {
            tracing::info!(%from, %to, ?by, "kept out by network policy");
        }
        self.flow.judged(TrafficSort {
            from: verdict.from.clone(),
            to: verdict.to.clone(),
            port: to.port(),
            protocol: told_protocol(protocol).to_owned(),
            is_allowed,
            policies: by.to_vec(),
        });
    }
}

/// As objects name it.
fn told_protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    }
}

impl Firewall for Lines {
    fn lets_through(&self, passage: Passage, asker: IpAddr) -> BoxFuture<'_, bool> {
        async move {
            if self.is_exempt(passage.to.ip(), asker) {
                return true;
            }
            let Some(policies) = self.policies.get(self).await else { return true };
            let verdict = policies.judge(passage, asker, self).await;
            let is_allowed = !matches!(verdict.judgement, Judgement::KeptOut(_));
            if let Judgement::Allowed(by) | Judgement::KeptOut(by) = &verdict.judgement {
                self.remember(passage, &verdict, is_allowed, by);
            }
            is_allowed
        }
        .boxed()
    }
}

impl Hosts for Lines {
    fn accept(&self, passage: Passage) -> BoxFuture<'_, Result<Accept, Obstacle>> {
        async move {
            let to = passage.to;
            if let Some(door) = self.door_at(to) {
                return Ok(door.accept());
            }
            if to == SocketAddr::new(self.cluster_dns, DNS_PORT) {
                let names = self.names.get(self).await.ok_or(Obstacle::Refused)?.clone();
                return Ok(Arc::new(move |io, _| names.clone().serve(io).boxed()) as Accept);
            }
            let kubelet = self.kubelets.at(to.ip()).ok_or(Obstacle::Unreachable)?;
            if let Some(door) = self.kubelet_door(&kubelet, passage) {
                return Ok(door);
            }
            let accept = kubelet.accept(to).await;
            if accept.is_err() && kubelet.is_own(to.ip()) {
                let proxier = self.proxier.get(self).await;
                let checked = proxier.and_then(|it| it.health_check(kubelet.node_name(), to.port()));
                if let Some(checked) = checked {
                    return Ok(health_check(checked));
                }
            }
            accept
        }
        .boxed()
    }

    fn reply(&self, passage: Passage, datagram: Bytes) -> BoxFuture<'_, Result<Option<Bytes>, Obstacle>> {
        async move {
            if passage.to == SocketAddr::new(self.cluster_dns, DNS_PORT) {
                return Ok(self.names.get(self).await.ok_or(Obstacle::Refused)?.answer_datagram(&datagram));
            }
            let kubelet = self.kubelets.at(passage.to.ip()).ok_or(Obstacle::Unreachable)?;
            let answer = kubelet.ask_at(passage.to, passage.from, &datagram).await?;
            Ok(answer.map(Bytes::from))
        }
        .boxed()
    }

    fn is_there(&self, address: IpAddr) -> BoxFuture<'_, bool> {
        let kubelet = self.kubelets.at(address);
        std::future::ready(kubelet.is_some_and(|kubelet| kubelet.is_there(address))).boxed()
    }

    fn address_like(&self, own: IpAddr, like: IpAddr) -> Option<IpAddr> {
        self.kubelets.at(own)?.address_like(own, like)
    }
}

impl Whereabouts for Kubelets {
    fn node_of(&self, address: IpAddr) -> Option<Arc<str>> {
        self.at(address).map(|kubelet| kubelet.node_name().into())
    }

    fn address_of(&self, node: &str, like: IpAddr) -> Option<IpAddr> {
        Kubelets::address_of(self, node, Some(like))
    }
}

/// A load balancer asks a node whether it has endpoints.
fn health_check((code, body): (u16, String)) -> Accept {
    Arc::new(move |io, _| {
        let body = body.clone();
        let answer = move |_| {
            let response = http::Response::builder().status(code).header("content-type", "application/json");
            std::future::ready(response.body(body.clone().into()).unwrap_or_default())
        };
        network::http_server::serve(io, answer).boxed()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An apiserver that never answers.
    fn silent() -> ApiService {
        ApiService::new(tower::service_fn(|_| std::future::pending()))
    }

    #[tokio::test]
    async fn who_is_never_told_anything_holds_nobody_up_for_long() {
        let clock = Clock::stepped(chrono::DateTime::from_timestamp(0, 0).unwrap());
        let config = Config::new().clock(clock.clone());
        let plane = DataPlane::new(&config, Arc::default(), &silent(), &Flow::off(), &PodNetwork::default());
        let lines = &plane.lines;
        let pod = |last| SocketAddr::from(([10, 244, 0, last], 80));
        let passage = Passage { from: pod(1), to: pod(2), protocol: Protocol::Tcp };
        let waited = lines.lets_through(passage, passage.from.ip());
        let (is_allowed, ()) = tokio::join!(waited, async { clock.advance(HEARD_WITHIN) });
        assert!(is_allowed);
        // Nobody else waits for it.
        assert_eq!(lines.lets_through(passage, passage.from.ip()).now_or_never(), Some(true));
        assert!(lines.route(passage).now_or_never().is_none(), "another that may yet be told");
        let routed = lines.route(passage);
        let (route, ()) = tokio::join!(routed, async { clock.advance(HEARD_WITHIN) });
        assert_eq!(route, Route::Direct);
        let asked = Passage { to: SocketAddr::new(lines.cluster_dns, DNS_PORT), ..passage };
        let replied = lines.reply(asked, Bytes::new());
        let (reply, ()) = tokio::join!(replied, async { clock.advance(HEARD_WITHIN) });
        assert_eq!(reply, Err(Obstacle::Refused));
    }

    #[tokio::test]
    async fn what_a_cancelled_connection_began_is_gone_on_with_and_stopped() {
        let config = Config::new();
        let plane = DataPlane::new(&config, Arc::default(), &silent(), &Flow::off(), &PodNetwork::default());
        let proxier = &plane.lines.proxier;
        assert!(proxier.get(&plane.lines).now_or_never().is_none());
        let first = proxier.begun.get().expect("it has begun").0.informers.clone();
        assert!(proxier.get(&plane.lines).now_or_never().is_none());
        let context = &proxier.begun.get().expect("it is the same").0;
        assert!(Arc::ptr_eq(&first, &context.informers));
        plane.stop();
        assert!(context.tasks.spawn("late", std::future::ready(())).is_none());
    }
}
