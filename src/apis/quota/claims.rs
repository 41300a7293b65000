//! What claims of volumes use, in all and by storage class (`evaluator/core/persistent_volume_claims.go`).

use serde_json::Value;

use super::measure::{Measure, one};
use super::scopes::QuotaScope;
use super::surroundings::ClaimSurroundings;
use crate::resources::{Amounts, amounts};
use crate::tree::{annotation, at, text};
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;

/// Between a storage class and what is limited of it.
const BY_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIM_RESOURCES: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// `persistentvolumeclaims`
pub const CLAIMS: ClaimMeasure = ClaimMeasure;

/// Measures PersistentVolumeClaims.
pub struct ClaimMeasure;

impl Measure for ClaimMeasure {
    fn handles(&self, _is_create: bool, subresource: &str) -> bool {
        matches!(subresource, "" | "status")
    }

    fn measures(&self, name: &str) -> bool {
        let of_class = name.split_once(BY_STORAGE_CLASS).map(|(_, of_class)| of_class);
        CLAIM_RESOURCES.contains(&of_class.unwrap_or(name))
    }

    fn usage(&self, claim: &Value, _now: Time, _around: &ClaimSurroundings) -> Amounts {
        claim_usage(claim)
    }

    fn is_in(&self, scope: &QuotaScope, claim: &Value) -> bool {
        scope.holds_claim(claim)
    }

    fn frees(&self, old: &Value, new: &Value) -> bool {
        let paths =
            ["status.allocatedResources", "spec.resources", "status.currentVolumeAttributesClassName"];
        paths.iter().any(|path| at(old, path) != at(new, path))
    }
}

fn claim_usage(claim: &Value) -> Amounts {
    let class = match annotation(claim, "volume.beta.kubernetes.io/storage-class") {
        "" => text(claim, "spec.storageClassName"),
        beta => beta,
    };
    let mut usage = Amounts::from([("persistentvolumeclaims".into(), one())]);
    let requested = amounts(claim, "spec.resources.requests").remove("storage");
    let allocated = amounts(claim, "status.allocatedResources").remove("storage");
    if let Some(requested) = requested {
        usage.insert("requests.storage".into(), allocated.into_iter().fold(requested, Quantity::max));
    }
    if !class.is_empty() {
        let of_class = |(name, amount)| (format!("{class}{BY_STORAGE_CLASS}{name}"), amount);
        usage.extend(usage.clone().into_iter().map(of_class).collect::<Amounts>());
    }
    usage
}
