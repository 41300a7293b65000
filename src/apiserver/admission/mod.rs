//! Admission: what is filled in and refused before an object is written (`k8s.io/apiserver/pkg/admission`).
//! Next: src/apiserver/registry/store.rs
//!
//! In comes what is to be done to which object; plugins change it (`admit`), then, when nothing changes it
//! any more, look at it once again (`validate`, called by the registry last before the write). One file per
//! plugin. It reads other objects through the registry. Only two plugins write: NamespaceAutoProvision, and
//! ResourceQuota, which counts what it admits.

pub mod config;
pub mod plugins;
pub mod reinvocation;

mod lister;
mod tolerations;

mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;

mod node_declared_feature_validator;
mod node_restriction;
mod policy_params;
mod rbac_escalation;

mod limit_ranger;
mod pod_security;
mod resource_quota;
mod service_account;

mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod default_toleration_seconds;
mod extended_resource_toleration;
mod image_policy_webhook;
mod initial_resources;
mod limit_pod_hard_anti_affinity_topology;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod priority;
mod runtime_class;

mod always_pull_images;
mod event_rate_limit;
mod initializers;
mod owner_references_permission_enforcement;
mod taint_nodes_by_condition;

mod default_class;
mod default_storage_class;
mod persistent_volume_claim_resize;
mod storage_object_in_use_protection;

mod default_ingress_class;
mod deny_service_external_ips;

mod always;

mod cel;
mod policy;
mod webhook;

mod metrics;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::apimachinery::feature_gates::FeatureGates;
use crate::apimachinery::fingerprint::Fingerprint;
use crate::apimachinery::status::Status;
use crate::apis::kind::Kind;
use crate::apis::scheme::Scheme;
use crate::apiserver::registry::{Registry, Validating};
use crate::apiserver::request::RequestContext;
use crate::clock::Clock;
use crate::entropy::Entropy;

pub use crate::apiserver::authorizer::Authorizer;
pub use config::AdmissionConfig;
pub use metrics::AdmissionMetrics;
use metrics::{Durations, Phase};
use plugins::{Entry, PLUGINS};
use reinvocation::Reinvocation;

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

impl Operation {
    /// As in rules and reviews.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

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
    fn writes(&self, group: &str, plural: &str) -> bool {
        matches!(self.operation, Operation::Create | Operation::Update)
            && self.subresource.is_empty()
            && &*self.kind.plural == plural
            && &*self.kind.group_version.group == group
    }
}

/// One admission plugin. Both methods admit by default; trees are without `apiVersion` and `kind`.
pub trait Plugin: Send + Sync {
    /// Whether it has anything to say (`admission.Interface.Handles` and what plugins check first).
    fn handles(&self, attributes: &Attributes) -> bool;

