//! The claim protection controller (`pkg/controller/volume/pvcprotection`): a claim that pods use stays until
//! they are gone.

use serde_json::Value;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pv_protection::keep_finalizer;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, object_key, split_key};
use apimachinery::status::Status;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::tree::{is_set, items, text};
use client_go::ComponentContext;
use client_go::lister::Lister;

const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// Holds claims by a finalizer.
pub(crate) struct PvcProtectionController {
    claims: Lister,
    pods: Lister,
}

impl PvcProtectionController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> PvcProtectionController {
        let claims = ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister();
        PvcProtectionController { claims, pods: ctx.informers.informer(&PODS).lister() }
    }

    /// Only pods that have a node count: no kubelet starts one whose claim is being deleted.
    fn is_used(&self, claim: &Object) -> bool {
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        let pods = self.pods.list(namespace, &Selector::everything());
        pods.iter().any(|pod| {
            let tree = pod.to_value();
            let is_its_own =
                claim.metadata.owner_references.iter().any(|owner| owner.uid == pod.metadata.uid);
            let has_ephemeral =
                is_its_own && !is_shut_down(pod) && ephemeral_claims(&tree).any(|it| it == *name);
            !text(&tree, "spec.nodeName").is_empty()
                && (named_claims(&tree).any(|claim| claim == name) || has_ephemeral)
        })
    }
}

impl Controller for PvcProtectionController {
    const NAME: &'static str = "PVC protection";
    const EVENT_SOURCE: &'static str = "pvc-protection-controller";
    const SERVICE_ACCOUNT: &'static str = "pvc-protection-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let claims = self.claims.clone();
        Watches::of(&PERSISTENT_VOLUME_CLAIMS).maps(&PODS, move |change: &Change<'_>, enqueue: &Enqueue| {
            let pod = change.object();
            let is_over = matches!(change, Change::Deleted(_)) || is_shut_down(pod);
            if !is_over || claims.is_empty() {
                return;
            }
            for claim in claims_of(&pod.to_value()) {
                enqueue.now(object_key(&pod.metadata.namespace, &claim));
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(claim) = self.claims.get(namespace, name) else { return Ok(Action::Done) };
        let must_stay = !claim.is_deleting() || self.is_used(&claim);
        keep_finalizer(ctx, &PERSISTENT_VOLUME_CLAIMS, &claim, FINALIZER, must_stay).await
    }
}

/// `podIsShutDown`: its kubelet has confirmed that nothing of it runs, and what made its volumes may go.
fn is_shut_down(pod: &Object) -> bool {
    pod.is_deleting() && pod.metadata.deletion_grace_period_seconds == Some(0)
}

/// The claims that a pod names, and those that were made for it.
pub(crate) fn claims_of(pod: &Value) -> impl Iterator<Item = String> + '_ {
    named_claims(pod).map(str::to_owned).chain(ephemeral_claims(pod))
}

fn named_claims(pod: &Value) -> impl Iterator<Item = &str> {
    let named = items(pod, "spec.volumes").iter().map(|it| text(it, "persistentVolumeClaim.claimName"));
    named.filter(|claim| !claim.is_empty())
}

fn ephemeral_claims(pod: &Value) -> impl Iterator<Item = String> + '_ {
    let name = text(pod, "metadata.name");
    let ephemeral = items(pod, "spec.volumes").iter().filter(|volume| is_set(volume, "ephemeral"));
    ephemeral.map(move |volume| format!("{name}-{}", text(volume, "name")))
}
