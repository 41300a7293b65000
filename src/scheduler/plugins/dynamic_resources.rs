//! DynamicResources: a pod goes where the devices are that its claims want
//! (`plugins/dynamicresources`).
//!
//! Claims that are allocated say where. The others are allocated for the node that is chosen: first in
//! memory, so that the next pod sees what is left, then in their status, when the pod is bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use sync::Mutex;

use super::extended_resources::ExtendedResources;
use crate::dra::allocator::{DeviceSearch, SelectorCache, Wish};
use crate::dra::in_use::InUse;
use crate::dra::pools::{PublishedPools, matches, published, reachable};
use crate::dra::requests::{is_allocated, of_claim};
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{
    BindRequest, CycleState, Plugin, PostFilterCycle, PostFilterResult, PreFilterResult, Snapshot,
};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::object::Object;
use apimachinery::status;
use apis::kind::Kind;
use apis::resource::device_class::DEVICE_CLASSES;
use apis::resource::resource_claim::{FINALIZER, RESOURCE_CLAIMS};
use apis::resource::resource_slice::RESOURCE_SLICES;
use apis::tree::{at, items, set, text, texts};
use apis::views::pod_volumes::PodResourceClaim;
use client_go::lister::Lister;
use entropy::Entropy;

const NAME: &str = "DynamicResources";
/// So many pods use a claim at most (`ResourceClaimReservedForMaxSize`).
const MOST_RESERVED: usize = 256;
/// A write that meets another one is tried again so often.
const ATTEMPTS: usize = 5;

/// The plugin.
pub struct DynamicResources {
    claims: Lister,
    classes: Lister,
    slices: Lister,
    extended: ExtendedResources,
    entropy: Entropy,
    selectors: SelectorCache,
    /// What was allocated for pods on their way, by the claim's uid. Bound: the claims of pods between
    /// Reserve and the moment when the watch shows what was written; whoever counts drops the others.
    in_flight: Mutex<BTreeMap<String, Value>>,
}

/// What is worked out for a pod once.
struct Claimed {
    /// Those that have devices.
    allocated: Vec<Value>,
    wishes: Vec<Wish>,
    /// Nothing where there are no wishes, as the pools.
    in_use: InUse,
    pools: PublishedPools,
    /// What was found for each node.
    found: Mutex<BTreeMap<String, Vec<Value>>>,
}

impl DynamicResources {
    /// Reads through listers.
    pub fn new(lister: &dyn Fn(&Arc<Kind>) -> Lister, entropy: &Entropy) -> DynamicResources {
        DynamicResources {
            claims: lister(&RESOURCE_CLAIMS),
            classes: lister(&DEVICE_CLASSES),
            slices: lister(&RESOURCE_SLICES),
            extended: ExtendedResources::new(lister(&DEVICE_CLASSES)),
            entropy: entropy.clone(),
            selectors: SelectorCache::default(),
            in_flight: Mutex::default(),
        }
    }

    /// A claim that the pod can use, or why not.
    fn claim(&self, pod: &PodInfo, of: &PodResourceClaim) -> Result<Option<Arc<Object>>, Status> {
        let metadata = &pod.object.metadata;
        let Some(name) = of.claim_name(&pod.pod.status.resource_claim_statuses) else {
            let template = of.resource_claim_template_name.as_deref().unwrap_or_default();
            let reason = format!(
                "pod {:?}: waiting for the claim of resource claim template {template:?} to be made",
                pod.object.key()
            );
            return Err(Status::unresolvable(reason));
        };
        if name.is_empty() {
            return Ok(None);
        }
        let Some(claim) = self.claims.get(&metadata.namespace, &name) else {
            let reason = format!("waiting for resource claim {name:?} to be made");
            return Err(Status::unresolvable(match of.resource_claim_name {
                Some(_) => format!("resourceclaim.resource.k8s.io {name:?} not found"),
                None => reason,
            }));
        };
        if claim.is_deleting() {
            return Err(Status::unresolvable(format!("resourceclaim {name:?} is being deleted")));
        }
        let is_made_for_it = claim.controller().is_none_or(|owner| *owner.uid == *metadata.uid);
        if of.resource_claim_template_name.is_some() && !is_made_for_it {
            let reason =
                format!("ResourceClaim {} was not created for pod {}", claim.key(), pod.object.key());
            return Err(Status::unresolvable(reason));
        }
        Ok(Some(claim))
    }

