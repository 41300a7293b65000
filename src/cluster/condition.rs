//! What can be waited for: what `kubectl wait` waits for.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use apimachinery::status::Status;
use apis::kind::Kind;
use apis::scheme::Scheme;
use client_go::client::Client;

/// A condition that makes no sense. The text says what it may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCondition(pub String);

/// Something about one object, as `kubectl wait` takes it.
#[derive(Clone, Debug)]
pub struct WaitFor {
    resource: String,
    namespace: String,
    name: String,
    wanted: WaitedFor,
    /// Looked up when it is waited for.
    kind: Option<Arc<Kind>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WaitedFor {
    /// `condition=TYPE=STATUS`
    Status { of: String, is: String },
    /// `jsonpath={.path}=VALUE`; any value without one.
    Field { path: Vec<String>, text: String, is: Option<String> },
    /// `create`
    There,
    /// `delete`
    Gone,
}

impl WaitFor {
    /// An object as `deploy/web`, its namespace (empty for the default one), and what is waited for: as
    /// `kubectl wait --for` takes it, or the type of a condition alone (`Available`).
    ///
    /// # Errors
    /// What is neither.
    pub fn parse(object: &str, namespace: &str, wanted: &str) -> Result<WaitFor, BadCondition> {
        let named = object.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty());
        let (resource, name) = named.ok_or_else(|| {
            BadCondition(format!("{object:?} names no object; say KIND/NAME, as deployment/web"))
        })?;
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        Ok(WaitFor {
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            wanted: WaitedFor::parse(wanted)?,
            kind: None,
        })
    }

    /// With the kind that its resource means.
    pub(super) fn resolve(mut self, scheme: &Scheme) -> Result<WaitFor, BadCondition> {
        let found = scheme.named(&self.resource);
        let found = found.ok_or_else(|| {
            BadCondition(format!("the server doesn't have a resource type {:?}", self.resource))
        })?;
        if !found.namespaced {
            self.namespace.clear();
        }
        self.kind = Some(found);
        Ok(self)
    }

    pub(super) fn kind(&self) -> &Arc<Kind> {
        self.kind.as_ref().expect("it was resolved before")
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether it is true now.
    pub(super) async fn holds(&self, client: &Client) -> Result<bool, Status> {
        match client.get(self.kind(), &self.namespace, &self.name).await {
            Ok(object) => Ok(self.wanted.holds(&object.to_value())),
            Err(status) if status.is_not_found() => Ok(self.wanted == WaitedFor::Gone),
            Err(status) => Err(status),
        }
    }
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}/{}", self.wanted, self.resource, self.name)
    }
}

impl WaitedFor {
    fn parse(text: &str) -> Result<WaitedFor, BadCondition> {
        if text.eq_ignore_ascii_case("delete") {
            return Ok(WaitedFor::Gone);
        }
        if text.eq_ignore_ascii_case("create") {
            return Ok(WaitedFor::There);
        }
        if let Some(rest) = text.strip_prefix("jsonpath=") {
            return WaitedFor::field(rest);
        }
        let rest = text.strip_prefix("condition=").unwrap_or(text);
        let (of, is) = rest.split_once('=').unwrap_or((rest, "true"));
        if of.is_empty() || of.contains(['{', ' ']) {
            return Err(unknown(text));
        }
        Ok(WaitedFor::Status { of: of.into(), is: is.into() })
    }

    /// Fields and places of lists alone: what else JSONPath has, kubectl's wait takes seldom.
    fn field(text: &str) -> Result<WaitedFor, BadCondition> {
        let bare: String = text.chars().filter(|letter| *letter != '\'').collect();
        let whole = bare.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let (path, is) = whole.ok_or_else(|| unknown(&format!("jsonpath={text}")))?;
        let steps = steps(path).ok_or_else(|| unknown(&format!("jsonpath={text}")))?;
        let is = is.strip_prefix('=').map(str::to_owned);
        Ok(WaitedFor::Field { path: steps, text: path.into(), is })
    }

