//! `Policies`: keeps those of the cluster, and says who may ask whom.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use network::{Passage, Protocol};
use sync::RwLock;
use tokio::sync::OnceCell;

use crate::judge::{Direction, PassageCase, PassageSide, PodIdentity};
use crate::policy::ReadPolicy;
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

/// What policies say of a passage, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What they say.
    pub judgement: Judgement,
    /// Who asks: a pod as `default/client`, or the address of whoever is none; empty where no policy says
    /// anything.
    pub from: String,
    /// Who is asked, likewise.
    pub to: String,
}

/// What policies say of a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No policy isolates either side.
    Free,
    /// Policies allow it, each as `NAMESPACE/NAME`.
    Allowed(Vec<String>),
    /// Policies keep it out, each as `NAMESPACE/NAME`.
    KeptOut(Vec<String>),
}

impl Policies {
    /// With the informers of a component, which are begun elsewhere.
    pub fn new(context: &ComponentContext) -> Policies {
        let book = Arc::<RwLock<Book>>::default();
        context.informers.informer(&NETWORK_POLICIES).add_handler(PolicyHandler(book.clone()));
        Policies { context: context.clone(), book, who: Arc::default() }
    }

    /// What policies say of a passage: what leaves is judged as its `asker`'s, what arrives by the name in
    /// which it does.
    pub async fn judge(&self, passage: Passage, asker: IpAddr, residents: &dyn Residents) -> Verdict {
        if self.book.read().is_empty() {
            return Verdict::free();
        }
        let who = self.who.get_or_init(|| self.look_around()).await;
        let to = who.side(passage.to.ip(), residents).await;
        let from = who.side(passage.from.ip(), residents).await;
        let asker = if asker == from.address { from.clone() } else { who.side(asker, residents).await };
        let sides = PassageSides { asker, from, to };
        match judged(&self.book.read(), passage, &sides) {
            Judgement::Free => Verdict::free(),
            judgement => Verdict { judgement, from: sides.asker.shown(), to: sides.to.shown() },
        }
    }

    async fn look_around(&self) -> Who {
        let pods = self.context.informers.informer(&PODS);
        pods.add_index(BY_ADDRESS, addresses);
        let namespaces = self.context.informers.informer(&NAMESPACES);
        self.context.informers.start(&self.context.tasks);
        pods.wait_for_sync().await;
        namespaces.wait_for_sync().await;
        Who { pods: pods.lister(), namespaces: namespaces.lister() }
    }
}

impl Verdict {
    fn free() -> Verdict {
        Verdict { judgement: Judgement::Free, from: String::new(), to: String::new() }
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
    pub(crate) async fn side(&self, address: IpAddr, residents: &dyn Residents) -> PassageSide {
        let object = residents.pod_at(address).await.or_else(|| self.told(address));
        let pod = object.map(|object| self.identity(&object)).or_else(|| {
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

struct PolicyHandler(Arc<RwLock<Book>>);

impl PolicyHandler {
    fn put(&self, object: &Object) {
        let own = Arc::new(ReadPolicy::of(object));
        let mut book = self.0.write();
        book.entry(object.metadata.namespace.clone()).or_default().insert(own.name.clone(), own);
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
        let metadata = &last.last().metadata;
        let mut book = self.0.write();
        if let Some(own) = book.get_mut(&metadata.namespace) {
            own.remove(&metadata.name);
            if own.is_empty() {
                book.remove(&metadata.namespace);
            }
        }
    }
}
