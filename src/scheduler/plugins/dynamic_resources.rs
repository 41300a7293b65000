//! DynamicResources: a pod goes where the devices are that its claims want
//! (`plugins/dynamicresources`).
//!
//! Claims that are allocated say where. The others are allocated for the node that is chosen: first in
//! memory, so that the next pod sees what is left, then in their status, when the pod is bound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use sync::Mutex;

use super::args::DynamicResourcesArgs;
use super::device_binding::{DeviceBinding, deallocate, has_devices, may_deallocate, names};
use super::extended_claims::{
    ExtendedClaims, ExtendedVariant, ExtendedWish, delete_claim, is_extended_claim_of,
};
use crate::dra::allocator::{DeviceSearch, SelectorCache, Wish};
use crate::dra::binding_conditions::{has_binding_conditions, is_slow};
use crate::dra::in_use::InUse;
use crate::dra::pools::{PublishedPools, matches, published, reachable};
use crate::dra::requests::{is_allocated, of_claim};
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{
    BindRequest, CycleState, NodeSnapshot, Plugin, PostFilterCycle, PostFilterResult, PreFilterResult,
    default_normalize,
};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::duration::parse_flag;
use apimachinery::object::Object;
use apimachinery::status;
use apis::kind::Kind;
use apis::resource::device_class::DEVICE_CLASSES;
use apis::resource::resource_claim::RESOURCE_CLAIMS;
use apis::resource::resource_slice::RESOURCE_SLICES;
use apis::tree::{at, items, text};
use apis::views::pod_volumes::PodResourceClaim;
use client_go::client::Client;
use client_go::lister::Lister;
use clock::Clock;
use component_base::metrics::Family;
use entropy::Entropy;

const NAME: &str = "DynamicResources";
/// So many pods use a claim at most (`ResourceClaimReservedForMaxSize`).
const MOST_RESERVED: usize = 256;

/// The plugin.
pub struct DynamicResources {
    claims: Lister,
    classes: Lister,
    slices: Lister,
    extended: ExtendedClaims,
    entropy: Entropy,
    selectors: SelectorCache,
    /// What was allocated for pods on their way, by the claim's uid. Bound: the claims of pods between
    /// Reserve and the moment when the watch shows what was written; whoever counts drops the others.
    in_flight: Mutex<BTreeMap<String, DevicesInFlight>>,
    binding: DeviceBinding,
}

/// What is worked out for a pod once.
struct Claimed {
    /// Those that have devices.
    allocated: Vec<Value>,
    wishes: Vec<Wish>,
    /// What is wished beside them for extended resources that are devices.
    extended: Option<ExtendedWish>,
    /// Nothing where there are no wishes, as the pools.
    in_use: InUse,
    pools: PublishedPools,
    /// What was found for each node.
    found: Mutex<BTreeMap<String, FoundDevices>>,
    /// Those of `allocated` that kept the pod from some node, by their place.
    unavailable: Mutex<BTreeSet<usize>>,
    /// What is to give its devices back, so that the pod may have others.
    to_deallocate: Mutex<Option<Value>>,
}

/// What a claim is given.
struct DevicesInFlight {
    allocation: Value,
    /// The revision that the claim has with it; nothing until that is written. Whoever sees that or a later
    /// one without devices sees that it has given them back.
    written_at: Option<u64>,
}

/// What a node has for a pod.
#[derive(Default)]
struct FoundDevices {
    /// For all wishes; behind them for extended resources.
    allocations: Vec<Value>,
    /// What the last of them is for, if it is for extended resources.
    extended: Option<Arc<ExtendedVariant>>,
}

impl DynamicResources {
    /// Reads through listers.
    pub fn new(
        lister: &dyn Fn(&Arc<Kind>) -> Lister,
        clock: &Clock,
        entropy: &Entropy,
        args: &DynamicResourcesArgs,
    ) -> DynamicResources {
        // Validation refuses what is no duration.
        let timeout = parse_flag(&args.binding_timeout).unwrap_or_default();
        let claims = lister(&RESOURCE_CLAIMS);
        DynamicResources {
            binding: DeviceBinding { claims, clock: clock.clone(), timeout },
            claims: lister(&RESOURCE_CLAIMS),
            classes: lister(&DEVICE_CLASSES),
            slices: lister(&RESOURCE_SLICES),
            extended: ExtendedClaims::new(lister(&RESOURCE_CLAIMS), lister(&DEVICE_CLASSES)),
            entropy: entropy.clone(),
            selectors: SelectorCache::default(),
            in_flight: Mutex::default(),
        }
    }

