//! JSON patch (RFC 6902).

use json_patch::Patch;
use serde_json::Value;

use super::{PatchError, Patched};

/// Upstream's bound on the operations of one patch; more are refused whole.
const MAX_OPERATIONS: usize = 10_000;

/// Applies every operation or none.
pub(super) fn apply(original: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    let patch: Patch =
        serde_json::from_slice(patch).map_err(|error| PatchError::BadRequest(error.to_string()))?;
    if patch.0.len() > MAX_OPERATIONS {
        return Err(PatchError::RequestEntityTooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            patch.0.len()
        )));
    }
    let mut value = original.clone();
    json_patch::patch(&mut value, &patch).map_err(|error| PatchError::Unprocessable(error.to_string()))?;
    Ok(Patched { shown: value.to_string(), strict_errors: Vec::new(), value })
}
