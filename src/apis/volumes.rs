//! Which volume does for a claim (`component-helpers/storage/volume`), and the annotations by which
//! scheduler, controllers and provisioners tell each other.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::resources::amounts;
use super::tree::{annotation, at, object_mut, set, text, texts};
use super::views::node_affinity::NodeSelector;
use apimachinery::labels::LabelSelector;
use apimachinery::object::{Object, ObjectMeta, object_key};

/// A claim that was bound once: it is never bound again.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The binding was the controller's choice, not the user's.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The node for which the scheduler wants a claim's volume made.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Who is to make a claim's volume.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// Who is to make a claim's volume, for provisioners that know only this annotation.
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// Who made a volume.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The provisioner of classes whose volumes are made by hand.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// `ReadWriteOncePod`: one pod in the cluster.
const ONE_POD: &str = "ReadWriteOncePod";
/// Modes in which several nodes have a volume at once.
const SHARED_MODES: [&str; 2] = ["ReadWriteMany", "ReadOnlyMany"];

/// A volume, and its tree.
pub type VolumeObject = (Arc<Object>, Value);

/// The key of the claim that a volume is bound to or kept for.
pub fn claimed_by(volume: &Value) -> Option<String> {
    let claim = at(volume, "spec.claimRef");
    (!claim.is_null()).then(|| object_key(text(claim, "namespace"), text(claim, "name")))
}

/// Whether a claim is bound, for both sides.
pub fn is_bound(claim: &Value) -> bool {
    !text(claim, "spec.volumeName").is_empty() && !annotation(claim, BIND_COMPLETED).is_empty()
}

/// Whether pods on a node can use a volume (`CheckNodeAffinity`).
pub fn is_reachable(volume: &Value, node: &ObjectMeta) -> bool {
    let required = at(volume, "spec.nodeAffinity.required");
    required.is_null() || NodeSelector::deserialize(required).is_ok_and(|required| required.matches(node))
}

/// The volume for a claim (`FindMatchingVolume`): one that is kept for it, or else the smallest that does, on
/// `node` if it is known.
pub fn find_matching(
    volumes: &[VolumeObject],
    claim: &Value,
    node: Option<&ObjectMeta>,
) -> Option<Arc<Object>> {
    let key = object_key(text(claim, "metadata.namespace"), text(claim, "metadata.name"));
    let is_reserved = |(_, tree): &&VolumeObject| {
        let uid = text(tree, "spec.claimRef.uid");
        let is_its_own = uid.is_empty() || uid == text(claim, "metadata.uid");
        is_its_own && claimed_by(tree).is_some_and(|of| of == key)
    };
    let reaches = |tree: &Value| node.is_none_or(|node| is_reachable(tree, node));
    let does = |(volume, tree): &&VolumeObject| {
        !volume.is_deleting() && claimed_by(tree).is_none() && fits(tree, volume, claim) && reaches(tree)
    };
    let size = |(volume, tree): &&VolumeObject| {
        (amounts(tree, "spec.capacity").remove("storage"), volume.metadata.name.clone())
    };
    let found = volumes.iter().find(is_reserved).filter(|(_, tree)| reaches(tree));
    found.or_else(|| volumes.iter().filter(does).min_by_key(size)).map(|(volume, _)| volume.clone())
}

/// Binds a volume's side to a claim.
pub fn claim_volume(volume: &mut Value, claim: &ObjectMeta) {
    if claimed_by(volume).is_none() {
        object_mut(volume, "metadata.annotations").insert(BOUND_BY_CONTROLLER.into(), "yes".into());
    }
    set(volume, "spec.claimRef", claim_reference(claim));
}

/// A reference to a claim.
pub fn claim_reference(claim: &ObjectMeta) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.name,
        "namespace": claim.namespace, "uid": claim.uid,
        "resourceVersion": claim.resource_version.to_string()})
}

/// What a node's status calls a volume that is attached to it, or that its pods use (`UniqueVolumeName`);
/// nothing for a volume that is not attached: those of no CSI driver, and of drivers that do without.
pub fn attached_as(volume: &Value, driver: Option<&Value>) -> Option<String> {
    let csi = at(volume, "spec.csi");
    let does_without = driver.is_some_and(|driver| at(driver, "spec.attachRequired") == &Value::Bool(false));
    let is_attached = !csi.is_null() && !does_without;
    is_attached.then(|| format!("kubernetes.io/csi/{}^{}", text(csi, "driver"), text(csi, "volumeHandle")))
}

