//! OpenAPI publication: the list of served resources in, `/openapi/v2` and `/openapi/v3` documents out.
//! Pure data.
//!
//! `kubectl explain`, `apply`, `diff` and client-side validation read them. The operations of every
//! resource are made once ([`operations`]) and written twice: as swagger 2.0 ([`v2`]) with one document for
//! everything, and as OpenAPI 3.0 ([`v3`]) with one for each group and version. Who asks, in which media
//! type, and when a document is made anew is the endpoint's.
//!
//! Beside resources stand the lists of versions and groups, the release and the issuer of tokens ([`roots`]).

#![warn(missing_docs, unreachable_pub)]

mod hash;
mod served;

mod convert;
mod definitions;
mod gnostic;
mod merge;
mod names;
mod operation;
mod operations;
mod parameters;
mod roots;
mod routes;
mod v2;
mod v3;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use apimachinery::schema::Schemas;

pub use hash::hash;
pub use served::{ServedResource, ServedSubresource};

/// The swagger 2.0 document of everything that is served, as `release` (`v1.36.2`).
pub fn v2(served: &[ServedResource], schemas: &Schemas, release: &str) -> Value {
    v2::document(served, schemas, release)
}

/// A swagger 2.0 document as gnostic's protobuf `openapi.v2.Document`: what client-go asks for, and all
/// that it understands.
pub fn v2_protobuf(document: &Value) -> Vec<u8> {
    gnostic::v2(document)
}

/// Whether an answer is a swagger 2.0 document, as far as [`v2_merge`] looks.
pub fn is_v2(document: &Value) -> bool {
    let of_objects = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_object));
    let is_good = |section: &str| document.get(section).is_none_or(of_objects);
    document.is_object() && ["paths", "definitions", "parameters"].into_iter().all(is_good)
}

/// Puts what another server publishes for one group and version into a swagger 2.0 document. A path that is
/// there already is left out, and a definition that is there already but says something else gets another
/// name (`MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters`).
pub fn v2_merge(document: &mut Value, other: Value, group: &str, version: &str) {
    let prefix = format!("/apis/{group}/{version}/");
    merge::merge(document, merge::filter(other, |path| path.starts_with(&prefix)));
}

/// A swagger 2.0 document as OpenAPI 3.0, as far as it goes (`openapiconv.ConvertV2ToV3`).
pub fn v2_to_v3(document: &Value) -> Value {
    convert::document(document)
}

/// An OpenAPI 3.0 document as gnostic's protobuf `openapi.v3.Document`.
pub fn v3_protobuf(document: &Value) -> Vec<u8> {
    gnostic::v3(document)
}

/// The OpenAPI 3.0 document of one group and version; its paths are those of `served` that belong to it.
pub fn v3_group(
    group: &str,
    version: &str,
    served: &[ServedResource],
    schemas: &Schemas,
    release: &str,
) -> Value {
    v3::document(group, version, served, schemas, release)
}

/// The documents of the v3 index that are of no group and version: `api`, `apis/apps`, `version`.
pub fn v3_roots(served: &[ServedResource]) -> Vec<String> {
    roots::roots(served).into_iter().map(|root| root.document).collect()
}

/// One of [`v3_roots`].
pub fn v3_root(path: &str, served: &[ServedResource], schemas: &Schemas, release: &str) -> Option<Value> {
    let root = roots::roots(served).into_iter().find(|root| root.document == path)?;
    Some(v3::of_root(&root.item, schemas, release))
}

/// The index of the v3 documents, from path (`api/v1`, `apis/apps/v1`) and [`v3_url`].
pub fn v3_index(documents: impl IntoIterator<Item = (String, String)>) -> Value {
    let described = |(path, url)| (path, json!({"serverRelativeURL": url}));
    let paths: serde_json::Map<String, Value> = documents.into_iter().map(described).collect();
    json!({"paths": paths})
}

/// Where a v3 document with this [`hash`] may be had and kept.
pub fn v3_url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

/// The path of a group and version in the v3 index: `api/v1`, `apis/apps/v1`.
pub fn v3_path(group: &str, version: &str) -> String {
    names::group_path(group, version).trim_start_matches('/').to_owned()
}
