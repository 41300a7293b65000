//! A volume that is attached before pods use it, and what its attachments are called.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use apimachinery::object::Object;
use apis::tree::text;
use apis::volumes::{attached_as, is_for_one_node};
use client_go::lister::Lister;

/// Nodes by their names, with the pods on each that use a volume.
pub(super) type VolumeUsers = BTreeMap<String, Vec<Arc<Object>>>;

/// A volume of a CSI driver.
pub(super) struct AttachableVolume {
    /// Of the PersistentVolume.
    pub(super) name: String,
    /// As nodes call it.
    pub(super) unique_name: String,
    /// No two nodes may have it at once.
    pub(super) is_for_one_node: bool,
    driver: String,
    handle: String,
}

impl AttachableVolume {
    /// Nothing for a volume that needs no attaching.
    pub(super) fn of(volume: &Object, drivers: &Lister) -> Option<AttachableVolume> {
        let tree = volume.to_value();
        let driver = text(&tree, "spec.csi.driver").to_owned();
        let says = drivers.get("", &driver).map(|driver| driver.to_value());
        Some(AttachableVolume {
            name: volume.metadata.name.clone(),
            unique_name: attached_as(&tree, says.as_ref())?,
            is_for_one_node: is_for_one_node(&tree),
            handle: text(&tree, "spec.csi.volumeHandle").to_owned(),
            driver,
        })
    }

    /// The name of its attachment to a node (`getAttachmentName`).
    pub(super) fn attachment_name(&self, node: &str) -> String {
        let digest = Sha256::digest(format!("{}{}{node}", self.handle, self.driver));
        digest.iter().fold("csi-".to_owned(), |mut name, byte| {
            // Writing into a text cannot fail.
            let _ = write!(name, "{byte:02x}");
            name
        })
    }

    /// Whether an attachment has such a name. Others are somebody else's, and are left alone.
    pub(super) fn is_attachment_name(name: &str) -> bool {
        const DIGITS: usize = 64;
        let digest = name.strip_prefix("csi-").filter(|digest| digest.len() == DIGITS);
        digest.is_some_and(|digest| digest.bytes().all(|digit| digit.is_ascii_hexdigit()))
    }

    /// The wish to have it at a node.
    pub(super) fn attachment(&self, node: &str) -> Value {
        json!({
            "metadata": {"name": self.attachment_name(node)},
            "spec": {
                "attacher": self.driver,
                "nodeName": node,
                "source": {"persistentVolumeName": self.name},
            },
        })
    }
}

/// Why a volume for one node does not come to another one (`reportMultiAttachError`): said to a pod of
/// `namespace`, of the pods that have it elsewhere.
pub(super) fn multi_attach_message(volume: &str, namespace: &str, elsewhere: &[Arc<Object>]) -> String {
    let is_near = |pod: &&Arc<Object>| pod.metadata.namespace == namespace;
    let near: Vec<&str> = elsewhere.iter().filter(is_near).map(|pod| pod.metadata.name.as_str()).collect();
    let far = elsewhere.len() - near.len();
    let of_others = format!("{far} pod(s) in different namespaces");
    let why = match (near.is_empty(), far) {
        (true, 0) => {
            "Volume is already exclusively attached to one node and can't be attached to another".to_owned()
        }
        (true, _) => format!("Volume is already used by {of_others}"),
        (false, 0) => format!("Volume is already used by pod(s) {}", near.join(", ")),
        (false, _) => format!("Volume is already used by pod(s) {} and {of_others}", near.join(", ")),
    };
    format!("Multi-Attach error for volume {volume:?} {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_named_after_volume_driver_and_node() {
        let volume = AttachableVolume {
            name: "pv".into(),
            unique_name: String::new(),
            is_for_one_node: true,
            driver: "driver.io".into(),
            handle: "handle".into(),
        };
        let expected = Sha256::digest("handledriver.ionode-1");
        assert_eq!(volume.attachment_name("node-1"), format!("csi-{expected:x}"));
        assert_eq!(volume.attachment("node-1")["spec"]["source"]["persistentVolumeName"], "pv");
    }

    #[test]
    fn who_has_a_volume_is_said_as_far_as_it_may_be_known() {
        let pod = |namespace: &str, name: &str| {
            let tree = json!({"metadata": {"name": name, "namespace": namespace}});
            Arc::new(Object::from_value(&tree, vec![]).unwrap())
        };
        let said = |pods: &[Arc<Object>]| {
            let all = multi_attach_message("v", "ns", pods);
            all.strip_prefix("Multi-Attach error for volume \"v\" ").unwrap().to_owned()
        };
        let alone = "Volume is already exclusively attached to one node and can't be attached to another";
        assert_eq!(said(&[]), alone);
        assert_eq!(said(&[pod("ns", "a"), pod("ns", "b")]), "Volume is already used by pod(s) a, b");
        assert_eq!(
            said(&[pod("ns", "a"), pod("other", "b")]),
            "Volume is already used by pod(s) a and 1 pod(s) in different namespaces"
        );
        assert_eq!(said(&[pod("x", "a")]), "Volume is already used by 1 pod(s) in different namespaces");
    }
}
