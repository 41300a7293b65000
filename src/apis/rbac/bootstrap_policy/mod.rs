//! The roles and bindings that every cluster starts with
//! (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`).
//!
//! [`POLICY`] is what the authorizer decides by as long as they are not stored; [`objects`] are what is
//! stored when somebody first asks for one of their kinds. Both are of one table, so that nobody can tell
//! which of the two it was.

mod table;

use serde_json::{Value, json};

use super::role::{CLUSTER_ROLES, ROLES};
use super::role_binding::{CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS};
use crate::kind::{StartingObject, StartingObjects};
use crate::rbac::policy_rule::PolicyRule;
use crate::views::rbac::Subject;

pub use table::{BootstrapPolicy, POLICY, PolicyBinding, PolicyRole};

use table::GROUP;

/// All of them.
pub static STARTING: StartingObjects = StartingObjects { name: "rbac", manager: "kube-apiserver", objects };

/// All of them, each behind what it refers to. An aggregated role has the rules already that the controller
/// would gather for it.
pub fn objects() -> Vec<StartingObject> {
    let BootstrapPolicy { roles, bindings } = &*POLICY;
    roles.iter().map(role_object).chain(bindings.iter().map(binding_object)).collect()
}

/// The rules of the ClusterRole `system:node` (`NodeRules`).
pub fn node_rules() -> Vec<PolicyRule> {
    let of_node = POLICY.roles.iter().find(|role| role.name == "system:node");
    of_node.map(PolicyRole::rules).unwrap_or_default()
}

fn role_object(role: &PolicyRole) -> StartingObject {
    let mut object = json!({"metadata": metadata(role.namespace, &role.name, &role.labels)});
    object["rules"] = serde_json::to_value(role.rules()).expect("rules are JSON");
    if let Some(selected) = role.selected {
        let selector = json!({"matchLabels": {aggregation_label(selected): "true"}});
        object["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    }
    let kind = if role.namespace.is_empty() { &CLUSTER_ROLES } else { &ROLES };
    StartingObject { kind, object }
}

fn binding_object(binding: &PolicyBinding) -> StartingObject {
    let role = &binding.view.role_ref;
    let mut object = json!({
        "metadata": metadata(binding.namespace, &binding.name, &[]),
        "roleRef": {"apiGroup": GROUP, "kind": role.kind, "name": role.name},
    });
    if !binding.view.subjects.is_empty() {
        object["subjects"] = binding.view.subjects.iter().map(subject).collect();
    }
    let kind = if binding.namespace.is_empty() { &CLUSTER_ROLE_BINDINGS } else { &ROLE_BINDINGS };
    StartingObject { kind, object }
}

fn subject(subject: &Subject) -> Value {
    let Subject { kind, api_group, name, namespace } = subject;
    if namespace.is_empty() {
        json!({"apiGroup": api_group, "kind": kind, "name": name})
    } else {
        json!({"kind": kind, "namespace": namespace, "name": name})
    }
}

fn metadata(namespace: &str, name: &str, labels: &[&str]) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::rbac::Binding;
    use std::collections::BTreeSet;

    fn named(objects: &[StartingObject], kind: &str, name: &str) -> Value {
        let found = objects.iter().find(|object| &*object.kind.kind == kind && object.name() == name);
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
                "resources": ["leases"], "verbs": ["get", "list", "update", "watch"]})
        );
        assert!(named(&objects, "ClusterRoleBinding", "system:node").get("subjects").is_none());
    }

    #[test]
    fn no_object_stands_twice_and_every_list_is_sorted() {
        let mut seen = BTreeSet::new();
        for object in objects() {
            let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
            assert!(seen.insert((object.kind.plural.clone(), namespace, name.clone())));
            for rule in object.object["rules"].as_array().into_iter().flatten() {
                for (field, list) in rule.as_object().unwrap() {
                    let list: Vec<&str> = list.as_array().unwrap().iter().filter_map(Value::as_str).collect();
                    assert!(list.is_sorted(), "{name}: {field} {list:?}");
                }
            }
        }
        assert!(node_rules().len() > 20);
    }

    #[test]
    fn the_authorizers_view_and_the_objects_are_of_one_table() {
        for (role, object) in POLICY.roles.iter().zip(objects()) {
            assert_eq!(object.name(), role.name);
            let stored: Vec<PolicyRule> = serde_json::from_value(object.object["rules"].clone()).unwrap();
            assert_eq!(role.view().rules, stored);
        }
        let bindings = objects().into_iter().skip(POLICY.roles.len());
        for (binding, object) in POLICY.bindings.iter().zip(bindings) {
            let stored: Binding = serde_json::from_value(object.object.clone()).unwrap();
            assert_eq!((object.name(), stored), (&*binding.name, (*binding.view).clone()));
        }
    }
}
