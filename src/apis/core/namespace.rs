//! Namespace: a room for names.

use std::sync::LazyLock;

use crate::finalizers::lacks_domain;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::text;
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `namespaces`
pub static NAMESPACES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Namespace", "namespaces", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["ns"])
        .only(&["create", "delete", "get", "list", "patch", "update", "watch"])
        .with(&[Subresource::Finalize, Subresource::Status])
        .selectable_by(&["status.phase"])
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            prepare_for_create,
            prepare_for_update,
            validate_name: names::dns1123_label,
            validate_create: |namespace, errors| finalizers(namespace, "spec.finalizers", errors),
            validate_status_update,
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    vec![Column::name(), Column::new("Status", "string", "The status of the namespace"), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), json!(text(&object.to_value(), "status.phase")), age(object, now)]
}

/// A namespace bears its name as a label; one whose name is yet to be generated gets it on creation.
fn defaults(namespace: &mut Value) {
    let name = text(namespace, "metadata.name").to_owned();
    if !name.is_empty() {
        object_mut(namespace, "metadata.labels").insert("kubernetes.io/metadata.name".into(), name.into());
    }
    set_if_zero(namespace, "status.phase", "Active");
}

/// The finalizer keeps the namespace until its contents are gone.
fn prepare_for_create(namespace: &mut Value) {
    defaults(namespace);
    set(namespace, "status", json!({"phase": "Active"}));
    let mut finalizers = items(namespace, "spec.finalizers").to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    set(namespace, "spec.finalizers", finalizers);
}

/// Only the `finalize` subresource changes finalizers.
fn prepare_for_update(new: &mut Value, old: &Value) {
    set(new, "spec", at(old, "spec").clone());
}

/// `validateFinalizerName`
pub fn finalizers(namespace: &Value, path: &str, errors: &mut FieldErrors) {
    for finalizer in Field::of(namespace, path).items().iter().map(|finalizer| finalizer.shown_as(path)) {
        finalizer.invalid_each(names::qualified_name(finalizer.text()), errors);
        if lacks_domain(finalizer.text()) {
            finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified", errors);
        }
    }
}

fn validate_status_update(new: &Value, _: &Value, errors: &mut FieldErrors) {
    let phase = Field::of(new, "status.phase").shown_as("status.Phase");
    match (is_set(new, "metadata.deletionTimestamp"), phase.text()) {
        (false, "Active") | (true, "Terminating") => {}
        (false, _) => phase.invalid("may only be 'Active' if `deletionTimestamp` is empty", errors),
        (true, _) => phase.invalid("may only be 'Terminating' if `deletionTimestamp` is not empty", errors),
    }
}