    fn holds(&self, object: &Value) -> bool {
        match self {
            WaitedFor::There => true,
            WaitedFor::Gone => false,
            WaitedFor::Status { of, is } => {
                let conditions = object["status"]["conditions"].as_array();
                let found = conditions.into_iter().flatten().find(|condition| is_of(condition, of));
                let is_so = |condition: &Value| {
                    condition["status"].as_str().is_some_and(|status| status.eq_ignore_ascii_case(is))
                };
                found.is_some_and(|condition| is_so(condition) && is_current(object, condition))
            }
            WaitedFor::Field { path, is, .. } => {
                let found = path.iter().try_fold(object, |at, step| match at {
                    Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                    other => other.get(step),
                });
                match (found, is) {
                    (None | Some(Value::Null), _) => false,
                    (Some(_), None) => true,
                    (Some(Value::String(text)), Some(is)) => text == is,
                    (Some(other), Some(is)) => format!("{other}") == *is,
                }
            }
        }
    }
}

impl fmt::Display for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitedFor::There => f.write_str("the creation"),
            WaitedFor::Gone => f.write_str("the deletion"),
            WaitedFor::Status { of, is } => write!(f, "condition {of}={is}"),
            WaitedFor::Field { text, is: Some(is), .. } => write!(f, "{text}={is}"),
            WaitedFor::Field { text, is: None, .. } => write!(f, "a value at {text}"),
        }
    }
}

fn is_of(condition: &Value, wanted: &str) -> bool {
    condition["type"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
}

/// A condition of an older generation says nothing of the object as it is now
/// (`ConditionalWait.checkCondition`).
fn is_current(object: &Value, condition: &Value) -> bool {
    let seen = condition["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64());
    seen.is_none_or(|seen| object["metadata"]["generation"].as_i64().is_none_or(|is| seen >= is))
}

/// `.status.containerStatuses[0].ready` as its parts.
fn steps(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (step, behind) = match rest.strip_prefix('[') {
            Some(place) => place.split_once(']')?,
            None => {
                let name = rest.strip_prefix('.')?;
                name.split_at(name.find(['.', '[']).unwrap_or(name.len()))
            }
        };
        let step = step.trim_matches('"');
        if step.is_empty() || step.contains(['*', '?', '(', ':']) {
            return None;
        }
        steps.push(step.to_owned());
        rest = behind;
    }
    Some(steps).filter(|steps| !steps.is_empty())
}

fn unknown(text: &str) -> BadCondition {
    BadCondition(format!(
        "{text:?} is nothing to wait for; say the type of a condition (Available, condition=Ready=false), \
         jsonpath={{.status.phase}}=Running with fields and places of lists alone, create or delete"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(wanted: &str, object: Value) -> bool {
        WaitFor::parse("pod/a", "", wanted).unwrap().wanted.holds(&object)
    }

    fn pod(status: Value) -> Value {
        let metadata = json!({"name": "a", "generation": 2});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})
    }

    #[test]
    fn conditions_are_those_of_kubectl_wait() {
        let ready = |status: &str| pod(json!({"conditions": [{"type": "Ready", "status": status}]}));
        for wanted in ["Ready", "condition=Ready", "condition=ready=true", "Ready=True"] {
            assert!(holds(wanted, ready("True")) && !holds(wanted, ready("False")), "{wanted}");
        }
        assert!(holds("condition=Ready=false", ready("False")));
        let mut old = ready("True");
        old["status"]["observedGeneration"] = 1.into();
        assert!(!holds("Ready", old), "it is of what the object was before");
    }

    #[test]
    fn fields_are_named_as_in_jsonpath() {
        let running = || pod(json!({"phase": "Running", "list": [{"n": 3}], "a.b": 1}));
        for wanted in [
            "jsonpath={.status.phase}=Running",
            "jsonpath='{.status.phase}'=Running",
            "jsonpath={.status.list[0].n}=3",
            "jsonpath={.status.list[0]}",
            "jsonpath={.status[a.b]}=1",
            "create",
        ] {
            assert!(holds(wanted, running()), "{wanted}");
        }
        for wanted in ["jsonpath={.status.phase}=Failed", "jsonpath={.status.none}", "delete"] {
            assert!(!holds(wanted, running()), "{wanted}");
        }
    }

    #[test]
    fn what_makes_no_sense_says_what_does() {
        for wanted in ["", "jsonpath={}", "jsonpath={.a[*]}", "jsonpath={.a", "condition="] {
            let parsed = WaitFor::parse("pod/a", "", wanted);
            assert!(parsed.unwrap_err().0.contains("condition=Ready=false"), "{wanted}");
        }
        assert!(WaitFor::parse("pod", "", "Ready").unwrap_err().0.contains("KIND/NAME"));
    }
}
