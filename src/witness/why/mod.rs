//! Why an object is as it is: the chain of causes in words, out of its conditions, its events, who owns it,
//! and the causal record. What `kubectl describe` shows in pieces, in the order in which one asks.

mod told;

mod pod;
mod record;
mod traffic;

use futures::future::BoxFuture;
use serde_json::Value;

use apimachinery::fields::FieldSelector;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::event::EVENTS;
use apis::core::pod::PODS;
use apis::core::service::SERVICES;
use apis::kind::Kind;
use told::{condition_words, text};

pub use told::{Explanation, Witnesses};

/// How far owners and what is owned are followed.
const MAX_DEPTH: usize = 4;
/// So many events and pods of an object are told of; the last are those that count.
const MAX_TOLD: usize = 5;

/// What conditions are named after that are true when something is wrong, or not done yet, as in a namespace
/// that is to go.
const TROUBLE: [&str; 7] =
    ["Failure", "Failed", "Pressure", "Unavailable", "Degraded", "Stalled", "Remaining"];

impl Witnesses<'_> {
    /// Why the object is as it is, or why it is not there. `kind` is as kubectl takes it.
    ///
    /// # Errors
    /// A kind that is not served; what the server says, but for 404.
    pub async fn why(&self, kind: &str, namespace: &str, name: &str) -> Result<Explanation, Status> {
        let found = self.scheme.named(kind);
        let unknown = || Status::bad_request(format!("the server doesn't have a resource type {kind:?}"));
        let kind = found.ok_or_else(unknown)?;
        let namespace = if kind.namespaced { namespace } else { "" };
        self.why_of(&kind, namespace, name, 0).await
    }

    fn why_of<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: &'a str,
        name: &'a str,
        depth: usize,
    ) -> BoxFuture<'a, Result<Explanation, Status>> {
        Box::pin(async move {
            let object = match self.client.get(kind, namespace, name).await {
                Ok(object) => object.to_value(),
                Err(status) if status.is_not_found() => return Ok(self.why_gone(kind, namespace, name)),
                Err(status) => return Err(status),
            };
            let mut told = Explanation::new(headline(kind, &object));
            going(&object, &mut told);
            if kind.plural == PODS.plural && kind.group_version.group.is_empty() {
                self.of_pod(&object, &mut told).await?;
                self.kept_out(namespace, name, &mut told).await;
            } else {
                conditions(&object, &mut told);
            }
            if kind.plural == SERVICES.plural && kind.group_version.group.is_empty() {
                self.kept_from_service(&object, &mut told).await?;
            }
            self.events(kind, &object, &mut told).await?;
            self.record(kind, &object, &mut told);
            if depth < MAX_DEPTH {
                self.pods_of(kind, &object, depth, &mut told).await?;
                owners(&object, &mut told);
            }
            if told.because.is_empty() {
                told.add("nothing is wrong with it that anybody has said");
            }
            Ok(told)
        })
    }

    /// Warnings about it, the last ones.
    async fn events(&self, kind: &Kind, object: &Value, told: &mut Explanation) -> Result<(), Status> {
        let metadata = &object["metadata"];
        let mut options = ListOptions::default();
        options.predicate.fields = FieldSelector::equal("involvedObject.uid", text(&metadata["uid"]));
        let namespace = if kind.namespaced { text(&metadata["namespace"]) } else { "default" };
        let list = self.client.list(&EVENTS, namespace, &options).await?;
        let mut warnings: Vec<Value> = list.items.iter().map(|event| event.to_value()).collect();
        warnings.retain(|event| event["type"] == "Warning");
        for event in warnings.iter().rev().take(MAX_TOLD).rev() {
            let component = match text(&event["source"]["component"]) {
                "" => text(&event["reportingComponent"]),
                component => component,
            };
            let count = event["count"].as_u64().or(event["series"]["count"].as_u64());
            let times = count.filter(|count| *count > 1);
            let times = times.map(|count| format!(" ({count} times)")).unwrap_or_default();
            let (reason, message) = (text(&event["reason"]), text(&event["message"]));
            told.add(format!("{component} said {reason}{times}: {message}"));
        }
        Ok(())
    }

    /// Of a workload: its pods that are not well.
    async fn pods_of(
        &self,
        kind: &Kind,
        object: &Value,
        depth: usize,
        told: &mut Explanation,
    ) -> Result<(), Status> {
        let is_workload =
            matches!(&*kind.group_version.group, "apps" | "batch") && !object["spec"]["selector"].is_null();
        if !is_workload {
            return Ok(());
        }
        let selector = &object["spec"]["selector"]["matchLabels"];
        let namespace = text(&object["metadata"]["namespace"]);
        let list = self.client.list(&PODS, namespace, &ListOptions::default()).await?;
        let mut left = MAX_TOLD;
        for found in list.items.iter() {
            let pod = found.to_value();
            if left == 0 || !has_labels(&pod, selector) || pod::is_well(&pod) {
                continue;
            }
            left -= 1;
            told.because.push(self.why_of(&PODS, namespace, &found.metadata.name, depth + MAX_DEPTH).await?);
        }
        Ok(())
    }
}

