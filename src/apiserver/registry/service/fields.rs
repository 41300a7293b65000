//! What fields of a Service say that holds no address, and how one that is wrong is told.

use serde_json::Value;

use super::super::metadata::text;
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::GroupVersion;
use apimachinery::status::Status;

/// The cluster IP of a service that has none.
pub(super) const NONE: &str = "None";

/// 422 for one field.
pub(super) fn invalid(service: &Value, path: &str, value: &Value, detail: &str) -> Status {
    let mut errors = FieldErrors::default();
    errors.invalid(path, value, detail);
    Status::invalid(&GroupVersion::new("", "v1").kind("Service"), text(service, "name"), &errors)
}
