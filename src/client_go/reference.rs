//! `ObjectReference`: which object an Event is about (client-go's `tools/reference`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use apimachinery::object::Object;
use apis::kind::{Builtin, Kind};

/// `v1.ObjectReference`
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// As `Pod`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// As `apps/v1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The revision that it was seen at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// A part of the object, as `spec.containers{nginx}`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

impl ObjectReference {
    /// Of an object (`reference.GetReference`).
    pub fn of(kind: &Kind, object: &Object) -> ObjectReference {
        let metadata = &object.metadata;
        let revision = metadata.resource_version;
        ObjectReference {
            kind: kind.kind.to_string(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            api_version: kind.api_version(),
            resource_version: if revision == 0 { String::new() } else { revision.to_string() },
            field_path: String::new(),
        }
    }

    /// Of a part of it (`reference.GetPartialReference`), as `spec.containers{nginx}`.
    pub fn part(mut self, field_path: impl Into<String>) -> ObjectReference {
        self.field_path = field_path.into();
        self
    }
}

impl From<&ObjectReference> for ObjectReference {
    fn from(reference: &ObjectReference) -> ObjectReference {
        reference.clone()
    }
}

impl From<(&Kind, &Object)> for ObjectReference {
    fn from((kind, object): (&Kind, &Object)) -> ObjectReference {
        ObjectReference::of(kind, object)
    }
}

impl From<(&Builtin, &Object)> for ObjectReference {
    fn from((kind, object): (&Builtin, &Object)) -> ObjectReference {
        ObjectReference::of(kind, object)
    }
}

impl From<(&Builtin, &Arc<Object>)> for ObjectReference {
    fn from((kind, object): (&Builtin, &Arc<Object>)) -> ObjectReference {
        ObjectReference::of(kind, object)
    }
}

impl From<(&Arc<Kind>, &Arc<Object>)> for ObjectReference {
    fn from((kind, object): (&Arc<Kind>, &Arc<Object>)) -> ObjectReference {
        ObjectReference::of(kind, object)
    }
}
