//! The Event that tells people what a component did.

use std::sync::Arc;

use serde_json::{Value, json};

use super::reference::ObjectReference;
use apimachinery::time::{Time, rfc3339, rfc3339_micro};

/// On which host a component is that is on no node, as `reportingInstance` says it.
const HOST: &str = "kubarium";

/// `v1.Event`, as a component makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Empty until it is named on its way to the server.
    pub name: String,
    /// That of the object, or `default` for cluster-scoped ones.
    pub namespace: String,
    /// What it is about.
    pub involved_object: ObjectReference,
    /// For machines, as `ScalingReplicaSet`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// `Normal` or `Warning`.
    pub event_type: String,
    /// Who says so, as `deployment-controller`.
    pub component: Arc<str>,
    /// Where: the node, for a kubelet's events; else empty.
    pub host: Arc<str>,
    /// When it happened first.
    pub first_timestamp: Time,
    /// When it happened last.
    pub last_timestamp: Time,
    /// How often.
    pub count: u32,
    /// Of one that is told as `events.k8s.io/v1` has it.
    pub action: Option<EventAction>,
}

/// What an `events.k8s.io/v1` Event says beside its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAction {
    /// What was done or tried, as `Binding`.
    pub action: String,
    /// Another object that has to do with it.
    pub related: Option<ObjectReference>,
}

impl Event {
    /// The object to create.
    pub(super) fn to_value(&self) -> Value {
        match &self.action {
            Some(action) => self.to_value_of_group(action),
            None => self.to_core_value(),
        }
    }

    /// As `events.k8s.io/v1` has it.
    fn to_value_of_group(&self, EventAction { action, related }: &EventAction) -> Value {
        let host = if self.host.is_empty() { HOST } else { &*self.host };
        let mut tree = json!({
            "metadata": { "name": self.name, "namespace": self.namespace },
            "eventTime": rfc3339_micro(self.first_timestamp),
            "reportingController": &*self.component,
            "reportingInstance": format!("{}-{host}", self.component),
            "action": action,
            "reason": self.reason,
            "regarding": self.involved_object,
            "note": self.message,
            "type": self.event_type,
        });
        if let Some(related) = related {
            tree["related"] = json!(related);
        }
        tree
    }

    fn to_core_value(&self) -> Value {
        let mut source = json!({ "component": &*self.component });
        if !self.host.is_empty() {
            source["host"] = (*self.host).into();
        }
        json!({
            "metadata": { "name": self.name, "namespace": self.namespace },
            "involvedObject": self.involved_object,
            "reason": self.reason,
            "message": self.message,
            "source": source,
            "firstTimestamp": rfc3339(self.first_timestamp),
            "lastTimestamp": rfc3339(self.last_timestamp),
            "count": self.count,
            "type": self.event_type,
            "eventTime": null,
            "reportingComponent": &*self.component,
            "reportingInstance": &*self.host,
        })
    }

    /// What changes when it is told once more.
    pub(super) fn to_patch(&self) -> Value {
        json!({ "count": self.count, "lastTimestamp": rfc3339(self.last_timestamp), "message": self.message })
    }
}
