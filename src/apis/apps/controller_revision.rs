//! ControllerRevision: a past template of a StatefulSet or DaemonSet.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::number;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `controllerrevisions`
pub static CONTROLLER_REVISIONS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "ControllerRevision", "controllerrevisions", "io.k8s.api.apps.v1")
        .printed(columns(), cells)
        .governed_by(Rules {
            validate,
            validate_update: |new, old, errors| {
                Field::of(new, "data").immutable(&Field::of(old, "data"), errors)
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::new("Controller", "string", "Controller of the object"),
        Column::of("Revision", "string", "io.k8s.api.apps.v1.ControllerRevision", "revision"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let revision = number(&object.to_value(), "revision");
    let controller = match object.controller() {
        None => "<none>".to_owned(),
        Some(owner) => {
            let group =
                owner.api_version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
            format!("{}{group}/{}", owner.kind.to_lowercase(), owner.name)
        }
    };
    vec![name(object), controller.into(), revision.into(), age(object, now)]
}

fn validate(revision: &Value, errors: &mut FieldErrors) {
    let data = Field::of(revision, "data");
    if !data.is_set() {
        data.required("data is mandatory", errors);
    }
    Field::of(revision, "revision").nonnegative(errors);
}
