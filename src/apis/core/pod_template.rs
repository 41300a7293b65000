//! PodTemplate: a pod to be.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::core::pod::defaults::pod_spec;
use crate::apis::core::pod::strategy::template_warnings;
use crate::apis::core::pod::validation::template;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::{container_cells, labels, name};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::Column;
use crate::apis::validation::Field;
use serde_json::{Value, json};

/// `podtemplates`
pub static POD_TEMPLATES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PodTemplate", "podtemplates", "io.k8s.api.core.v1")
        .with_generation()
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
