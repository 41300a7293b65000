//! CSIDriver, CSINode and CSIStorageCapacity: what the storage drivers say of themselves.

use std::sync::LazyLock;

use super::csi_validation;
use crate::gated::Gated;
use crate::kind::{Builtin, Kind};
use crate::print::{name, or};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

const GATES: &[Gated] = &[Gated::new("VolumeLimitScaling", "spec.preventPodSchedulingIfMissing")];

/// `csidrivers`
pub static CSI_DRIVERS: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .printed(driver_columns(), driver_cells)
        .gated("", GATES)
        .returns_deleted()
        .defaulted(driver_defaults)
        .governed_by(Rules {
            allow_unconditional_update: false,
            validate: csi_validation::driver,
            validate_update: csi_validation::driver_update,
            ..RULES
        })
        .into()
});

/// `csinodes`
pub static CSI_NODES: Builtin = LazyLock::new(|| {
    Kind::builtin("storage.k8s.io", "v1", "CSINode", "csinodes", "io.k8s.api.storage.v1")
        .cluster_scoped()
        .printed(node_columns(), node_cells)
        .returns_deleted()
        .governed_by(Rules {
            allow_unconditional_update: false,
            validate: csi_validation::node,
            validate_update: csi_validation::node_update,
            ..RULES
        })
        .into()
});

/// `csistoragecapacities`
pub static CSI_STORAGE_CAPACITIES: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        "io.k8s.api.storage.v1",
    )
    .printed(capacity_columns(), capacity_cells)
    .governed_by(Rules {
        allow_unconditional_update: false,
        validate: csi_validation::capacity,
        validate_update: |new, old, errors| {
            for field in ["nodeTopology", "storageClassName"] {
                Field::of(new, field).immutable(&Field::of(old, field), errors);
            }
        },
        ..RULES
    })
    .into()
});

const DRIVER: &str = "io.k8s.api.storage.v1.CSIDriverSpec";
const CAPACITY: &str = "io.k8s.api.storage.v1.CSIStorageCapacity";

fn driver_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("AttachRequired", "boolean", DRIVER, "attachRequired"),
        Column::of("PodInfoOnMount", "boolean", DRIVER, "podInfoOnMount"),
        Column::of("StorageCapacity", "boolean", DRIVER, "storageCapacity"),
        Column::of("TokenRequests", "string", DRIVER, "tokenRequests"),
        Column::of("RequiresRepublish", "boolean", DRIVER, "requiresRepublish"),
        Column::of("Modes", "string", DRIVER, "volumeLifecycleModes"),
        Column::age(),
    ]
}

fn driver_cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let flag = |field: &str, default: bool| json!(at(&tree["spec"], field).as_bool().unwrap_or(default));
    let audiences = at(&tree, "spec.tokenRequests").as_array().map(|requests| {
        requests.iter().map(|request| text(request, "audience")).collect::<Vec<_>>().join(",")
    });
    vec![
        name(object),
        flag("attachRequired", true),
        flag("podInfoOnMount", false),
        flag("storageCapacity", false),
        audiences.unwrap_or("<unset>".into()).into(),
        flag("requiresRepublish", false),
        json!(or(&texts(&tree, "spec.volumeLifecycleModes").join(","), "<none>")),
        age(object, now),
    ]
}

fn node_columns() -> Vec<Column> {
    let drivers = "Drivers indicates the number of CSI drivers registered on the node";
    vec![Column::name(), Column::new("Drivers", "integer", drivers), Column::age()]
}

fn node_cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), count(&object.to_value(), "spec.drivers").into(), age(object, now)]
}

fn capacity_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("StorageClassName", "string", CAPACITY, "storageClassName"),
        Column::of("Capacity", "string", CAPACITY, "capacity"),
    ]
}

fn capacity_cells(object: &Object, _: Time) -> Vec<Value> {
    let tree = object.to_value();
    let capacity = at(&tree, "capacity").as_str().unwrap_or("<unset>");
    vec![name(object), json!(text(&tree, "storageClassName")), json!(capacity)]
}

fn driver_defaults(driver: &mut Value) {
    set_if_unset(driver, "spec.attachRequired", true);
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        set_if_unset(driver, &format!("spec.{field}"), false);
    }
    set_if_unset(driver, "spec.fsGroupPolicy", "ReadWriteOnceWithFSType");
    set_if_zero(driver, "spec.volumeLifecycleModes", json!(["Persistent"]));
}
