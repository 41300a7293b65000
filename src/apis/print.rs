//! What the cells of several kinds have in common (`pkg/printers/internalversion`, `labels.FormatLabels`).

use serde::Deserialize;
use serde_json::Value;

use super::table::Column;
use super::tree::{at, items, members, text};
use apimachinery::labels::{BadSelector, LabelSelector};
use apimachinery::object::Object;

/// The cell of the name column.
pub fn name(object: &Object) -> Value {
    object.metadata.name.clone().into()
}

/// `text`, or `other` when it is empty.
pub fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// The two wide columns of every kind with a pod template.
pub fn container_columns() -> [Column; 2] {
    [
        Column::new("Containers", "string", "Names of each container in the template.").wide(),
        Column::new("Images", "string", "Images referenced by each container in the template.").wide(),
    ]
}

/// The cells of [`container_columns`]; `spec` is where the pod's spec is.
pub fn container_cells(tree: &Value, spec: &str) -> [Value; 2] {
    let containers = items(at(tree, spec), "containers");
    let joined = |field: &str| -> Value {
        containers.iter().map(|container| text(container, field)).collect::<Vec<_>>().join(",").into()
    };
    [joined("name"), joined("image")]
}

/// `labels.FormatLabels`: `a=b,c=d`, or `<none>`.
pub fn labels(tree: &Value, path: &str) -> String {
    let pair = |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or(""));
    let pairs: Vec<String> = members(tree, path).map(pair).collect();
    or(&pairs.join(","), "<none>").to_owned()
}

/// The text of a `metav1.LabelSelector`; an error when it is no selector. A null one selects nothing: no
/// text.
pub fn selector(tree: &Value, path: &str) -> Result<String, BadSelector> {
    let found = at(tree, path);
    if found.is_null() {
        return Ok(String::new());
    }
    let selector = LabelSelector::deserialize(found).map_err(|error| error.to_string())?;
    Ok(selector.selector()?.to_string())
}

/// `metav1.FormatLabelSelector`: as the text, or `<none>`, or `<error>`.
pub fn label_selector(tree: &Value, path: &str) -> String {
    match selector(tree, path) {
        Ok(text) => or(&text, "<none>").to_owned(),
        Err(_) => "<error>".to_owned(),
    }
}

/// A pointer to a boolean as kubectl's users see it: `True`, `False`, `<unset>`.
pub fn boolean(value: &Value) -> &'static str {
    match value.as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
}

/// A number or a text (`intstr.IntOrString`).
pub fn int_or_string(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A quantity; an absent one is 0.
pub fn quantity<'a>(tree: &'a Value, path: &str) -> &'a str {
    or(text(tree, path), "0")
}

/// The first `max` of `list`, and how many more there are.
pub fn with_more(list: &[String], max: usize, separator: &str) -> String {
    let shown = &list[..list.len().min(max)];
    match list.len().saturating_sub(max) {
        0 => shown.join(separator),
        more => format!("{} + {more} more...", shown.join(separator)),
    }
}

/// The addresses of a load balancer: each by IP, else by host name, sorted.
pub fn load_balancer(tree: &Value) -> String {
    let address = |ingress: &Value| or(text(ingress, "ip"), text(ingress, "hostname")).to_owned();
    let mut addresses: Vec<String> = items(tree, "status.loadBalancer.ingress").iter().map(address).collect();
    addresses.retain(|address| !address.is_empty());
    addresses.sort();
    addresses.dedup();
    addresses.join(",")
}

/// `helper.GetAccessModesAsString`: `RWO,ROX`.
pub fn access_modes(tree: &Value, path: &str) -> String {
    const SHORT: &[(&str, &str)] = &[
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = items(tree, path);
    let given = |(long, _): &&(&str, &str)| modes.iter().any(|mode| mode == long);
    SHORT.iter().filter(given).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::set_if_unset;
    use apimachinery::time::parse;

    #[test]
    fn rows_read_as_upstream_prints_them() {
        let now = parse("2026-01-02T00:00:00Z").unwrap();
        let cases: Vec<Value> = serde_yaml::from_str(include_str!("testdata/rows.yaml")).unwrap();
        for case in cases {
            let kinds = crate::all();
            let kind = kinds.iter().find(|kind| kind.collection_path("") == text(&case, "path")).unwrap();
            let mut tree = case["object"].clone();
            set_if_unset(&mut tree, "metadata.creationTimestamp", "2026-01-01T00:00:00Z");
            let cells = kind.cells.cells(&Object::from_value(&tree, vec![]).unwrap(), now);
            let shown: Vec<String> = cells.iter().map(int_or_string).collect();
            let wanted: Vec<&str> = text(&case, "row").split('|').map(str::trim).collect();
            assert_eq!(shown, wanted, "{kind:?}");
            assert_eq!(cells.len(), kind.columns.len(), "{kind:?}");
        }
    }

    #[test]
    fn every_column_has_a_description_and_every_row_a_name() {
        for kind in crate::all() {
            assert!(kind.columns.iter().any(|column| &*column.format == "name"), "{kind:?}");
            for column in &kind.columns {
                assert!(!column.description.text().is_empty(), "{kind:?} {}", column.name);
            }
        }
    }
}
