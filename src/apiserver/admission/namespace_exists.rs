//! NamespaceExists: nothing is done in a namespace that is not there
//! (`plugin/pkg/admission/namespace/exists`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use apimachinery::gvk::GroupResource;
use apimachinery::status::Status;

/// Looks up the namespace of everything, deletes too, which NamespaceLifecycle does not.
pub(super) struct NamespaceExists {
    namespaces: AdmissionLister,
}

impl NamespaceExists {
    /// Reads namespaces.
    pub(super) fn new(with: &Initializer) -> NamespaceExists {
        NamespaceExists { namespaces: AdmissionLister::new(with, "", "v1", "namespaces") }
    }
}

impl AdmissionPlugin for NamespaceExists {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation != Operation::Connect && !attributes.namespace.is_empty()
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        _object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match self.namespaces.get("", attributes.namespace).await? {
                Some(_) => Ok(()),
                None => Err(Status::not_found(&GroupResource::new("", "namespaces"), attributes.namespace)),
            }
        })
    }
}
