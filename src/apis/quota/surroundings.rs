//! `ClaimSurroundings`: the other objects that decide what a claim of devices uses (upstream's
//! `ExtendedResourceCache`, the pods and the claims beside).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::tree::{annotation, items, text};

/// On a claim that the scheduler has made for such a resource: its pod is charged by the name that it used.
const OF_EXTENDED_RESOURCE: &str = "resource.kubernetes.io/extended-resource-claim";
/// What is there beside an object that is measured.
#[derive(Debug, Default)]
pub struct ClaimSurroundings {
    /// The extended resource of each device class, empty where it has none.
    classes: BTreeMap<String, String>,
    /// Pods of the namespace that may control claims for their extended resources.
    pub(super) pods: Vec<Value>,
    /// Claims of the namespace.
    pub(super) claims: Vec<Value>,
}

impl ClaimSurroundings {
    /// From the device classes, and the pods and claims of a namespace.
    pub fn new(classes: &[Value], pods: Vec<Value>, claims: Vec<Value>) -> ClaimSurroundings {
        let resource = |class: &Value| {
            (text(class, "metadata.name").to_owned(), text(class, "spec.extendedResourceName").to_owned())
        };
        ClaimSurroundings { classes: classes.iter().map(resource).collect(), pods, claims }
    }

    /// Whether a claim was made for the extended resources of a pod, which is then to be among these.
    pub fn wants_pod_of(claim: &Value) -> bool {
        pod_of(claim).is_some()
    }

    /// Whether there is such a device class.
    pub(super) fn has_class(&self, class: &str) -> bool {
        self.classes.contains_key(class)
    }

    /// Whether a device class gives out devices by that name.
    pub(super) fn has_extended_resource(&self, resource: &str) -> bool {
        self.classes.values().any(|given| given == resource)
    }

    /// The name by which the devices of a class are given out.
    pub(super) fn extended_resource(&self, class: &str) -> Option<&str> {
        self.classes.get(class).map(String::as_str).filter(|resource| !resource.is_empty())
    }
}

/// The UID of the pod that controls a claim for its extended resources.
pub(super) fn pod_of(claim: &Value) -> Option<&str> {
    if annotation(claim, OF_EXTENDED_RESOURCE) != "true" {
        return None;
    }
    let controller =
        items(claim, "metadata.ownerReferences").iter().find(|owner| owner["controller"] == true)?;
    let is_pod = text(controller, "kind") == "Pod" && text(controller, "apiVersion") == "v1";
    is_pod.then(|| text(controller, "uid"))
}
