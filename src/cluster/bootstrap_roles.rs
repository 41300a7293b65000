//! The default roles and bindings of an earlier start (`pkg/registry/rbac/rest.PolicyData.EnsureRBACPolicy`,
//! `pkg/registry/rbac/reconciliation`): one that is gone is made again; one that is there gets back what
//! somebody took from it, unless its annotation says that it is not to be touched.

use std::collections::HashMap;

use futures::future::try_join_all;
use serde_json::{Value, json};

use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apis::kind::StartingObject;
use apis::rbac;
use apis::rbac::bootstrap_policy::objects;
use apis::rbac::policy_rule::{PolicyRule, uncovered};
use apis::tree::text;
use apiserver::registry::Registry;
use client_go::client::Client;

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Brings all of them to what they should be. In a store of our own that has none, nobody has asked for them
/// yet: there is nothing to do.
///
/// # Errors
/// The server's refusal.
pub(super) async fn reconcile_stored(client: &Client, registry: &Registry) -> Result<(), Status> {
    // Of what others may have written, nothing counts before it is stored.
    if rbac::KINDS.iter().all(|kind| registry.is_known_to_be_empty(kind)) {
        return Ok(());
    }
    let wanted = objects();
    // To list them is to ask for them: what is missing is made before the answer.
    let present = present(client, &wanted).await?;
    let reconciled = wanted.into_iter().filter_map(|wanted| {
        let found = present.get(&key(&wanted))?.clone();
        Some(reconcile(client, wanted, found))
    });
    // Together, so that they share the store's batches.
    try_join_all(reconciled).await.map(drop)
}

type RoleKey = (String, String, String);

fn key(object: &StartingObject) -> RoleKey {
    (object.kind.plural.to_string(), object.namespace().to_owned(), object.name().to_owned())
}

/// What is there of them.
async fn present(client: &Client, wanted: &[StartingObject]) -> Result<HashMap<RoleKey, Value>, Status> {
    let mut present = HashMap::new();
    let mut places: Vec<_> = wanted.iter().map(|object| (object.kind, object.namespace())).collect();
    places.dedup_by_key(|(kind, namespace)| (kind.plural.clone(), *namespace));
    for (kind, namespace) in places {
        for object in client.list(kind, namespace, &ListOptions::default()).await?.items.iter() {
            let key = (kind.plural.to_string(), namespace.to_owned(), object.metadata.name.clone());
            present.insert(key, object.to_value());
        }
    }
    Ok(present)
}

async fn reconcile(client: &Client, wanted: StartingObject, found: Value) -> Result<(), Status> {
    if found["metadata"]["annotations"][AUTO_UPDATE] == "false" {
        return Ok(());
    }
    let (namespace, name) = (wanted.namespace().to_owned(), wanted.name().to_owned());
    let StartingObject { kind, object: wanted } = wanted;
    if !wanted["roleRef"].is_null() && wanted["roleRef"] != found["roleRef"] {
        // Which role a binding is of cannot change.
        client.delete(kind, &namespace, &name, &DeleteOptions::default()).await?;
        return ignore_taken(client.create(kind, &namespace, wanted).await);
    }
    let mut merged = found.clone();
    for field in ["labels", "annotations"] {
        add_members(&mut merged["metadata"], field, &wanted["metadata"][field]);
    }
    match wanted.get("aggregationRule") {
        Some(rule) => add_items(&mut merged, "aggregationRule.clusterRoleSelectors", rule),
        None if wanted["roleRef"].is_null() => add_rules(&mut merged, &wanted["rules"]),
        None => add_subjects(&mut merged, &wanted["subjects"]),
    }
    if merged == found {
        return Ok(());
    }
    client.update(kind, &namespace, &name, merged).await.map(drop)
}

fn ignore_taken<T>(created: Result<T, Status>) -> Result<(), Status> {
    match created {
        Err(status) if status.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}

/// What is there wins.
fn add_members(object: &mut Value, field: &str, wanted: &Value) {
    if !object[field].is_object() {
        object[field] = json!({});
    }
    for (name, value) in wanted.as_object().into_iter().flatten() {
        if object[field].get(name).is_none() {
            object[field][name] = value.clone();
        }
    }
}

fn add_items(object: &mut Value, path: &str, wanted: &Value) {
    let (outer, inner) = path.split_once('.').expect("a path of two fields");
    if !object[outer][inner].is_array() {
        object[outer] = wanted.clone();
        return;
    }
    push_missing(&mut object[outer][inner], &wanted[inner]);
}

/// The rules that no rule of the role covers.
fn add_rules(role: &mut Value, wanted: &Value) {
    let rules = |value: &Value| serde_json::from_value::<Vec<PolicyRule>>(value.clone()).unwrap_or_default();
    let missing = uncovered(&rules(&role["rules"]), &rules(wanted));
    if missing.is_empty() {
        return;
    }
    if !role["rules"].is_array() {
        role["rules"] = json!([]);
    }
    let missing = serde_json::to_value(missing).expect("rules are JSON");
    push_missing(&mut role["rules"], &missing);
}

fn add_subjects(binding: &mut Value, wanted: &Value) {
    if wanted.is_null() {
        return;
    }
    let same = |a: &Value, b: &Value| {
        ["apiGroup", "kind", "namespace", "name"].iter().all(|field| text(a, field) == text(b, field))
    };
    let present: Vec<Value> = binding["subjects"].as_array().cloned().unwrap_or_default();
    let missing = wanted.as_array().into_iter().flatten();
    let missing = missing.filter(|subject| !present.iter().any(|known| same(known, subject)));
    let missing: Vec<Value> = missing.cloned().collect();
    if !missing.is_empty() {
        binding["subjects"] = [present, missing].concat().into();
    }
}

fn push_missing(list: &mut Value, wanted: &Value) {
    let Some(list) = list.as_array_mut() else { return };
    for item in wanted.as_array().into_iter().flatten() {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_added() {
        let mut role = json!({"rules": [{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}]});
        let wanted = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "nodes"]}]);
        add_rules(&mut role, &wanted);
        let added = json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]},
            {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"]}]);
        assert_eq!(role["rules"], added);
        let before = role.clone();
        add_rules(&mut role, &wanted);
        assert_eq!(role, before);

        let mut binding = json!({"subjects": [{"kind": "Group", "name": "a", "apiGroup": "g"}]});
        let wanted = json!([{"kind": "Group", "name": "a", "apiGroup": "g"},
            {"kind": "Group", "name": "b", "apiGroup": "g"}]);
        add_subjects(&mut binding, &wanted);
        assert_eq!(binding["subjects"], wanted);
    }
}