/// What it is, and in which state.
fn headline(kind: &Kind, object: &Value) -> String {
    let metadata = &object["metadata"];
    let (kind, name) = (&kind.singular, text(&metadata["name"]));
    let state = pod::state(object);
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {name} in namespace {namespace}{state}"),
        None => format!("{kind} {name}{state}"),
    }
}

/// Why it is still there although it was deleted.
fn going(object: &Value, told: &mut Explanation) {
    let metadata = &object["metadata"];
    let Some(since) = metadata["deletionTimestamp"].as_str() else { return };
    let mut deleted = Explanation::new(format!("it is being deleted, and is to be gone by {since}"));
    let finalizers = metadata["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    for finalizer in finalizers {
        deleted.add(format!("finalizer {}: whoever put it there has not removed it yet", text(finalizer)));
    }
    if let Some(grace) = metadata["deletionGracePeriodSeconds"].as_u64().filter(|grace| *grace > 0) {
        deleted.add(format!("its containers have {grace} s to end by themselves"));
    }
    told.because.push(deleted);
}

/// Those that say that something is wrong.
fn conditions(object: &Value, told: &mut Explanation) {
    for condition in object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let name = text(&condition["type"]);
        // True is good, but for those that are named after what is wrong.
        let is_trouble = TROUBLE.iter().any(|word| name.contains(word));
        let bad = if is_trouble { "True" } else { "False" };
        if condition["status"] == bad || condition["status"] == "Unknown" {
            told.because.push(condition_words(condition));
        }
    }
}

fn owners(object: &Value, told: &mut Explanation) {
    for owner in object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
        told.add(format!("it belongs to {kind} {name}; ask: kubarium why {}/{name}", kind.to_lowercase()));
    }
}

fn has_labels(object: &Value, wanted: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    wanted.as_object().is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_finalizer_holds_what_is_deleted() {
        let mut told = Explanation::new("configmap a");
        let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/x"]});
        going(&json!({ "metadata": metadata }), &mut told);
        let expected = "configmap a\n- it is being deleted, and is to be gone by 2026-01-01T00:00:00Z\n  - finalizer \
                        example.com/x: whoever put it there has not removed it yet\n";
        assert_eq!(told.render(), expected);
    }

    #[test]
    fn only_conditions_that_are_bad_are_told() {
        let condition = |name: &str, status: &str| json!({"type": name, "status": status, "reason": "R"});
        let conditions = [
            condition("Available", "True"),
            condition("Ready", "False"),
            condition("ReplicaFailure", "True"),
            condition("MemoryPressure", "False"),
            condition("NamespaceFinalizersRemaining", "True"),
            condition("NamespaceContentRemaining", "False"),
            condition("Synced", "Unknown"),
        ];
        let mut told = Explanation::default();
        super::conditions(&json!({"status": {"conditions": conditions}}), &mut told);
        let said: Vec<&str> = told.because.iter().map(|cause| cause.is.as_str()).collect();
        let expected = [
            "condition Ready is False",
            "condition ReplicaFailure is True",
            "condition NamespaceFinalizersRemaining is True",
            "condition Synced is Unknown",
        ];
        assert_eq!(said, expected);
    }
}
