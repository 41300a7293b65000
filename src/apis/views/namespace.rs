//! Namespace, as its controller reads it.

use serde::Deserialize;

use super::meta::{Condition, Metadata};
use apimachinery::object::nullable;

/// `v1.Namespace`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: NamespaceSpec,
    /// The observed state, from whoever acts on the object.
    pub status: NamespaceStatus,
}

/// `v1.NamespaceSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct NamespaceSpec {
    /// Who must agree before the namespace is removed; `kubernetes` is the namespace controller's.
    #[serde(deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
}

/// `v1.NamespaceStatus`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NamespaceStatus {
    /// `Active` or `Terminating`.
    pub phase: String,
    /// What deletion waits for.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}
