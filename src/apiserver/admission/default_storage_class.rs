//! DefaultStorageClass: a claim that names no class gets the default one
//! (`plugin/pkg/admission/storage/storageclass/setdefault`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::Lister;
use super::{Attributes, Initializer, Operation, Plugin};
use crate::apimachinery::object::Object;
use crate::apimachinery::status::Status;
use crate::apis::tree::{annotation, at, is_set, set};

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const IS_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Fills in `storageClassName`.
pub struct DefaultStorageClass {
    classes: Lister,
}

impl DefaultStorageClass {
    /// Reads storage classes.
    pub fn new(with: &Initializer) -> DefaultStorageClass {
        DefaultStorageClass { classes: Lister::new(with, "storage.k8s.io", "v1", "storageclasses") }
    }
}

impl Plugin for DefaultStorageClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.writes("", "persistentvolumeclaims")
    }

    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(claim) = object else { return Ok(()) };
            // An empty name is a name: no class at all.
            let has_class = is_set(claim, "spec.storageClassName")
                || at(claim, "metadata.annotations").get(BETA_CLASS).is_some();
            if has_class {
                return Ok(());
            }
            let classes = self.classes.list("").await?;
            if let Some(class) = newest(classes.iter().filter(|class| is_default(class))) {
                set(claim, "spec.storageClassName", class.metadata.name.as_str());
            }
            Ok(())
        })
    }
}

fn is_default(class: &Object) -> bool {
    let class = class.to_value();
    IS_DEFAULT.iter().any(|name| annotation(&class, name) == "true")
}

/// Of several defaults the one that was made last; of those the first by name.
pub fn newest<'a, O: AsRef<Object> + 'a>(objects: impl Iterator<Item = &'a O>) -> Option<&'a Object> {
    let rank = |object: &&Object| {
        (std::cmp::Reverse(object.metadata.creation_timestamp), object.metadata.name.clone())
    };
    objects.map(AsRef::as_ref).min_by_key(rank)
}