    /// One that counts here the claims that it makes.
    #[must_use]
    pub fn counting(self, made: &Arc<Family<1>>) -> DynamicResources {
        DynamicResources { extended: self.extended.counting(made), ..self }
    }

    /// A claim that the pod can use, or why not.
    fn claim(&self, pod: &PodInfo, of: &PodResourceClaim) -> Result<Option<Arc<Object>>, Status> {
        let metadata = &pod.object.metadata;
        let Some(name) = of.claim_name(&pod.pod().status.resource_claim_statuses) else {
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
        for of in &pod.pod().spec.resource_claims {
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
            extended: self.extended.wish(pod),
            in_use: InUse::default(),
            pools: PublishedPools::default(),
            found: Mutex::default(),
            unavailable: Mutex::default(),
            to_deallocate: Mutex::default(),
        };
        if !claimed.wishes.is_empty() || claimed.extended.is_some() {
            claimed.in_use = self.in_use();
            claimed.pools = published(&self.slices.all());
        }
        Ok(claimed)
    }

    /// What the watch shows, and what is on its way. A claim that the watch shows no longer is gone: before
    /// it was given devices the watch had shown it.
    fn in_use(&self) -> InUse {
        let mut in_use = InUse::default();
        let mut in_flight = self.in_flight.lock();
        let mut waiting = BTreeMap::new();
        for claim in self.claims.all() {
            let tree = claim.to_value();
            if is_allocated(&tree) {
                in_use.add(at(&tree, "status.allocation"));
                continue;
            }
            let given = in_flight.remove_entry(&claim.metadata.uid);
            let is_unseen = |of: &DevicesInFlight| {
                of.written_at.is_none_or(|written_at| claim.metadata.resource_version < written_at)
            };
            if let Some((uid, given)) = given.filter(|(_, given)| is_unseen(given)) {
                in_use.add(&given.allocation);
                waiting.insert(uid, given);
            }
        }
        *in_flight = waiting;
        self.extended.add_to(&mut in_use);
        in_use
    }

    /// The devices of the node for all wishes, and for what extended resources it lacks.
    fn allocate(&self, claimed: &Claimed, pod: &PodInfo, node: &NodeInfo) -> Result<FoundDevices, Status> {
        let wish = claimed.extended.as_ref();
        let extended = wish.map(|wish| self.extended.variant(wish, pod, node)).transpose()?.flatten();
        let wishes = claimed.wishes.iter().chain(extended.as_deref().map(|variant| &variant.wish));
        let wishes: Vec<&Wish> = wishes.collect();
        let Some(object) = node.object.as_ref().filter(|_| !wishes.is_empty()) else {
            return Ok(FoundDevices::default());
        };
        let pools = reachable(&claimed.pools, &object.metadata);
        let search = DeviceSearch::new(&wishes, &pools, &self.selectors, &claimed.in_use);
        // A claim, a class or a device is wrong: other nodes need not be asked.
        let found = search.run(&self.entropy).map_err(|error| Status::error(error.0))?;
        let is_invalid = pools.iter().any(|pool| pool.is_invalid);
        let why =
            if is_invalid { "invalid resource pools were encountered" } else { "cannot allocate all claims" };
        let allocations = found.ok_or_else(|| Status::unresolvable(why))?;
        Ok(FoundDevices { allocations, extended })
    }

    /// Whether all claims that have devices can be used on the node.
    fn are_available(&self, claimed: &Claimed, node: &Object) -> bool {
        let is_available = |claim: &Value| {
            let selector = at(claim, "status.allocation.nodeSelector");
            (selector.is_null() || matches(selector, &node.metadata)) && self.binding.has_hope(claim)
        };
        let claims = claimed.allocated.iter().enumerate();
        let lost: Vec<usize> = claims.filter(|(_, it)| !is_available(it)).map(|(place, _)| place).collect();
        if !lost.is_empty() {
            claimed.unavailable.lock().extend(&lost);
        }
        lost.is_empty()
    }

    /// The claims of the pod, with its devices and the pod itself.
    async fn write(&self, request: BindRequest<'_>) -> Result<Vec<Value>, status::Status> {
        let mut written = Vec::new();
        let namespace = &request.pod.object.metadata.namespace;
        for claim in names(request.pod).filter_map(|name| self.claims.get(namespace, &name)) {
            let uid = claim.metadata.uid.clone();
            let given = self.in_flight.lock().get(&uid).map(|given| given.allocation.clone());
            let tree = self.binding.reserve_claim(request, claim, given.as_ref()).await?;
            if let Some(given) = self.in_flight.lock().get_mut(&uid) {
                given.written_at = text(&tree, "metadata.resourceVersion").parse().ok();
            }
            written.push(tree);
        }
        written.extend(self.extended.write(request, &self.binding).await?);
        Ok(written)
    }
}

impl Claimed {
    fn is_nothing(&self) -> bool {
        self.allocated.is_empty() && self.wishes.is_empty() && self.extended.is_none()
    }

