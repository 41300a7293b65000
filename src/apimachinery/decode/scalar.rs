//! Scalars that are more than their JSON type: quantities, times, base64.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::context::DecodeContext;
use super::go_time;
use crate::quantity::{Quantity, QuantityError};
use crate::time;

/// Go's `base64.StdEncoding`: padding required, bits after the last byte not looked at.
const STD_ENCODING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// `resource.Quantity`, in canonical form.
pub(super) fn quantity(text: &str, context: &mut DecodeContext) -> Value {
    match Quantity::parse(text) {
        Ok(quantity) => Value::String(quantity.to_string()),
        Err(error) => {
            context.fatal(error.to_string());
            Value::Null
        }
    }
}

/// What a list or object in place of a quantity is told.
pub(super) fn quantity_error() -> String {
    QuantityError::FormatWrong.to_string()
}

/// `metav1.Time`: UTC, whole seconds.
pub(super) fn time(text: &str, context: &mut DecodeContext) -> Value {
    parsed_time(text, go_time::Layout::Rfc3339, context).map_or(Value::Null, |at| time::rfc3339(at).into())
}

/// `metav1.MicroTime`: UTC, six digits.
pub(super) fn micro_time(text: &str, context: &mut DecodeContext) -> Value {
    parsed_time(text, go_time::Layout::Rfc3339Micro, context)
        .map_or(Value::Null, |at| time::rfc3339_micro(at).into())
}

fn parsed_time(text: &str, layout: go_time::Layout, context: &mut DecodeContext) -> Option<time::Time> {
    go_time::parse(text, layout).map_err(|error| context.fatal(error.into())).ok()
}

/// `[]byte`: base64, with line breaks allowed on the way in.
pub(super) fn base64(text: String, context: &mut DecodeContext) -> Value {
    let text = if text.contains(['\r', '\n']) { text.replace(['\r', '\n'], "") } else { text };
    match STD_ENCODING.decode(&text) {
        Ok(bytes) => Value::String(STD_ENCODING.encode(bytes)),
        Err(error) => {
            context.malformed(base64_error(text.as_bytes(), &error));
            Value::Null
        }
    }
}

/// What Go says of bytes that are not base64: it stumbles over the byte that does not belong, else over the
/// group that is not whole.
pub fn base64_error(text: &[u8], error: &base64::DecodeError) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {at}")
}

/// A number that no `int64` holds is a `float64`, which is written without an exponent.
pub(super) fn beyond_int64(number: u64) -> Value {
    let float = number as f64;
    match float.to_string().parse::<u64>() {
        Ok(whole) => whole.into(),
        Err(_) => float.into(),
    }
}
