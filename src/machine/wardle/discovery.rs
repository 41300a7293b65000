//! What the sample apiserver says of what it serves.

use serde_json::{Value, json};

use super::answers::{GROUP, said};
use super::versions::{KINDS, VERSIONS, WardleKind};
use crate::requests::WebAnswer;

const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/apis` and what is below it, without objects.
pub(super) fn answer(words: &[&str]) -> WebAnswer {
    match words {
        ["apis"] => said(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group(false)]})),
        ["apis", name] if *name == GROUP => said(200, &group(true)),
        ["apis", name, version] if *name == GROUP && VERSIONS.contains(version) => {
            let resources: Vec<Value> = KINDS
                .iter()
                .filter(|kind| WardleKind::of(version, kind.plural).is_some())
                .map(resource)
                .collect();
            let of = format!("{GROUP}/{version}");
            said(
                200,
                &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": of, "resources": resources}),
            )
        }
        ["version"] => said(200, &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2"})),
        _ => WebAnswer::not_found(),
    }
}

fn group(is_alone: bool) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{GROUP}/{version}"), "version": version});
    let versions: Vec<Value> = VERSIONS.iter().map(version).collect();
    let mut group = json!({"name": GROUP, "versions": versions, "preferredVersion": versions[0]});
    if is_alone {
        group["kind"] = "APIGroup".into();
        group["apiVersion"] = "v1".into();
    }
    group
}

fn resource(kind: &WardleKind) -> Value {
    json!({"name": kind.plural, "singularName": kind.singular, "namespaced": kind.is_namespaced,
        "kind": kind.name, "verbs": VERBS})
}
