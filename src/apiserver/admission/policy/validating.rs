//! ValidatingAdmissionPolicy (`plugin/policy/validating`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use golang::first_bytes::first_bytes;
use serde::Serialize;
use serde_json::Value;

use super::binding::AdmissionPolicyBinding;
use super::evaluation::{PolicyDecision, PolicyOutcome, ValidatingPolicy};
use super::params;
use crate::admission::cel::{Inputs, Watched, namespace_object};
use crate::admission::webhook::{Matched, Matcher, Versions, WebhookSource, is_exempt};
use crate::admission::{AdmissionMetrics, AdmissionPlugin, Attributes, Authorizer, Initializer, forbidden};
use crate::registry::Registry;
use apimachinery::status::{Status, StatusCause};
use apis::admissionregistration::validating_admission_policy::{
    VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS,
};
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;

/// An annotation longer than this is cut.
const MAX_ANNOTATION_BYTES: usize = 10 * 1024;

/// Evaluates policies where bindings say so.
pub(crate) struct ValidatingAdmissionPolicy {
    policies: WebhookSource<ValidatingPolicy>,
    bindings: WebhookSource<AdmissionPolicyBinding>,
    matcher: Matcher,
    registry: Registry,
    scheme: Arc<Scheme>,
    authorizer: Arc<dyn Authorizer>,
    clock: Clock,
    metrics: Arc<AdmissionMetrics>,
}

/// A refusal, and by whom.
struct Denied {
    policy: String,
    binding: Option<String>,
    reason: String,
    message: String,
}

/// One request.
struct ValidationRequest<'a> {
    attributes: &'a Attributes<'a>,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
}

impl ValidatingAdmissionPolicy {
    /// Policies are read when there are any.
    pub(crate) fn new(with: &Initializer) -> ValidatingAdmissionPolicy {
        ValidatingAdmissionPolicy {
            policies: WebhookSource::new(
                with.registry,
                &VALIDATING_ADMISSION_POLICIES,
                ValidatingPolicy::new,
            ),
            bindings: WebhookSource::new(
                with.registry,
                &VALIDATING_ADMISSION_POLICY_BINDINGS,
                AdmissionPolicyBinding::new,
            ),
            matcher: Matcher::new(with.registry, with.scheme),
            registry: with.registry.clone(),
            scheme: with.scheme.clone(),
            authorizer: with.authorizer.clone(),
            clock: with.clock.clone(),
            metrics: with.metrics.clone(),
        }
    }

    async fn judge(&self, request: &ValidationRequest<'_>) -> Result<(), Status> {
        let bindings = self.bindings.current().await?;
        if bindings.is_empty() {
            return Ok(());
        }
        let mut denied = Vec::new();
        for policy in self.policies.current().await? {
            let own: Vec<&Arc<AdmissionPolicyBinding>> =
                bindings.iter().filter(|binding| binding.policy == policy.name).collect();
            if !own.is_empty() {
                self.apply(&policy, &own, request, &mut denied).await?;
            }
        }
        match denied.first() {
            None => Ok(()),
            Some(first) => Err(first.status(request)),
        }
    }

    async fn apply(
        &self,
        policy: &ValidatingPolicy,
        bindings: &[&Arc<AdmissionPolicyBinding>],
        request: &ValidationRequest<'_>,
        denied: &mut Vec<Denied>,
    ) -> Result<(), Status> {
        let ValidationRequest { attributes, object, old } = *request;
        let matched = match self.matcher.matches(&policy.criteria, attributes, object, old, false).await {
            Ok(Some(matched)) => matched,
            Ok(None) => return Ok(()),
            Err(error) => {
                let why = format!("failed to configure policy: {}", error.message);
                denied.extend(Denied::configuration(policy, None, &why));
                return Ok(());
            }
        };
        let kind = match policy.param_kind.as_ref().map(|kind| kind.find(&self.scheme)).transpose() {
            Ok(kind) => kind,
            Err(why) => {
                denied.extend(Denied::configuration(
                    policy,
                    None,
                    &format!("failed to configure policy: {why}"),
                ));
                return Ok(());
            }
        };
        let objects = Versions::new(&self.registry, attributes, &matched.kind, object, old).await;
        let objects = objects.map_err(|error| format!("failed to convert object version: {}", error.message));
        let namespace = self.matcher.namespace(attributes).await?;
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings {
            let outcomes =
                self.evaluate(policy, binding, request, (&matched, &objects), (kind.as_ref(), &namespace));
            match outcomes.await {
                Err(why) => {
                    let why = format!("failed to configure binding: {why}");
                    denied.extend(Denied::configuration(policy, Some(binding), &why));
                }
                Ok(outcomes) => {
                    for (outcome, duration) in outcomes {
                        self.count(policy, binding, &outcome, duration);
                        take(policy, binding, attributes, outcome, denied, &mut annotations);
                    }
                }
            }
        }
        for (key, values) in annotations {
            attributes.ctx.annotate(&format!("{}/{key}", policy.name), &values.join(", "));
        }
        Ok(())
    }

