//! Reading a quantity: sign, digits, fraction, suffix.

use super::format::{Format, MAX_NANOS, NANO};
use super::suffix::{Multiplier, interpret};

/// Digits that upstream's fast road takes; only there is a text taken as canonical without being worked out.
const FAST_DIGITS: usize = 18;

/// Why a text is no quantity, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not number and suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    FormatWrong,
    /// The number is none.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// Nobody defined the suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// A text that is a quantity.
pub(super) struct Parsed {
    pub nanos: i128,
    pub format: Format,
    /// Upstream takes the text to be canonical without looking further.
    pub is_canonical: bool,
}

/// The parts of a text, not yet understood.
struct QuantityParts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Parsed, QuantityError> {
    let parts = split(text)?;
    let (multiplier, mut format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
    let mut nanos = magnitude(&parts, multiplier);
    if format == Format::BinarySi {
        nanos = nanos.min(i128::from(i64::MAX) * NANO);
        if nanos > 0 && nanos < NANO {
            format = Format::DecimalSi;
        }
    }
    let is_canonical = is_taken_as_canonical(&parts, multiplier);
    Ok(Parsed { nanos: if parts.negative { -nanos } else { nanos }, format, is_canonical })
}

fn split(text: &str) -> Result<QuantityParts<'_>, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::FormatWrong);
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let letters = suffix.bytes().take_while(|byte| b"eEinumkKMGTP".contains(byte)).count();
    let exponent = &suffix[letters..];
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if digits(exponent) != exponent.len() {
        return Err(QuantityError::FormatWrong);
    }
    if whole.is_empty() && fraction.is_empty() && !unsigned.is_empty() {
        return Err(if unsigned.starts_with('.') {
            QuantityError::Numeric
        } else {
            QuantityError::FormatWrong
        });
    }
    Ok(QuantityParts { negative, whole: whole.trim_start_matches('0'), fraction, suffix })
}

/// The amount without its sign, in billionths, rounded up, capped.
fn magnitude(parts: &QuantityParts, multiplier: Multiplier) -> i128 {
    let (ten, two) = match multiplier {
        Multiplier::Ten(power) => (i64::from(power), 0),
        Multiplier::Two(power) => (0, power),
    };
    let digits: Vec<u8> =
        parts.whole.bytes().chain(parts.fraction.bytes()).map(|digit| digit - b'0').collect();
    // Everything is `digits * 2^two * 10^point` billionths.
    let mut point = ten + 9 - parts.fraction.len() as i64;
    let mut amount: i128 = 0;
    let mut lost = false;
    for digit in digits {
        match amount.checked_mul(10).and_then(|amount| amount.checked_add(i128::from(digit))) {
            Some(next) if next <= MAX_NANOS >> two => amount = next,
            _ => (point, lost) = (point + 1, lost || digit != 0),
        }
    }
    amount <<= two;
    scale(amount, point, lost)
}

fn scale(mut amount: i128, point: i64, mut lost: bool) -> i128 {
    if amount == 0 {
        return 0;
    }
    for _ in 0..point {
        amount = match amount.checked_mul(10) {
            Some(next) if next <= MAX_NANOS => next,
            _ => return MAX_NANOS,
        };
    }
    for _ in point..0 {
        lost |= amount % 10 != 0;
        amount /= 10;
        if amount == 0 {
            break;
        }
    }
    amount + i128::from(lost)
}

/// Upstream's shortcut: it keeps the text of a number that looks canonical, which lets `1.234`, `+1` and
/// `01` stand.
fn is_taken_as_canonical(parts: &QuantityParts, multiplier: Multiplier) -> bool {
    let whole = if parts.whole.is_empty() { "0" } else { parts.whole };
    let length = whole.len() + parts.fraction.len();
    match multiplier {
        Multiplier::Ten(power) => {
            let scale = i64::from(power) - parts.fraction.len() as i64;
            let joined = format!("{whole}{}", parts.fraction);
            length <= FAST_DIGITS && scale >= -9 && scale % 3 == 0 && !joined.ends_with("000") && whole != "0"
        }
        Multiplier::Two(power) => {
            let room = 14 - whole.len() as i64 - i64::from(power) * 3 / 10;
            let odd = whole.parse::<i64>().is_ok_and(|value| value & 7 != 0);
            parts.fraction.is_empty() && power > 0 && room >= 0 && odd
        }
    }
}