    /// Whether it may change an object. Of one that says no, nobody looks what it has changed.
    fn changes(&self) -> bool {
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
    /// Says who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// Of the same, RBAC: what users have by roles.
    pub rbac: Arc<dyn Authorizer>,
    /// Flags and file.
    pub config: &'a AdmissionConfig,
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

/// The plugins that run, in order.
pub struct Admission {
    plugins: Vec<Enabled>,
    clock: Clock,
    metrics: Arc<AdmissionMetrics>,
}

/// One of them.
struct Enabled {
    name: &'static str,
    plugin: Box<dyn Plugin>,
    durations: Durations,
}

impl Enabled {
    fn new(name: &'static str, plugin: Box<dyn Plugin>) -> Enabled {
        Enabled { name, plugin, durations: Durations::default() }
    }
}

impl Admission {
    /// Those of [`PLUGINS`] that are enabled.
    ///
    /// # Errors
    /// What is wrong with the flags or with the configuration of a plugin.
    pub fn new(with: &Initializer) -> Result<Admission, String> {
        if let errors @ [_, ..] = &*with.config.validate() {
            return Err(errors.join("; "));
        }
        let mut plugins = Vec::new();
        let has_gate = |entry: &&Entry| entry.gate.is_none_or(|gate| with.gates.enabled(gate));
        let enabled = PLUGINS.iter().filter(|entry| with.config.is_enabled(entry.name));
        for entry in enabled.filter(has_gate) {
            if let Some(make) = entry.make {
                let failed = |error| format!("couldn't init admission plugin {:?}: {error}", entry.name);
                plugins.push(Enabled::new(entry.name, make(with).map_err(failed)?));
            }
        }
        // Behind everything that may still put rules into a role.
        let escalation = Box::new(rbac_escalation::RbacEscalation::new(with));
        plugins.push(Enabled::new("RBAC", escalation));
        plugins.push(Enabled::new("PolicyParams", Box::new(policy_params::PolicyParams::new(with))));
        Ok(Admission { plugins, clock: with.clock.clone(), metrics: with.metrics.clone() })
    }

    /// What is counted, in Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        self.metrics.render(out, self.plugins.iter().map(|enabled| (enabled.name, &enabled.durations)));
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
        let reinvocation = Reinvocation::default();
        let attributes = Attributes { reinvocation: Some(&reinvocation), ..*attributes };
        let (is_told, mut seen) = (attributes.ctx.is_told(), None);
        let mut timer = Timer::start(self, &attributes, Phase::Admit);
        loop {
            let mut plugins = self.plugins.iter();
            while let Some(enabled) = plugins.find(|enabled| enabled.plugin.handles(&attributes)) {
                let plugin = &enabled.plugin;
                let is_watched = is_told && plugin.changes();
                if let Some(object) = object.as_deref().filter(|_| is_watched && seen.is_none()) {
                    seen = Some(Fingerprint::of(object));
                }
                let admitted = plugin.admit(&attributes, object.as_deref_mut(), old).await;
                timer.passed(enabled, admitted).inspect_err(|_| attributes.ctx.tell_denied(enabled.name))?;
                if let (Some(before), Some(object), true) = (&mut seen, object.as_deref(), is_watched) {
                    tell(attributes.ctx, enabled.name, before, object);
                }
            }
            // What people add may change what built-in plugins and their like have looked at already.
            if reinvocation.is_second() || !reinvocation.begin_second() {
                timer.end();
                return Ok(());
            }
        }
    }

    /// The validating phase of one request, for the registry to call.
    pub fn validating<'a>(&'a self, attributes: &'a Attributes<'a>) -> ValidatingPhase<'a> {
        ValidatingPhase { admission: self, attributes }
    }
}

/// Measures a phase, and each plugin of it.
struct Timer<'a> {
    admission: &'a Admission,
    operation: Operation,
    phase: Phase,
    start: Duration,
    last: Duration,
}

impl<'a> Timer<'a> {
    fn start(admission: &'a Admission, attributes: &Attributes, phase: Phase) -> Timer<'a> {
        let now = admission.clock.elapsed();
        Timer { admission, operation: attributes.operation, phase, start: now, last: now }
    }

    /// A plugin has done its work; its refusal ends the phase.
    fn passed(&mut self, enabled: &Enabled, outcome: Result<(), Status>) -> Result<(), Status> {
        let now = self.admission.clock.elapsed();
        let duration = now.saturating_sub(self.last);
        enabled.durations.observe(self.phase, self.operation, outcome.is_err(), duration);
        self.last = now;
        if outcome.is_err() {
            self.count(true);
        }
        outcome
    }

    fn end(self) {
        self.count(false);
    }

    fn count(&self, is_rejected: bool) {
        let duration = self.last.saturating_sub(self.start);
        self.admission.metrics.step(self.phase, self.operation, is_rejected, duration);
    }
}

/// Says what a plugin changed, and looks at the object as the next one will find it.
fn tell(ctx: &RequestContext, plugin: &str, before: &mut Fingerprint, object: &Value) {
    let after = Fingerprint::of(object);
    if after != *before {
        ctx.tell_admitted(plugin, &before.changes(object));
        *before = after;
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
            let mut attributes = *self.attributes;
            if new.is_none() {
                // Only here is the object known that is to go.
                self.admission.admit(&attributes, None, old).await?;
            } else if old.is_none() && attributes.operation == Operation::Update {
                attributes.operation = Operation::Create;
            }
            let mut timer = Timer::start(self.admission, &attributes, Phase::Validate);
            let mut plugins = self.admission.plugins.iter();
            while let Some(enabled) = plugins.find(|enabled| enabled.plugin.handles(&attributes)) {
                let validated = timer.passed(enabled, enabled.plugin.validate(&attributes, new, old).await);
                validated.inspect_err(|_| attributes.ctx.tell_denied(enabled.name))?;
            }
            timer.end();
            if new.is_some() {
                attributes.ctx.tell_validated();
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
