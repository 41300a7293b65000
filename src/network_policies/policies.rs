//! `Policies`: keeps those of the cluster, and says who may ask whom.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use network::{Passage, Protocol};
use sync::RwLock;
use tokio::sync::OnceCell;

use crate::judge::{Direction, PassageCase, PassageSide, PodIdentity};
use crate::policy::ReadPolicy;
use crate::verdict::{Judgement, Verdict};
use crate::verdicts::Verdicts;
use apimachinery::object::Object;
use apis::core::namespace::NAMESPACES;
use apis::core::pod::PODS;
use apis::networking::network_policy::NETWORK_POLICIES;
use apis::views::pod::Pod;
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use client_go::shared_informer::{Deleted, ResourceEventHandler};

/// The index of pods by address.
const BY_ADDRESS: &str = "podIP";

/// By namespace, then by name.
pub(crate) type Book = HashMap<String, BTreeMap<String, Arc<ReadPolicy>>>;

/// All policies of a cluster. Cloning shares them.
#[derive(Clone)]
pub struct Policies {
    context: ComponentContext,
    book: Arc<RwLock<Book>>,
    /// Who is whose, watched from the first policy on.
    who: Arc<OnceCell<Who>>,
    /// What was said lately.
    verdicts: Arc<Verdicts>,
    /// How often a policy or a namespace has become another: what was said before is not kept to.
    standing: Arc<AtomicU64>,
    /// What is said where no policy says anything.
    free: Arc<Verdict>,
}

/// Pods and namespaces.
pub(crate) struct Who {
    pub(crate) pods: Lister,
    pub(crate) namespaces: Lister,
}

/// Who is at an address, as far as the nodes know.
pub trait Residents: Send + Sync {
    /// The pod whose own address this is. Its node knows it before its status says so, and so early it may
    /// already ask.
    fn pod_at(&self, address: IpAddr) -> BoxFuture<'_, Option<Arc<Object>>>;

    /// Who is at an address that is no pod's: the namespace and the labels.
    fn well_known(&self, address: IpAddr) -> Option<(String, BTreeMap<String, String>)>;
}

impl Policies {
    /// With the informers of a component, which are begun elsewhere.
    pub fn new(context: &ComponentContext) -> Policies {
        let book = Arc::<RwLock<Book>>::default();
        let standing = Arc::<AtomicU64>::default();
        let handler = PolicyHandler { book: book.clone(), standing: standing.clone() };
        context.informers.informer(&NETWORK_POLICIES).add_handler(handler);
        Policies {
            context: context.clone(),
            book,
            who: Arc::default(),
            verdicts: Arc::default(),
            standing,
            free: Arc::new(Verdict::free()),
        }
    }

    /// What policies say of a passage: what leaves is judged as its `asker`'s, what arrives by the name in
    /// which it does.
    pub async fn judge(&self, passage: Passage, asker: IpAddr, residents: &dyn Residents) -> Arc<Verdict> {
        if self.book.read().is_empty() {
            return self.free.clone();
        }
        let who = self.who.get_or_init(|| self.look_around()).await;
        // What changes while this is judged is seen in the next one.
        let standing = self.standing.load(Ordering::Acquire);
        let (from, to) = (passage.from.ip(), passage.to.ip());
        let to_pod = who.pod(to, residents).await;
        let from_pod = who.pod(from, residents).await;
        let asker_pod = if asker == from { from_pod.clone() } else { who.pod(asker, residents).await };
        let pods = [asker_pod, from_pod, to_pod];
        if let Some(verdict) = self.verdicts.find((passage, asker), standing, &pods) {
            return verdict;
        }
        let [asker_pod, from_pod, to_pod] = &pods;
        let sides = PassageSides {
            asker: who.side(asker, asker_pod.as_deref(), residents),
            from: who.side(from, from_pod.as_deref(), residents),
            to: who.side(to, to_pod.as_deref(), residents),
        };
        let verdict = match judged(&self.book.read(), passage, &sides) {
            Judgement::Free => self.free.clone(),
            judgement => Arc::new(Verdict { judgement, from: sides.asker.shown(), to: sides.to.shown() }),
        };
        self.verdicts.keep((passage, asker), standing, pods, &verdict);
        verdict
    }

    async fn look_around(&self) -> Who {
        let pods = self.context.informers.informer(&PODS);
        pods.add_index(BY_ADDRESS, addresses);
        let namespaces = self.context.informers.informer(&NAMESPACES);
        namespaces.add_handler(NamespaceHandler(self.standing.clone()));
        self.context.informers.start(&self.context.tasks);
        pods.wait_for_sync().await;
        namespaces.wait_for_sync().await;
        Who { pods: pods.lister(), namespaces: namespaces.lister() }
    }
}

/// Who began a passage, in whose name it arrives, and whom it reaches.
pub(crate) struct PassageSides {
    pub(crate) asker: PassageSide,
    pub(crate) from: PassageSide,
    pub(crate) to: PassageSide,
}

