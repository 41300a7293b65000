//! The volume protection controller (`pkg/controller/volume/pvprotection`): a volume that is bound stays.

use std::sync::Arc;

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use apimachinery::object::Object;
use apimachinery::pick::pick;
use apimachinery::status::Status;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::kind::Kind;
use apis::tree::object_mut;
use client_go::ComponentContext;
use client_go::lister::Lister;

const FINALIZER: &str = "kubernetes.io/pv-protection";

/// Holds volumes by a finalizer.
pub(crate) struct PvProtectionController {
    volumes: Lister,
}

impl PvProtectionController {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext) -> PvProtectionController {
        PvProtectionController { volumes: ctx.informers.informer(&PERSISTENT_VOLUMES).lister() }
    }
}

impl Controller for PvProtectionController {
    const NAME: &'static str = "PV protection";
    const EVENT_SOURCE: &'static str = "pv-protection-controller";
    const SERVICE_ACCOUNT: &'static str = "pv-protection-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::of(&PERSISTENT_VOLUMES)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(volume) = self.volumes.get("", key) else { return Ok(Action::Done) };
        let is_bound = pick(&volume.stored(), &["status.phase"])[0] == "Bound";
        let must_stay = !volume.is_deleting() || is_bound;
        keep_finalizer(ctx, &PERSISTENT_VOLUMES, &volume, FINALIZER, must_stay).await
    }
}

/// Adds a finalizer to an object that must stay, and takes it from one that may go.
pub(crate) async fn keep_finalizer(
    ctx: &Reconcile,
    kind: &Arc<Kind>,
    object: &Object,
    finalizer: &str,
    must_stay: bool,
) -> Result<Action, Status> {
    let mut finalizers = object.metadata.finalizers.clone();
    let has = finalizers.iter().any(|known| known == finalizer);
    // Nothing may be added to what is being deleted.
    let may_add = must_stay && !object.is_deleting();
    match (has, must_stay) {
        (false, true) if may_add => finalizers.push(finalizer.into()),
        (true, false) => finalizers.retain(|known| known != finalizer),
        _ => return Ok(Action::Done),
    }
    let mut tree = object.to_value();
    object_mut(&mut tree, "metadata").insert("finalizers".into(), finalizers.into());
    let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
    match ctx.client.update(kind, namespace, name, tree).await {
        Err(status) if !status.is_not_found() => Err(status),
        _ => Ok(Action::Done),
    }
}
