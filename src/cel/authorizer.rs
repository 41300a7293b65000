//! The variable `authorizer`: expressions ask what the user may do
//! (`k8s.io/apiserver/pkg/cel/library/authz.go`).

use std::sync::Arc;

use super::error::EvaluationError;
use super::types::Type;
use super::value::{HostValue, Value};

/// What is asked. A path or a resource; texts that were not given are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Namespace and name, when it is not the user of the request who is meant.
    pub service_account: Option<(String, String)>,
    /// As `/healthz`.
    pub path: Option<String>,
    /// As `apps`.
    pub group: String,
    /// As `deployments`.
    pub resource: String,
    /// As `status`.
    pub subresource: String,
    /// Empty for all, or for what has none.
    pub namespace: String,
    /// The object.
    pub name: String,
    /// As in a query.
    pub field_selector: String,
    /// As in a query.
    pub label_selector: String,
    /// As `get`.
    pub verb: String,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerVerdict {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why it was decided so.
    pub reason: String,
    /// Set when deciding failed.
    pub error: Option<String>,
}

/// The type of the variable.
pub fn authorizer_type() -> Type {
    Type::Opaque(AUTHORIZER.into())
}

/// The type of `authorizer.requestResource`.
pub fn resource_check_type() -> Type {
    Type::Opaque(RESOURCE_CHECK.into())
}

/// The value of the variable `authorizer`.
pub fn authorizer(by: Arc<dyn Authorize>) -> Value {
    host(AUTHORIZER, by, Check::default())
}

/// The value of `authorizer.requestResource`: everything but the verb is known.
pub fn resource_check(by: Arc<dyn Authorize>, check: Check) -> Value {
    host(RESOURCE_CHECK, by, check)
}

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

fn host(name: &'static str, by: Arc<dyn Authorize>, check: Check) -> Value {
    Value::Host(Arc::new(Asking { name, by, check }))
}

/// Who decides.
pub trait Authorize: Send + Sync {
    /// Decides about one action.
    fn authorize(&self, check: &Check) -> AuthorizerVerdict;
}

/// A check that is being put together.
struct Asking {
    name: &'static str,
    by: Arc<dyn Authorize>,
    check: Check,
}

impl HostValue for Asking {
    fn type_name(&self) -> &str {
        self.name
    }

    fn call(&self, function: &str, args: &[Value]) -> Result<Value, EvaluationError> {
        let texts: Option<Vec<String>> = args.iter().map(|arg| arg.as_str().map(str::to_owned)).collect();
        let texts = texts.ok_or(EvaluationError::NoSuchOverload)?;
        let mut check = self.check.clone();
        let next = match (self.name, function, texts.as_slice()) {
            (AUTHORIZER, "path", [path]) if path.is_empty() => {
                return Err(EvaluationError::Function("path must not be empty".into()));
            }
            (AUTHORIZER, "path", [path]) => {
                check.path = Some(path.clone());
                PATH_CHECK
            }
            (AUTHORIZER, "group", [group]) => {
                check.group.clone_from(group);
                GROUP_CHECK
            }
            (AUTHORIZER, "serviceAccount", [namespace, name]) => {
                check.service_account = Some((namespace.clone(), name.clone()));
                AUTHORIZER
            }
            (GROUP_CHECK, "resource", [resource]) if resource.is_empty() => {
                return Err(EvaluationError::Function("resource must not be empty".into()));
            }
            (GROUP_CHECK, "resource", [resource]) => {
                check.resource.clone_from(resource);
                RESOURCE_CHECK
            }
            (RESOURCE_CHECK, _, [text]) if narrow(&mut check, function, text) => RESOURCE_CHECK,
            (PATH_CHECK | RESOURCE_CHECK, "check", [verb]) => {
                check.verb.clone_from(verb);
                return Ok(Value::Host(Arc::new(Decided(self.by.authorize(&check)))));
            }
            _ => return Err(EvaluationError::NoSuchOverload),
        };
        Ok(host(next, self.by.clone(), check))
    }
}

fn narrow(check: &mut Check, function: &str, text: &str) -> bool {
    let field = match function {
        "subresource" => &mut check.subresource,
        "namespace" => &mut check.namespace,
        "name" => &mut check.name,
        "fieldSelector" => &mut check.field_selector,
        "labelSelector" => &mut check.label_selector,
        _ => return false,
    };
    text.clone_into(field);
    true
}

struct Decided(AuthorizerVerdict);

impl HostValue for Decided {
    fn type_name(&self) -> &str {
        DECISION
    }

    fn call(&self, function: &str, args: &[Value]) -> Result<Value, EvaluationError> {
        let Decided(verdict) = self;
        Ok(match (function, args) {
            ("allowed", []) => Value::Bool(verdict.allowed),
            ("reason", []) => Value::from(verdict.reason.as_str()),
            ("errored", []) => Value::Bool(verdict.error.is_some()),
            ("error", []) => Value::from(verdict.error.as_deref().unwrap_or_default()),
            _ => return Err(EvaluationError::NoSuchOverload),
        })
    }
}
