//! PersistentVolumeClaimResize: a claim may grow only where its class says so
//! (`plugin/pkg/admission/storage/persistentvolume/resize`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use apimachinery::status::Status;
use apis::resources::amounts;
use apis::tree::{annotation, flag, text};

/// Refuses to enlarge claims whose class does not allow it.
pub(super) struct PersistentVolumeClaimResize {
    classes: AdmissionLister,
}

impl PersistentVolumeClaimResize {
    /// Reads storage classes.
    pub(super) fn new(with: &Initializer) -> PersistentVolumeClaimResize {
        PersistentVolumeClaimResize {
            classes: AdmissionLister::new(with, "storage.k8s.io", "v1", "storageclasses"),
        }
    }

    async fn may_grow(&self, new: &Value, old: &Value) -> Result<bool, Status> {
        let (name, before) = (class(new), class(old));
        if name.is_empty() || name != before {
            return Ok(false);
        }
        let class = self.classes.get("", name).await?;
        Ok(class.is_some_and(|class| flag(&class.to_value(), "allowVolumeExpansion")))
    }
}

impl AdmissionPlugin for PersistentVolumeClaimResize {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update && attributes.writes("", "persistentvolumeclaims")
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let (Some(new), Some(old)) = (object, old) else { return Ok(()) };
            let size = |claim: &Value| amounts(claim, "spec.resources.requests").remove("storage");
            if size(new).unwrap_or_default() <= size(old).unwrap_or_default() {
                return Ok(());
            }
            if text(old, "status.phase") != "Bound" {
                let why = "Only bound persistent volume claims can be expanded";
                return Err(forbidden(attributes, object, why));
            }
            if !self.may_grow(new, old).await? {
                let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions \
                           the pvc must support resize";
                return Err(forbidden(attributes, object, why));
            }
            Ok(())
        })
    }
}

/// `GetPersistentVolumeClaimClass`
fn class(claim: &Value) -> &str {
    match annotation(claim, "volume.beta.kubernetes.io/storage-class") {
        "" => text(claim, "spec.storageClassName"),
        beta => beta,
    }
}
