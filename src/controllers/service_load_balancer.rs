//! Load balancers' addresses: what a cloud, or MetalLB, gives Services of type `LoadBalancer`
//! (`cloud-provider/controllers/service`).
//!
//! It runs with `--load-balancer-range` alone. A Service keeps its address until it is deleted or of another
//! type; one that names a `loadBalancerClass` is somebody else's.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::load_balancer_ranges::LoadBalancerRanges;
use super::status::update_status;
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::core::service::SERVICES;
use apis::networking::ip_range::IpRange;
use apis::tree::{is_set, items, text, texts};
use client_go::ComponentContext;
use client_go::lister::Lister;
use sync::Mutex;

/// What keeps a Service until its load balancer is gone (`LoadBalancerCleanupFinalizer`).
const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";

/// Gives addresses of one range, or of one of each family.
pub(crate) struct ServiceLoadBalancerController {
    services: Lister,
    ranges: LoadBalancerRanges,
    /// Who has which addresses: caches hear late of what was given. Bound: one of each family for each
    /// Service.
    given: Mutex<BTreeMap<Key, Vec<IpAddr>>>,
}

impl ServiceLoadBalancerController {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext, ranges: LoadBalancerRanges) -> ServiceLoadBalancerController {
        let services = ctx.informers.informer(&SERVICES).lister();
        ServiceLoadBalancerController { services, ranges, given: Mutex::default() }
    }

    /// Remembers addresses for a Service, one of each of its families of which there is a range, those that
    /// it has where they will do.
    fn choose(&self, key: &Key, tree: &Value) -> Result<Vec<IpAddr>, String> {
        let ranges = self.ranges.of_families(&texts(tree, "spec.ipFamilies"));
        if ranges.is_empty() {
            let families = texts(tree, "spec.ipFamilies").join(" and ");
            return Err(format!("--load-balancer-range {} has no {families} addresses", self.ranges));
        }
        let taken = self.taken_by_others(key);
        let wanted = match text(tree, "spec.loadBalancerIP") {
            "" => None,
            wanted => Some(self.named(wanted, &taken)?),
        };
        let present = self.present(tree);
        let mut chosen = vec![];
        for range in ranges {
            let is_free = |address: &&IpAddr| range.contains(**address) && !taken.contains_key(*address);
            let own = wanted.iter().chain(&present).find(is_free).copied();
            let address = own.or_else(|| lowest(range, &taken)).ok_or_else(|| {
                format!(
                    "no address of --load-balancer-range {range} is free; delete a Service, or choose a larger \
                     range"
                )
            })?;
            chosen.push(address);
        }
        self.given.lock().insert(key.clone(), chosen.clone());
        Ok(chosen)
    }

    /// What `spec.loadBalancerIP` asks for.
    fn named(&self, wanted: &str, taken: &BTreeMap<IpAddr, Key>) -> Result<IpAddr, String> {
        let address = wanted.parse().ok().filter(|address| self.ranges.contains(*address));
        let address = address.ok_or_else(|| {
            format!("loadBalancerIP {wanted} is not in --load-balancer-range {}", self.ranges)
        })?;
        match taken.get(&address) {
            Some(owner) => Err(format!("loadBalancerIP {wanted} is already that of Service {owner}")),
            None => Ok(address),
        }
    }

    /// The addresses of the ranges that a Service says it has.
    fn present(&self, tree: &Value) -> Vec<IpAddr> {
        let ingress = items(tree, "status.loadBalancer.ingress").iter();
        let addresses = ingress.filter_map(|ingress| text(ingress, "ip").parse().ok());
        addresses.filter(|address| self.ranges.contains(*address)).collect()
    }

    fn taken_by_others(&self, key: &Key) -> BTreeMap<IpAddr, Key> {
        let given = self.given.lock();
        let all = self.services.all();
        let said = all.iter().filter(|service| is_ours(service) && !given.contains_key(&service.key()));
        let said = said.map(|service| (service.key(), self.present(&service.to_value())));
        let known = given.iter().map(|(key, addresses)| (key.clone(), addresses.clone()));
        let others = said.chain(known).filter(|(owner, _)| owner != key);
        others.flat_map(|(owner, all)| all.into_iter().map(move |one| (one, owner.clone()))).collect()
    }

    /// Who still waits for an address may have this one's.
    fn give_back(&self, ctx: &Reconcile, key: &Key) {
        let is_back = self.given.lock().remove(key).is_some();
        let all = if is_back { self.services.all() } else { vec![] };
        let waiting = |service: &Object| is_ours(service) && !self.given.lock().contains_key(&service.key());
        for service in all.iter().filter(|service| waiting(service)) {
            ctx.enqueue.now(service.key());
        }
    }

    async fn give(&self, ctx: &Reconcile, key: &Key, service: &Object) -> Result<Action, Status> {
        let tree = service.to_value();
        let (said, present) = (items(&tree, "status.loadBalancer.ingress"), self.present(&tree));
        if !said.is_empty() && present.is_empty() {
            // Somebody else looks after it.
            return Ok(Action::Done);
        }
        if !is_held(service) {
            // It is kept before there is anything to be cleaned up; its change brings it here again.
            ctx.event(&SERVICES, service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer");
            return hold(ctx, service, json!({"finalizers": [CLEANUP]})).await;
        }
        match self.choose(key, &tree) {
            Ok(addresses) if present == addresses => Ok(Action::Done),
            Ok(addresses) => {
                let ingress = |address| json!({"ip": address, "ipMode": "VIP"});
                let ingress: Vec<Value> = addresses.iter().map(ingress).collect();
                say(ctx, service, json!({"ingress": ingress})).await?;
                ctx.event(&SERVICES, service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer");
                Ok(Action::Done)
            }
            Err(why) => {
                let why = format!("Error syncing load balancer: failed to ensure load balancer: {why}");
                ctx.event(&SERVICES, service, "Warning", "SyncLoadBalancerFailed", why);
                Ok(Action::Done)
            }
        }
    }
}

impl Controller for ServiceLoadBalancerController {
    const NAME: &'static str = "service-lb";
    const EVENT_SOURCE: &'static str = "service-controller";
    const SERVICE_ACCOUNT: &'static str = "service-controller";
    /// One after the other, so that the lowest address is free for one alone.
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::of(&SERVICES)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(service) = self.services.get_by_key(key) else {
            self.give_back(ctx, key);
            return Ok(Action::Done);
        };
        if is_ours(&service) {
            return self.give(ctx, key, &service).await;
        }
        let tree = service.to_value();
        if !self.present(&tree).is_empty() && !is_of_another_class(&tree) {
            ctx.event(&SERVICES, &service, "Normal", "DeletingLoadBalancer", "Deleting load balancer");
            say(ctx, &service, json!({})).await?;
        }
        self.give_back(ctx, key);
        if is_held(&service) {
            hold(ctx, &service, json!({"$deleteFromPrimitiveList/finalizers": [CLEANUP]})).await?;
            ctx.event(&SERVICES, &service, "Normal", "DeletedLoadBalancer", "Deleted load balancer");
        }
        Ok(Action::Done)
    }
}

