//! Patches: an object and a patch document in, the patched object out. Pure data.
//!
//! The three ways of upstream's `PATCH` (server-side apply is `managed_fields`'): JSON patch is a list of
//! operations, merge patch is the new parts of the object, strategic merge patch is that with lists merged
//! by the keys that the kind's schema names. What may be patched, and what happens afterwards (decoding,
//! defaulting, validation), is the endpoint's.

mod document;
mod json;
mod merge;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::Schema;
use document::decode_object;
use golang::go_print::go_print;

pub use document::{Document, PatchError, PatchType, Patched};
pub use json::{BadJsonPatch, TEST_FAILED, check as check_json_patch};

/// Applies a patch. `schema` is the kind's; only a strategic merge patch reads it.
pub fn apply(
    schema: &Schema,
    patch_type: PatchType,
    original: Value,
    patch: &[u8],
) -> Result<Patched, PatchError> {
    apply_document(schema, patch_type, original, Document::Text(patch))
}

/// Applies a patch that may be a tree, as [`apply`] applies its text.
pub fn apply_document(
    schema: &Schema,
    patch_type: PatchType,
    original: Value,
    patch: Document,
) -> Result<Patched, PatchError> {
    match patch_type {
        PatchType::Json => json::apply(original, &patch.text()),
        PatchType::Merge => merge::apply(original, patch),
        PatchType::StrategicMerge => strategic::apply(schema, original, patch),
    }
}

/// What upstream shows as the bad value of the field `patch` when what came of it does not decode: the
/// patched JSON, or the strategic merge patch as Go prints a map.
pub fn show(patch_type: PatchType, patched: &Value, patch: Document) -> String {
    match patch_type {
        PatchType::Json | PatchType::Merge => patched.to_string(),
        PatchType::StrategicMerge => {
            let (patch, _) = decode_object(patch).unwrap_or_default();
            go_print(&Value::Object(patch))
        }
    }
}