    /// The claim for extended resources that an earlier attempt has left.
    fn stale(&self) -> Option<&Object> {
        self.extended.as_ref()?.stale.as_deref()
    }
}

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        NAME
    }

    /// A pod is not tried before its claims are there.
    fn pre_enqueue(&self, pod: &PodInfo) -> Status {
        let view = pod.pod();
        let claims = &view.spec.resource_claims;
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
        let has_devices = |claim: &Option<Arc<Object>>| claim.as_deref().is_some_and(has_devices);
        let is_own = |claim: &Arc<Object>| {
            claim.metadata.namespace == pod.object.metadata.namespace
                && names(pod).any(|name| name == claim.metadata.name)
                || is_extended_claim_of(claim, pod)
        };
        let gives_back = has_devices(&occurrence.old) && !has_devices(&occurrence.new);
        let newest = occurrence.new.as_ref().or(occurrence.old.as_ref());
        QueueingHint::queue_if(gives_back || newest.is_some_and(is_own))
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &NodeSnapshot,
    ) -> (PreFilterResult, Status) {
        if pod.pod().spec.resource_claims.is_empty() && pod.requests.scalar.is_empty() {
            return (None, Status::skip());
        }
        match self.look(pod) {
            Ok(claimed) if claimed.is_nothing() => (None, Status::skip()),
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
        if !self.are_available(claimed, object) {
            return Status::unresolvable("resourceclaim not available on the node");
        }
        match self.allocate(claimed, pod, node) {
            Ok(found) => {
                claimed.found.lock().insert(node.name.to_string(), found);
                Status::success()
            }
            Err(status) => status,
        }
    }

    /// Devices that cannot be had where the pod can go, or that did not become ready, are given back.
    fn post_filter(&self, pod: &PodInfo, cycle: &PostFilterCycle<'_>) -> (Option<PostFilterResult>, Status) {
        let Some(claimed) = cycle.state.read::<Claimed>(NAME) else {
            return (None, Status::unschedulable("no new claims to deallocate"));
        };
        if claimed.stale().is_some() {
            return (None, Status::unschedulable("deletion of ResourceClaim completed"));
        }
        let unavailable = claimed.unavailable.lock();
        let claims = unavailable.iter().filter_map(|place| claimed.allocated.get(*place));
        let Some(claim) = claims.into_iter().find(|claim| may_deallocate(claim, pod)) else {
            return (None, Status::unschedulable("still not schedulable"));
        };
        *claimed.to_deallocate.lock() = Some(claim.clone());
        (None, Status::unschedulable("deallocation of ResourceClaim completed"))
    }

    fn write_after_post_filter<'a>(
        &'a self,
        client: &'a Client,
        state: &'a CycleState,
    ) -> Option<BoxFuture<'a, Status>> {
        let claimed = state.read::<Claimed>(NAME)?;
        let (stale, claim) = (claimed.stale(), claimed.to_deallocate.lock().take());
        if stale.is_none() && claim.is_none() {
            return None;
        }
        let write = async move {
            let written = match (stale, claim) {
                (Some(stale), _) => delete_claim(client, stale).await,
                (None, Some(claim)) => deallocate(client, &claim).await,
                (None, None) => Ok(()),
            };
            written.map_or_else(|error| Status::error(error.message), |()| Status::success())
        };
        Some(write.boxed())
    }

    /// Devices that are the better the earlier they stand among the alternatives of a request.
    fn pre_score(&self, state: &mut CycleState, _: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        let wishes = state.read::<Claimed>(NAME).map_or(&[][..], |claimed| &claimed.wishes);
        if wishes.iter().any(Wish::has_alternatives) { Status::success() } else { Status::skip() }
    }

    fn score(&self, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(claimed) = state.read::<Claimed>(NAME) else { return 0 };
        let found = claimed.found.lock();
        let Some(found) = found.get(&*node.name) else { return 0 };
        claimed.wishes.iter().zip(&found.allocations).map(|(wish, allocation)| wish.score(allocation)).sum()
    }

    fn normalize_scores(&self, scores: &mut [i64]) {
        default_normalize(scores, false);
    }

    /// What is found for a node is as good as what is found for another.
    fn reserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Status {
        let Some(claimed) = state.read::<Claimed>(NAME) else { return Status::success() };
        let mut found = claimed.found.lock().remove(node).unwrap_or_default();
        if let Some(variant) = found.extended {
            self.extended.reserve(pod, variant, found.allocations.pop().unwrap_or_default());
        }
        let mut in_flight = self.in_flight.lock();
        for (wish, allocation) in claimed.wishes.iter().zip(found.allocations) {
            let given = DevicesInFlight { allocation, written_at: None };
            in_flight.insert(text(&wish.claim, "metadata.uid").to_owned(), given);
        }
        Status::success()
    }

    fn unreserve(&self, state: &CycleState, pod: &PodInfo, _: &str) {
        let Some(claimed) = state.read::<Claimed>(NAME) else { return };
        self.extended.unreserve(pod);
        let mut in_flight = self.in_flight.lock();
        for wish in &claimed.wishes {
            in_flight.remove(text(&wish.claim, "metadata.uid"));
        }
    }

    fn pre_bind<'a>(&'a self, request: BindRequest<'a>) -> Option<BoxFuture<'a, Status>> {
        let has_claims =
            !request.pod.pod().spec.resource_claims.is_empty() || self.extended.is_reserved(request.pod);
        let bound = async move {
            match self.write(request).await {
                Err(error) => Status::error(error.message),
                Ok(written) => {
                    let waited = self.binding.wait(request, &written).await;
                    waited.map_or_else(|failed| Status::error(failed.0), |()| Status::success())
                }
            }
        };
        has_claims.then(|| bound.boxed())
    }

    fn prepares_binding(&self, pod: &PodInfo) -> bool {
        !pod.pod().spec.resource_claims.is_empty() || self.extended.is_reserved(pod)
    }

    fn waits_before_binding(&self, state: &CycleState, pod: &PodInfo) -> bool {
        let Some(claimed) = state.read::<Claimed>(NAME) else { return false };
        let in_flight = self.in_flight.lock();
        let given = |wish: &Wish| in_flight.get(text(&wish.claim, "metadata.uid"));
        let is_given = |wish: &Wish| given(wish).is_some_and(|given| is_slow(&given.allocation));
        self.extended.is_reserved(pod)
            || !pod.pod().spec.resource_claims.is_empty()
                && (claimed.allocated.iter().any(has_binding_conditions)
                    || claimed.wishes.iter().any(is_given))
    }

    fn take_back<'a>(&'a self, request: BindRequest<'a>) -> Option<BoxFuture<'a, ()>> {
        let has_claims =
            !request.pod.pod().spec.resource_claims.is_empty() || !request.pod.requests.scalar.is_empty();
        let taken_back = async move {
            self.binding.release(request).await;
            self.extended.take_back(request).await;
        };
        has_claims.then(|| taken_back.boxed())
    }
}
