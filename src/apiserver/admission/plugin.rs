//! What a plugin is, and what it is told (`admission.Interface`, `admission.Attributes`,
//! `admission/initializer`).
//!
//! Plugins know this file; the list of plugins and the chain know plugins.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::config::AdmissionOptions;
use super::metrics::AdmissionMetrics;
use super::operation::Operation;
use super::reinvocation::Reinvocation;
use crate::authorizer::Authorizer;
use crate::registry::Registry;
use crate::request::RequestContext;
use crate::webhook::PodNetwork;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;
use entropy::Entropy;

/// What is to be done (`admission.Attributes`), without the object, which a plugin may change.
#[derive(Clone, Copy)]
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
    /// Whether mutating plugins are asked a second time; none outside of the mutating phase.
    pub reinvocation: Option<&'a Reinvocation>,
}

impl Attributes<'_> {
    /// Whether an object of a resource is created or updated, and not a part of it.
    pub fn writes(&self, group: &str, plural: &str) -> bool {
        matches!(self.operation, Operation::Create | Operation::Update)
            && self.subresource.is_empty()
            && &*self.kind.plural == plural
            && &*self.kind.group_version.group == group
    }
}

/// One admission plugin. Both methods admit by default; trees are without `apiVersion` and `kind`.
pub trait AdmissionPlugin: Send + Sync {
    /// Whether it has anything to say (`admission.Interface.Handles` and what plugins check first).
    fn handles(&self, attributes: &Attributes) -> bool;

    /// Whether it may change an object. Of one that says no, nobody looks what it has changed.
    fn changes(&self) -> bool {
        true
    }

    /// Whether it has a say while objects are changed. Who changes nothing usually speaks afterwards.
    fn admits(&self) -> bool {
        self.changes()
    }

    /// Whether it has a say when objects are what they will be.
    fn validates(&self) -> bool {
        true
    }

    /// Changes the object (`MutationInterface.Admit`). `object` is missing on a delete, `old` on a create.
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

/// What plugins are made from (`admission/initializer`).
pub struct Initializer<'a> {
    /// Reads other objects.
    pub registry: &'a Registry,
    /// The kinds.
    pub scheme: &'a Arc<Scheme>,
    /// The cluster's clock.
    pub clock: &'a Clock,
    /// The cluster's numbers.
    pub entropy: &'a Entropy,
    /// Where pods behind Services are reached.
    pub pods: &'a PodNetwork,
    /// Says who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// Of the same, RBAC: what users have by roles.
    pub rbac: Arc<dyn Authorizer>,
    /// Flags and file.
    pub config: &'a AdmissionOptions,
    /// Which features are on.
    pub gates: &'a FeatureGates,
    /// What is counted.
    pub metrics: Arc<AdmissionMetrics>,
}

impl Initializer<'_> {
    /// What the file says of a plugin; null when it says nothing.
    pub fn configuration(&self, plugin: &str) -> &Value {
        self.config.plugins.get(plugin).unwrap_or(&Value::Null)
    }
}

/// A plugin's refusal (`admission.NewForbidden`). An object without a name yet is shown by what it will be
/// named after.
pub fn forbidden(attributes: &Attributes<'_>, object: Option<&Value>, why: &str) -> Status {
    let metadata = |field: &str| {
        let text = object.and_then(|object| object["metadata"][field].as_str());
        text.filter(|text| !text.is_empty())
    };
    let name = Some(attributes.name).filter(|name| !name.is_empty());
    let name = name.or_else(|| metadata("name")).or_else(|| metadata("generateName")).unwrap_or("Unknown");
    Status::forbidden(&attributes.kind.group_resource(), name, why)
}
