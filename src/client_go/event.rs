//! The Event that tells people what a component did.

use std::sync::Arc;

use super::reference::ObjectReference;
use apimachinery::time::Time;

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
}
