//! RoleBinding and ClusterRoleBinding: who may do it.

use std::sync::LazyLock;

use super::bootstrap_policy;
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `rolebindings`
pub static ROLE_BINDINGS: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "io.k8s.api.rbac.v1")
        .printed(columns("io.k8s.api.rbac.v1.RoleBinding", "roleBinding"), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            allow_create_on_update: true,
            validate_name: names::path_segment_name,
            validate: |binding, errors| role_binding(binding, &["Role", "ClusterRole"], errors),
            validate_update,
            ..RULES
        })
        .starting_with(&bootstrap_policy::STARTING)
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
    .governed_by(Rules {
        allow_create_on_update: true,
        validate_name: names::path_segment_name,
        validate: |binding, errors| role_binding(binding, &["ClusterRole"], errors),
        validate_update,
        ..RULES
    })
    .starting_with(&bootstrap_policy::STARTING)
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

const RBAC: &str = "rbac.authorization.k8s.io";

fn role_binding(binding: &Value, kinds: &[&str], errors: &mut FieldErrors) {
    let role = Field::of(binding, "roleRef");
    if role.child("apiGroup").text() != RBAC {
        role.child("apiGroup").not_supported(&[RBAC], errors);
    }
    if !kinds.contains(&role.child("kind").text()) {
        errors.not_supported("roleRef.kind", &role.child("kind").text().into(), kinds);
    }
    role.child("name").must_follow(names::path_segment_name, errors);
    for subject in Field::of(binding, "subjects").items() {
        subject_is_right(&subject, kinds.len() > 1, errors);
    }
}

fn subject_is_right(subject: &Field, is_namespaced: bool, errors: &mut FieldErrors) {
    let [name, kind, group] = ["name", "kind", "apiGroup"].map(|field| subject.child(field));
    name.require(errors);
    match kind.text() {
        "ServiceAccount" => {
            name.follows(names::dns1123_subdomain, errors);
            if !group.is_zero() {
                group.not_supported(&[""], errors);
            }
            if !is_namespaced {
                subject.child("namespace").require(errors);
            }
        }
        "User" | "Group" if group.text() != RBAC => group.not_supported(&[RBAC], errors),
        "User" | "Group" => {}
        other => errors.not_supported(kind.path, &other.into(), &["ServiceAccount", "User", "Group"]),
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if !equal(&new["roleRef"], &old["roleRef"]) {
        Field::of(new, "roleRef").invalid("cannot change roleRef", errors);
    }
}
