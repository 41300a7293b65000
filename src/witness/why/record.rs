//! What the causal record says of an object: who wrote it last, who deleted it, and why it never came to be.

use std::collections::HashMap;

use serde_json::Value;

use super::told::{Explanation, Witnesses, text};
use apis::kind::Kind;
use flow::{Step, StepId, Trace, TraceStep, TracedObject, WriteOperation};

/// How many refusals are told of, the last ones.
const MAX_REFUSALS: usize = 3;

impl Witnesses<'_> {
    /// Who wrote it last, and what led to that.
    pub(super) fn record(&self, kind: &Kind, object: &Value, told: &mut Explanation) {
        let metadata = &object["metadata"];
        let trace = self.trace(kind, text(&metadata["namespace"]), text(&metadata["name"]));
        if let Some(last) = trace.steps.iter().rfind(|step| stored(step, &trace).is_some()) {
            told.because.push(written("it was last written", last, &trace));
        }
        told.because.extend(refusals(&trace));
    }

    /// Why there is no such object.
    pub(super) fn why_gone(&self, kind: &Kind, namespace: &str, name: &str) -> Explanation {
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        let mut told = Explanation::new(format!("there is no {} {name}{place}", kind.singular));
        let trace = self.trace(kind, namespace, name);
        let deleted = |step: &&TraceStep| stored(step, &trace) == Some(WriteOperation::Delete);
        if let Some(last) = trace.steps.iter().rfind(deleted) {
            told.because.push(written("it was deleted", last, &trace));
        }
        told.because.extend(refusals(&trace));
        if told.because.is_empty() {
            told.add("nobody has asked for one as far as the record goes back");
        }
        told
    }

    fn trace(&self, kind: &Kind, namespace: &str, name: &str) -> Trace {
        let resource = kind.group_resource().to_string();
        self.client.flow().trace_of(&TracedObject { resource: &resource, namespace, name, uid: "" })
    }
}

/// What a step did to the object that the trace is about.
fn stored(step: &TraceStep, trace: &Trace) -> Option<WriteOperation> {
    let Step::Stored { resource, namespace, name, operation, .. } = &step.step else { return None };
    let key = golang::object_key::object_key(namespace, name);
    (trace.subject == format!("{resource} {key}")).then_some(*operation)
}

/// Back from a write: who asked for it, and which write of something else had made them.
fn written(what: &str, last: &TraceStep, trace: &Trace) -> Explanation {
    let steps: HashMap<StepId, &TraceStep> = trace.steps.iter().map(|step| (step.id, step)).collect();
    let mut lines = vec![];
    let mut user = None;
    // Of the request that the way back is in: the last identity is who acts.
    let mut known = None;
    let mut at = last.cause;
    while let Some(step) = at.and_then(|id| steps.get(&id)) {
        match &step.step {
            Step::Authenticated { user: name, .. } | Step::Impersonated { acting: name, .. }
                if known.is_none() && !name.is_empty() =>
            {
                known = Some(name);
            }
            Step::ReconcileStarted { controller, key, .. } => {
                lines.push(format!("{controller} looked at {key}"))
            }
            Step::SchedulingAttempt { pod } => lines.push(format!("the scheduler looked at {pod}")),
            Step::PodWorkerSync { node, state, .. } => {
                lines.push(format!("the kubelet of {node} found it {state}"))
            }
            Step::Stored { resource, name, operation, .. } => {
                lines.push(format!("{resource} {name} was {}", past(*operation)));
            }
            Step::RequestReceived { user: name, .. } => {
                let name = known.take().unwrap_or(name);
                match user {
                    None => user = Some(name),
                    Some(_) if !name.is_empty() => lines.push(format!("{name} asked for that")),
                    Some(_) => {}
                }
            }
            _ => {}
        }
        at = step.cause;
    }
    let user = user.or(known).filter(|user| !user.is_empty());
    let by = user.map(|user| format!(" by {user}")).unwrap_or_default();
    let mut told = Explanation::new(format!("{what}{by} (#{})", last.id.0));
    // Each line led to the one before.
    let chain = lines.into_iter().rev().fold(None, |inner: Option<Explanation>, line| {
        Some(Explanation { is: line, because: inner.into_iter().collect() })
    });
    told.because.extend(chain);
    told
}

fn past(operation: WriteOperation) -> &'static str {
    match operation {
        WriteOperation::Create => "created",
        WriteOperation::Update => "changed",
        WriteOperation::Delete => "deleted",
    }
}

/// What was tried with it in vain: quota, admission, validation, RBAC.
fn refusals(trace: &Trace) -> Vec<Explanation> {
    let refused = trace.steps.iter().filter_map(|step| match &step.step {
        // Who writes an old state tries again.
        Step::Refused { code, why, .. } if *code != 409 && *code != 404 => {
            Some(Explanation::new(format!("a write was refused with {code} (#{}): {why}", step.id.0)))
        }
        _ => None,
    });
    let mut refused: Vec<Explanation> = refused.collect();
    refused.drain(..refused.len().saturating_sub(MAX_REFUSALS));
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each led to the next.
    fn trace(steps: &[Value]) -> Trace {
        let step = |(id, step): (u64, &Value)| {
            let mut step = step.clone();
            (step["id"], step["atMicroseconds"]) = (json!(id), json!(id));
            step["cause"] = if id == 1 { Value::Null } else { json!(id - 1) };
            step
        };
        let steps: Vec<Value> = (1..).zip(steps).map(step).collect();
        serde_json::from_value(json!({"subject": "pods default/a", "steps": steps})).unwrap()
    }

    fn received(user: &str) -> Value {
        json!({"step": "RequestReceived", "user": user, "verb": "delete", "path": "/"})
    }

    fn known(user: &str) -> Value {
        json!({"step": "Authenticated", "user": user, "by": "X509", "said": []})
    }

    fn stored(operation: &str) -> Value {
        json!({
            "step": "Stored", "resource": "pods", "namespace": "default", "name": "a", "revision": 7,
            "operation": operation,
        })
    }

    fn told(steps: &[Value]) -> String {
        let trace = trace(steps);
        written("it was deleted", trace.steps.last().unwrap(), &trace).render()
    }

    #[test]
    fn who_came_over_a_socket_is_named_as_who_they_act_as() {
        let acts = json!({"step": "Impersonated", "user": "admin", "acting": "alice", "verb": "impersonate"});
        let by_alice = [received(""), known("admin"), acts, stored("update")];
        assert_eq!(told(&by_alice), "it was deleted by alice (#4)\n");
        let by_kubelet = [received("node"), known("node"), stored("delete")];
        let text = told(&[by_alice.as_slice(), by_kubelet.as_slice()].concat());
        assert_eq!(text, "it was deleted by node (#7)\n- pods a was changed\n  - alice asked for that\n");
    }

    #[test]
    fn who_is_not_known_by_the_record_is_whom_the_request_names() {
        assert_eq!(told(&[received("node"), stored("delete")]), "it was deleted by node (#2)\n");
        assert_eq!(told(&[received(""), stored("delete")]), "it was deleted (#2)\n");
        assert_eq!(told(&[known("jane"), stored("delete")]), "it was deleted by jane (#2)\n");
    }
}
