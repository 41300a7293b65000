//! The ephemeral volume controller (`pkg/controller/volume/ephemeral`): a claim for each generic
//! ephemeral volume of a pod, named after both and owned by the pod, so that it goes with it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::controller_ref::controller_reference;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::tree::{is_set, items, text};
use apis::views::pod::Pod;
use client_go::ComponentContext;
use client_go::lister::Lister;
use component_base::metrics::Family;

/// Makes the claims.
pub(crate) struct EphemeralVolumeController {
    pods: Lister,
    claims: Lister,
    requests: Arc<Family<0>>,
    failures: Arc<Family<0>>,
}

impl EphemeralVolumeController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> EphemeralVolumeController {
        let [pods, claims] =
            [&PODS, &PERSISTENT_VOLUME_CLAIMS].map(|kind| ctx.informers.informer(kind).lister());
        // Upstream says the same of both.
        let help = "[ALPHA] Number of PersistenVolumeClaims creation requests";
        let [requests, failures] =
            ["ephemeral_volume_controller_create_total", "ephemeral_volume_controller_create_failures_total"]
                .map(|name| Arc::new(Family::counter(name, help, [])));
        ctx.metrics.add("ephemeral-volume-requests", requests.clone());
        ctx.metrics.add("ephemeral-volume-failures", failures.clone());
        EphemeralVolumeController { pods, claims, requests, failures }
    }

    /// Makes the claim of one volume, unless it is there.
    async fn handle_volume(&self, ctx: &Reconcile, pod: &Object, volume: &Value) -> Result<(), Status> {
        let (namespace, pod_name) = (&pod.metadata.namespace, &pod.metadata.name);
        let name = format!("{pod_name}-{}", text(volume, "name"));
        if let Some(claim) = self.claims.get(namespace, &name) {
            if claim.controller().is_some_and(|owner| *owner.uid == *pod.metadata.uid) {
                return Ok(());
            }
            let message = format!(
                "PVC {namespace}/{name} was not created for pod {namespace}/{pod_name} (pod is not owner)"
            );
            return Err(Status::failure(500, "InternalError", message));
        }
        let template = &volume["ephemeral"]["volumeClaimTemplate"];
        let claim = json!({
            "metadata": {
                "name": name,
                "ownerReferences": [controller_reference(pod, &PODS)],
                "annotations": template["metadata"]["annotations"],
                "labels": template["metadata"]["labels"],
            },
            "spec": template["spec"],
        });
        let created = ctx.client.create(&PERSISTENT_VOLUME_CLAIMS, namespace, claim).await;
        self.requests.count([]);
        if created.is_err() {
            self.failures.count([]);
        }
        created.map(drop).map_err(|mut status| {
            status.message = format!("create PVC {name}: {}", status.message);
            status
        })
    }
}

impl Controller for EphemeralVolumeController {
    const NAME: &'static str = "ephemeral_volume";
    const EVENT_SOURCE: &'static str = "ephemeral_volume";
    const SERVICE_ACCOUNT: &'static str = "ephemeral-volume-controller";

    fn watches(&self) -> Watches {
        let pods = |change: &Change<'_>, enqueue: &Enqueue| {
            if matches!(change, Change::Added(pod) if !pod.is_deleting() && has_ephemeral_volumes(pod)) {
                enqueue.now(change.object().key());
            }
        };
        // A claim that somebody took away is made again.
        let owners = self.pods.clone();
        let claims = move |change: &Change<'_>, enqueue: &Enqueue| {
            let Change::Deleted(claim) = change else { return };
            let owner = claim.controller().filter(|owner| *owner.kind == *PODS.kind);
            let pod = owner.and_then(|owner| owners.get(&claim.metadata.namespace, &owner.name));
            if let Some(pod) = pod.filter(|pod| has_ephemeral_volumes(pod)) {
                enqueue.now(pod.key());
            }
        };
        Watches::none().maps(&PODS, pods).maps(&PERSISTENT_VOLUME_CLAIMS, claims)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(pod) = self.pods.get(namespace, name).filter(|pod: &Arc<Object>| !pod.is_deleting()) else {
            return Ok(Action::Done);
        };
        let tree = pod.to_value();
        for volume in items(&tree, "spec.volumes").iter().filter(|volume| is_set(volume, "ephemeral")) {
            if let Err(status) = self.handle_volume(ctx, &pod, volume).await {
                let message = format!("ephemeral volume {}: {}", text(volume, "name"), status.message);
                ctx.event(&PODS, &pod, "Warning", "FailedBinding", message);
                return Err(status);
            }
        }
        Ok(Action::Done)
    }
}

/// Most pods have none: those are not read, because what was read of an object is kept with it.
fn has_ephemeral_volumes(pod: &Object) -> bool {
    pod.mentions("volumeClaimTemplate")
        && pod.view::<Pod>().spec.claims.iter().any(|claim| claim.is_ephemeral)
}
