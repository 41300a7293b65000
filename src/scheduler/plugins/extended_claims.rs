//! The claim that the scheduler makes for a pod whose extended resources are devices
//! (`plugins/dynamicresources/extendeddynamicresources.go`): while a node is looked for it is in memory
//! alone, and it is written before the pod is bound. One that is left of an attempt that failed goes first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sync::Mutex;

use super::claims_made;
use super::device_binding::DeviceBinding;
use super::extended_requests::{DeviceResources, requests_of};
use super::extended_resources::ExtendedResources;
use crate::dra::allocator::Wish;
use crate::dra::in_use::InUse;
use crate::dra::requests::{is_allocated, of_claim};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::BindRequest;
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, PatchType, Preconditions};
use apimachinery::status;
use apis::core::pod::PODS;
use apis::resource::resource_claim::{FINALIZER, RESOURCE_CLAIMS};
use apis::tree::{annotation, remove, remove_finalizers};
use client_go::client::Client;
use client_go::lister::Lister;
use component_base::metrics::Family;

/// Says that a claim is for extended resources (`resourceapi.ExtendedResourceClaimAnnotation`).
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";
/// The claim's name while it is in memory alone: no name that a claim could have.
const IN_MEMORY: &str = "<extended-resources>";
/// So long the watch may take to show what was written (`AssumeExtendedResourceTimeoutDefaultSeconds`).
const SHOWN_WITHIN: Duration = Duration::from_secs(120);

/// The extended resources of a pod that devices of some class may be.
#[derive(Default)]
pub(super) struct ExtendedWish {
    /// With their classes.
    resources: DeviceResources,
    /// What an attempt before this one has left.
    pub stale: Option<Arc<Object>>,
    /// The claim by the resources that a node lacks. Bound: what the nodes of one attempt lack.
    variants: Mutex<BTreeMap<Vec<String>, Arc<ExtendedVariant>>>,
}

/// The claim for nodes that lack the same.
pub(super) struct ExtendedVariant {
    /// In memory.
    pub wish: Wish,
    /// Which container uses which request.
    mappings: Vec<Value>,
}

/// What a pod gets on the node that was chosen.
#[derive(Clone)]
struct ReservedExtended {
    variant: Arc<ExtendedVariant>,
    allocation: Value,
    /// The claim, once it is written.
    made: Option<Arc<Object>>,
}

/// Makes and ends those claims.
pub(super) struct ExtendedClaims {
    claims: Lister,
    classes: Lister,
    /// Which class stands for which resource.
    resources: ExtendedResources,
    /// Counts those that were made.
    made: Arc<Family<1>>,
    /// What was found for pods on their way, by the pod's uid. Bound: pods between Reserve and the moment
    /// when the watch shows their claim.
    reserved: Mutex<BTreeMap<String, ReservedExtended>>,
}

impl ExtendedClaims {
    /// Reads through listers.
    pub(super) fn new(claims: Lister, classes: Lister) -> ExtendedClaims {
        let resources = ExtendedResources::new(classes.clone());
        let (made, reserved) = (Arc::new(claims_made::family()), Mutex::default());
        ExtendedClaims { claims, classes, resources, made, reserved }
    }

    /// One that counts here what it makes.
    pub(super) fn counting(self, made: &Arc<Family<1>>) -> ExtendedClaims {
        ExtendedClaims { made: made.clone(), ..self }
    }

    /// `preFilterExtendedResources`: nothing for a pod that has no such resources.
    pub(super) fn wish(&self, pod: &PodInfo) -> Option<ExtendedWish> {
        let asked = pod.requests.scalar.iter().filter(|(_, amount)| **amount > 0);
        let class = |(resource, _): (&String, &i64)| {
            Some((resource.clone(), self.resources.class_of(resource)?.metadata.name.clone()))
        };
        let resources: DeviceResources = asked.filter_map(class).collect();
        let stale = || self.claim_of(pod);
        (!resources.is_empty()).then(|| ExtendedWish { resources, stale: stale(), ..ExtendedWish::default() })
    }

    /// `findExtendedResourceClaim`, as far as the watch shows it.
    fn claim_of(&self, pod: &PodInfo) -> Option<Arc<Object>> {
        let claims = self.claims.list(&pod.object.metadata.namespace, &Selector::everything());
        claims.into_iter().find(|claim| is_extended_claim_of(claim, pod))
    }

