//! Admission: what is filled in and refused before an object is written (`k8s.io/apiserver/pkg/admission`).
//! Next: src/apiserver/registry/store.rs
//!
//! In comes what is to be done to which object; plugins change it (`admit`), then, when nothing changes it
//! any more, look at it once again (`validate`, called by the registry last before the write). One file per
//! plugin. It reads other objects through the registry and never writes.

pub mod default_toleration_seconds;
pub mod namespace_lifecycle;
pub mod priority;
pub mod service_account;
pub mod taint_nodes_by_condition;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::apimachinery::status::Status;
use crate::apis::kind::Kind;
use crate::apis::scheme::Scheme;
use crate::apiserver::registry::{Registry, Validating};
use crate::apiserver::request::RequestContext;
use crate::clock::Clock;
use crate::entropy::Entropy;

/// `admission.Operation`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object or subresource.
    Create,
    /// PUT and PATCH.
    Update,
    /// Also each object of a deletecollection.
    Delete,
    /// exec, attach, portforward, proxy.
    Connect,
}

/// What is to be done (`admission.Attributes`), without the object, which a plugin may change.
pub struct Attributes<'a> {
    /// Who asks; where warnings go.
    pub ctx: &'a RequestContext,
    /// What is done.
    pub operation: Operation,
    /// To which kind.
    pub kind: &'a Arc<Kind>,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// Empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Empty where it is generated, and for a collection.
    pub name: &'a str,
}

/// One admission plugin. Both methods admit by default; trees are without `apiVersion` and `kind`.
pub trait Plugin: Send + Sync {
    /// Whether it has anything to say (`admission.Interface.Handles` and what plugins check first).
    fn handles(&self, attributes: &Attributes) -> bool;

    /// Changes the object (`MutationInterface.Admit`). `object` is missing on a delete.
    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        _object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Refuses or not (`ValidationInterface.Validate`).
    fn validate<'a>(
        &'a self,
        _attributes: &'a Attributes,
        _object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// All plugins, in order.
pub struct Admission {
    plugins: Vec<Box<dyn Plugin>>,
}

impl Admission {
    /// The list, in upstream's recommended order, which is the order of both phases.
    pub fn new(registry: &Registry, scheme: &Scheme, clock: &Clock, entropy: &Entropy) -> Admission {
        Admission {
            plugins: vec![
                // First: in a namespace that is going away nothing else needs to be asked.
                Box::new(namespace_lifecycle::NamespaceLifecycle::new(registry, scheme, clock)),
                Box::new(service_account::ServiceAccount::new(registry, scheme, clock, entropy)),
                Box::new(taint_nodes_by_condition::TaintNodesByCondition),
                // Before the tolerations, as upstream: a class may come with a preemption policy.
                Box::new(priority::Priority::new(registry, scheme)),
                Box::new(default_toleration_seconds::DefaultTolerationSeconds),
            ],
        }
    }

    /// The mutating phase.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn admit(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        for plugin in self.plugins.iter().filter(|plugin| plugin.handles(attributes)) {
            plugin.admit(attributes, object.as_deref_mut(), old).await?;
        }
        Ok(())
    }

    /// The validating phase of one request, for the registry to call.
    pub fn validating<'a>(&'a self, attributes: &'a Attributes<'a>) -> ValidatingPhase<'a> {
        ValidatingPhase { admission: self, attributes }
    }
}

/// The validating phase of one request.
pub struct ValidatingPhase<'a> {
    admission: &'a Admission,
    attributes: &'a Attributes<'a>,
}

impl Validating for ValidatingPhase<'_> {
    fn validate<'b>(
        &'b self,
        new: Option<&'b Value>,
        old: Option<&'b Value>,
    ) -> BoxFuture<'b, Result<(), Status>> {
        Box::pin(async move {
            let plugins = self.admission.plugins.iter();
            for plugin in plugins.filter(|plugin| plugin.handles(self.attributes)) {
                plugin.validate(self.attributes, new, old).await?;
            }
            Ok(())
        })
    }
}

/// A plugin's refusal (`admission.NewForbidden`). An object without a name yet is shown by what it will be
/// named after.
fn forbidden(attributes: &Attributes<'_>, object: Option<&Value>, why: &str) -> Status {
    let metadata = |field: &str| {
        let text = object.and_then(|object| object["metadata"][field].as_str());
        text.filter(|text| !text.is_empty())
    };
    let name = Some(attributes.name).filter(|name| !name.is_empty());
    let name = name.or_else(|| metadata("name")).or_else(|| metadata("generateName")).unwrap_or("Unknown");
    Status::forbidden(&attributes.kind.group_resource(), name, why)
}
