//! How quantities are held, and how they are written.

/// Billionths in one.
pub(super) const NANO: i128 = 1_000_000_000;
/// The greatest whole amount held, in billionths; whatever is greater is capped. Upstream's decimal numbers
/// have no bound, its binary ones end at 2^63-1, which is far below this.
pub(super) const MAX_NANOS: i128 = i128::MAX / NANO * NANO;

/// How a quantity is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`, multiples of 1024.
    BinarySi,
    /// `12M`, multiples of 1000.
    #[default]
    DecimalSi,
}
