//! RuntimeClass: which runtime a pod runs under.

use std::sync::LazyLock;

use crate::core::pod::validation::{requirements_of_overhead, tolerations};
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::text;
use crate::validation::Field;
use crate::validation::labels::labels;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1123_label;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `runtimeclasses`
pub static RUNTIME_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "io.k8s.api.node.v1")
        .cluster_scoped()
        .printed(columns(), cells)
        .governed_by(Rules {
            allow_create_on_update: true,
            allow_unconditional_update: false,
            validate_create,
            validate_update: |new, old, errors| {
                Field::of(new, "handler").immutable(&Field::of(old, "handler"), errors)
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let handler = Column::of("Handler", "string", "io.k8s.api.node.v1.RuntimeClass", "handler");
    vec![Column::name(), handler, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), json!(text(&object.to_value(), "handler")), age(object, now)]
}

/// `ValidateRuntimeClass`
fn validate_create(class: &Value, errors: &mut FieldErrors) {
    Field::of(class, "handler").must_follow(dns1123_label, errors);
    let fixed = Field::of(class, "overhead.podFixed").shown_as("overhead");
    requirements_of_overhead(&fixed, errors);
    let scheduling = Field::of(class, "scheduling");
    labels(&scheduling.child("nodeSelector"), errors);
    tolerations(&scheduling.child("tolerations"), errors);
}