    fn look(&self, pod: &PodInfo) -> Result<Claimed, Status> {
        let mut allocated = Vec::new();
        let mut wishes = Vec::new();
        let class = |name: &str| self.classes.get("", name);
        for of in &pod.pod.spec.resource_claims {
            let Some(claim) = self.claim(pod, of)? else { continue };
            let tree = claim.to_value();
            if !is_allocated(&tree) {
                let requests = of_claim(&tree, &class).map_err(|error| Status::unresolvable(error.0))?;
                wishes.push(Wish::new(tree, requests));
                continue;
            }
            let reserved = items(&tree, "status.reservedFor");
            let is_ours = reserved.iter().any(|user| text(user, "uid") == pod.uid());
            if !is_ours && reserved.len() >= MOST_RESERVED {
                return Err(Status::unresolvable("resourceclaim in use"));
            }
            allocated.push(tree);
        }
        let mut claimed = Claimed {
            allocated,
            wishes,
            in_use: InUse::default(),
            pools: PublishedPools::default(),
            found: Mutex::default(),
        };
        if !claimed.wishes.is_empty() {
            claimed.in_use = self.in_use();
            claimed.pools = published(&self.slices.all());
        }
        Ok(claimed)
    }

    /// What the watch shows, and what is on its way.
    fn in_use(&self) -> InUse {
        let mut in_use = InUse::default();
        let mut in_flight = self.in_flight.lock();
        for claim in self.claims.all() {
            let tree = claim.to_value();
            if is_allocated(&tree) {
                in_flight.remove(&claim.metadata.uid);
                in_use.add(at(&tree, "status.allocation"));
            }
        }
        in_flight.values().for_each(|allocation| in_use.add(allocation));
        in_use
    }

    /// The devices of the node for all wishes.
    fn allocate(&self, claimed: &Claimed, node: &Object) -> Result<Option<Vec<Value>>, Status> {
        let pools = reachable(&claimed.pools, &node.metadata);
        let search = DeviceSearch::new(&claimed.wishes, &pools, &self.selectors, &claimed.in_use);
        search.run(&self.entropy).map_err(|error| Status::unresolvable(error.0))
    }

    /// Extended resources that the node lacks and that devices stand for.
    fn wants_devices(&self, pod: &PodInfo) -> bool {
        pod.requests.scalar.keys().any(|name| self.extended.is_device(name))
    }

    async fn write(&self, request: BindRequest<'_>) -> Result<(), status::Status> {
        for of in &request.pod.pod.spec.resource_claims {
            let name = of
                .claim_name(&request.pod.pod.status.resource_claim_statuses)
                .filter(|name| !name.is_empty());
            let namespace = &request.pod.object.metadata.namespace;
            let claim = name.and_then(|name| self.claims.get(namespace, &name));
            if let Some(claim) = claim {
                self.reserve_claim(request, claim).await?;
            }
        }
        Ok(())
    }

    /// `bindClaim`: the finalizer first, then the devices and the pod.
    async fn reserve_claim(
        &self,
        request: BindRequest<'_>,
        mut claim: Arc<Object>,
    ) -> Result<(), status::Status> {
        let allocation = self.in_flight.lock().get(&claim.metadata.uid).cloned();
        let (client, namespace) = (request.client, &claim.metadata.namespace.clone());
        let name = claim.metadata.name.clone();
        for attempt in 0.. {
            let outcome = write_claim(request, &claim, allocation.as_ref()).await;
            match outcome {
                Err(status) if status.is_conflict() && attempt < ATTEMPTS => {
                    claim = client.get(&RESOURCE_CLAIMS, namespace, &name).await?;
                }
                other => return other,
            }
        }
        Ok(())
    }
}

async fn write_claim(
    request: BindRequest<'_>,
    claim: &Object,
    allocation: Option<&Value>,
) -> Result<(), status::Status> {
    let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
    let mut tree = claim.to_value();
    if let Some(allocation) = allocation.filter(|_| !is_allocated(&tree)) {
        let mut finalizers: Vec<String> =
            texts(&tree, "metadata.finalizers").into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
            set(&mut tree, "metadata.finalizers", finalizers);
            tree = request.client.update(&RESOURCE_CLAIMS, namespace, name, tree).await?.to_value();
        }
        set(&mut tree, "status.allocation", allocation.clone());
    }
    let mut reserved = items(&tree, "status.reservedFor").to_vec();
    if reserved.iter().any(|user| text(user, "uid") == request.pod.uid()) {
        return Ok(());
    }
    let pod = &request.pod.object.metadata;
    reserved.push(json!({"resource": "pods", "name": pod.name, "uid": pod.uid}));
    set(&mut tree, "status.reservedFor", reserved);
    request.client.update_status(&RESOURCE_CLAIMS, namespace, name, tree).await.map(drop)
}

