//! PodTemplate: a pod to be.

use std::sync::LazyLock;

use crate::core::pod::defaults::pod_spec;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::core::pod::validation::template;
use crate::kind::{Builtin, Kind};
use crate::print::{container_cells, labels, name};
use crate::rules::{RULES, Rules};
use crate::table::Column;
use crate::validation::Field;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `podtemplates`
pub static POD_TEMPLATES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PodTemplate", "podtemplates", "io.k8s.api.core.v1")
        .with_generation()
        .gated("/template/spec", POD_GATES)
        .returns_deleted()
        .printed(columns(), cells)
        .defaulted(|tree| pod_spec(tree, "template.spec"))
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "template"),
            validate: |tree, errors| template(&Field::of(tree, "template"), errors),
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::new("Containers", "string", "Names of each container in the template."),
        Column::new("Images", "string", "Images referenced by each container in the template."),
        Column::new("Pod Labels", "string", "The labels for the pod template."),
    ]
}

fn cells(object: &Object, _: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "template.spec");
    vec![name(object), names, images, json!(labels(&tree, "template.metadata.labels"))]
}
