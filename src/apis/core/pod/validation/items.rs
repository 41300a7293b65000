//! The items of volumes that are made of something else: a file each, with a path and a mode.

use serde_json::json;

use super::references::{field_ref, resource_field_ref};
use crate::validation::Field;
use crate::validation::texts::{file_mode, file_path};
use apimachinery::field_error::FieldErrors;

/// The fields that a file can have the value of, beside single labels and annotations.
const FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// `validateKeyToPath`: a key of a ConfigMap or Secret.
pub(super) fn key_to_path(item: &Field, errors: &mut FieldErrors) {
    item.child("key").require(errors);
    item.child("path").require(errors);
    file_path(&item.child("path"), errors);
    file_mode(&item.child("mode"), errors);
}

/// `validateDownwardAPIVolumeFile`: a field of the pod, or a resource of one of its containers.
pub(super) fn downward_api_file(item: &Field, errors: &mut FieldErrors) {
    item.child("path").require(errors);
    file_path(&item.child("path"), errors);
    let (field, resource) = (item.child("fieldRef"), item.child("resourceFieldRef"));
    match (field.is_set(), resource.is_set()) {
        (true, both) => {
            field_ref(&field, FIELDS, errors);
            if both {
                let words = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(item.path.as_str(), &json!("resource"), words);
            }
        }
        (false, true) => resource_field_ref(&resource, true, errors),
        (false, false) => item.required("one of fieldRef and resourceFieldRef is required", errors),
    }
    file_mode(&item.child("mode"), errors);
}
