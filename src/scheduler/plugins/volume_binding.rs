//! VolumeBinding: a pod goes where its volumes are, or can be made (`plugins/volumebinding`).
//!
//! Claims that are bound say where. Those that wait for their first consumer are bound to a volume that is
//! reachable from the node, or have one made there; the pod is bound to the node when all that is done.
//! Claims that do not wait are nobody's business here: the pod waits until they are bound.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use sync::{Mutex, MutexGuard};

use super::args::VolumeBindingArgs;
use super::claims::{claim_names, uses_claim};
use super::storage_capacity::{self, StorageCapacity};
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{BindRequest, CycleState, NodeSnapshot, Plugin, PreFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::{Code, Status};
use apimachinery::object::{Object, ObjectMeta};
use apimachinery::status;
use apis::core::node::NODES;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::kind::Kind;
use apis::storage::storage_class::STORAGE_CLASSES;
use apis::tree::{annotation, object_mut, text};
use apis::volumes::{
    NO_PROVISIONER, SELECTED_NODE, VolumeObject, claim_volume, find_matching, is_bound, is_reachable,
};
use client_go::lister::Lister;
use clock::Clock;

const NAME: &str = "VolumeBinding";
/// How often it is looked whether they are there.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The plugin.
pub struct VolumeBinding {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
    nodes: Lister,
    capacity: StorageCapacity,
    bind_timeout: Duration,
    clock: Clock,
    /// What was decided for pods that are on their way, by uid. Bound: one entry for each pod between Reserve
    /// and the end of its PreBind.
    decided: Mutex<BTreeMap<String, Vec<BindingDecision>>>,
}

/// What is to be done for one claim.
#[derive(Clone)]
enum BindingDecision {
    /// It gets this volume.
    Bind { claim: Arc<Object>, volume: Arc<Object> },
    /// It gets one that is made for the node.
    Provision { claim: Arc<Object> },
}

/// The claims of a pod.
struct PodClaims {
    /// With their volumes.
    bound: Vec<Value>,
    /// Those that wait for the pod.
    waiting: Vec<Arc<Object>>,
}

/// The reasons why a node will not do.
#[derive(Default)]
struct Reasons(Vec<&'static str>);

impl Reasons {
    const BIND_CONFLICT: &'static str = "node(s) didn't find available persistent volumes to bind";
    const NODE_CONFLICT: &'static str = "node(s) didn't match PersistentVolume's node affinity";
    const NOT_ENOUGH_SPACE: &'static str = "node(s) did not have enough free storage";
    const NO_VOLUME: &'static str =
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

    fn add(&mut self, reason: &'static str) {
        if !self.0.contains(&reason) {
            self.0.push(reason);
        }
    }
}

impl VolumeBinding {
    /// Reads through listers.
    pub fn new(
        lister: &dyn Fn(&Arc<Kind>) -> Lister,
        clock: &Clock,
        args: &VolumeBindingArgs,
    ) -> VolumeBinding {
        VolumeBinding {
            capacity: StorageCapacity::new(lister),
            bind_timeout: Duration::from_secs(args.bind_timeout_seconds),
            claims: lister(&PERSISTENT_VOLUME_CLAIMS),
            volumes: lister(&PERSISTENT_VOLUMES),
            classes: lister(&STORAGE_CLASSES),
            nodes: lister(&NODES),
            clock: clock.clone(),
            decided: Mutex::default(),
        }
    }

    fn claims_of(&self, pod: &PodInfo) -> Result<PodClaims, Status> {
        let mut claims = PodClaims { bound: vec![], waiting: vec![] };
        for name in claim_names(pod) {
            let claim = self.claim(pod, &name)?;
            let tree = claim.to_value();
            if is_bound(&tree) {
                claims.bound.push(tree);
            } else if self.waits_for_consumer(&tree) && text(&tree, "spec.volumeName").is_empty() {
                claims.waiting.push(claim);
            } else {
                return Err(Status::unresolvable("pod has unbound immediate PersistentVolumeClaims"));
            }
        }
        Ok(claims)
    }

    /// A claim that can be used (`podHasPVCs`).
    fn claim(&self, pod: &PodInfo, name: &str) -> Result<Arc<Object>, Status> {
        let is_ephemeral = || {
            pod.claims.iter().any(|it| it.is_ephemeral && it.claim_name(&pod.object.metadata.name) == name)
        };
        let Some(claim) = self.claims.get(&pod.object.metadata.namespace, name) else {
            return Err(Status::unresolvable(if is_ephemeral() {
                format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                )
            } else {
                format!("persistentvolumeclaim {name:?} not found")
            }));
        };
        let tree = claim.to_value();
        if text(&tree, "status.phase") == "Lost" {
            let volume = text(&tree, "spec.volumeName");
            let reason =
                format!("persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}");
            return Err(Status::unresolvable(reason));
        }
        if claim.is_deleting() {
            return Err(Status::unresolvable(format!("persistentvolumeclaim {name:?} is being deleted")));
        }
        let own = &pod.object.metadata;
        let is_owner = || claim.controller().is_some_and(|owner| *owner.uid == *own.uid);
        if is_ephemeral() && !is_owner() {
            let (claim, pod) = (claim.key(), pod.object.key());
            let reason = format!("PVC {claim} was not created for pod {pod} (pod is not owner)");
            return Err(Status::unresolvable(reason));
        }
        Ok(claim)
    }

    fn class(&self, claim: &Value) -> Option<Value> {
        self.classes.get("", text(claim, "spec.storageClassName")).map(|class| class.to_value())
    }

    fn waits_for_consumer(&self, claim: &Value) -> bool {
        let class = self.class(claim);
        class.is_some_and(|class| text(&class, "volumeBindingMode") == "WaitForFirstConsumer")
    }

    /// What has to be done for the pod to run on the node (`FindPodVolumes`).
    fn decide(
        &self,
        pod: &PodInfo,
        claims: &PodClaims,
        node: &ObjectMeta,
    ) -> Result<Vec<BindingDecision>, Reasons> {
        let mut reasons = Reasons::default();
        for claim in &claims.bound {
            match self.volumes.get("", text(claim, "spec.volumeName")) {
                None => reasons.add(Reasons::NO_VOLUME),
                Some(volume) if !is_reachable(&volume.to_value(), node) => {
                    reasons.add(Reasons::NODE_CONFLICT)
                }
                Some(_) => {}
            }
        }
        let mut decisions = vec![];
        let mut free = if claims.waiting.is_empty() { vec![] } else { self.free_volumes(pod) };
        for claim in &claims.waiting {
            match self.decide_on(claim, &free, node) {
                Err(reason) => reasons.add(reason),
                Ok(decision) => {
                    if let BindingDecision::Bind { volume, .. } = &decision {
                        free.retain(|(other, _)| other.metadata.uid != volume.metadata.uid);
                    }
                    decisions.push(decision);
                }
            }
        }
        if reasons.0.is_empty() { Ok(decisions) } else { Err(reasons) }
    }

    fn decide_on(
        &self,
        claim: &Arc<Object>,
        free: &[VolumeObject],
        node: &ObjectMeta,
    ) -> Result<BindingDecision, &'static str> {
        let tree = claim.to_value();
        let claim = claim.clone();
        let selected = annotation(&tree, SELECTED_NODE);
        // Somebody is making the volume already.
        if !selected.is_empty() {
            let is_here = selected == node.name;
            return is_here.then_some(BindingDecision::Provision { claim }).ok_or(Reasons::BIND_CONFLICT);
        }
        if let Some(volume) = find_matching(free, &tree, Some(node)) {
            return Ok(BindingDecision::Bind { claim, volume });
        }
        let class = self.class(&tree).ok_or(Reasons::BIND_CONFLICT)?;
        let can_provision = !matches!(text(&class, "provisioner"), "" | NO_PROVISIONER);
        if !can_provision || !storage_capacity::is_allowed(&class, node) {
            return Err(Reasons::BIND_CONFLICT);
        }
        if !self.capacity.is_enough(&class, &tree, node) {
            return Err(Reasons::NOT_ENOUGH_SPACE);
        }
        Ok(BindingDecision::Provision { claim })
    }

    /// Those that no other pod is about to take.
    fn free_volumes(&self, pod: &PodInfo) -> Vec<VolumeObject> {
        let decided = self.decided();
        let others = decided.iter().filter(|(uid, _)| *uid != pod.uid()).flat_map(|(_, decisions)| decisions);
        let taken: Vec<&str> = others
            .filter_map(|decision| match decision {
                BindingDecision::Bind { volume, .. } => Some(volume.metadata.uid.as_str()),
                BindingDecision::Provision { .. } => None,
            })
            .collect();
        let volumes = self.volumes.all().into_iter();
        let free = volumes.filter(|volume| !taken.contains(&volume.metadata.uid.as_str()));
        free.map(|volume| (volume.clone(), volume.to_value())).collect()
    }

    /// Writes what was decided, and waits until the claims are bound.
    async fn bind_volumes(&self, request: BindRequest<'_>) -> Status {
        let decisions = self.decided().get(request.pod.uid()).cloned().unwrap_or_default();
        for decision in &decisions {
            if let Err(error) = write(request, decision).await {
                return Status::error(error.to_string());
            }
        }
        let deadline = self.clock.elapsed() + self.bind_timeout;
        while !self.are_bound(request.pod) {
            if self.clock.elapsed() > deadline {
                return Status::error("binding volumes: context deadline exceeded");
            }
            self.clock.sleep(POLL_INTERVAL).await;
        }
        // From here on the volumes say themselves whose they are.
        self.decided().remove(request.pod.uid());
        Status::success()
    }

    fn are_bound(&self, pod: &PodInfo) -> bool {
        let namespace = &pod.object.metadata.namespace;
        let is_ready =
            |name: String| self.claims.get(namespace, &name).is_some_and(|claim| is_bound(&claim.to_value()));
        claim_names(pod).all(is_ready)
    }

    fn decided(&self) -> MutexGuard<'_, BTreeMap<String, Vec<BindingDecision>>> {
        self.decided.lock()
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::PersistentVolumeClaim, ActionType::Add),
            (EventResource::PersistentVolumeClaim, ActionType::Update),
            (EventResource::PersistentVolume, ActionType::Add),
            (EventResource::PersistentVolume, ActionType::Update),
            (EventResource::StorageClass, ActionType::Add),
            (EventResource::StorageClass, ActionType::Update),
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeLabel),
            (EventResource::CsiNode, ActionType::Add),
            (EventResource::CsiNode, ActionType::Update),
            (EventResource::CsiDriver, ActionType::Update),
            (EventResource::CsiDriver, ActionType::Delete),
            (EventResource::CsiStorageCapacity, ActionType::Add),
            (EventResource::CsiStorageCapacity, ActionType::Update),
        ]
    }

    /// Only a pod's own claims matter to it.
    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let Some(new) = occurrence.new.as_ref() else { return QueueingHint::Queue };
        let is_claim = occurrence.event.0 == EventResource::PersistentVolumeClaim;
        QueueingHint::queue_if(!is_claim || uses_claim(pod, new))
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &NodeSnapshot,
    ) -> (PreFilterResult, Status) {
        if pod.claims.is_empty() {
            return (None, Status::skip());
        }
        match self.claims_of(pod) {
            Ok(claims) => {
                state.write(NAME, claims);
                (None, Status::success())
            }
            Err(status) => (None, status),
        }
    }

    fn filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let (Some(claims), Some(object)) = (state.read::<PodClaims>(NAME), node.object.as_ref()) else {
            return Status::success();
        };
        match self.decide(pod, claims, &object.metadata) {
            Ok(_) => Status::success(),
            Err(Reasons(reasons)) => {
                let reasons = reasons.into_iter().map(Into::into).collect();
                Status { code: Code::UnschedulableAndUnresolvable, reasons, plugin: "" }
            }
        }
    }

    fn reserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Status {
        let (Some(claims), Some(object)) = (state.read::<PodClaims>(NAME), self.nodes.get("", node)) else {
            return Status::success();
        };
        match self.decide(pod, claims, &object.metadata) {
            Ok(decisions) => {
                self.decided().insert(pod.uid().to_owned(), decisions);
                Status::success()
            }
            Err(_) => Status::unschedulable(Reasons::BIND_CONFLICT),
        }
    }

    fn unreserve(&self, _: &CycleState, pod: &PodInfo, _: &str) {
        self.decided().remove(pod.uid());
    }

    fn prepares_binding(&self, pod: &PodInfo) -> bool {
        !pod.claims.is_empty() && !self.are_bound(pod)
    }

    fn pre_bind<'a>(&'a self, request: BindRequest<'a>) -> Option<BoxFuture<'a, Status>> {
        let has_claims = !request.pod.claims.is_empty();
        has_claims.then(|| -> BoxFuture<'a, Status> { Box::pin(self.bind_volumes(request)) })
    }
}

/// The volume is told of its claim, or the claim of its node; controllers do the rest.
async fn write(request: BindRequest<'_>, decision: &BindingDecision) -> Result<(), status::Status> {
    match decision {
        BindingDecision::Bind { claim, volume } => {
            let mut tree = volume.to_value();
            claim_volume(&mut tree, &claim.metadata);
            request.client.update(&PERSISTENT_VOLUMES, "", &volume.metadata.name, tree).await.map(drop)
        }
        BindingDecision::Provision { claim } => {
            let (metadata, mut tree) = (&claim.metadata, claim.to_value());
            if annotation(&tree, SELECTED_NODE) == request.node {
                return Ok(());
            }
            object_mut(&mut tree, "metadata.annotations").insert(SELECTED_NODE.into(), request.node.into());
            let kind = &PERSISTENT_VOLUME_CLAIMS;
            request.client.update(kind, &metadata.namespace, &metadata.name, tree).await.map(drop)
        }
    }
}
