//! MutatingAdmissionPolicy (`plugin/policy/mutating`).

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::binding::AdmissionPolicyBinding;
use super::mutation::MutatingPolicy;
use super::params;
use crate::admission::cel::{Inputs, Watched, namespace_object};
use crate::admission::webhook::{Codec, Matched, Matcher, Shown, WebhookSource, is_exempt};
use crate::admission::{AdmissionMetrics, AdmissionPlugin, Attributes, Authorizer, Initializer, forbidden};
use crate::registry::Registry;
use apimachinery::managed_fields::SchemaType;
use apimachinery::status::{Status, StatusCause};
use apis::admissionregistration::mutating_admission_policy::{
    MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS,
};
use apis::apiextensions::custom_resource::CustomResource;
use apis::kind::Kind;
use apis::scheme::Scheme;
use cel::Budget;
use clock::Clock;

const NAME: &str = "MutatingAdmissionPolicy";

/// Changes objects as policies say, where bindings say so.
pub(crate) struct MutatingAdmissionPolicy {
    policies: WebhookSource<MutatingPolicy>,
    bindings: WebhookSource<AdmissionPolicyBinding>,
    matcher: Matcher,
    codec: Codec,
    registry: Registry,
    scheme: Arc<Scheme>,
    authorizer: Arc<dyn Authorizer>,
    clock: Clock,
    metrics: Arc<AdmissionMetrics>,
}

/// A policy, a binding and one of its parameters, for one request.
struct MutationInvocation {
    policy: Arc<MutatingPolicy>,
    binding: Arc<AdmissionPolicyBinding>,
    matched: Arc<Matched>,
    params: Option<Value>,
    key: String,
}

/// What went wrong, and with what.
struct MutationFailure {
    policy: String,
    binding: Option<String>,
    message: String,
    reason: &'static str,
}

impl MutatingAdmissionPolicy {
    /// Policies are read when there are any.
    pub(crate) fn new(with: &Initializer) -> MutatingAdmissionPolicy {
        MutatingAdmissionPolicy {
            policies: WebhookSource::new(with.registry, &MUTATING_ADMISSION_POLICIES, MutatingPolicy::new),
            bindings: WebhookSource::new(
                with.registry,
                &MUTATING_ADMISSION_POLICY_BINDINGS,
                AdmissionPolicyBinding::new,
            ),
            matcher: Matcher::new(with.registry, with.scheme),
            codec: Codec::new(with.registry, with.scheme),
            registry: with.registry.clone(),
            scheme: with.scheme.clone(),
            authorizer: with.authorizer.clone(),
            clock: with.clock.clone(),
            metrics: with.metrics.clone(),
        }
    }

    async fn change(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let bindings = self.bindings.current().await?;
        if bindings.is_empty() {
            return Ok(());
        }
        let mut failures = Vec::new();
        let mut invocations = Vec::new();
        let mut shown = Shown::default();
        for policy in self.policies.current().await? {
            let own = bindings.iter().filter(|binding| binding.policy == policy.name);
            let plan = (&mut invocations, &mut failures, &mut shown);
            self.collect(&policy, own, attributes, (object, old), plan).await;
        }
        if !invocations.is_empty() {
            self.invoke(&invocations, attributes, (object, old), shown, &mut failures).await?;
        }
        refuse(&failures, attributes, object)
    }

