//! StorageObjectInUseProtection: volumes, claims and VolumeAttributesClasses bear a finalizer from the start,
//! which goes when nobody uses them any more (`plugin/pkg/admission/storage/storageobjectinuseprotection`).

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{AdmissionPlugin, Attributes, Operation};
use apimachinery::status::Status;
use apis::tree::object_mut;

/// Adds the finalizer that a controller takes away.
pub(super) struct StorageObjectInUseProtection;

fn finalizer(attributes: &Attributes) -> Option<&'static str> {
    match (&*attributes.kind.group_version.group, &*attributes.kind.plural) {
        ("", "persistentvolumeclaims") => Some("kubernetes.io/pvc-protection"),
        ("", "persistentvolumes") => Some("kubernetes.io/pv-protection"),
        ("storage.k8s.io", "volumeattributesclasses") => Some("kubernetes.io/vac-protection"),
        _ => None,
    }
}

impl AdmissionPlugin for StorageObjectInUseProtection {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && finalizer(attributes).is_some()
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if let (Some(object), Some(finalizer)) = (object, finalizer(attributes)) {
            let list = object_mut(object, "metadata").entry("finalizers").or_insert(Value::Null);
            match list.as_array_mut() {
                Some(list) if list.iter().any(|known| known == finalizer) => {}
                Some(list) => list.push(finalizer.into()),
                None => *list = json!([finalizer]),
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
