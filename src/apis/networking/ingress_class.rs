//! IngressClass: who serves an Ingress.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::texts::domain_prefixed_path;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain, path_segment_name};
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `ingressclasses`
pub static INGRESS_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "io.k8s.api.networking.v1")
        .cluster_scoped()
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            validate,
            validate_update: |new, old, errors| {
                Field::of(new, "spec.controller").immutable(&Field::of(old, "spec.controller"), errors)
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::new("Controller", "string", "Controller that is responsible for handling this class"),
        Column::new("Parameters", "string", "A reference to a resource with additional parameters"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![name(object), json!(text(&tree, "spec.controller")), parameters(&tree).into(), age(object, now)]
}

fn parameters(tree: &Value) -> String {
    if !is_set(tree, "spec.parameters") {
        return "<none>".into();
    }
    let parameters = at(tree, "spec.parameters");
    let group = parameters["apiGroup"].as_str().map_or(String::new(), |group| format!(".{group}"));
    format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
}

fn defaults(class: &mut Value) {
    if let Some(parameters) = get_mut(class, "spec.parameters") {
        set_if_unset(parameters, "scope", "Cluster");
    }
}

fn validate(class: &Value, errors: &mut FieldErrors) {
    let controller = Field::of(class, "spec.controller");
    if controller.text().len() > 250 {
        errors.too_long(controller.path.as_str(), 250);
    }
    domain_prefixed_path(&controller, errors);
    let parameters = Field::of(class, "spec.parameters");
    if !parameters.is_set() {
        return;
    }
    typed_reference(&parameters, errors);
    let (scope, namespace) = (parameters.child("scope"), parameters.child("namespace"));
    match (scope.text(), namespace.is_set()) {
        ("Namespace", false) => namespace.required("`parameters.scope` is set to 'Namespace'", errors),
        ("Namespace", true) => namespace.invalid_each(dns1123_label(namespace.text()), errors),
        ("Cluster", true) => namespace.forbidden("`parameters.scope` is set to 'Cluster'", errors),
        ("Cluster", false) => {}
        _ => scope.not_supported(&["Cluster", "Namespace"], errors),
    }
}

/// `validateIngressTypedLocalObjectReference`
pub fn typed_reference(reference: &Field, errors: &mut FieldErrors) {
    let group = reference.child("apiGroup");
    if group.is_set() {
        group.invalid_each(dns1123_subdomain(group.text()), errors);
    }
    for name in ["kind", "name"] {
        reference.child(name).must_follow(path_segment_name, errors);
    }
}
