//! The forms of what the sample server answers.

use serde_json::{Value, json};

use crate::requests::{WebAnswer, json_text};

/// The group that it serves.
pub(super) const GROUP: &str = "wardle.example.com";

/// A tree, with the line end that Go's encoder writes.
pub(super) fn said(code: u16, value: &Value) -> WebAnswer {
    WebAnswer::typed(code, "application/json", json_text(value) + "\n")
}

/// A refusal.
pub(super) fn status(code: u16, reason: &str, message: &str, details: Value) -> WebAnswer {
    let whole = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": details, "code": code});
    said(code, &whole)
}