/// None while it is not made yet; empty when none was needed (`resourceclaim.Name`).
impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        NAME
    }

    /// A pod is not tried before its claims are there.
    fn pre_enqueue(&self, pod: &PodInfo) -> Status {
        let claims = &pod.pod.spec.resource_claims;
        claims.iter().find_map(|of| self.claim(pod, of).err()).unwrap_or_default()
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::ResourceClaim, ActionType::Add),
            (EventResource::ResourceClaim, ActionType::Update),
            (EventResource::ResourceClaim, ActionType::Delete),
            (EventResource::ResourceSlice, ActionType::Add),
            (EventResource::ResourceSlice, ActionType::Update),
            (EventResource::DeviceClass, ActionType::Add),
            (EventResource::DeviceClass, ActionType::Update),
            (EventResource::TargetPod, ActionType::UpdatePodGeneratedResourceClaim),
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeLabel),
        ]
    }

    /// Of claims those of the pod matter, and those that give devices back.
    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        if occurrence.event.0 != EventResource::ResourceClaim {
            return QueueingHint::Queue;
        }
        let has_devices =
            |claim: &Option<Arc<Object>>| claim.as_ref().is_some_and(|claim| is_allocated(&claim.to_value()));
        let is_own = |claim: &Arc<Object>| {
            let names = pod
                .pod
                .spec
                .resource_claims
                .iter()
                .filter_map(|of| of.claim_name(&pod.pod.status.resource_claim_statuses));
            claim.metadata.namespace == pod.object.metadata.namespace
                && names.into_iter().any(|name| name == claim.metadata.name)
        };
        let gives_back = has_devices(&occurrence.old) && !has_devices(&occurrence.new);
        QueueingHint::queue_if(gives_back || occurrence.new.as_ref().is_some_and(is_own))
    }

    fn pre_filter(&self, state: &mut CycleState, pod: &PodInfo, _: &Snapshot) -> (PreFilterResult, Status) {
        if pod.pod.spec.resource_claims.is_empty() && !self.wants_devices(pod) {
            return (None, Status::skip());
        }
        match self.look(pod) {
            Ok(claimed) => {
                state.write(NAME, claimed);
                (None, Status::success())
            }
            Err(status) => (None, status),
        }
    }

    fn filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let (Some(claimed), Some(object)) = (state.read::<Claimed>(NAME), node.object.as_ref()) else {
            return Status::success();
        };
        let lacks = |(name, amount): (&String, &i64)| {
            *amount > 0 && node.allocatable.amount(name) == 0 && self.extended.is_device(name)
        };
        if pod.requests.scalar.iter().any(lacks) {
            return Status::unschedulable("cannot allocate all claims");
        }
        let reaches = |claim: &Value| {
            let selector = at(claim, "status.allocation.nodeSelector");
            selector.is_null() || matches(selector, &object.metadata)
        };
        if !claimed.allocated.iter().all(reaches) {
            return Status::unschedulable("resourceclaim not available on the node");
        }
        if claimed.wishes.is_empty() {
            return Status::success();
        }
        match self.allocate(claimed, object) {
            Ok(Some(allocations)) => {
                claimed.found.lock().insert(node.name.to_string(), allocations);
                Status::success()
            }
            Ok(None) => Status::unschedulable("cannot allocate all claims"),
            Err(status) => status,
        }
    }

    fn post_filter(&self, _: &PodInfo, _: &PostFilterCycle<'_>) -> (Option<PostFilterResult>, Status) {
        (None, Status::unschedulable("no new claims to deallocate"))
    }

    /// What is found for a node is as good as what is found for another.
    fn reserve(&self, state: &CycleState, _: &PodInfo, node: &str) -> Status {
        let Some(claimed) = state.read::<Claimed>(NAME) else { return Status::success() };
        let found = claimed.found.lock().remove(node).unwrap_or_default();
        let mut in_flight = self.in_flight.lock();
        for (wish, allocation) in claimed.wishes.iter().zip(found) {
            in_flight.insert(text(&wish.claim, "metadata.uid").to_owned(), allocation);
        }
        Status::success()
    }

    fn unreserve(&self, state: &CycleState, _: &PodInfo, _: &str) {
        let Some(claimed) = state.read::<Claimed>(NAME) else { return };
        let mut in_flight = self.in_flight.lock();
        for wish in &claimed.wishes {
            in_flight.remove(text(&wish.claim, "metadata.uid"));
        }
    }

    fn pre_bind<'a>(&'a self, request: BindRequest<'a>) -> Option<BoxFuture<'a, Status>> {
        let has_claims = !request.pod.pod.spec.resource_claims.is_empty();
        has_claims.then(|| {
            let written = self.write(request);
            async { written.await.map_or_else(|error| Status::error(error.message), |()| Status::success()) }
                .boxed()
        })
    }
}
