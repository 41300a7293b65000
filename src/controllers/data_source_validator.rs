//! The validator of data sources (`kubernetes-csi/volume-data-source-validator`), which clusters with volume
//! populators bring along: a claim is told when nobody fills volumes from what it names.
//!
//! VolumePopulators are of a custom kind: until somebody installs that, nothing is said.

use std::sync::Arc;

use serde_json::Value;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::volume_snapshots::SNAPSHOT_GROUP;
use apimachinery::object::{Object, split_key};
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::scheme::Scheme;
use apis::tree::{at, text};
use client_go::ComponentContext;
use client_go::lister::Lister;

/// Of VolumePopulators.
const GROUP: &str = "populator.storage.k8s.io";
const VERSION: &str = "v1beta1";
const PLURAL: &str = "volumepopulators";

/// Looks at the data sources of claims.
pub(crate) struct DataSourceValidator {
    claims: Lister,
    scheme: Arc<Scheme>,
}

impl DataSourceValidator {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext, scheme: &Arc<Scheme>) -> DataSourceValidator {
        let claims = ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister();
        DataSourceValidator { claims, scheme: scheme.clone() }
    }

    /// Whether a populator is registered for a kind (`validateGroupKind`).
    async fn is_known(&self, ctx: &Reconcile, source: &Value) -> Result<bool, Status> {
        let Some(kind) = self.scheme.resource(GROUP, VERSION, PLURAL) else { return Ok(true) };
        let populators = ctx.client.list(&kind, "", &ListOptions::default()).await?;
        let fills = |populator: &Arc<Object>| {
            let tree = populator.to_value();
            let of = at(&tree, "sourceKind");
            text(of, "group") == text(source, "apiGroup") && text(of, "kind") == text(source, "kind")
        };
        Ok(populators.items.iter().any(fills))
    }
}

impl Controller for DataSourceValidator {
    const NAME: &'static str = "volume-data-source-validator";
    const EVENT_SOURCE: &'static str = "volume-data-source-validator";
    const SERVICE_ACCOUNT: &'static str = "persistent-volume-binder";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let scheme = self.scheme.clone();
        Watches::none().maps(&PERSISTENT_VOLUME_CLAIMS, move |change: &Change<'_>, enqueue: &Enqueue| {
            let is_installed = scheme.resource(GROUP, VERSION, PLURAL).is_some();
            if is_installed && is_foreign(&source_of(change.object())) {
                enqueue.now(change.object().key());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(claim) = self.claims.get(namespace, name) else { return Ok(Action::Done) };
        if !self.is_known(ctx, &source_of(&claim)).await? {
            let message = "The datasource for this PVC does not match any registered VolumePopulator";
            ctx.event(&PERSISTENT_VOLUME_CLAIMS, &claim, "Warning", "UnrecognizedDataSourceKind", message);
        }
        Ok(Action::Done)
    }
}

fn source_of(claim: &Object) -> Value {
    at(&claim.to_value(), "spec.dataSourceRef").clone()
}

/// Claims and snapshots are sources everywhere.
fn is_foreign(source: &Value) -> bool {
    match (text(source, "apiGroup"), text(source, "kind")) {
        ("", "" | "PersistentVolumeClaim") => false,
        (group, kind) => (group, kind) != (SNAPSHOT_GROUP, "VolumeSnapshot"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claims_and_snapshots_need_no_populator() {
        assert!(!is_foreign(&Value::Null));
        assert!(!is_foreign(&json!({"kind": "PersistentVolumeClaim", "name": "a"})));
        assert!(!is_foreign(&json!({"apiGroup": SNAPSHOT_GROUP, "kind": "VolumeSnapshot"})));
        assert!(is_foreign(&json!({"apiGroup": "example.com", "kind": "VolumeSnapshot"})));
    }
}
