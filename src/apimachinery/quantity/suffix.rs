//! The suffixes of quantities.

use super::format::Format;

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// What a suffix multiplies by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Multiplier {
    /// Ten to this power.
    Ten(i32),
    /// Two to this power.
    Two(u32),
}

/// Reads a suffix; None for one that nobody defined.
pub(super) fn interpret(suffix: &str) -> Option<(Multiplier, Format)> {
    if let Some(at) = DECIMAL.iter().position(|own| *own == suffix) {
        return Some((Multiplier::Ten((at as i32 - 3) * 3), Format::DecimalSi));
    }
    if let Some(at) = BINARY.iter().position(|own| *own == suffix) {
        return Some((Multiplier::Two(at as u32 * 10), Format::BinarySi));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
    let exponent = exponent.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    Some((Multiplier::Ten(exponent), Format::DecimalExponent))
}

/// The suffix of a power of 1000, from -3 to 6.
pub(super) fn decimal(power: i32) -> &'static str {
    DECIMAL[(power + 3) as usize]
}

/// The suffix of a power of 1024, from 0 to 6.
pub(super) fn binary(power: usize) -> &'static str {
    BINARY[power]
}
