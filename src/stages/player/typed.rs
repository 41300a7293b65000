//! An object as a tree with its type.

use serde_json::Value;

use apimachinery::object::Object;
use apis::kind::Kind;

/// An object as templates see it.
pub(super) fn typed(kind: &Kind, object: &Object) -> Value {
    let mut tree = object.to_value();
    tree["apiVersion"] = kind.api_version().into();
    tree["kind"] = (*kind.kind).into();
    tree
}
