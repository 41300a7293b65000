//! Parts that many views share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use apimachinery::object::{OwnerReference, list, nullable};
use apimachinery::time::Time;

/// Annotations, which [`apimachinery::object::ObjectMeta`] leaves in the bytes; and the few other
/// parts of metadata that a template has too.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The labels of a template.
    #[serde(deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
    /// The annotations of the object.
    #[serde(deserialize_with = "nullable")]
    pub annotations: BTreeMap<String, String>,
    /// The owners of the object.
    #[serde(deserialize_with = "list")]
    pub owner_references: Vec<OwnerReference>,
}

/// A condition in a status (`metav1.Condition` and the older forms of it).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// As `Ready`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// For machines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it last changed its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// When anything about it last changed (Deployments).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// When it was last confirmed (Nodes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,
    /// The generation that it speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The condition of a type.
pub fn condition<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.condition_type == condition_type)
}

/// Whether the condition of a type is `True`.
pub fn is_true(conditions: &[Condition], condition_type: &str) -> bool {
    condition(conditions, condition_type).is_some_and(|condition| condition.status == "True")
}