/// Whether no two nodes may have a volume at once (`isMultiAttachForbidden`).
pub fn is_for_one_node(volume: &Value) -> bool {
    let modes = texts(volume, "spec.accessModes");
    !modes.is_empty() && !modes.iter().any(|mode| SHARED_MODES.contains(mode))
}

/// Whether no two pods may have a volume at once.
pub fn is_for_one_pod(volume: &Value) -> bool {
    texts(volume, "spec.accessModes") == [ONE_POD]
}

fn fits(volume: &Value, object: &Object, claim: &Value) -> bool {
    let mode = |tree: &Value| match text(tree, "spec.volumeMode") {
        "" => "Filesystem".to_owned(),
        mode => mode.to_owned(),
    };
    let modes = texts(volume, "spec.accessModes");
    let selector = at(claim, "spec.selector");
    let is_selected = selector.is_null()
        || LabelSelector::deserialize(selector)
            .ok()
            .and_then(|selector| selector.selector().ok())
            .is_some_and(|selector| selector.matches(&object.metadata.labels));
    let capacity = amounts(volume, "spec.capacity").remove("storage").unwrap_or_default();
    let wanted = amounts(claim, "spec.resources.requests").remove("storage").unwrap_or_default();
    text(volume, "spec.storageClassName") == text(claim, "spec.storageClassName")
        && text(volume, "spec.volumeAttributesClassName") == text(claim, "spec.volumeAttributesClassName")
        && mode(volume) == mode(claim)
        && texts(claim, "spec.accessModes").iter().all(|mode| modes.contains(mode))
        && is_selected
        && capacity >= wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(name: &str, storage: &str, more: Value) -> VolumeObject {
        let mut spec = json!({"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let tree = json!({"metadata": {"name": name}, "spec": spec});
        (Arc::new(Object::from_value(&tree, vec![]).unwrap()), tree)
    }

    #[test]
    fn volumes_of_drivers_are_attached_unless_these_do_without() {
        let csi = json!({"spec": {"csi": {"driver": "d.io", "volumeHandle": "h"}}});
        let name = Some("kubernetes.io/csi/d.io^h".to_owned());
        assert_eq!(attached_as(&csi, None), name);
        assert_eq!(attached_as(&csi, Some(&json!({"spec": {"attachRequired": true}}))), name);
        assert_eq!(attached_as(&csi, Some(&json!({"spec": {"attachRequired": false}}))), None);
        assert_eq!(attached_as(&json!({"spec": {"hostPath": {"path": "/a"}}}), None), None);
    }

    #[test]
    fn modes_say_for_whom_a_volume_is() {
        for (modes, one_node, one_pod) in [
            (json!([]), false, false),
            (json!(["ReadWriteOnce"]), true, false),
            (json!(["ReadWriteOncePod"]), true, true),
            (json!(["ReadWriteOncePod", "ReadWriteOnce"]), true, false),
            (json!(["ReadWriteOnce", "ReadOnlyMany"]), false, false),
        ] {
            let volume = json!({"spec": {"accessModes": modes}});
            assert_eq!((is_for_one_node(&volume), is_for_one_pod(&volume)), (one_node, one_pod), "{modes}");
        }
    }

    #[test]
    fn the_smallest_volume_that_does_is_found() {
        let on = |node: &str| {
            let expression = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
            let terms = json!([{"matchExpressions": [expression]}]);
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}})
        };
        let claim_ref = json!({"namespace": "ns", "name": "kept"});
        let volumes = [
            volume("small", "1Gi", json!({})),
            volume("large", "9Gi", json!({})),
            volume("local", "4Gi", on("a")),
            volume("taken", "5Gi", json!({"claimRef": {"namespace": "ns", "name": "x", "uid": "u"}})),
            volume("kept", "1Gi", json!({"claimRef": claim_ref})),
        ];
        let labels = |name: &str| [("kubernetes.io/hostname".to_owned(), name.to_owned())].into();
        let node = |name: &str| ObjectMeta { labels: labels(name), ..ObjectMeta::default() };
        let cases = [
            ("data", "3Gi", Some("a"), Some("local")),
            ("data", "3Gi", Some("b"), Some("large")),
            ("data", "3Gi", None, Some("local")),
            ("data", "1Gi", None, Some("small")),
            ("data", "99Gi", None, None),
            ("kept", "3Gi", None, Some("kept")),
        ];
        for (name, storage, on, expected) in cases {
            let claim = json!({"metadata": {"name": name, "namespace": "ns", "uid": "new"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}});
            let node = on.map(node);
            let found = find_matching(&volumes, &claim, node.as_ref());
            assert_eq!(found.as_ref().map(|it| it.metadata.name.as_str()), expected, "{name} {storage}");
        }
    }
}
