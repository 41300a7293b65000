//! The roles and bindings that every cluster starts with
//! (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`), read from `manifests/bootstrap/rbac.txt`, whose head
//! says how it is written.

use serde_json::{Map, Value, json};

use super::policy_rule::PolicyRule;
use super::role::{CLUSTER_ROLES, ROLES};
use super::role_binding::{CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS};
use crate::apis::kind::Builtin;

const TABLE: &str = include_str!("../../../manifests/bootstrap/rbac.txt");
const GROUP: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// One object that every cluster starts with.
pub struct Bootstrap {
    /// Its kind.
    pub kind: &'static Builtin,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'static str,
    /// As `system:discovery`.
    pub name: String,
    /// The whole object. An aggregated role has the rules already that the controller would gather for it.
    pub object: Value,
}

/// All of them, each behind what it refers to.
pub fn objects() -> Vec<Bootstrap> {
    let mut objects: Vec<Bootstrap> = Vec::with_capacity(160);
    let mut bindings = Vec::with_capacity(60);
    let mut lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    while let Some(head) = lines.next() {
        let words: Vec<&'static str> = head.split(' ').collect();
        let mut rules = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            rules.push(rule(line.trim_start()));
        }
        match words.as_slice() {
            ["ClusterRole", name, labels @ ..] => objects.push(cluster_role(name, labels, rules)),
            ["Aggregated", name, selected, labels @ ..] => {
                let mut role = cluster_role(name, labels, gathered(&objects, selected));
                let selector = json!({"matchLabels": {aggregation_label(selected): "true"}});
                role.object["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
                objects.push(role);
            }
            ["Controller", name] => {
                let role = format!("system:controller:{name}");
                objects.push(cluster_role(&role, &[], rules));
                let account = format!("ServiceAccount:kube-system/{name}");
                bindings.push(cluster_role_binding(&role, &[&account]));
            }
            ["ClusterRoleBinding", name, subjects @ ..] => {
                bindings.push(cluster_role_binding(name, subjects));
            }
            ["Role", namespace, name] => {
                let object = json!({"metadata": metadata(name, namespace, &[]), "rules": rules});
                objects.push(Bootstrap { kind: &ROLES, namespace, name: name.to_string(), object });
            }
            ["RoleBinding", namespace, name, role, subjects @ ..] => {
                let object = binding(metadata(name, namespace, &[]), ("Role", role), subjects);
                let name = name.to_string();
                bindings.push(Bootstrap { kind: &ROLE_BINDINGS, namespace, name, object });
            }
            _ => unreachable!("a line of the table that nobody knows: {head}"),
        }
    }
    objects.extend(bindings);
    objects
}

/// How many ClusterRoles and ClusterRoleBindings are among them.
pub fn counts() -> (usize, usize) {
    let counted = |words: &[&str]| {
        TABLE.lines().filter(|line| words.contains(&line.split(' ').next().unwrap_or_default())).count()
    };
    (counted(&["ClusterRole", "Aggregated", "Controller"]), counted(&["ClusterRoleBinding", "Controller"]))
}

/// The rules of the ClusterRole `system:node` (`NodeRules`).
pub fn node_rules() -> Vec<PolicyRule> {
    let of_node = TABLE.lines().skip_while(|line| *line != "ClusterRole system:node").skip(1);
    let rules = of_node.take_while(|line| line.starts_with(' ')).map(|line| rule(line.trim_start()));
    rules.map(|rule| serde_json::from_value(rule).expect("the table's rules are rules")).collect()
}

fn cluster_role(name: &str, labels: &[&str], rules: Vec<Value>) -> Bootstrap {
    let object = json!({"metadata": metadata(name, "", labels), "rules": rules});
    Bootstrap { kind: &CLUSTER_ROLES, namespace: "", name: name.to_owned(), object }
}

fn cluster_role_binding(name: &str, subjects: &[&str]) -> Bootstrap {
    let object = binding(metadata(name, "", &[]), ("ClusterRole", name), subjects);
    Bootstrap { kind: &CLUSTER_ROLE_BINDINGS, namespace: "", name: name.to_owned(), object }
}

