//! `spec.names`.

use serde_json::json;

use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::dns1035_label;
use crate::apis::apiextensions::view::Names;

/// `ValidateCustomResourceDefinitionNames`, and that none is missing.
pub(super) fn validate(names: &Names, errors: &mut FieldErrors) {
    let fields = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    for (field, name) in fields {
        let path = format!("spec.names.{field}");
        if name.is_empty() {
            errors.required(path, "");
            continue;
        }
        let mixed = field.to_lowercase().ends_with("kind");
        let found = dns1035_label(&if mixed { name.to_lowercase() } else { name.clone() });
        if found.is_empty() {
            continue;
        }
        let detail = found.join(",");
        let lead = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
        errors.invalid(path, &json!(name), format!("{lead}{detail}"));
    }
    for (field, list) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        for (at, name) in list.iter().enumerate() {
            let found = dns1035_label(name);
            if !found.is_empty() {
                errors.invalid(format!("spec.names.{field}[{at}]"), &json!(name), found.join(","));
            }
        }
    }
    if names.kind == names.list_kind && !names.kind.is_empty() {
        let detail = "kind and listKind may not be the same";
        errors.invalid("spec.names.listKind", &json!(names.list_kind), detail);
    }
}
