//! `spec.names`.

use serde_json::json;

use crate::apiextensions::view::Names;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1035_label;

/// None of those that are asked for may be missing.
pub(super) fn require(names: &Names, errors: &mut FieldErrors) {
    for (field, _) in fields(names).iter().filter(|(_, name)| name.is_empty()) {
        errors.required(format!("spec.names.{field}"), "");
    }
}

fn fields(names: &Names) -> [(&'static str, &str); 4] {
    [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ]
}

/// `ValidateCustomResourceDefinitionNames`: those below `path`, the names of `spec` or of `status`.
pub(super) fn validate(names: &Names, path: &str, errors: &mut FieldErrors) {
    for (field, name) in fields(names) {
        if name.is_empty() {
            continue;
        }
        let path = format!("{path}.{field}");
        let mixed = field.to_lowercase().ends_with("kind");
        let found = dns1035_label(&if mixed { name.to_lowercase() } else { name.to_owned() });
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
                errors.invalid(format!("{path}.{field}[{at}]"), &json!(name), found.join(","));
            }
        }
    }
    if names.kind == names.list_kind && !names.kind.is_empty() {
        let detail = "kind and listKind may not be the same";
        errors.invalid(format!("{path}.listKind"), &json!(names.list_kind), detail);
    }
}
