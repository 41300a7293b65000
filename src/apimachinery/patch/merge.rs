//! JSON merge patch (RFC 7386).

use serde_json::Value;

use super::{PatchError, Patched};

/// Lays the patch over the object; null removes.
pub(super) fn apply(original: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    let patch: Value =
        serde_json::from_slice(patch).map_err(|error| PatchError::BadRequest(error.to_string()))?;
    let mut value = original.clone();
    json_patch::merge(&mut value, &patch);
    Ok(Patched { shown: value.to_string(), strict_errors: Vec::new(), value })
}
