//! `metadata` of a tree that is being written: what the server sets, keeps and drops
//! (`registry/rest/meta.go`, `create.go`, `update.go`).

use golang::first_bytes::first_bytes;
use serde_json::{Map, Value, json};

use crate::storage::request::parse_number;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
pub(super) use apis::object_meta::{number, text, texts};
use entropy::Entropy;

/// Names are 63 bytes long, and a generated one ends in 5 random ones.
const MAX_GENERATED_BASE: usize = 58;
const SUFFIX: usize = 5;

/// Sets a member of the metadata.
pub(super) fn set(tree: &mut Value, field: &str, value: impl Into<Value>) {
    metadata_mut(tree).insert(field.to_owned(), value.into());
}

/// Removes a member of the metadata.
pub(super) fn unset(tree: &mut Value, field: &str) {
    metadata_mut(tree).remove(field);
}

/// The revision that a tree says it is of; 0 when it says none.
pub(super) fn resource_version(tree: &Value) -> Result<u64, Status> {
    parse_number(text(tree, "resourceVersion")).map_err(|error| Status::failure(500, "", error))
}

/// The metadata, made where there is none. A tree that is no object becomes one.
pub(super) fn metadata_mut(tree: &mut Value) -> &mut Map<String, Value> {
    member_mut(tree, "metadata")
}

/// An object below a tree, made where there is none.
pub(super) fn member_mut<'a>(tree: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    if !tree.is_object() {
        *tree = json!({});
    }
    let member = tree.as_object_mut().expect("made an object above").entry(name).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut().expect("made an object above")
}

/// What a new object gets (`WipeObjectMetaSystemFields`, `FillObjectMetaSystemFields`).
pub(super) fn fill_system_fields(new: &mut Value, now: Time, entropy: &Entropy) {
    for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        unset(new, field);
    }
    set(new, "uid", entropy.uid());
    set(new, "creationTimestamp", rfc3339(now));
    drop_empty(new);
}

/// Whether a name has to be generated.
pub(super) fn needs_name(new: &Value) -> bool {
    text(new, "name").is_empty() && !text(new, "generateName").is_empty()
}

/// `names.SimpleNameGenerator`.
pub(super) fn generate_name(base: &str, entropy: &Entropy) -> String {
    format!("{}{}", first_bytes(base, MAX_GENERATED_BASE), entropy.suffix(SUFFIX))
}

/// What an update can neither change nor leave out.
pub(super) fn carry_over(new: &mut Value, old: &Value) {
    unset(new, "selfLink");
    for field in ["uid", "deletionGracePeriodSeconds"] {
        let given = &new["metadata"][field];
        if given.is_null() || given == "" {
            keep(new, old, field);
        }
    }
    keep(new, old, "creationTimestamp");
    keep(new, old, "deletionTimestamp");
    unset(new, "generation");
    keep(new, old, "generation");
    drop_empty(new);
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    let kept = &old["metadata"][field];
    if !kept.is_null() {
        set(new, field, kept.clone());
    }
}

/// What Go's `omitempty` leaves out.
fn drop_empty(tree: &mut Value) {
    metadata_mut(tree).retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_keep_within_the_bound() {
        let name = generate_name(&"x".repeat(100), &Entropy::seeded(1));
        assert_eq!(name.len(), 63);
        assert!(generate_name("web-", &Entropy::seeded(1)).starts_with("web-"));
    }

    #[test]
    fn an_update_keeps_what_is_the_servers() {
        let old = json!({"metadata": {"uid": "u", "creationTimestamp": "t", "generation": 4,
            "deletionTimestamp": "d", "deletionGracePeriodSeconds": 30}});
        let mut new = json!({"metadata": {"name": "a", "generation": 9, "creationTimestamp": null,
            "labels": {},
            "selfLink": "x"}});
        carry_over(&mut new, &old);
        let expected = json!({"metadata": {"name": "a", "uid": "u", "creationTimestamp": "t", "generation": 4,
            "deletionTimestamp": "d", "deletionGracePeriodSeconds": 30}});
        assert_eq!(new, expected);
    }
}
