//! Validation of `metadata` (`k8s.io/apimachinery/pkg/api/validation/objectmeta.go`).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::finalizers::{FOREGROUND, ORPHAN, lacks_domain};
use crate::kind::Kind;
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names;

const IMMUTABLE: &str = "field is immutable";
/// All annotations together.
const MAX_ANNOTATIONS_BYTES: usize = 256 << 10;
/// Their kinds are validated by the libraries that bring them.
const LIBRARY_GROUPS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// A text of the metadata; empty when there is none.
pub fn text<'a>(tree: &'a Value, field: &str) -> &'a str {
    tree["metadata"][field].as_str().unwrap_or_default()
}

/// A number of the metadata; 0 when there is none.
pub fn number(tree: &Value, field: &str) -> i64 {
    tree["metadata"][field].as_i64().unwrap_or_default()
}

/// The texts of a list of the metadata.
pub fn texts(tree: &Value, field: &str) -> Vec<String> {
    let list = tree["metadata"][field].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// `ValidateObjectMeta`: of a new object, or of the new state of one.
pub fn object_meta(tree: &Value, namespaced: bool, name_errors: &dyn Fn(&str) -> Vec<String>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let (name, generate_name) = (text(tree, "name"), text(tree, "generateName"));
    // The random part that follows makes a dash at the end legal.
    let base = generate_name.strip_suffix('-').map(|base| format!("{base}a"));
    if !generate_name.is_empty() {
        let wrong = name_errors(base.as_deref().unwrap_or(generate_name));
        each(&mut errors, "metadata.generateName", generate_name, wrong);
    }
    match name {
        "" => errors.required("metadata.name", "name or generateName is required"),
        name => each(&mut errors, "metadata.name", name, name_errors(name)),
    }
    match (namespaced, text(tree, "namespace")) {
        (true, "") => errors.required("metadata.namespace", ""),
        (true, name) => each(&mut errors, "metadata.namespace", name, names::dns1123_label(name)),
        (false, "") => (),
        (false, _) => errors.forbidden("metadata.namespace", "not allowed on this type"),
    }
    if number(tree, "generation") < 0 {
        let shown = &tree["metadata"]["generation"];
        errors.invalid("metadata.generation", shown, "must be greater than or equal to 0");
    }
    labels(tree, &mut errors);
    annotations(tree, &mut errors);
    owner_references(tree, &mut errors);
    finalizers(tree, &mut errors);
    errors
}

/// What built-in kinds ask of finalizers beside (`core.ValidateObjectMeta`): a domain, or a standard name.
/// Custom kinds, and those of the libraries below core, take any.
pub fn standard_finalizers(tree: &Value, kind: &Kind, errors: &mut FieldErrors) {
    if kind.is_custom || LIBRARY_GROUPS.contains(&&*kind.group_version.group) {
        return;
    }
    for (index, name) in texts(tree, "finalizers").iter().enumerate() {
        if lacks_domain(name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(format!("metadata.finalizers[{index}]"), &json!(name), detail);
        }
    }
}

/// `ValidateObjectMetaUpdate`: what may not change.
pub fn object_meta_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if !old["metadata"]["deletionTimestamp"].is_null() {
        let before: BTreeSet<String> = texts(old, "finalizers").into_iter().collect();
        let now: BTreeSet<String> = texts(new, "finalizers").into_iter().collect();
        let added: Vec<String> = now.difference(&before).map(|name| format!("{name:?}")).collect();
        if !added.is_empty() {
            let list = added.join(", ");
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers \
                 []string{{{list}}}"
            );
            errors.forbidden("metadata.finalizers", detail);
        }
    }
    let fields =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for field in fields {
        if new["metadata"][field] != old["metadata"][field] {
            errors.invalid(format!("metadata.{field}"), &new["metadata"][field], IMMUTABLE);
        }
    }
    labels(new, &mut errors);
    annotations(new, &mut errors);
    owner_references(new, &mut errors);
    errors
}

fn each(errors: &mut FieldErrors, path: &str, text: &str, found: Vec<String>) {
    found.iter().for_each(|detail| errors.invalid(path, &json!(text), detail));
}

fn members<'a>(tree: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map = tree["metadata"][field].as_object();
    map.into_iter().flat_map(Map::iter).map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn labels(tree: &Value, errors: &mut FieldErrors) {
    for (key, value) in members(tree, "labels") {
        each(errors, "metadata.labels", key, names::qualified_name(key));
        each(errors, "metadata.labels", value, names::label_value(value));
    }
}

