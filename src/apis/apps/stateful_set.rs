//! StatefulSet: pods with names and storage of their own.

use std::sync::LazyLock;

use crate::apimachinery::names;
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::core::persistent_volume_claim;
use crate::apis::core::pod::defaults::pod_spec;
use crate::apis::core::pod::strategy::template_warnings;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{container_cells, container_columns, name};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::number;
use crate::apis::tree::*;
use serde_json::Value;

/// `statefulsets`
pub static STATEFUL_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "StatefulSet", "statefulsets", "io.k8s.api.apps.v1")
        .short(&["sts"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            validate_name: names::dns1123_label,
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::new("Ready", "string", "Number of the pod with ready state"),
        Column::age(),
        containers,
        images,
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.template.spec");
    let ready = format!("{}/{}", number(&tree, "status.readyReplicas"), number(&tree, "spec.replicas"));
    vec![name(object), ready.into(), age(object, now), names, images]
}

fn defaults(set: &mut Value) {
    set_if_zero(set, "spec.podManagementPolicy", "OrderedReady");
    if text(set, "spec.updateStrategy.type").is_empty() {
        set_if_unset(set, "spec.updateStrategy.type", "RollingUpdate");
        object_mut(set, "spec.updateStrategy.rollingUpdate");
    }
    if text(set, "spec.updateStrategy.type") == "RollingUpdate"
        && is_set(set, "spec.updateStrategy.rollingUpdate")
    {
        set_if_unset(set, "spec.updateStrategy.rollingUpdate.partition", 0);
    }
    set_if_zero(set, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Retain");
    set_if_zero(set, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain");
    set_if_unset(set, "spec.replicas", 1);
    set_if_unset(set, "spec.revisionHistoryLimit", 10);
    pod_spec(set, "spec.template.spec");
    for claim in items_mut(set, "spec.volumeClaimTemplates") {
        set_if_zero(claim, "apiVersion", "v1");
        set_if_zero(claim, "kind", "PersistentVolumeClaim");
        persistent_volume_claim::defaults(claim);
    }
}