/// What one side's policies allow the other's may still keep out.
pub(crate) fn judged(book: &Book, passage: Passage, sides: &PassageSides) -> Judgement {
    let PassageSides { asker, from, to } = sides;
    let mut allowed = vec![];
    for (direction, side, from) in [(Direction::Egress, asker, asker), (Direction::Ingress, to, from)] {
        let case = PassageCase { passage, from, to };
        let Some(namespace) = side.pod.as_ref().map(|pod| &pod.namespace) else { continue };
        let own = book.get(namespace).into_iter().flat_map(BTreeMap::values).map(|policy| &**policy);
        let key = |name: &str| format!("{namespace}/{name}");
        match case.judged(direction, own) {
            Ok(by) => allowed.extend(by.map(key)),
            Err(by) => return Judgement::KeptOut(by.into_iter().map(key).collect()),
        }
    }
    if allowed.is_empty() { Judgement::Free } else { Judgement::Allowed(allowed) }
}

impl Who {
    /// The pod that is at an address.
    pub(crate) async fn pod(&self, address: IpAddr, residents: &dyn Residents) -> Option<Arc<Object>> {
        residents.pod_at(address).await.or_else(|| self.told(address))
    }

    /// Who is at an address, where there is perhaps a pod.
    pub(crate) fn side(
        &self,
        address: IpAddr,
        pod: Option<&Object>,
        residents: &dyn Residents,
    ) -> PassageSide {
        let pod = pod.map(|object| self.identity(object)).or_else(|| {
            let (namespace, labels) = residents.well_known(address)?;
            let (namespace_labels, ports) = (self.labels(&namespace), vec![]);
            Some(PodIdentity { namespace_labels, namespace, name: String::new(), labels, ports })
        });
        PassageSide { address, pod }
    }

    /// Who says of himself that an address is his. Pods of their node's network are nobody of their own.
    fn told(&self, address: IpAddr) -> Option<Arc<Object>> {
        let pods = self.pods.by_index(BY_ADDRESS, &address.to_string());
        // An address that was given on is the one's who runs.
        pods.iter().find(|pod| !pod.is_deleting()).or(pods.first()).cloned()
    }

    fn identity(&self, object: &Object) -> PodIdentity {
        let pod = object.view::<Pod>();
        let ports = pod.spec.containers.iter().flat_map(|container| &container.ports);
        let named = ports.filter(|port| !port.name.is_empty()).map(|port| {
            let protocol = if port.protocol == "UDP" { Protocol::Udp } else { Protocol::Tcp };
            (port.name.clone(), port.container_port, protocol)
        });
        let namespace = object.metadata.namespace.clone();
        PodIdentity {
            namespace_labels: self.labels(&namespace),
            namespace,
            name: object.metadata.name.clone(),
            labels: object.metadata.labels.clone(),
            ports: named.collect(),
        }
    }

    fn labels(&self, namespace: &str) -> BTreeMap<String, String> {
        self.namespaces.get("", namespace).map(|own| own.metadata.labels.clone()).unwrap_or_default()
    }
}

fn addresses(pod: &Object) -> Vec<String> {
    let pod = pod.view::<Pod>();
    if pod.spec.host_network || matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
        return vec![];
    }
    pod.status.pod_ips.iter().map(|own| own.ip.clone()).collect()
}

struct PolicyHandler {
    book: Arc<RwLock<Book>>,
    standing: Arc<AtomicU64>,
}

impl PolicyHandler {
    fn put(&self, object: &Object) {
        let own = Arc::new(ReadPolicy::of(object));
        let namespace = object.metadata.namespace.clone();
        self.book.write().entry(namespace).or_default().insert(own.name.clone(), own);
        self.standing.fetch_add(1, Ordering::Release);
    }

    fn remove(&self, object: &Object) {
        let metadata = &object.metadata;
        let mut book = self.book.write();
        if let Some(own) = book.get_mut(&metadata.namespace) {
            own.remove(&metadata.name);
            if own.is_empty() {
                book.remove(&metadata.namespace);
            }
        }
        self.standing.fetch_add(1, Ordering::Release);
    }
}

impl ResourceEventHandler for PolicyHandler {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.put(new);
    }

    fn on_update(&self, _: &Arc<Object>, new: &Arc<Object>) {
        self.put(new);
    }

    fn on_delete(&self, last: &Deleted) {
        self.remove(last.last());
    }
}

/// Policies select namespaces by their labels.
struct NamespaceHandler(Arc<AtomicU64>);

impl ResourceEventHandler for NamespaceHandler {
    fn on_add(&self, _: &Arc<Object>, _is_initial_list: bool) {
        self.0.fetch_add(1, Ordering::Release);
    }

    fn on_update(&self, _: &Arc<Object>, _: &Arc<Object>) {
        self.0.fetch_add(1, Ordering::Release);
    }

    fn on_delete(&self, _: &Deleted) {
        self.0.fetch_add(1, Ordering::Release);
    }
}
