//! Quantities: amounts of resources such as `500m` of CPU or `2Gi` of memory
//! (`k8s.io/apimachinery/pkg/api/resource`).
//!
//! Fixed point in billionths, as upstream: a finer number is rounded up, so that whoever asks for something
//! gets something. The form it was written in (decimal, binary, exponent) is kept and decides how it is
//! written again.

mod format;
mod parse;
mod suffix;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use format::{MAX_NANOS, NANO};

pub use format::Format;
pub use parse::QuantityError;

/// An amount and the form in which it is written. Equality and order are of amounts: `1000m` equals `1`.
#[derive(Debug, Clone, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text it was parsed from, where upstream takes it to be canonical without looking further.
    given: Option<Box<str>>,
}

impl Quantity {
    /// A whole number of units.
    pub fn new(value: i64, format: Format) -> Self {
        Self { nanos: i128::from(value) * NANO, format, given: None }
    }

    /// A number of thousandths, as CPU is counted.
    pub fn new_milli(value: i64, format: Format) -> Self {
        Self { nanos: i128::from(value) * (NANO / 1000), format, given: None }
    }

    /// Reads `500m`, `1.5Gi`, `12e6`. The error is upstream's.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parse::Parsed { nanos, format, is_canonical } = parse::parse(text)?;
        let given = is_canonical.then(|| text.into());
        Ok(Self { nanos, format, given })
    }

    /// How it is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        self.nanos.signum() as i32
    }

    /// Whole units, rounded away from zero, capped at what an `i64` holds. Upstream's `Value`.
    pub fn value(&self) -> i64 {
        self.scaled(NANO)
    }

    /// Whole units, if it has no fraction and an `i64` holds it. Upstream's `AsInt64`.
    pub fn as_i64(&self) -> Option<i64> {
        let is_whole = self.nanos % NANO == 0;
        i64::try_from(self.nanos / NANO).ok().filter(|_| is_whole)
    }

    /// Thousandths, rounded away from zero, capped at what an `i64` holds. Upstream's `MilliValue`.
    pub fn milli_value(&self) -> i64 {
        self.scaled(NANO / 1000)
    }

    /// As a float, for ratios. Upstream's `AsApproximateFloat64`.
    pub fn as_approximate_f64(&self) -> f64 {
        self.nanos as f64 / NANO as f64
    }

    /// Adds; a zero takes the other's form.
    pub fn add(&mut self, other: &Quantity) {
        self.combine(self.nanos.saturating_add(other.nanos), other);
    }

    /// Subtracts; a zero takes the other's form.
    pub fn sub(&mut self, other: &Quantity) {
        self.combine(self.nanos.saturating_sub(other.nanos), other);
    }

    /// Turns the sign.
    pub fn neg(&mut self) {
        self.nanos = -self.nanos;
        self.given = None;
    }

    fn combine(&mut self, nanos: i128, other: &Quantity) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.nanos = nanos.clamp(-MAX_NANOS, MAX_NANOS);
        self.given = None;
    }

    fn scaled(&self, unit: i128) -> i64 {
        let whole = round_away(self.nanos, unit);
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// Binary form only for what it can show: whole numbers of at least 1024.
    fn shown_format(&self) -> Format {
        let small = self.nanos.abs() < 1024 * NANO;
        match self.format {
            Format::BinarySi if small || self.nanos % NANO != 0 => Format::DecimalSi,
            format => format,
        }
    }
}

fn round_away(nanos: i128, unit: i128) -> i128 {
    nanos / unit + if nanos % unit == 0 { 0 } else { nanos.signum() }
}

