//! RoleBinding and ClusterRoleBinding: who may do it.

use std::sync::LazyLock;

use crate::apimachinery::names;
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::Value;

/// `rolebindings`
pub static ROLE_BINDINGS: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "io.k8s.api.rbac.v1")
        .printed(columns("io.k8s.api.rbac.v1.RoleBinding", "roleBinding"), cells)
        .defaulted(defaults)
        .governed_by(Rules { allow_create_on_update: true, validate_name: names::path_segment_name, ..RULES })
        .into()
});

/// `clusterrolebindings`
pub static CLUSTER_ROLE_BINDINGS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "io.k8s.api.rbac.v1",
    )
    .cluster_scoped()
    .printed(columns("io.k8s.api.rbac.v1.ClusterRoleBinding", "clusterRoleBinding"), cells)
    .defaulted(defaults)
    .governed_by(Rules { allow_create_on_update: true, validate_name: names::path_segment_name, ..RULES })
    .into()
});

fn columns(definition: &'static str, noun: &str) -> Vec<Column> {
    let subjects = |kind: &str| Column::new(kind, "string", &format!("{kind} in the {noun}")).wide();
    vec![
        Column::name(),
        Column::of("Role", "string", definition, "roleRef"),
        Column::age(),
        subjects("Users"),
        subjects("Groups"),
        subjects("ServiceAccounts"),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let subjects = |kind: &str, shown: fn(&Value) -> String| -> Value {
        let subjects = items(&tree, "subjects").iter().filter(|subject| text(subject, "kind") == kind);
        subjects.map(shown).collect::<Vec<_>>().join(", ").into()
    };
    let name_of = |subject: &Value| text(subject, "name").to_owned();
    vec![
        name(object),
        format!("{}/{}", text(&tree, "roleRef.kind"), text(&tree, "roleRef.name")).into(),
        age(object, now),
        subjects("User", name_of),
        subjects("Group", name_of),
        subjects("ServiceAccount", |subject| {
            format!("{}/{}", text(subject, "namespace"), text(subject, "name"))
        }),
    ]
}

fn defaults(binding: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    set_if_zero(binding, "roleRef.apiGroup", GROUP);
    for subject in items_mut(binding, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            set_if_zero(subject, "apiGroup", GROUP);
        }
    }
}
