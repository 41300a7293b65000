//! Who owns the status of a definition: the server itself, which writes it as a client of its own upstream.

use serde_json::Value;

use apimachinery::managed_fields::{FieldManager, OneVersion, SchemaType, Updater};
use apimachinery::schema::Schemas;
use apimachinery::time::{Time, rfc3339};
use apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use apis::kind::Subresource;

/// The name of the program that runs upstream's controllers of definitions.
const MANAGER: &str = "kube-apiserver";
const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// Sets the owners in `new`, whose status is to replace that of `current`.
pub(super) fn own_status(current: &Value, new: &mut Value, now: Time) {
    let kind = &CUSTOM_RESOURCE_DEFINITIONS;
    let Some(schema) = Schemas::lookup(&kind.definition) else { return };
    let updater = Updater {
        kind: SchemaType::Known(schema),
        api_version: API_VERSION,
        reset: &kind.reset_fields(Some(Subresource::Status)),
        converter: &OneVersion,
    };
    let manager = FieldManager {
        updater,
        gvk: "apiextensions.k8s.io/v1, Kind=CustomResourceDefinition",
        subresource: Subresource::Status.name(),
        manager: MANAGER,
        now: &rfc3339(now),
    };
    manager.update(Some(current), || Value::Null, new);
}
