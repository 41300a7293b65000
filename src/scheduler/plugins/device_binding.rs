//! The part of DynamicResources after the choice of a node: devices that take their time until their pod can
//! be bound, and claims that give theirs back (`PreBind`, `PostFilter`, `Unreserve` of
//! `plugins/dynamicresources`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dra::binding_conditions::{BindingFailed, has_binding_conditions, is_ready, is_timed_out};
use crate::dra::requests::is_allocated;
use crate::framework::plugin::BindRequest;
use crate::framework::pod_info::PodInfo;
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::core::pod::PODS;
use apis::resource::resource_claim::{FINALIZER, RESOURCE_CLAIMS};
use apis::tree::{add_finalizers, items, set, text};
use apis::views::pod::Pod;
use client_go::client::Client;
use client_go::lister::Lister;
use clock::Clock;

/// Until claims are looked at again whose devices are not ready.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// A write that meets another one is tried again so often.
const ATTEMPTS: usize = 5;

/// Waits for devices. It asks the watch's cache alone, and gives up after the timeout.
pub(super) struct DeviceBinding {
    /// Of ResourceClaims.
    pub claims: Lister,
    /// The cluster's.
    pub clock: Clock,
    /// How long devices may take (`bindingTimeout`).
    pub timeout: Duration,
}

impl DeviceBinding {
    /// Whether a claim that has devices can be used: they are ready, or may still become so.
    pub(super) fn has_hope(&self, claim: &Value) -> bool {
        is_ready(claim).is_ok_and(|ready| ready || !is_timed_out(claim, self.timeout, self.clock.now()))
    }

    /// Waits until all devices of the pod are ready. `written` are its claims as they are now: the watch may
    /// not have shown that yet.
    pub(super) async fn wait(
        &self,
        request: BindRequest<'_>,
        written: &[Value],
    ) -> Result<(), BindingFailed> {
        if !written.iter().any(has_binding_conditions) {
            return Ok(());
        }
        let message = format!("waiting for binding conditions for device on node {}", request.node);
        let (about, action) = ((&**PODS, &*request.pod.object), ("Scheduling", None));
        request.recorder.event_of(about, action, "Normal", "BindingConditionsPending", message);
        let deadline = self.clock.elapsed() + self.timeout;
        let mut claims = written.to_vec();
        while !self.are_ready(&claims)? {
            if self.clock.elapsed() >= deadline {
                return Err(BindingFailed("device binding timeout".into()));
            }
            self.clock.sleep(POLL_INTERVAL).await;
            claims = self.as_they_are(&claims)?;
        }
        Ok(())
    }

    fn as_they_are(&self, claims: &[Value]) -> Result<Vec<Value>, BindingFailed> {
        let newest = |claim: &Value| {
            let (namespace, name) = (text(claim, "metadata.namespace"), text(claim, "metadata.name"));
            let gone = || BindingFailed(format!("resourceclaim.resource.k8s.io {name:?} not found"));
            self.claims.get(namespace, name).map(|claim| claim.to_value()).ok_or_else(gone)
        };
        claims.iter().map(newest).collect()
    }