fn annotations(tree: &Value, errors: &mut FieldErrors) {
    let mut size = 0;
    for (key, value) in members(tree, "annotations") {
        each(errors, "metadata.annotations", key, names::qualified_name(&key.to_lowercase()));
        size += key.len() + value.len();
    }
    if size > MAX_ANNOTATIONS_BYTES {
        errors.too_long("metadata.annotations", MAX_ANNOTATIONS_BYTES);
    }
}

fn owner_references(tree: &Value, errors: &mut FieldErrors) {
    let Some(references) = tree["metadata"]["ownerReferences"].as_array() else { return };
    let path = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for reference in references {
        let field = |name: &str| reference[name].as_str().unwrap_or_default();
        let mut must_not_be_empty = |name: &str, detail: &str| {
            if field(name).rsplit('/').next().is_none_or(str::is_empty) {
                errors.invalid(format!("{path}.{name}"), &json!(field(name)), detail);
            }
        };
        must_not_be_empty("apiVersion", "version must not be empty");
        ["kind", "name", "uid"].iter().for_each(|name| must_not_be_empty(name, "must not be empty"));
        if (field("apiVersion"), field("kind")) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(path, ErrorType::Invalid, show_reference(reference), detail);
        }
        if reference["controller"] == true {
            let this = format!("{}/{}", field("kind"), field("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let detail = &format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references \
                         for {first} and {this}"
                    );
                    let shown: Vec<String> = references.iter().map(show_reference).collect();
                    errors.push(path, ErrorType::Invalid, format!("[{}]", shown.join(",")), detail);
                }
            }
        }
    }
}

/// As Go writes the struct: its fields in their order.
fn show_reference(reference: &Value) -> String {
    const REQUIRED: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
    let required = REQUIRED.map(|name| (name, reference.get(name).cloned().unwrap_or_else(|| json!(""))));
    let optional = ["controller", "blockOwnerDeletion"]
        .into_iter()
        .filter_map(|name| Some((name, reference.get(name).filter(|value| !value.is_null())?.clone())));
    let fields = required.into_iter().chain(optional).map(|(name, value)| format!("{name:?}:{value}"));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn finalizers(tree: &Value, errors: &mut FieldErrors) {
    let finalizers = texts(tree, "finalizers");
    for name in &finalizers {
        each(errors, "metadata.finalizers", name, names::qualified_name(name));
    }
    let has = |wanted: &str| finalizers.iter().any(|name| name == wanted);
    if has(ORPHAN) && has(FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.invalid("metadata.finalizers", &json!(finalizers), detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(metadata: Value) -> String {
        let tree = json!({ "metadata": metadata });
        object_meta(&tree, true, &names::dns1123_subdomain).to_string()
    }

    #[test]
    fn metadata_is_checked() {
        assert_eq!(check(json!({"name": "a", "namespace": "b", "generateName": "a-"})), "[]");
        let cases = [
            (json!({"namespace": "b"}), "metadata.name: Required value: name or generateName is required"),
            (
                json!({"name": "A", "namespace": "b"}),
                "metadata.name: Invalid value: \"A\": a lowercase RFC 1123",
            ),
            (json!({"name": "a"}), "metadata.namespace: Required value"),
            (
                json!({"name": "a", "namespace": "b", "labels": {"-": "v"}}),
                "metadata.labels: Invalid value: \"-\"",
            ),
            (
                json!({"name": "a", "namespace": "b", "annotations": {"k": "x".repeat(300_000)}}),
                "metadata.annotations: Too long: may not be more than 262144 bytes",
            ),
            (
                json!({"name": "a", "namespace": "b", "finalizers": ["orphan", "foregroundDeletion"]}),
                "finalizer orphan and foregroundDeletion cannot be both set",
            ),
            (
                json!({"name": "a", "namespace": "b", "ownerReferences": [{"apiVersion": "apps/v1",
                    "kind": "K", "name": "n"}]}),
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ),
        ];
        for (metadata, message) in cases {
            let found = check(metadata);
            assert!(found.contains(message), "{found}");
        }
    }

    #[test]
    fn some_metadata_never_changes() {
        let old =
            json!({"metadata": {"name": "a", "uid": "u", "deletionTimestamp": "t", "finalizers": ["x/y"]}});
        let new =
            json!({"metadata": {"name": "a", "uid": "v", "deletionTimestamp": "t", "finalizers": ["x/z"]}});
        let found = object_meta_update(&new, &old).to_string();
        assert!(found.contains("metadata.uid: Invalid value: \"v\": field is immutable"), "{found}");
        assert!(found.contains("found new finalizers []string{\"x/z\"}"), "{found}");
    }
}
