//! CEL in admission (`k8s.io/apiserver/pkg/admission/plugin/cel`): what match conditions and policies may
//! name, and the values that they see.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use sync::Mutex;

use super::metrics::AdmissionMetrics;
use super::webhook::{Versions, admission_request};
use super::{Attributes, Authorizer};
use crate::authorizer::AuthorizerReply;
use crate::request::RequestInfo;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apis::admissionregistration::expressions::{BadExpression, Compiled, compile, environment};
use apis::kind::Kind;
use apis::tree::text;
use cel::authorizer::{Authorize, AuthorizerVerdict, Check, authorizer, resource_check};
use cel::conditions::{ExpressionError, all_hold};
use cel::{Activation, Budget, EvaluationError, HostValue, Program, Type, Value};
use clock::Clock;

/// `RuntimeCELCostBudgetMatchConditions`: what the conditions of one webhook or policy may cost together.
const MATCH_CONDITIONS_BUDGET: u64 = 2_500_000;

/// What is said when the budget of all expressions is spent.
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What expressions are evaluated over.
pub(super) struct Inputs<'a> {
    /// Who asks for what.
    pub attributes: &'a Attributes<'a>,
    /// The version in which the object is seen.
    pub kind: &'a Kind,
    /// The objects.
    pub objects: &'a Versions,
    /// Whom `authorizer` asks.
    pub authorizer: &'a Arc<dyn Authorizer>,
}

impl Inputs<'_> {
    /// The variables that everybody has; `params` where the policy has some.
    pub(super) fn activation(&self, params: Option<&Json>) -> Activation {
        let object = Some(&self.objects.object).filter(|tree| !tree.is_null());
        let request = admission_request(self.attributes, self.kind, object);
        let asking: Arc<dyn Authorize> = Arc::new(PolicyAsking {
            user: self.attributes.ctx.user.clone(),
            authorizer: self.authorizer.clone(),
        });
        let group_version = &self.attributes.kind.group_version;
        let check = Check {
            group: group_version.group.to_string(),
            resource: self.attributes.kind.plural.to_string(),
            subresource: self.attributes.subresource.into(),
            namespace: self.attributes.namespace.into(),
            name: request.get("name").and_then(Json::as_str).unwrap_or_default().into(),
            ..Check::default()
        };
        let mut activation = Activation::new()
            .with("object", Value::from_json(&self.objects.object))
            .with("oldObject", Value::from_json(&self.objects.old_object))
            .with("request", Value::from_json(&Json::Object(whole(request))))
            .with("namespaceObject", Value::Null)
            .with("authorizer", authorizer(asking.clone()))
            .with("authorizer.requestResource", resource_check(asking, check));
        if let Some(params) = params {
            activation.set("params", Value::from_json(params));
        }
        activation
    }
}

/// A typed object has all its fields: texts that are empty are there.
fn whole(mut request: Map<String, Json>) -> Map<String, Json> {
    for field in ["subResource", "requestSubResource", "name", "namespace"] {
        request.entry(field).or_insert_with(|| json!(""));
    }
    request
}

/// What expressions see of the namespace.
pub(super) fn namespace_object(namespace: Option<&Json>) -> Value {
    let Some(namespace) = namespace else { return Value::Null };
    let mut shown = json!({});
    let seen = [
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "resourceVersion",
        "finalizers",
    ];
    for field in seen {
        if !namespace["metadata"][field].is_null() {
            shown["metadata"][field] = namespace["metadata"][field].clone();
        }
    }
    shown["metadata"]["UID"] = namespace["metadata"]["uid"].clone();
    if !namespace["spec"]["finalizers"].is_null() {
        shown["spec"]["finalizers"] = namespace["spec"]["finalizers"].clone();
    }
    shown["status"]["phase"] = json!(text(namespace, "status.phase"));
    Value::from_json(&shown)
}

/// Where it is counted how conditions are evaluated.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a> {
    /// The counters.
    pub metrics: &'a AdmissionMetrics,
    /// What says how long it takes.
    pub clock: &'a Clock,
    /// The name of whose conditions they are, its kind, which phase it is, the operation.
    pub labels: [&'a str; 4],
}

/// `matchConditions`, compiled (`webhook/matchconditions`).
pub(super) struct MatchConditions {
    conditions: Vec<Compiled>,
    fails_open: bool,
}

impl MatchConditions {
    /// Of a webhook or a policy; `fails_open` is its failure policy.
    pub(super) fn new(conditions: &[Json], fails_open: bool, has_params: bool) -> MatchConditions {
        if conditions.is_empty() {
            return MatchConditions { conditions: vec![], fails_open };
        }
        let environment = environment(has_params, true);
        let compile = |condition: &Json| {
            let expression = text(condition, "expression").trim().to_owned();
            let program = compile(&environment, &expression, &[Type::Bool]);
            (expression, program)
        };
        MatchConditions { conditions: conditions.iter().map(compile).collect(), fails_open }
    }

