//! `spec.versions`: names, which is stored, and what each declares.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{rules, schema, structural};
use crate::apiextensions::json_path::JsonPath;
use crate::apiextensions::view::{CustomResourceDefinition, PrinterColumn, Scale, Version};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::dns1035_label;

/// At most so many fields of a version can be selected by.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Everything about versions.
pub(super) fn validate(new: &Value, crd: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let versions = &crd.spec.versions;
    names(crd, errors);
    let raw = new["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    // What all versions have in common stands at the top.
    let shared = |field: &str| raw.iter().all(|version| version[field] == raw[0][field]);
    let place = |at: usize, field: &str, top: &str| {
        if shared(field) { format!("spec.{top}") } else { format!("spec.versions[{at}].{field}") }
    };
    for (at, version) in versions.iter().enumerate() {
        let first = |field: &str| at == 0 || !shared(field);
        if first("schema") {
            let path = place(at, "schema", "validation");
            of_schema(version, &format!("spec.versions[{at}]"), &path, errors);
        }
        if first("subresources")
            && let Some(scale) = &version.subresources.scale
        {
            let path = place(at, "subresources", "subresources");
            of_scale(scale, &path, errors);
        }
        if first("additionalPrinterColumns") {
            let path = place(at, "additionalPrinterColumns", "additionalPrinterColumns");
            of_columns(&version.additional_printer_columns, &path, errors);
        }
        if first("selectableFields") {
            let path = place(at, "selectableFields", "selectableFields");
            of_selectable(version, &path, errors);
        }
        if version.deprecation_warning.is_some() && !version.deprecated {
            let detail = "can only be set for deprecated versions";
            let path = format!("spec.versions[{at}].deprecationWarning");
            errors.invalid(path, &json!(version.deprecation_warning), detail);
        }
    }
}

fn names(crd: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let versions = &crd.spec.versions;
    let mut seen = BTreeSet::new();
    let mut twice = false;
    for (at, version) in versions.iter().enumerate() {
        twice |= !seen.insert(&version.name);
        let found = dns1035_label(&version.name);
        if !found.is_empty() {
            errors.invalid(format!("spec.versions[{at}].name"), &json!(version.name), found.join(","));
        }
    }
    let mut refuse = |detail: &str| errors.push("spec.versions", ErrorType::Invalid, shown(versions), detail);
    if twice {
        refuse("must contain unique version names");
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
}

/// Versions as Go's internal type shows them, of which what they have in common was taken away.
fn shown(versions: &[Version]) -> String {
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\
                 \"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
                 \"SelectableFields\":null}}",
                json!(version.name),
                version.served,
                version.storage,
                version.deprecated,
                json!(version.deprecation_warning)
            )
        })
        .collect();
    format!("[{}]", shown.join(","))
}

fn of_schema(version: &Version, of_version: &str, path: &str, errors: &mut FieldErrors) {
    let openapi = &version.schema.schema;
    if !openapi.is_object() {
        errors.required(format!("{of_version}.schema.openAPIV3Schema"), "");
        return;
    }
    let path = format!("{path}.openAPIV3Schema");
    if openapi["nullable"] == true {
        errors.forbidden(format!("{path}.nullable"), "nullable cannot be true at the root");
    }
    let before = errors.0.len();
    schema::validate(openapi, &path, errors);
    structural::validate(openapi, &path, errors);
    rules::validate_texts(openapi, &path, errors);
    if errors.0.len() == before {
        schema::validate_defaults(openapi, &path, errors);
    }
    // Rules are looked at when nothing else is wrong.
    if errors.0.len() == before {
        rules::validate(openapi, &path, errors);
    }
}

