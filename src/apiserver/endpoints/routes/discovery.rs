//! Discovery as it always was: one document per group and version (`endpoints/discovery`).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::groups::{Group, groups};
use crate::endpoints::response::json::in_order;
use apis::kind::{Kind, Subresource};
use apis::scale::scale_of;
use apis::scheme::Scheme;

/// The order of fields in `metav1.APIResourceList`, and of `version.Info`.
const FIELDS_OF_RESOURCES: &[&str] = &[
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "minCompatibilityMajor",
    "minCompatibilityMinor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "name",
    "singularName",
    "namespaced",
    "group",
    "version",
    "kind",
    "apiVersion",
    "groupVersion",
    "resources",
    "verbs",
    "shortNames",
    "categories",
];
/// The order of fields in `metav1.APIGroupList`, `APIGroup` and `APIVersions`.
const FIELDS_OF_GROUPS: &[&str] =
    &["kind", "apiVersion", "name", "groups", "versions", "groupVersion", "version", "preferredVersion"];

/// A document of discovery, or of the version, as bytes.
pub(crate) fn write(document: &Value) -> Vec<u8> {
    let is_of_groups = matches!(document["kind"].as_str(), Some("APIVersions" | "APIGroupList" | "APIGroup"));
    in_order(document, if is_of_groups { FIELDS_OF_GROUPS } else { FIELDS_OF_RESOURCES })
}

/// `/api`: `metav1.APIVersions`. `host` is how the client reached the server.
pub(crate) fn api_versions(host: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]})
}

/// `/apis`: `metav1.APIGroupList`.
pub(crate) fn api_group_list(groups: &[Group]) -> Value {
    let groups: Vec<Value> = groups.iter().filter(|group| !group.name.is_empty()).map(summary).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`: `metav1.APIGroup`.
pub(crate) fn api_group(groups: &[Group], name: &str) -> Option<Value> {
    let group = groups.iter().find(|group| &*group.name == name && !name.is_empty())?;
    let mut summary = summary(group);
    summary["kind"] = "APIGroup".into();
    summary["apiVersion"] = "v1".into();
    Some(summary)
}

/// `/api/v1`, `/apis/GROUP/VERSION`: `metav1.APIResourceList`.
pub(crate) fn api_resource_list(scheme: &Scheme, group: &str, version: &str) -> Option<Value> {
    let groups = groups(scheme);
    let found = groups.iter().find(|found| &*found.name == group)?;
    let (_, kinds) = found.versions.iter().find(|(name, _)| &**name == version)?;
    let mut resources: Vec<Value> = kinds.iter().flat_map(|kind| of_kind(kind)).collect();
    let is_custom = kinds.iter().any(|kind| kind.is_custom);
    resources.sort_by(|a, b| sort_key(a, is_custom).cmp(sort_key(b, is_custom)));
    let group_version = kinds.first()?.api_version();
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// By name; those below a custom kind stay as they are.
fn sort_key(resource: &Value, is_custom: bool) -> &str {
    let name = resource["name"].as_str().unwrap_or_default();
    if is_custom { name.split('/').next().unwrap_or(name) } else { name }
}

/// Upstream's `StorageVersionHash`: tells clients when the stored version changes.
pub(crate) fn storage_version_hash(kind: &Kind) -> String {
    let stored = kind.storage_kind();
    let version = &stored.group_version;
    let kept = stored.kept_version.unwrap_or(&version.version);
    let text = format!("{}/{kept}/{}", version.group, stored.kind);
    BASE64_STANDARD.encode(&Sha256::digest(text)[..8])
}

/// The group, version and kind of a subresource's body.
pub(crate) fn response_kind(kind: &Kind, subresource: Subresource) -> (String, String, String) {
    if subresource == Subresource::Scale {
        let (version, _) = scale_of(kind);
        return (version.group.to_string(), version.version.to_string(), "Scale".into());
    }
    if let Some((group, version, name)) = subresource.kind() {
        return (group.into(), version.into(), name.into());
    }
    let version = &kind.group_version;
    let proxied = match (subresource, &*kind.kind) {
        (Subresource::Proxy, name) => format!("{name}ProxyOptions"),
        (Subresource::Rollback, name) => format!("{name}Rollback"),
        (_, name) => name.to_owned(),
    };
    (version.group.to_string(), version.version.to_string(), proxied)
}

fn summary(group: &Group) -> Value {
    let version =
        |version: &str| json!({"groupVersion": format!("{}/{version}", group.name), "version": version});
    let versions: Vec<Value> = group.versions().into_iter().map(|name| version(&name)).collect();
    json!({"name": &*group.name, "preferredVersion": versions.first(), "versions": versions})
}

fn of_kind(kind: &Kind) -> Vec<Value> {
    let mut resource = Map::new();
    resource.insert("name".into(), Value::from(&*kind.plural));
    resource.insert("singularName".into(), Value::from(&*kind.singular));
    resource.insert("namespaced".into(), kind.namespaced.into());
    resource.insert("kind".into(), Value::from(&*kind.kind));
    resource.insert("verbs".into(), names(&kind.verbs));
    if !kind.short_names.is_empty() {
        resource.insert("shortNames".into(), names(&kind.short_names));
    }
    if !kind.categories.is_empty() {
        resource.insert("categories".into(), names(&kind.categories));
    }
    // What is not kept has no version that it is kept in.
    if kind.derived.is_none() && kind.verbs.iter().any(|verb| &**verb == "get") {
        resource.insert("storageVersionHash".into(), storage_version_hash(kind).into());
    }
    let mut resources = vec![Value::Object(resource)];
    resources.extend(kind.subresources.iter().map(|subresource| of_subresource(kind, *subresource)));
    resources
}

fn of_subresource(kind: &Kind, subresource: Subresource) -> Value {
    let (group, version, response) = response_kind(kind, subresource);
    let mut resource = json!({"name": format!("{}/{}", kind.plural, subresource.name()), "singularName": "",
        "namespaced": kind.namespaced, "kind": response, "verbs": subresource.verbs()});
    let own = &kind.group_version;
    if (&*group, &*version) != (&*own.group, &*own.version) {
        resource["group"] = group.into();
        resource["version"] = version.into();
    }
    resource
}

/// The names as JSON.
pub(crate) fn names(names: &[std::sync::Arc<str>]) -> Value {
    names.iter().map(|name| Value::from(&**name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_listed_with_what_hangs_below() {
        let scheme = Scheme::builtin();
        let list = api_resource_list(&scheme, "", "v1").unwrap();
        let named = |name: &str| {
            list["resources"]
                .as_array()
                .unwrap()
                .iter()
                .find(|resource| resource["name"] == name)
                .cloned()
                .unwrap()
        };
        assert_eq!(named("pods")["storageVersionHash"], "xPOwRZ+Yhw8=");
        assert_eq!(named("pods")["shortNames"], json!(["po"]));
        assert_eq!(
            (&named("pods/eviction")["group"], &named("pods/eviction")["kind"]),
            (&json!("policy"), &json!("Eviction"))
        );
        assert_eq!(list["apiVersion"], Value::Null);
        assert!(api_resource_list(&scheme, "apps", "v1beta1").is_none());
    }

    #[test]
    fn groups_prefer_a_version() {
        let group = api_group(&groups(&Scheme::builtin()), "autoscaling").unwrap();
        assert_eq!(group["preferredVersion"], json!({"groupVersion": "autoscaling/v2", "version": "v2"}));
        assert!(api_group(&groups(&Scheme::builtin()), "").is_none());
    }
}