    /// One outcome for each parameter; none where the binding is not about the request.
    async fn evaluate(
        &self,
        policy: &ValidatingPolicy,
        binding: &AdmissionPolicyBinding,
        request: &ValidationRequest<'_>,
        (matched, objects): (&Matched, &Result<Versions, String>),
        (param_kind, namespace): (Option<&Arc<Kind>>, &Option<Value>),
    ) -> Result<Vec<(PolicyOutcome, Duration)>, String> {
        let ValidationRequest { attributes, object, old } = *request;
        if let Some(criteria) = &binding.criteria {
            match self.matcher.matches(criteria, attributes, object, old, true).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(vec![]),
                Err(error) => return Err(error.message),
            }
        }
        let param_ref = binding.param_ref.as_ref();
        let params = params::collect(&self.registry, param_kind, param_ref, attributes.namespace).await?;
        if params.is_empty() {
            return Ok(vec![]);
        }
        let objects = objects.as_ref().map_err(String::clone)?;
        let inputs = Inputs { attributes, kind: &matched.kind, objects, authorizer: &self.authorizer };
        let evaluate = |params: &Option<Value>| {
            let null = Value::Null;
            let params = policy.param_kind.as_ref().map(|_| params.as_ref().unwrap_or(&null));
            let activation = inputs.activation(params);
            let activation = activation.with("namespaceObject", namespace_object(namespace.as_ref()));
            let labels = [&*policy.name, "policy", "validate", attributes.operation.name()];
            let watched = Watched { metrics: &self.metrics, clock: &self.clock, labels };
            let start = self.clock.elapsed();
            let outcome = policy.evaluate(activation, watched);
            let duration = self.clock.elapsed().saturating_sub(start);
            self.metrics.evaluated(duration);
            (outcome, duration)
        };
        Ok(params.iter().map(evaluate).collect())
    }

    /// Each validation that does not hold is counted with what follows from it.
    fn count(
        &self,
        policy: &ValidatingPolicy,
        binding: &AdmissionPolicyBinding,
        outcome: &PolicyOutcome,
        duration: Duration,
    ) {
        for decision in &outcome.decisions {
            let PolicyDecision::Deny(reason, _) = decision else { continue };
            let error = if reason.is_empty() { "invalid_error" } else { "no_error" };
            for action in &binding.actions {
                let action = action.to_ascii_lowercase();
                self.metrics.check(&policy.name, &binding.name, error, &action, duration);
            }
        }
    }
}

/// What follows from an outcome: the binding's actions decide.
fn take(
    policy: &ValidatingPolicy,
    binding: &AdmissionPolicyBinding,
    attributes: &Attributes,
    outcome: PolicyOutcome,
    denied: &mut Vec<Denied>,
    annotations: &mut BTreeMap<String, Vec<String>>,
) {
    let deny = |reason: &str, message: &str| Denied {
        policy: policy.name.clone(),
        binding: Some(binding.name.clone()),
        reason: reason.into(),
        message: message.into(),
    };
    for (index, decision) in outcome.decisions.iter().enumerate() {
        let PolicyDecision::Deny(reason, message) = decision else { continue };
        for action in &binding.actions {
            match action.as_str() {
                "Deny" => denied.push(deny(reason, message)),
                "Warn" => attributes.ctx.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                    policy.name, binding.name
                )),
                "Audit" => {
                    let value = [AuditedFailure {
                        message,
                        policy: &binding.policy,
                        binding: &binding.name,
                        expression_index: index,
                        validation_actions: &binding.actions,
                    }];
                    let value = serde_json::to_string(&value).expect("texts and a number are JSON");
                    attributes.ctx.annotate("validation.policy.admission.k8s.io/validation_failure", &value);
                }
                _ => {}
            }
        }
    }
    for (key, mut value) in outcome.annotations {
        value.truncate(first_bytes(&value, MAX_ANNOTATION_BYTES).len());
        let values = annotations.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    denied.extend(outcome.annotation_errors.iter().map(|why| deny("", why)));
}

/// What the audit log says of a validation that did not hold.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditedFailure<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: &'a [String],
}

impl Denied {
    /// Something is wrong with the policy or the binding itself.
    fn configuration(
        policy: &ValidatingPolicy,
        binding: Option<&AdmissionPolicyBinding>,
        why: &str,
    ) -> Option<Denied> {
        (!policy.fails_open).then(|| Denied {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            reason: String::new(),
            message: why.to_owned(),
        })
    }

    fn status(&self, request: &ValidationRequest) -> Status {
        let Denied { policy, message, .. } = self;
        let with = match &self.binding {
            Some(binding) => format!(" with binding '{binding}'"),
            None => String::new(),
        };
        let message = format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}");
        let mut status = forbidden(request.attributes, request.object, &message);
        status.reason = if self.reason.is_empty() { "Invalid".into() } else { self.reason.clone() };
        status.code = match status.reason.as_str() {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        let cause = StatusCause { reason: String::new(), message, field: String::new() };
        status.details.get_or_insert_default().causes.push(cause);
        status
    }
}

impl AdmissionPlugin for ValidatingAdmissionPolicy {
    fn handles(&self, attributes: &Attributes) -> bool {
        self.policies.notice(attributes.kind);
        self.bindings.notice(attributes.kind);
        !is_exempt(attributes) && self.bindings.may_have_any()
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
        Box::pin(async move { self.judge(&ValidationRequest { attributes, object, old }).await })
    }
}
