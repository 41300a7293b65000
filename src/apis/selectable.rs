//! The fields of a kind by which its objects are selected (`SelectableFields`), and reading them.

use std::sync::Arc;

use bytes::Bytes;

use apimachinery::object::{Malformed, Object};

/// A field for field selectors.
#[derive(Clone, Debug)]
pub struct Selectable {
    /// As `spec.nodeName`.
    pub name: Arc<str>,
    /// Where its value is, by dots; usually the name.
    pub path: Arc<str>,
    /// The value of an object that has none.
    pub default: Arc<str>,
    /// The place of the field whose value an object that has none takes instead.
    pub or: Option<usize>,
}

/// Reads an object whose kind has these selectable fields; see [`Kind::object`](super::kind::Kind::object).
///
/// # Errors
/// Bytes that are no object.
pub fn read_object(selectable: &[Selectable], stored: Bytes, revision: u64) -> Result<Object, Malformed> {
    let mut object = Object::from_stored(stored, revision, &paths(selectable))?;
    fill_in_defaults(&mut object, selectable);
    Ok(object)
}

pub(super) fn paths(selectable: &[Selectable]) -> Vec<&str> {
    selectable.iter().map(|field| &*field.path).collect()
}

pub(super) fn fill_in_defaults(object: &mut Object, selectable: &[Selectable]) {
    for (at, field) in selectable.iter().enumerate() {
        if object.fields.get(at).is_some_and(|value| value.is_empty()) {
            let other = field.or.and_then(|other| object.fields.get(other));
            object.fields[at] = other.map_or_else(|| field.default.to_string(), |value| value.to_string());
        }
    }
}