    /// `isPodReadyForBinding`
    fn are_ready(&self, claims: &[Value]) -> Result<bool, BindingFailed> {
        for claim in claims {
            if is_ready(claim)? {
                continue;
            }
            if is_timed_out(claim, self.timeout, self.clock.now()) {
                let why = format!("claim {} binding timeout", text(claim, "metadata.name"));
                return Err(BindingFailed(why));
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// `bindClaim`: the finalizer first, then the devices, if they are new, and the pod.
    pub(super) async fn reserve_claim(
        &self,
        request: BindRequest<'_>,
        mut claim: Arc<Object>,
        allocation: Option<&Value>,
    ) -> Result<Value, Status> {
        let (client, namespace) = (request.client, &claim.metadata.namespace.clone());
        let name = claim.metadata.name.clone();
        let mut attempt = 0;
        loop {
            match write_claim(request, &claim, allocation, self.clock.now()).await {
                Err(status) if status.is_conflict() && attempt < ATTEMPTS => {
                    claim = client.get(&RESOURCE_CLAIMS, namespace, &name).await?;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// The pod has its claims no longer; what they have they keep.
    pub(super) async fn release(&self, request: BindRequest<'_>) {
        let uid = request.pod.uid();
        let namespace = &request.pod.object.metadata.namespace;
        for claim in names(request.pod).filter_map(|name| self.claims.get(namespace, &name)) {
            let patch = json!({"metadata": {"uid": claim.metadata.uid},
                "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]}});
            let (name, kind) = (&claim.metadata.name, PatchType::StrategicMerge);
            let patched = request.client.patch_status(&RESOURCE_CLAIMS, namespace, name, kind, &patch).await;
            if let Err(status) = patched {
                tracing::debug!(claim = %claim.key(), status = %status.message, "unreserve");
            }
        }
    }
}

async fn write_claim(
    request: BindRequest<'_>,
    claim: &Object,
    allocation: Option<&Value>,
    now: Time,
) -> Result<Value, Status> {
    let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
    let mut tree = claim.to_value();
    let is_new = allocation.is_some() && !is_allocated(&tree);
    if is_new && add_finalizers(&mut tree, &[FINALIZER]) {
        tree = request.client.update(&RESOURCE_CLAIMS, namespace, name, tree).await?.to_value();
    }
    allocate(&mut tree, allocation, now)?;
    let mut reserved = items(&tree, "status.reservedFor").to_vec();
    if reserved.iter().any(|user| text(user, "uid") == request.pod.uid()) {
        return Ok(tree);
    }
    let pod = &request.pod.object.metadata;
    reserved.push(json!({"resource": "pods", "name": pod.name, "uid": pod.uid}));
    set(&mut tree, "status.reservedFor", reserved);
    let written = request.client.update_status(&RESOURCE_CLAIMS, namespace, name, tree).await?;
    Ok(written.to_value())
}

/// Gives a claim its devices, unless it has some: those that it has stay as they are. It may have lost them
/// since they were looked at, and then nobody may use it.
fn allocate(claim: &mut Value, allocation: Option<&Value>, now: Time) -> Result<(), Status> {
    if is_allocated(claim) {
        return Ok(());
    }
    let Some(allocation) = allocation else {
        let (namespace, name) = (text(claim, "metadata.namespace"), text(claim, "metadata.name"));
        let why = format!("claim {namespace}/{name} got deallocated elsewhere in the meantime");
        return Err(Status::internal(why));
    };
    set(claim, "status.allocation", allocation.clone());
    set(claim, "status.allocation.allocationTimestamp", rfc3339(now));
    Ok(())
}

/// Whether nobody but the pod has a claim, so that its devices may be given back.
pub(super) fn may_deallocate(claim: &Value, pod: &PodInfo) -> bool {
    items(claim, "status.reservedFor").iter().all(|user| text(user, "uid") == pod.uid())
}

/// The claim has neither devices nor users any more.
pub(super) async fn deallocate(client: &Client, claim: &Value) -> Result<(), Status> {
    let mut tree = claim.clone();
    if let Some(status) = tree["status"].as_object_mut() {
        status.retain(|field, _| !matches!(field.as_str(), "allocation" | "reservedFor" | "devices"));
    }
    let (namespace, name) = (text(claim, "metadata.namespace"), text(claim, "metadata.name"));
    client.update_status(&RESOURCE_CLAIMS, namespace, name, tree).await.map(drop)
}

/// The claims that a pod has, without those that it turned out not to need.
pub(super) fn names(pod: &PodInfo) -> impl Iterator<Item = String> {
    let Pod { spec, status, .. } = &*pod.pod();
    let claims = spec.resource_claims.iter().filter_map(|of| of.claim_name(&status.resource_claim_statuses));
    let names: Vec<String> = claims.filter(|name| !name.is_empty()).collect();
    names.into_iter()
}

/// Whether an object is a claim with devices.
pub(super) fn has_devices(claim: &Object) -> bool {
    is_allocated(&claim.to_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_given_once_and_their_time_with_them() {
        let now: Time = "2026-01-01T00:00:00Z".parse().unwrap();
        let given = json!({"devices": {"results": [{"device": "gpu-0"}]}});
        let claim = || json!({"metadata": {"namespace": "ns", "name": "a"}});
        let mut new = claim();
        allocate(&mut new, Some(&given), now).unwrap();
        assert_eq!(new["status"]["allocation"]["allocationTimestamp"], "2026-01-01T00:00:00Z");
        assert_eq!(new["status"]["allocation"]["devices"], given["devices"]);
        // Another allocator gave it, or an earlier release.
        let mut known = claim();
        set(&mut known, "status.allocation", given.clone());
        let before = known.clone();
        allocate(&mut known, Some(&json!({})), now).unwrap();
        assert_eq!(known, before);
        let mut lost = claim();
        let why = allocate(&mut lost, None, now).unwrap_err();
        assert!(
            why.message.contains("claim ns/a got deallocated elsewhere in the meantime"),
            "{}",
            why.message
        );
        assert_eq!(lost, claim());
    }
}