/// The canonical form: no precision lost, no fraction, the greatest suffix that leaves a whole number.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(given) = &self.given {
            return f.write_str(given);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        match self.shown_format() {
            Format::BinarySi => {
                let (mut mantissa, mut power) = (self.nanos / NANO, 0);
                while mantissa % 1024 == 0 && power < 6 {
                    (mantissa, power) = (mantissa / 1024, power + 1);
                }
                write!(f, "{mantissa}{}", suffix::binary(power))
            }
            format => {
                let (mut mantissa, mut power) = (self.nanos, -3);
                while mantissa % 1000 == 0 && power < 6 {
                    (mantissa, power) = (mantissa / 1000, power + 1);
                }
                match (format, power) {
                    (Format::DecimalExponent, 0) => write!(f, "{mantissa}"),
                    (Format::DecimalExponent, power) => write!(f, "{mantissa}e{}", power * 3),
                    (_, power) => write!(f, "{mantissa}{}", suffix::decimal(power)),
                }
            }
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn writes_the_canonical_form() {
        for (given, written) in [
            ("0", "0"),
            ("0n", "0"),
            ("0Mi", "0"),
            ("00", "0"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            (".5", "500m"),
            ("1.", "1."),
            ("100000m", "100"),
            ("1500m", "1500m"),
            ("1024Ki", "1Mi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1.1Mi", "1153433600m"),
            ("0.5Mi", "512Ki"),
            ("0.5Gi", "512Mi"),
            ("1Ki", "1Ki"),
            ("512", "512"),
            ("1000Ki", "1000Ki"),
            ("1000k", "1M"),
            ("1000000Ki", "1000000Ki"),
            ("0.001", "1m"),
            ("0.0001k", "100m"),
            ("1e3", "1e3"),
            ("1000e0", "1e3"),
            ("1e-3", "1e-3"),
            ("100e3", "100e3"),
            ("1E", "1E"),
            ("5E3", "5E3"),
            ("1Ei", "1Ei"),
            ("-1500m", "-1500m"),
            ("-1.5", "-1500m"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("1.0000000001", "1000000001n"),
            ("0.0000000001Ki", "103n"),
            ("100Ei", "9223372036854775807"),
        ] {
            assert_eq!(parse(given).to_string(), written, "{given}");
        }
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for text in ["", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", "1_2", "NaN", " 1", "1 "] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
        let message = |text: &str| Quantity::parse(text).expect_err(text).to_string();
        assert_eq!(
            message("1 "),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
        assert_eq!(message("1mi"), "unable to parse quantity's suffix");
        assert_eq!(
            message("abc"),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
    }

    #[test]
    fn rounds_up_to_whole_units_and_thousandths() {
        for (text, value, milli) in [
            ("1", 1, 1000),
            ("100m", 1, 100),
            ("1001m", 2, 1001),
            ("1u", 1, 1),
            ("-1001m", -2, -1001),
            ("2Gi", 2_147_483_648, 2_147_483_648_000),
            ("8E", 8_000_000_000_000_000_000, i64::MAX),
            ("10000E", i64::MAX, i64::MAX),
        ] {
            assert_eq!((parse(text).value(), parse(text).milli_value()), (value, milli), "{text}");
        }
    }

    #[test]
    fn adds_and_subtracts_in_the_form_of_the_first_that_is_not_zero() {
        for (left, right, sum, difference) in [
            ("10", "3", "13", "7"),
            ("1Gi", "1M", "1074741824", "1072741824"),
            ("0", "1Gi", "1Gi", "-1Gi"),
            ("500m", "500m", "1", "0"),
            ("1k", "1Ki", "2024", "-24"),
        ] {
            let mut quantity = parse(left);
            quantity.add(&parse(right));
            assert_eq!(quantity.to_string(), sum, "{left} + {right}");
            let mut quantity = parse(left);
            quantity.sub(&parse(right));
            assert_eq!(quantity.to_string(), difference, "{left} - {right}");
        }
    }

    #[test]
    fn compares_amounts_and_not_forms() {
        assert_eq!(parse("1000m"), parse("1"));
        assert_eq!(parse("1Ki"), parse("1024"));
        assert!(parse("1M") < parse("1Mi"));
        assert!(parse("-1") < parse("0"));
        assert_eq!((parse("-1").sign(), parse("0").sign(), parse("1n").sign()), (-1, 0, 1));
    }
}