fn lowest(range: IpRange, taken: &BTreeMap<IpAddr, Key>) -> Option<IpAddr> {
    let places = 0..range.size();
    places.map(|place| range.address(place)).find(|address| !taken.contains_key(address))
}

fn is_ours(service: &Object) -> bool {
    let tree = service.to_value();
    text(&tree, "spec.type") == "LoadBalancer" && !is_of_another_class(&tree) && !service.is_deleting()
}

fn is_of_another_class(tree: &Value) -> bool {
    is_set(tree, "spec.loadBalancerClass")
}

fn is_held(service: &Object) -> bool {
    service.metadata.finalizers.iter().any(|finalizer| finalizer == CLEANUP)
}

/// Its finalizers are written with its status, which is all that the controller may write (`PatchService`).
async fn hold(ctx: &Reconcile, service: &Object, metadata: Value) -> Result<Action, Status> {
    let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
    let mut patch = json!({"metadata": metadata});
    patch["metadata"]["uid"] = service.metadata.uid.as_str().into();
    let patched = ctx.client.patch_status(&SERVICES, namespace, name, PatchType::StrategicMerge, &patch);
    match patched.await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::Done),
    }
}

async fn say(ctx: &Reconcile, service: &Object, balancer: Value) -> Result<(), Status> {
    let put = |status: &mut serde_json::Map<String, Value>| {
        status.insert("loadBalancer".into(), balancer.clone());
    };
    match update_status(&ctx.client, &SERVICES, service, put).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
