//! What is served, as far as documents tell of it.

use serde_json::Value;

/// One served resource, with what its operations need.
#[derive(Debug, Clone, Default)]
pub struct ServedResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The kind of its list; None where it cannot be listed.
    pub list_kind: Option<String>,
    /// The name in paths: `deployments`.
    pub plural: String,
    /// The name of one: `deployment`.
    pub singular: String,
    /// Objects live in namespaces.
    pub namespaced: bool,
    /// As discovery lists them: `create`, `delete`, `deletecollection`, `get`, `list`, `patch`, `update`,
    /// `watch`.
    pub verbs: Vec<String>,
    /// The subresources.
    pub subresources: Vec<ServedSubresource>,
    /// The definition's name: `io.k8s.api.apps.v1.Deployment`.
    pub definition: String,
    /// The list's definition's name.
    pub list_definition: Option<String>,
    /// The OpenAPI v2 schema of a custom resource; None for a built-in kind, whose definition the
    /// schemas hold.
    pub schema: Option<Value>,
    /// The OpenAPI v3 schema of a custom resource, which tells more.
    pub schema_v3: Option<Value>,
}

/// A subresource of a served resource.
#[derive(Debug, Clone, Default)]
pub struct ServedSubresource {
    /// The last part of the path: `status`, `scale`.
    pub name: String,
    /// The group of its kind.
    pub group: String,
    /// The version of its kind.
    pub version: String,
    /// The kind that it takes and gives.
    pub kind: String,
    /// That kind's definition's name; empty where it has none (logs, exec).
    pub definition: String,
    /// As discovery lists them.
    pub verbs: Vec<String>,
}