    /// What is to be done, before anything is.
    async fn collect<'b>(
        &self,
        policy: &Arc<MutatingPolicy>,
        bindings: impl Iterator<Item = &'b Arc<AdmissionPolicyBinding>>,
        attributes: &Attributes<'_>,
        (object, old): (&Value, Option<&Value>),
        (invocations, failures, shown): (&mut Vec<MutationInvocation>, &mut Vec<MutationFailure>, &mut Shown),
    ) {
        let matched = self.matcher.matches(&policy.criteria, attributes, Some(object), old, false).await;
        let matched = match matched.map(|matched| matched.map(Arc::new)) {
            Ok(Some(matched)) => matched,
            Ok(None) => return,
            Err(error) => {
                let why = format!("failed to configure policy: {}", error.message);
                failures.extend(MutationFailure::of(policy, None, why, ""));
                return;
            }
        };
        let kind: Option<Arc<Kind>> = match policy.param_kind.as_ref().map(|kind| kind.find(&self.scheme)) {
            None => None,
            Some(Ok(kind)) => Some(kind),
            Some(Err(why)) => {
                failures.extend(MutationFailure::of(
                    policy,
                    None,
                    format!("failed to configure policy: {why}"),
                    "",
                ));
                return;
            }
        };
        for binding in bindings {
            if let Some(criteria) = &binding.criteria {
                match self.matcher.matches(criteria, attributes, Some(object), old, true).await {
                    Ok(Some(_)) => {}
                    Ok(None) => continue,
                    Err(error) => {
                        let why = format!("failed to configure binding: {}", error.message);
                        failures.extend(MutationFailure::of(policy, Some(binding), why, ""));
                        continue;
                    }
                }
            }
            if let Err(error) = shown.of(&self.registry, attributes, &matched.kind, Some(object), old).await {
                let why = format!("failed to configure policy: {}", error.message);
                failures.extend(MutationFailure::of(policy, None, why, ""));
                continue;
            }
            let param_ref = binding.param_ref.as_ref();
            match params::collect(&self.registry, kind.as_ref(), param_ref, attributes.namespace).await {
                Err(why) => {
                    let why = format!("failed to configure binding: {why}");
                    failures.extend(MutationFailure::of(policy, Some(binding), why, ""));
                }
                Ok(all) => invocations.extend(all.into_iter().map(|params| {
                    let of = params.as_ref().map(|params| params["metadata"]["name"].to_string());
                    let key = format!("{}/{}/{}", policy.name, binding.name, of.unwrap_or_default());
                    let (policy, binding, matched) = (policy.clone(), binding.clone(), matched.clone());
                    MutationInvocation { policy, binding, matched, params, key }
                })),
            }
        }
    }

    /// One after the other, each on what those before it have made.
    async fn invoke(
        &self,
        invocations: &[MutationInvocation],
        attributes: &Attributes<'_>,
        (object, old): (&mut Value, Option<&Value>),
        mut shown: Shown,
        failures: &mut Vec<MutationFailure>,
    ) -> Result<(), Status> {
        let namespace = self.matcher.namespace(attributes).await?;
        let second = attributes.reinvocation.filter(|reinvocation| reinvocation.is_second());
        let mut invoked = BTreeSet::new();
        let mut reinvoked = BTreeSet::new();
        if let Some(reinvocation) = second {
            let kept = reinvocation.take(NAME);
            (invoked, reinvoked) = (kept.invoked, kept.reinvoked);
            if kept.output.as_ref() != Some(object) {
                reinvoked.append(&mut invoked);
            }
        }
        let mut has_changed = false;
        for invocation in invocations {
            if second.is_some() && !reinvoked.contains(&invocation.key) {
                continue;
            }
            let before = object.clone();
            let faults = self.apply(invocation, attributes, (object, old), &mut shown, namespace.as_ref());
            let faults = faults.await?;
            failures.extend(faults.into_iter().filter_map(|why| {
                MutationFailure::of(&invocation.policy, Some(&invocation.binding), why, "Invalid")
            }));
            if *object != before {
                has_changed = true;
                reinvoked.append(&mut invoked);
            }
            if invocation.policy.is_reinvoked {
                invoked.insert(invocation.key.clone());
            }
        }
        if let Some(reinvocation) = attributes.reinvocation.filter(|_| second.is_none()) {
            reinvocation.keep(NAME, invoked, reinvoked, Some(object.clone()));
            if has_changed {
                reinvocation.want_second();
            }
        }
        Ok(())
    }

    /// What goes wrong with some mutation does not keep the others from being made.
    async fn apply(
        &self,
        invocation: &MutationInvocation,
        attributes: &Attributes<'_>,
        (object, old): (&mut Value, Option<&Value>),
        shown: &mut Shown,
        namespace: Option<&Value>,
    ) -> Result<Vec<String>, Status> {
        let MutationInvocation { policy, matched, params, .. } = invocation;
        let kind = &matched.kind;
        let null = Value::Null;
        let params = policy.param_kind.as_ref().map(|_| params.as_ref().unwrap_or(&null));
        let known = self.codec.schema(kind, attributes.subresource);
        let custom = CustomResource::of(kind).filter(|_| attributes.subresource != "scale");
        let custom = custom.map(|custom| custom.typed());
        let typed = known.as_deref().map(SchemaType::Known).or(custom.as_deref().map(SchemaType::Custom));
        // Upstream counts its conditions as a validating one's.
        let labels = [&*policy.name, "policy", "validate", attributes.operation.name()];
        let watched = Watched { metrics: &self.metrics, clock: &self.clock, labels };
        let objects = shown.of(&self.registry, attributes, kind, Some(object), old).await;
        let objects = objects.map_err(Status::internal)?;
        let mut faults = Vec::new();
        for index in 0..policy.len() {
            let inputs = Inputs { attributes, kind, objects, authorizer: &self.authorizer };
            let activation = inputs.activation(params).with("namespaceObject", namespace_object(namespace));
            if index == 0 {
                match policy.is_about(&activation, watched) {
                    Ok(true) => {}
                    Ok(false) => return Ok(vec![]),
                    Err(why) => return Ok(vec![why.into()]),
                }
            }
            let mut budget = Budget::new(Budget::PER_REQUEST);
            let changed = match policy.mutate(index, activation, &objects.object, typed, &mut budget) {
                Ok(changed) => self.codec.read(attributes, kind, changed).await.map_err(|status| {
                    let prefix = "Internal error occurred: ";
                    status.message.strip_prefix(prefix).unwrap_or(&status.message).to_owned()
                }),
                Err(why) => Err(why.into()),
            };
            match changed {
                Ok(changed) => {
                    objects.set_object(kind, attributes.subresource, changed.versioned);
                    *object = changed.object;
                }
                Err(why) => faults.push(why),
            }
        }
        Ok(faults)
    }
}

