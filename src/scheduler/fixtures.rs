//! Pods and nodes for the scheduler's tests.

use std::sync::Arc;

use serde_json::{Value, json};

use super::framework::pod_info::PodInfo;
use apimachinery::object::Object;

/// A pod of that name and spec; its uid is its name.
pub(crate) fn pod(name: &str, spec: Value) -> Arc<PodInfo> {
    let pod = json!({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec});
    Arc::new(PodInfo::new(object(pod)))
}

/// A node with 4 CPUs, 8 GiB and room for 10 pods, but for what `changes` (a merge patch) says.
pub(crate) fn node(name: &str, changes: Value) -> Arc<Object> {
    let mut node = json!({
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "10Gi"}},
    });
    json_patch::merge(&mut node, &changes);
    object(node)
}

/// Any object.
pub(crate) fn object(value: Value) -> Arc<Object> {
    Arc::new(Object::from_value(&value, vec![]).expect("a test's object is well formed"))
}
