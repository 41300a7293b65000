//! The claim protection controller (`pkg/controller/volume/pvcprotection`): a claim that pods use stays until
//! they are gone.

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pv_protection::keep_finalizer;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, object_key, split_key};
use apimachinery::status::Status;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::views::pod::Pod;
use apis::views::pod_volumes::PodClaim;
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
            let view = pod.view::<Pod>();
            let is_its_own = || claim.metadata.owner_references.iter().any(|it| it.uid == pod.metadata.uid);
            let counts = |of: &&PodClaim| !of.is_ephemeral || (is_its_own() && !is_shut_down(pod));
            !view.spec.node_name.is_empty()
                && view.spec.claims.iter().filter(counts).any(|of| of.claim_name(&pod.metadata.name) == *name)
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
            for claim in pod.view::<Pod>().spec.claims.claim_names(&pod.metadata.name) {
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
