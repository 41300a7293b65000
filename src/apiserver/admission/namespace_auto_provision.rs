//! NamespaceAutoProvision: a namespace that is missing is made for what is created in it
//! (`plugin/pkg/admission/namespace/autoprovision`).

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use crate::registry::Registry;
use crate::request::RequestContext;
use apimachinery::status::Status;

/// Creates namespaces.
pub(super) struct NamespaceAutoProvision {
    registry: Registry,
    namespaces: AdmissionLister,
}

impl NamespaceAutoProvision {
    /// Reads and creates namespaces.
    pub(super) fn new(with: &Initializer) -> NamespaceAutoProvision {
        let namespaces = AdmissionLister::new(with, "", "v1", "namespaces");
        NamespaceAutoProvision { registry: with.registry.clone(), namespaces }
    }

    async fn provide(&self, name: &str) -> Result<(), Status> {
        let Some(kind) = self.namespaces.kind() else { return Ok(()) };
        if self.namespaces.get("", name).await?.is_some() {
            return Ok(());
        }
        let mut namespace = json!({"metadata": {"name": name}});
        (kind.defaults)(&mut namespace);
        match self.registry.create(&RequestContext::default(), kind, "", namespace, &()).await {
            Err(status) if !status.is_already_exists() => Err(status),
            _ => Ok(()),
        }
    }
}

impl AdmissionPlugin for NamespaceAutoProvision {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create
            && !attributes.namespace.is_empty()
            && !attributes.ctx.dry_run
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        _object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.provide(attributes.namespace))
    }
}