fn metadata(name: &str, namespace: &str, labels: &[&str]) -> Value {
    let mut all = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    for label in labels {
        all[aggregation_label(label)] = "true".into();
    }
    let annotations = json!({"rbac.authorization.kubernetes.io/autoupdate": "true"});
    let mut metadata = json!({"name": name, "labels": all, "annotations": annotations});
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

fn aggregation_label(label: &str) -> String {
    format!("{GROUP}/{label}")
}

fn binding(metadata: Value, role: (&str, &str), subjects: &[&str]) -> Value {
    let subject = |text: &&str| match text.split_once(':') {
        Some(("ServiceAccount", account)) => {
            let (namespace, name) = account.split_once('/').expect("an account of the table has a namespace");
            json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
        }
        Some((kind, name)) => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
        None => unreachable!("a subject of the table has a kind: {text}"),
    };
    let subjects: Vec<Value> = subjects.iter().map(subject).collect();
    let mut binding =
        json!({"metadata": metadata, "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1}});
    if !subjects.is_empty() {
        binding["subjects"] = subjects.into();
    }
    binding
}

/// One line: verbs, groups, resources, names.
fn rule(line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    let mut rule = Map::new();
    let mut put = |name: &str, values: Vec<&str>| drop(rule.insert(name.into(), values.into()));
    match words.as_slice() {
        ["events"] => {
            put("apiGroups", vec!["", "events.k8s.io"]);
            put("resources", vec!["events"]);
            put("verbs", vec!["create", "patch", "update"]);
        }
        [verbs_text, "url", paths] => {
            put("nonResourceURLs", paths.split(',').collect());
            put("verbs", verbs(verbs_text));
        }
        [verbs_text, groups, resources, names @ ..] => {
            put(
                "apiGroups",
                groups.split(',').map(|group| if group == "core" { "" } else { group }).collect(),
            );
            if let [names] = names {
                put("resourceNames", names.split(',').collect());
            }
            put("resources", resources.split(',').collect());
            put("verbs", verbs(verbs_text));
        }
        _ => unreachable!("a rule of the table that nobody knows: {line}"),
    }
    Value::Object(rule)
}

/// Sorted, as upstream's builder leaves them.
fn verbs(text: &str) -> Vec<&str> {
    let mut verbs = Vec::new();
    for word in text.split(',') {
        match word {
            "read" => verbs.extend(READ),
            "write" => verbs.extend(WRITE),
            other => verbs.push(other),
        }
    }
    verbs.sort_unstable();
    verbs
}

/// What the aggregation controller would gather: the rules of all that bear the label, by name, each once.
fn gathered(objects: &[Bootstrap], label: &str) -> Vec<Value> {
    let label = aggregation_label(label);
    let is_part = |role: &&Bootstrap| role.object["metadata"]["labels"].get(&label).is_some();
    let mut parts: Vec<&Bootstrap> = objects.iter().filter(is_part).collect();
    parts.sort_by(|a, b| a.name.cmp(&b.name));
    let mut rules: Vec<Value> = Vec::new();
    for rule in parts.iter().flat_map(|part| part.object["rules"].as_array().into_iter().flatten()) {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn named(objects: &[Bootstrap], kind: &str, name: &str) -> Value {
        let found = objects.iter().find(|object| &*object.kind.kind == kind && object.name == name);
        found.unwrap_or_else(|| panic!("{kind} {name} is there")).object.clone()
    }

    #[test]
    fn the_table_reads_as_upstreams_objects() {
        let objects = objects();
        let edit = named(&objects, "ClusterRole", "edit");
        assert_eq!(
            edit["metadata"]["labels"],
            json!({"kubernetes.io/bootstrapping": "rbac-defaults",
                "rbac.authorization.k8s.io/aggregate-to-admin": "true"})
        );
        let label = "rbac.authorization.k8s.io/aggregate-to-edit";
        assert_eq!(
            edit["aggregationRule"],
            json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]})
        );
        let part = named(&objects, "ClusterRole", "system:aggregate-to-edit");
        let view = named(&objects, "ClusterRole", "view");
        let whole = [part["rules"].as_array().unwrap().clone(), view["rules"].as_array().unwrap().clone()];
        assert_eq!(edit["rules"], Value::from(whole.concat()));
        let controller = named(&objects, "ClusterRoleBinding", "system:controller:job-controller");
        let account =
            json!([{"kind": "ServiceAccount", "name": "job-controller", "namespace": "kube-system"}]);
        assert_eq!(controller["subjects"], account);
        let leases = &named(&objects, "ClusterRole", "system:kube-scheduler")["rules"][2];
        assert_eq!(
            *leases,
            json!({"apiGroups": ["coordination.k8s.io"], "resourceNames": ["kube-scheduler"],
                "resources": ["leases"], "verbs": ["get", "update"]})
        );
        assert!(named(&objects, "ClusterRoleBinding", "system:node").get("subjects").is_none());
    }

    #[test]
    fn no_object_stands_twice_and_every_list_is_sorted() {
        let mut seen = BTreeSet::new();
        for object in objects() {
            assert!(seen.insert((object.kind.plural.clone(), object.namespace, object.name.clone())));
            for rule in object.object["rules"].as_array().into_iter().flatten() {
                for (name, list) in rule.as_object().unwrap() {
                    let list: Vec<&str> = list.as_array().unwrap().iter().filter_map(Value::as_str).collect();
                    assert!(list.is_sorted(), "{}: {name} {list:?}", object.name);
                }
            }
        }
        assert!(node_rules().len() > 20);
        let of = |kind: &str| objects().iter().filter(|object| &*object.kind.kind == kind).count();
        assert_eq!(counts(), (of("ClusterRole"), of("ClusterRoleBinding")));
    }
}