    /// Whether all hold. One that does not decides, whatever goes wrong with others.
    ///
    /// # Errors
    /// 403 with what went wrong, where failures close.
    pub(super) fn are_met(&self, inputs: &Inputs, watched: Watched) -> Result<bool, Status> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let met = self.evaluate(&inputs.activation(None), watched).map_err(|why| {
            let resource = inputs.attributes.kind.group_resource();
            Status::forbidden(&resource, inputs.attributes.name, &why)
        })?;
        if !met {
            watched.metrics.excluded(watched.labels);
        }
        Ok(met)
    }

    /// Whether all conditions hold over an activation; the error is what went wrong.
    pub(super) fn evaluate(
        &self,
        activation: &Activation,
        watched: Watched,
    ) -> Result<bool, ExpressionError> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let Watched { metrics, clock, labels } = watched;
        let start = clock.elapsed();
        let mut budget = Budget::new(MATCH_CONDITIONS_BUDGET);
        let outcomes = self.conditions.iter().map(|(expression, program)| {
            let outcome = run(program, expression, activation, &mut budget);
            outcome
                .map(|value| !matches!(value, Value::Bool(false)))
                .inspect_err(|_| metrics.condition_failed(labels))
        });
        let outcome = all_hold(outcomes);
        metrics.conditions_evaluated(labels, clock.elapsed().saturating_sub(start));
        match outcome {
            Err(_) if self.fails_open => Ok(false),
            outcome => outcome,
        }
    }
}

/// Runs one expression within what is left of the budget.
///
/// # Errors
/// In upstream's words.
pub(super) fn run(
    program: &Result<Program, BadExpression>,
    expression: &str,
    activation: &Activation,
    budget: &mut Budget,
) -> Result<Value, ExpressionError> {
    let program = program.as_ref().map_err(|error| format!("compilation error: {error}"))?;
    let mut part = Budget::new(Budget::PER_CALL);
    let outcome = program.evaluate(activation, &mut part);
    let settled = budget.settle(&part);
    match (outcome, settled) {
        (_, Err(_)) => Err(OUT_OF_BUDGET.into()),
        (Err(error), _) => Err(format!("expression '{expression}' resulted in error: {error}").into()),
        (Ok(value), _) => Ok(value),
    }
}

/// `variables`: each is worked out when it is first asked for, and once (`CompositedCompiler`).
pub(super) struct CelVariables {
    programs: Arc<[Compiled]>,
    activation: Activation,
    known: Mutex<Vec<Option<Result<Value, EvaluationError>>>>,
    me: std::sync::Weak<CelVariables>,
}

impl CelVariables {
    /// Adds the variable `variables` to an activation.
    pub(super) fn add(programs: &Arc<[Compiled]>, activation: Activation) -> Activation {
        if programs.is_empty() {
            return activation;
        }
        let host = Arc::new_cyclic(|me| CelVariables {
            programs: programs.clone(),
            activation: activation.clone(),
            known: Mutex::new(vec![None; programs.len()]),
            me: me.clone(),
        });
        activation.with("variables", Value::Host(host))
    }
}

impl HostValue for CelVariables {
    fn type_name(&self) -> &str {
        "kubernetes.variables"
    }

    fn field(&self, name: &str, budget: &mut Budget) -> Option<Result<Value, EvaluationError>> {
        let at = self.programs.iter().position(|(own, _)| own == name)?;
        let lock = || self.known.lock();
        if let Some(known) = lock()[at].clone() {
            return Some(known);
        }
        let mut activation = self.activation.clone();
        if let Some(me) = self.me.upgrade() {
            activation.set("variables", Value::Host(me));
        }
        let value = match &self.programs[at].1 {
            Ok(program) => {
                let mut own = Budget::new(Budget::PER_CALL);
                let outcome = program.evaluate(&activation, &mut own);
                budget.set_aside(&own);
                outcome
            }
            Err(error) => Err(EvaluationError::Function(format!(
                "composited variable {name:?} fails to compile: {error}"
            ))),
        };
        let value = value.map_err(|error| {
            EvaluationError::Function(format!("composited variable {name:?} fails to evaluate: {error}"))
        });
        lock()[at] = Some(value.clone());
        Some(value)
    }
}

/// Asks the server's authorizers on behalf of the user of a request.
struct PolicyAsking {
    user: Arc<UserInfo>,
    authorizer: Arc<dyn Authorizer>,
}

impl Authorize for PolicyAsking {
    fn authorize(&self, check: &Check) -> AuthorizerVerdict {
        let user = match &check.service_account {
            None => self.user.clone(),
            Some((namespace, name)) => {
                let account = format!("system:serviceaccount:{namespace}:{name}");
                let group = format!("system:serviceaccounts:{namespace}");
                Arc::new(UserInfo::authenticated(&account, &["system:serviceaccounts", &group]))
            }
        };
        let info = info(check);
        // Expressions do not wait: an authorizer that has to ask somebody else has no answer for them.
        match self.authorizer.authorize(&user, &info) {
            AuthorizerReply::Now(decision) => {
                let error = decision.error().map(str::to_owned);
                AuthorizerVerdict { allowed: decision.is_allowed(), reason: decision.reason().into(), error }
            }
            AuthorizerReply::Later(_) => AuthorizerVerdict {
                error: Some("the authorizer would have to wait for somebody else's answer".into()),
                ..AuthorizerVerdict::default()
            },
        }
    }
}

fn info(check: &Check) -> RequestInfo {
    let verb = check.verb.clone();
    match &check.path {
        Some(path) => RequestInfo { path: path.clone(), verb, ..RequestInfo::default() },
        None => RequestInfo {
            is_resource_request: true,
            verb,
            group: check.group.clone(),
            version: "*".into(),
            namespace: check.namespace.clone(),
            resource: check.resource.clone(),
            subresource: check.subresource.clone(),
            name: check.name.clone(),
            ..RequestInfo::default()
        },
    }
}
