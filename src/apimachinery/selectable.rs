//! What a list or watch selects by: labels and fields together
//! (`k8s.io/apiserver/pkg/storage.SelectionPredicate`).

use super::fields::FieldSelector;
use super::labels::Selector;
use super::object::Object;

/// A label selector and a field selector; both must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicate {
    /// On labels.
    pub labels: Selector,
    /// On the kind's selectable fields.
    pub fields: FieldSelector,
    /// Nothing that waits for initializers (a feature of old, behind a gate).
    pub only_initialized: bool,
}

impl Predicate {
    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && !self.only_initialized
    }

    /// Whether `object` matches; `field_names` are its kind's selectable fields, in the order of
    /// [`Object::fields`]. `metadata.name` and `metadata.namespace` are selectable for every kind.
    pub fn matches(&self, object: &Object, field_names: &[&str]) -> bool {
        let metadata = &object.metadata;
        let value_of = |field: &str| match field {
            "metadata.name" => Some(metadata.name.as_str()),
            "metadata.namespace" => Some(metadata.namespace.as_str()),
            other => {
                let at = field_names.iter().position(|name| *name == other)?;
                object.fields.get(at).map(String::as_str)
            }
        };
        self.labels.matches(&metadata.labels)
            && self.fields.matches(value_of)
            && !(self.only_initialized && object.is_uninitialized())
    }
}