fn of_scale(scale: &Scale, path: &str, errors: &mut FieldErrors) {
    let paths = [
        ("specReplicasPath", Some(&scale.spec_replicas_path), ".spec"),
        ("statusReplicasPath", Some(&scale.status_replicas_path), ".status"),
        ("labelSelectorPath", scale.label_selector_path.as_ref().filter(|path| !path.is_empty()), ""),
    ];
    for (field, given, root) in paths {
        let path = format!("{path}.scale.{field}");
        let Some(given) = given else { continue };
        if given.is_empty() {
            errors.required(path, "");
        } else if !given.starts_with('.') {
            errors.invalid(path, &json!(given), "must be a simple json path starting with .");
        } else if root.is_empty() {
            if !given.starts_with(".spec.") && !given.starts_with(".status.") {
                errors.invalid(path, &json!(given), "should be a json path under either .spec or .status");
            }
        } else if !given.starts_with(&format!("{root}.")) {
            errors.invalid(path, &json!(given), format!("should be a json path under {root}"));
        }
    }
}

fn of_columns(columns: &[PrinterColumn], path: &str, errors: &mut FieldErrors) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 9] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password", ""];
    for (at, column) in columns.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if column.name.is_empty() {
            errors.required(format!("{path}.name"), "");
        }
        let column_type = column.column_type.as_str();
        if column_type.is_empty() {
            let detail = format!("must be one of {}", TYPES.join(","));
            errors.required(format!("{path}.type"), &detail);
        } else if !TYPES.contains(&column_type) {
            let detail = format!("must be one of {}", TYPES.join(","));
            errors.invalid(format!("{path}.type"), &json!(column_type), detail);
        }
        if !FORMATS.contains(&column.format.as_str()) {
            let detail = format!("must be one of {}", FORMATS[..8].join(","));
            errors.invalid(format!("{path}.format"), &json!(column.format), detail);
        }
        let json_path = column.json_path.as_str();
        if json_path.is_empty() {
            errors.required(format!("{path}.JSONPath"), "");
        } else if !json_path.starts_with(['.', '[']) {
            let detail = "must be a simple json path starting with .";
            errors.invalid(format!("{path}.JSONPath"), &json!(json_path), detail);
        } else if let Err(detail) = JsonPath::parse(json_path) {
            errors.invalid(format!("{path}.JSONPath"), &json!(json_path), detail);
        }
    }
}

fn of_selectable(version: &Version, path: &str, errors: &mut FieldErrors) {
    let fields = &version.selectable_fields;
    if fields.len() > MAX_SELECTABLE_FIELDS {
        errors.too_many(path, fields.len(), MAX_SELECTABLE_FIELDS);
    }
    let mut seen = BTreeSet::new();
    for (at, field) in fields.iter().enumerate() {
        let path = format!("{path}[{at}].jsonPath");
        let given = field.json_path.as_str();
        if given.is_empty() {
            errors.required(path, "");
            continue;
        }
        if !seen.insert(given) {
            errors.duplicate(path.clone(), &json!(given));
        }
        if let Err(detail) = selects(&version.schema.schema, given) {
            errors.invalid(path, &json!(given), detail);
        }
    }
}

/// A selectable field is a scalar that the schema knows, and nothing of the metadata.
fn selects(schema: &Value, path: &str) -> Result<(), &'static str> {
    let Some(names) = path.strip_prefix('.') else {
        return Err("is an invalid path: must start with .");
    };
    if schema["properties"]["metadata"].is_object() && (names == "metadata" || names.starts_with("metadata."))
    {
        return Err("must not point to fields in metadata");
    }
    if names.contains(['[', ']', '*', '?']) {
        return Err("is an invalid path: must be a simple field path without array or map indices");
    }
    let mut found = schema;
    for name in names.split('.') {
        found = found["properties"].get(name).ok_or("is an invalid path: does not refer to a valid field")?;
    }
    match found["type"].as_str() {
        Some("string" | "boolean" | "integer") => Ok(()),
        _ => Err("must point to a field of type string, boolean or integer. Enum string fields and strings \
                  with formats are allowed."),
    }
}
