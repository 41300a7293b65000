//! CustomResourceDefinition: declares a kind at run time.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::validation;
use super::view::CustomResourceDefinition;
use crate::kind::{Builtin, Kind, Subresource};
use crate::strategy::Strategy;
use apimachinery::field_error::FieldErrors;
use apimachinery::time::{Time, rfc3339};

/// Deletes the instances before the definition goes.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// `customresourcedefinitions`
pub static CUSTOM_RESOURCE_DEFINITIONS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    )
    .cluster_scoped()
    .etcd_key("apiextensions.k8s.io/customresourcedefinitions")
    .short(&["crd", "crds"])
    .in_categories(&["api-extensions"])
    .with(&[Subresource::Status])
    .with_generation()
    .defaulted(defaults)
    .governed_by(DefinitionStrategy)
    .into()
});

/// `SetDefaults_CustomResourceDefinitionSpec` and its siblings.
fn defaults(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if spec["names"].is_object() {
        let kind = text(&spec["names"]["kind"]);
        if text(&spec["names"]["singular"]).is_empty() && !kind.is_empty() {
            spec["names"]["singular"] = json!(kind.to_lowercase());
        }
        if text(&spec["names"]["listKind"]).is_empty() && !kind.is_empty() {
            spec["names"]["listKind"] = json!(format!("{kind}List"));
        }
    }
    if !spec["conversion"].is_object() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let service = &mut spec["conversion"]["webhook"];
    if let Some(service) = service.pointer_mut("/clientConfig/service").filter(|service| service.is_object())
        && service["port"].is_null()
    {
        service["port"] = json!(443);
    }
    if spec["conversion"]["webhook"].is_null()
        && let Some(conversion) = spec["conversion"].as_object_mut()
    {
        conversion.remove("webhook");
    }
}

struct DefinitionStrategy;

impl Strategy for DefinitionStrategy {
    fn prepare_for_create(&self, new: &mut Value) {
        let names = json!({"kind": "", "plural": ""});
        new["status"] = json!({"acceptedNames": names, "conditions": null, "storedVersions": []});
        store_version(new);
        drop_false(new);
    }

    fn prepare_for_update(&self, new: &mut Value, _old: &Value) {
        store_version(new);
        drop_false(new);
    }

    fn validate(&self, new: &Value) -> FieldErrors {
        validation::definition(new)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> FieldErrors {
        validation::definition_update(new, old)
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> FieldErrors {
        validation::status_update(new)
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        validation::warnings(&CustomResourceDefinition::read(new))
    }

    fn begin_deletion(&self, object: &mut Value, now: Time) -> bool {
        object["metadata"]["deletionTimestamp"] = rfc3339(now).into();
        let finalizers = &mut object["metadata"]["finalizers"];
        if !finalizers.is_array() {
            *finalizers = json!([]);
        }
        let list = finalizers.as_array_mut().expect("made a list above");
        if !list.iter().any(|finalizer| finalizer == CLEANUP_FINALIZER) {
            list.push(json!(CLEANUP_FINALIZER));
        }
        let condition = json!({
            "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        });
        set_condition(object, condition, now);
        true
    }
}

/// Sets a condition (`SetCRDCondition`): its time changes with its status.
pub fn set_condition(crd: &mut Value, mut condition: Value, now: Time) {
    let conditions = &mut crd["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let list = conditions.as_array_mut().expect("made a list above");
    let known = list.iter().position(|found| found["type"] == condition["type"]);
    let before = known.map(|at| &list[at]);
    condition["lastTransitionTime"] = match before {
        Some(before) if before["status"] == condition["status"] => before["lastTransitionTime"].clone(),
        _ => json!(rfc3339(now)),
    };
    match known {
        Some(at) => list[at] = condition,
        None => list.push(condition),
    }
}

/// The storage version is one in which objects may be kept.
fn store_version(crd: &mut Value) {
    let Some(version) = CustomResourceDefinition::read(crd).storage_version().map(|own| own.name.clone())
    else {
        return;
    };
    let stored = &mut crd["status"]["storedVersions"];
    match stored.as_array_mut() {
        Some(list) if list.iter().any(|name| *name == version) => {}
        Some(list) => list.push(json!(version)),
        None => *stored = json!([version]),
    }
}

/// `preserveUnknownFields: false` is what it is without.
fn drop_false(crd: &mut Value) {
    if let Some(spec) = crd["spec"].as_object_mut()
        && spec.get("preserveUnknownFields") == Some(&json!(false))
    {
        spec.remove("preserveUnknownFields");
    }
}