impl MutationFailure {
    /// Nothing, where failures are overlooked.
    fn of(
        policy: &MutatingPolicy,
        binding: Option<&Arc<AdmissionPolicyBinding>>,
        message: String,
        reason: &'static str,
    ) -> Option<MutationFailure> {
        (!policy.fails_open).then(|| MutationFailure {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            message,
            reason,
        })
    }

    fn text(&self) -> String {
        let MutationFailure { policy, binding, message, .. } = self;
        match binding {
            Some(binding) => format!("policy '{policy}' with binding '{binding}' denied request: {message}"),
            None => format!("policy '{policy}' denied request: {message}"),
        }
    }
}

/// The first failure is told, all of them are causes.
fn refuse(failures: &[MutationFailure], attributes: &Attributes, object: &Value) -> Result<(), Status> {
    let Some(first) = failures.first() else { return Ok(()) };
    let mut status = forbidden(attributes, Some(object), "admission request denied by policy");
    status.message = first.text();
    if !first.reason.is_empty() {
        status.reason = first.reason.into();
    }
    let cause = |failure: &MutationFailure| {
        let message = failure.text();
        StatusCause { reason: String::new(), message, field: String::new() }
    };
    status.details.get_or_insert_default().causes.extend(failures.iter().map(cause));
    Err(status)
}

impl AdmissionPlugin for MutatingAdmissionPolicy {
    fn handles(&self, attributes: &Attributes) -> bool {
        self.policies.notice(attributes.kind);
        self.bindings.notice(attributes.kind);
        !is_exempt(attributes) && self.bindings.may_have_any()
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        match object {
            Some(object) => Box::pin(self.change(attributes, object, old)),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }
}