    /// `filterExtendedResources`: the claim for what the node lacks, if it lacks something.
    pub(super) fn variant(
        &self,
        wish: &ExtendedWish,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<Option<Arc<ExtendedVariant>>, Status> {
        if wish.stale.is_some() {
            return Err(Status::unschedulable("cannot schedule extended resource claim"));
        }
        let names = wish.resources.keys().filter(|name| node.allocatable.amount(name) == 0);
        let lacked: Vec<String> = names.cloned().collect();
        if lacked.is_empty() {
            return Ok(None);
        }
        let mut variants = wish.variants.lock();
        if let Some(known) = variants.get(&lacked) {
            return Ok(Some(known.clone()));
        }
        let made = Arc::new(self.make_variant(wish, pod, &lacked)?);
        variants.insert(lacked, made.clone());
        Ok(Some(made))
    }

    fn make_variant(
        &self,
        wish: &ExtendedWish,
        pod: &PodInfo,
        lacked: &[String],
    ) -> Result<ExtendedVariant, Status> {
        let resources = wish.resources.iter().filter(|(name, _)| lacked.contains(name));
        let resources: DeviceResources =
            resources.map(|(name, class)| (name.clone(), class.clone())).collect();
        let asked = requests_of(&pod.pod(), &resources);
        let claim = in_memory_claim(pod, asked.requests);
        let class = |name: &str| self.classes.get("", name);
        let requests = of_claim(&claim, &class).map_err(|error| Status::unresolvable(error.0))?;
        Ok(ExtendedVariant { wish: Wish::new(claim, requests), mappings: asked.mappings })
    }

    /// What was found on the node.
    pub(super) fn reserve(&self, pod: &PodInfo, variant: Arc<ExtendedVariant>, allocation: Value) {
        let reserved = ReservedExtended { variant, allocation, made: None };
        self.reserved.lock().insert(pod.uid().to_owned(), reserved);
    }

    /// What is in memory alone is forgotten; what is written goes by [`ExtendedClaims::take_back`].
    pub(super) fn unreserve(&self, pod: &PodInfo) {
        let mut reserved = self.reserved.lock();
        if reserved.get(pod.uid()).is_some_and(|of_pod| of_pod.made.is_none()) {
            reserved.remove(pod.uid());
        }
    }

    /// Whether a pod is on its way to such devices.
    pub(super) fn is_reserved(&self, pod: &PodInfo) -> bool {
        !pod.requests.scalar.is_empty() && self.reserved.lock().contains_key(pod.uid())
    }

    /// What pods on their way have, but for those of which the watch shows it already.
    pub(super) fn add_to(&self, in_use: &mut InUse) {
        for reserved in self.reserved.lock().values() {
            if !reserved.made.as_deref().is_some_and(|claim| self.shows(claim)) {
                in_use.add(&reserved.allocation);
            }
        }
    }

    /// Whether the watch shows the claim with its devices.
    fn shows(&self, claim: &Object) -> bool {
        let known = self.claims.get(&claim.metadata.namespace, &claim.metadata.name);
        known.is_some_and(|known| known.metadata.uid == claim.metadata.uid && is_allocated(&known.to_value()))
    }

    /// Writes the claim of a pod with its devices and its user, and says in the pod's status which it is. It
    /// stays reserved until the watch shows it, so that nobody else takes its devices.
    pub(super) async fn write(
        &self,
        request: BindRequest<'_>,
        binding: &DeviceBinding,
    ) -> Result<Option<Value>, status::Status> {
        let Some(reserved) = self.reserved.lock().get(request.pod.uid()).cloned() else { return Ok(None) };
        let (client, pod) = (request.client, &request.pod.object.metadata);
        let mut tree = reserved.variant.wish.claim.clone();
        remove(&mut tree, "metadata.name");
        let made = client.create(&RESOURCE_CLAIMS, &pod.namespace, tree).await;
        self.made.count([if made.is_ok() { "success" } else { "failure" }]);
        let made = made?;
        if let Some(of_pod) = self.reserved.lock().get_mut(request.pod.uid()) {
            of_pod.made = Some(made.clone());
        }
        let written = binding.reserve_claim(request, made.clone(), Some(&reserved.allocation)).await?;
        self.wait_for_watch(&made, binding).await?;
        let status = json!({"requestMappings": reserved.variant.mappings,
            "resourceClaimName": made.metadata.name});
        let patch = json!({"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}});
        client.patch_status(&PODS, &pod.namespace, &pod.name, PatchType::Merge, &patch).await?;
        self.reserved.lock().remove(request.pod.uid());
        Ok(Some(written))
    }

    /// `waitForExtendedClaimInAssumeCache`
    async fn wait_for_watch(&self, claim: &Object, binding: &DeviceBinding) -> Result<(), status::Status> {
        let shown = self.claims.until(|| self.shows(claim));
        binding.clock.timeout(SHOWN_WITHIN, shown).await.map_err(|_| {
            status::Status::timeout(format!("the watch has not shown resourceclaim {} yet", claim.key()))
        })
    }

    /// `unreserveExtendedResourceClaim`: what was written goes again.
    pub(super) async fn take_back(&self, request: BindRequest<'_>) {
        let reserved = self.reserved.lock().get(request.pod.uid()).cloned();
        let made = reserved.and_then(|reserved| reserved.made).or_else(|| self.claim_of(request.pod));
        if let Some(claim) = made
            && let Err(status) = delete_claim(request.client, &claim).await
        {
            tracing::warn!(claim = %claim.key(), status = %status.message, "delete extended resource claim");
        }
        self.reserved.lock().remove(request.pod.uid());
    }
}

/// Whether the scheduler has made a claim for a pod's extended resources.
pub(super) fn is_extended_claim_of(claim: &Object, pod: &PodInfo) -> bool {
    claim.controller().is_some_and(|owner| *owner.uid == *pod.uid())
        && annotation(&claim.to_value(), ANNOTATION) == "true"
}

/// The finalizer goes first, so that the claim goes at once.
pub(super) async fn delete_claim(client: &Client, claim: &Object) -> Result<(), status::Status> {
    let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
    let uid = claim.metadata.uid.clone();
    let Some(newest) = client.find(&RESOURCE_CLAIMS, namespace, name).await? else { return Ok(()) };
    let mut tree = newest.to_value();
    if newest.metadata.uid == uid && remove_finalizers(&mut tree, &[FINALIZER]) {
        client.update(&RESOURCE_CLAIMS, namespace, name, tree).await?;
    }
    let preconditions = Some(Preconditions { uid: Some(uid), resource_version: None });
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let deleted = client.delete(&RESOURCE_CLAIMS, namespace, name, &options).await;
    deleted.map(drop).or_else(|status| if status.is_not_found() { Ok(()) } else { Err(status) })
}

fn in_memory_claim(pod: &PodInfo, requests: Vec<Value>) -> Value {
    let metadata = &pod.object.metadata;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid,
        "controller": true});
    json!({
        "metadata": {
            "name": IN_MEMORY,
            "namespace": metadata.namespace,
            "generateName": format!("{}-extended-resources-", metadata.name),
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": requests}},
    })
}
