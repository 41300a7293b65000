//! What can be waited for: what `kubectl wait` waits for.

mod instead;

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

    /// With the kind that its resource means. A name that no such object can have is refused: it would be
    /// waited for in vain.
    pub(super) fn resolve(mut self, scheme: &Scheme) -> Result<WaitFor, BadCondition> {
        let found = scheme.named(&self.resource);
        let found = found.ok_or_else(|| {
            BadCondition(format!("the server doesn't have a resource type {:?}", self.resource))
        })?;
        if !found.namespaced {
            self.namespace.clear();
        }
        if let Some(why) = found.strategy.validate_name(&self.name).first() {
            let (kind, name) = (&found.singular, &self.name);
            return Err(BadCondition(format!("no {kind} is named {name:?}: {why}")));
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

    /// Fields and places of lists alone: what else JSONPath has, kubectl's wait takes seldom. Braces and the
    /// first dot may be left out, and a value may be quoted, as there.
    fn field(text: &str) -> Result<WaitedFor, BadCondition> {
        let refused = || unknown(&format!("jsonpath={text}"));
        let bare = text.trim_start_matches('\'');
        let (path, behind) = match bare.strip_prefix('{') {
            Some(inner) => inner.split_once('}').ok_or_else(refused)?,
            None => bare.split_at(bare.find('=').unwrap_or(bare.len())),
        };
        let is = match behind.trim_start_matches('\'') {
            "" => None,
            behind => Some(behind.strip_prefix('=').ok_or_else(refused)?.trim_matches(['\'', '"'])),
        };
        if is == Some("") {
            return Err(refused());
        }
        let mut path: String = path.chars().filter(|letter| *letter != '\'').collect();
        if !path.starts_with(['.', '[']) {
            path.insert(0, '.');
        }
        let steps = steps(&path).ok_or_else(refused)?;
        Ok(WaitedFor::Field { path: steps, text: path, is: is.map(str::to_owned) })
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
                let found = value_at(object, path);
                found.is_some_and(|found| is.as_ref().is_none_or(|is| shown(found) == *is))
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

/// Nothing and null are one.
fn value_at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    let found = path.iter().try_fold(object, |at, step| match at {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    });
    found.filter(|found| !found.is_null())
}

/// A text without its quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_of(condition: &Value, wanted: &str) -> bool {
    condition["type"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
}

/// A condition of an older generation says nothing of the object as it is now
/// (`ConditionalWait.checkCondition`).
fn is_current(object: &Value, condition: &Value) -> bool {
    let is = object["metadata"]["generation"].as_i64();
    generation_of(object, condition).zip(is).is_none_or(|(seen, is)| seen >= is)
}

/// Of which generation of the object a condition speaks, if anything says so.
fn generation_of(object: &Value, condition: &Value) -> Option<i64> {
    condition["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64())
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
                name.split_at(end_of_name(name))
            }
        };
        let step = step.trim_matches('"').replace('\\', "");
        if step.is_empty() || step.contains(['*', '?', '(', ':']) {
            return None;
        }
        steps.push(step);
        rest = behind;
    }
    Some(steps).filter(|steps| !steps.is_empty())
}

/// Before the next dot or bracket; one behind a backslash belongs to the name, as in
/// `.metadata.labels.example\.com/tier`.
fn end_of_name(text: &str) -> usize {
    let mut is_escaped = false;
    let ends = |(_, letter): &(usize, char)| {
        let ends = !is_escaped && matches!(letter, '.' | '[');
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    };
    text.char_indices().find(ends).map_or(text.len(), |(at, _)| at)
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
        let running = || pod(json!({"phase": "Running", "list": [{"n": 3}], "a.b": 1, "of": {"a.b/c": "x"}}));
        for wanted in [
            "jsonpath={.status.phase}=Running",
            "jsonpath='{.status.phase}'=Running",
            "jsonpath={.status.list[0].n}=3",
            "jsonpath={.status.list[0]}",
            "jsonpath={.status[a.b]}=1",
            "jsonpath={.status['a\\.b']}=1",
            "jsonpath={.status.of.a\\.b/c}=x",
            "jsonpath=.status.phase=Running",
            "jsonpath={status.phase}='Running'",
            "jsonpath=status.phase=\"Running\"",
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
        let senseless = [
            "",
            "jsonpath={}",
            "jsonpath=",
            "jsonpath={.a[*]}",
            "jsonpath={.a",
            "jsonpath={.a}b",
            "jsonpath={.a}=",
            "condition=",
        ];
        for wanted in senseless {
            let parsed = WaitFor::parse("pod/a", "", wanted);
            assert!(parsed.unwrap_err().0.contains("condition=Ready=false"), "{wanted}");
        }
        assert!(WaitFor::parse("pod", "", "Ready").unwrap_err().0.contains("KIND/NAME"));
    }

    #[test]
    fn a_name_that_no_object_can_have_is_refused() {
        let resolved =
            |object: &str| WaitFor::parse(object, "", "create").unwrap().resolve(&Scheme::builtin());
        for object in ["pod/a", "clusterrole/system:node", "apiservice/v1."] {
            assert!(resolved(object).is_ok(), "{object}");
        }
        for object in ["pod/Web_1", "pods/a/b", "clusterrole/a/b"] {
            let BadCondition(why) = resolved(object).unwrap_err();
            assert!(why.contains("is named"), "{why}");
        }
    }
}
