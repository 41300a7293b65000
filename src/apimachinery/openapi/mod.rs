//! OpenAPI publication: the list of served resources in, `/openapi/v2` and `/openapi/v3` documents out. Pure data.
//!
//! `kubectl explain`, `apply`, `diff` and client-side validation read them. Who asks, in which media type, and when
//! a document is made anew is the endpoint's.

use serde_json::Value;

use crate::apimachinery::schema::Schemas;

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
    /// As discovery lists them: `create`, `delete`, `deletecollection`, `get`, `list`, `patch`, `update`, `watch`.
    pub verbs: Vec<String>,
    /// The subresources.
    pub subresources: Vec<ServedSubresource>,
    /// The definition's name: `io.k8s.api.apps.v1.Deployment`.
    pub definition: String,
    /// The list's definition's name.
    pub list_definition: Option<String>,
    /// The OpenAPI v2 schema of a custom resource; None for a built-in kind, whose definition [`Schemas`] holds.
    pub schema: Option<Value>,
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

/// The swagger 2.0 document of everything that is served.
pub fn v2(_served: &[ServedResource], _schemas: &Schemas) -> Value {
    Value::Null
}

/// The same as gnostic's protobuf `openapi.v2.Document`, which kubectl asks for.
pub fn v2_protobuf(_document: &Value) -> Vec<u8> {
    Vec::new()
}

/// The OpenAPI 3.0 document of one group and version.
pub fn v3_group(_group: &str, _version: &str, _served: &[ServedResource], _schemas: &Schemas) -> Value {
    Value::Null
}

/// The index of the v3 documents, from path (`api/v1`, `apis/apps/v1`) and hash.
pub fn v3_index<'a>(_documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    Value::Null
}
