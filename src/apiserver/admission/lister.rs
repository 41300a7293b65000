//! What plugins read of other objects (upstream's informers and their listers).

use std::sync::Arc;

use super::Initializer;
use crate::registry::Registry;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::Kind;

/// Objects of one kind, from the watch cache; what was answered to a writer is in it.
pub(super) struct AdmissionLister {
    registry: Registry,
    kind: Option<Arc<Kind>>,
}

impl AdmissionLister {
    /// Of a kind; one that is not served has no objects.
    pub(super) fn new(with: &Initializer, group: &str, version: &str, plural: &str) -> AdmissionLister {
        AdmissionLister {
            registry: with.registry.clone(),
            kind: with.scheme.resource(group, version, plural),
        }
    }

    /// The kind.
    pub(super) fn kind(&self) -> Option<&Arc<Kind>> {
        self.kind.as_ref()
    }

    /// One object, if it is there.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn get(&self, namespace: &str, name: &str) -> Result<Option<Arc<Object>>, Status> {
        let Some(kind) = &self.kind else { return Ok(None) };
        match self.registry.get(kind, namespace, name, Some("0")).await {
            Ok(object) => Ok(Some(object)),
            // The cache may have been on its way.
            Err(status) if status.is_not_found() => {
                found(self.registry.get(kind, namespace, name, None).await)
            }
            Err(status) => Err(status),
        }
    }

    /// The objects of a namespace, or all.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn list(&self, namespace: &str) -> Result<Arc<[Arc<Object>]>, Status> {
        let Some(kind) = &self.kind else { return Ok(Arc::from([])) };
        // Of most kinds that plugins read, most clusters have none.
        if self.registry.is_known_to_be_empty(kind) {
            return Ok(Arc::from([]));
        }
        let options = ListOptions { resource_version: Some("0".into()), ..ListOptions::default() };
        Ok(self.registry.list(kind, namespace, &options).await?.items)
    }
}

fn found(answer: Result<Arc<Object>, Status>) -> Result<Option<Arc<Object>>, Status> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(status) if status.is_not_found() => Ok(None),
        Err(status) => Err(status),
    }
}
