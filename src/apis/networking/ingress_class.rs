//! IngressClass: who serves an Ingress.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `ingressclasses`
pub static INGRESS_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "io.k8s.api.networking.v1")
        .cluster_scoped()
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
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
