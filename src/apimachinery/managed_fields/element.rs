//! Elements of keyed lists and sets as path elements (`listItemToPathElement`).

use serde_json::Value;

use super::atom::ListAtom;
use super::path::PathElement;

golang::text_error! {
    /// Why an element has no place in a list; in upstream's words.
    pub(super) struct BadElement;
}

/// What tells an element of a list that is not atomic apart.
///
/// # Errors
/// In upstream's words, for an element that has no place in such a list.
pub(super) fn identify(list: &ListAtom, item: &Value) -> Result<PathElement, BadElement> {
    if list.is_atomic {
        return Err("invalid indexing of non-associative list".into());
    }
    if list.keys.is_empty() { identify_in_set(item) } else { identify_by_keys(list, item) }
}

/// Elements with what tells them apart, in order; an element without is left out.
pub(super) fn identified<'v>(list: &ListAtom, items: &'v [Value]) -> Vec<(PathElement, &'v Value)> {
    items.iter().filter_map(|item| Some((identify(list, item).ok()?, item))).collect()
}

fn identify_by_keys(list: &ListAtom, item: &Value) -> Result<PathElement, BadElement> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let mut key = Vec::with_capacity(list.keys.len());
    for name in list.keys {
        let value = fields.get(&**name).cloned().or_else(|| list.key_default(name));
        key.extend(value.map(|value| (name.clone(), value)));
    }
    if key.is_empty() {
        let names: Vec<String> = list.keys.iter().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            names.join(" ")
        ).into());
    }
    key.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(PathElement::Key(key.into()))
}

fn identify_in_set(item: &Value) -> Result<PathElement, BadElement> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        scalar => Ok(PathElement::Value(scalar.clone())),
    }
}
