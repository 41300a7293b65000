//! Which objects a query of the sample apiserver selects.

use serde_json::Value;

use crate::requests::parameter;

/// Whether the selectors of a query fit: labels, and of fields names and namespaces.
pub(super) fn is_selected(object: &Value, query: &str) -> bool {
    let metadata = &object["metadata"];
    let labels = parameter(query, "labelSelector").unwrap_or_default();
    let fields = parameter(query, "fieldSelector").unwrap_or_default();
    let label = |key: &str| metadata["labels"][key].as_str();
    let field = |key: &str| metadata[key.strip_prefix("metadata.").unwrap_or(key)].as_str();
    fits(&labels, &label) && fits(&fields, &field)
}

/// `a=b,c!=d,e,!f`
fn fits<'v>(selector: &str, value: &dyn Fn(&str) -> Option<&'v str>) -> bool {
    selector.split(',').map(str::trim).filter(|part| !part.is_empty()).all(|part| {
        if let Some((key, wanted)) = part.split_once("!=") {
            return value(key.trim()) != Some(wanted.trim());
        }
        if let Some((key, wanted)) = part.split_once('=') {
            return value(key.trim()) == Some(wanted.trim_start_matches('=').trim());
        }
        match part.strip_prefix('!') {
            Some(key) => value(key).is_none(),
            None => value(part).is_some(),
        }
    })
}
