//! What is there instead, where what was waited for did not come true.

use serde_json::Value;

use super::{WaitFor, WaitedFor, generation_of, is_current, is_of, shown, value_at};
use apis::core::namespace::NAMESPACES;
use client_go::client::Client;

/// Longer values are told up to here: a whole object is no answer.
const MAX_SHOWN: usize = 200;

impl WaitFor {
    /// How the object is, in words; empty where it cannot be looked at.
    pub(in crate::cluster) async fn instead(&self, client: &Client) -> String {
        match client.get(self.kind(), &self.namespace, &self.name).await {
            Ok(object) => self.wanted.instead(&object.to_value()),
            Err(status) if status.is_not_found() => self.missing(client).await,
            Err(_) => String::new(),
        }
    }

    async fn missing(&self, client: &Client) -> String {
        let object = format!("there is no {} {}", self.kind().singular, self.name);
        if self.namespace.is_empty() {
            return object;
        }
        let namespace = client.get(&NAMESPACES, "", &self.namespace).await;
        match namespace {
            Err(status) if status.is_not_found() => format!("there is no namespace {}", self.namespace),
            _ => format!("{object} in namespace {}", self.namespace),
        }
    }
}

impl WaitedFor {
    /// Of an object that is there.
    fn instead(&self, object: &Value) -> String {
        match self {
            WaitedFor::There => String::new(),
            WaitedFor::Gone => still_there(object),
            WaitedFor::Status { of, .. } => conditions(object, of),
            WaitedFor::Field { path, text, .. } => match value_at(object, path) {
                Some(value) => {
                    format!("{text} is {}", shown(value).chars().take(MAX_SHOWN).collect::<String>())
                }
                None => format!("it has no {text}"),
            },
        }
    }
}

fn still_there(object: &Value) -> String {
    let metadata = &object["metadata"];
    if metadata["deletionTimestamp"].is_null() {
        return "it is there, and nobody has asked to delete it".into();
    }
    let finalizers: Vec<&str> =
        metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match finalizers.as_slice() {
        [] => "it is being deleted".into(),
        finalizers => format!("it is being deleted, and held by its finalizers {}", finalizers.join(", ")),
    }
}

/// The one that is wanted, else all that there are.
fn conditions(object: &Value, wanted: &str) -> String {
    let all = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let as_it_is = |condition: &Value| format!("{}={}", text(condition, "type"), text(condition, "status"));
    let Some(found) = all.iter().find(|condition| is_of(condition, wanted)) else {
        let have: Vec<String> = all.iter().map(as_it_is).collect();
        return match have.as_slice() {
            [] => "it has no conditions".into(),
            have => format!("it has no condition {wanted}, but {}", have.join(", ")),
        };
    };
    if !is_current(object, found) {
        let (is, seen) =
            (&object["metadata"]["generation"], generation_of(object, found).unwrap_or_default());
        return format!("{} is said of generation {seen}, and it is at {is}", as_it_is(found));
    }
    let why: Vec<String> = ["reason", "message"].map(|field| text(found, field)).into();
    let why: Vec<String> = why.into_iter().filter(|part| !part.is_empty()).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(": ")) };
    format!("it has {}{why}", as_it_is(found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn instead(wanted: &str, object: Value) -> String {
        WaitFor::parse("pod/a", "", wanted).unwrap().wanted.instead(&object)
    }

    #[test]
    fn a_condition_that_is_not_there_tells_those_that_are() {
        let conditions = json!([
            {"type": "Available", "status": "False", "reason": "Few", "message": "too few"},
            {"type": "Progressing", "status": "True"},
        ]);
        let object = |seen: u64| {
            let status = json!({"observedGeneration": seen, "conditions": conditions});
            json!({"metadata": {"generation": 2}, "status": status})
        };
        assert_eq!(
            instead("Availble", object(2)),
            "it has no condition Availble, but Available=False, Progressing=True"
        );
        assert_eq!(instead("available", object(2)), "it has Available=False (Few: too few)");
        assert_eq!(instead("Progressing=False", object(2)), "it has Progressing=True");
        assert_eq!(
            instead("Progressing", object(1)),
            "Progressing=True is said of generation 1, and it is at 2"
        );
        assert_eq!(instead("Ready", json!({})), "it has no conditions");
    }

    #[test]
    fn a_field_is_told_as_it_is() {
        let pod = json!({"status": {"phase": "Pending", "list": [1]}});
        assert_eq!(instead("jsonpath={.status.phase}=Running", pod.clone()), ".status.phase is Pending");
        assert_eq!(instead("jsonpath={.status.list}=2", pod.clone()), ".status.list is [1]");
        assert_eq!(instead("jsonpath={.status.none}", pod), "it has no .status.none");
        let long = json!({"data": "x".repeat(MAX_SHOWN + 1)});
        assert_eq!(instead("jsonpath={.data}=y", long).len(), ".data is ".len() + MAX_SHOWN);
    }

    #[test]
    fn what_does_not_go_says_what_holds_it() {
        assert!(instead("delete", json!({"metadata": {}})).contains("nobody has asked"));
        let going = json!({"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["a/b", "c/d"]});
        assert!(instead("delete", json!({"metadata": going})).ends_with("held by its finalizers a/b, c/d"));
        let going = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}});
        assert_eq!(instead("delete", going), "it is being deleted");
    }
}
