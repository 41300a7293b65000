//! DefaultStorageClass: a claim that names no class gets the default one
//! (`plugin/pkg/admission/storage/storageclass/setdefault`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::default_class::DefaultClass;
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use apimachinery::status::Status;

const MARKS: &[&str] =
    &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Fills in `storageClassName`.
pub(super) struct DefaultStorageClass(DefaultClass);

impl DefaultStorageClass {
    /// Reads storage classes.
    pub(super) fn new(with: &Initializer) -> DefaultStorageClass {
        let names = ("spec.storageClassName", "volume.beta.kubernetes.io/storage-class");
        DefaultStorageClass(DefaultClass::new(with, ("storage.k8s.io", "storageclasses"), MARKS, names))
    }
}

impl AdmissionPlugin for DefaultStorageClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.writes("", "persistentvolumeclaims")
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match object {
                Some(object) => self.0.fill_in(object).await,
                None => Ok(()),
            }
        })
    }
}
