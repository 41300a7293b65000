//! Durations and timestamps: reading, writing, their parts and their arithmetic.

use chrono::{DateTime, Datelike, FixedOffset, SecondsFormat, TimeDelta, Timelike, Utc};

use super::error::EvaluationError;
use super::value::Value;

/// The units of Go's `time.ParseDuration`, in nanoseconds.
const UNITS: [(&str, i128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// `time.ParseDuration`: `1h30m`, `-1.5s`.
pub(super) fn parse_duration(text: &str) -> Option<TimeDelta> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(TimeDelta::zero());
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let scale = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(scale)?)?;
        let mut digit_worth = scale;
        for digit in fraction.bytes() {
            digit_worth /= 10;
            total += i128::from(digit.checked_sub(b'0')?) * digit_worth;
        }
        rest = behind;
    }
    let nanoseconds = if negative { -total } else { total };
    i64::try_from(nanoseconds).ok().map(TimeDelta::nanoseconds)
}

/// `strfmt.ParseDuration`, for the format `duration`: Go's, and days and weeks, with or without a blank.
pub(crate) fn parse_format_duration(text: &str) -> Option<TimeDelta> {
    if let Some(duration) = parse_duration(text) {
        return Some(duration);
    }
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let count: i64 = text[..end].parse().ok()?;
    let seconds = match text[end..].trim().trim_end_matches('s') {
        "second" | "sec" | "" => 1,
        "minute" | "min" => 60,
        "hour" | "hr" => 3_600,
        "d" | "day" => 86_400,
        "w" | "week" | "wk" => 604_800,
        _ => return None,
    };
    TimeDelta::try_seconds(count.checked_mul(seconds)?)
}

/// Reads RFC 3339 within the years that CEL knows.
pub(super) fn parse_timestamp(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
    (1..=9999).contains(&time.year()).then_some(time)
}

/// As `string(x)` gives it.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Duration(duration) => {
            let nanoseconds = duration.num_nanoseconds()?;
            let sign = if nanoseconds < 0 { "-" } else { "" };
            let (seconds, rest) =
                (nanoseconds.unsigned_abs() / 1_000_000_000, nanoseconds.unsigned_abs() % 1_000_000_000);
            let fraction = format!(".{rest:09}");
            let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
            Some(format!("{sign}{seconds}{fraction}s"))
        }
        Value::Timestamp(time) => {
            let text = time.to_rfc3339_opts(SecondsFormat::Nanos, true);
            let (head, fraction) = text.trim_end_matches('Z').split_once('.')?;
            let fraction = fraction.trim_end_matches('0');
            Some(if fraction.is_empty() { format!("{head}Z") } else { format!("{head}.{fraction}Z") })
        }
        _ => None,
    }
}

/// `+` and `-` with times.
pub(super) fn arithmetic(operator: &str, left: &Value, right: &Value) -> Result<Value, EvaluationError> {
    let overflow = |what| EvaluationError::Overflow(what);
    let duration = |found: Option<TimeDelta>| found.map(Value::Duration).ok_or(overflow("duration"));
    let timestamp = |found: Option<DateTime<Utc>>| {
        let in_range = found.filter(|time| (1..=9999).contains(&time.year()));
        in_range.map(Value::Timestamp).ok_or(overflow("timestamp"))
    };
    match (operator, left, right) {
        ("_+_", Value::Duration(left), Value::Duration(right)) => duration(left.checked_add(right)),
        ("_-_", Value::Duration(left), Value::Duration(right)) => duration(left.checked_sub(right)),
        ("_+_", Value::Timestamp(time), Value::Duration(by)) => timestamp(time.checked_add_signed(*by)),
        ("_+_", Value::Duration(by), Value::Timestamp(time)) => timestamp(time.checked_add_signed(*by)),
        ("_-_", Value::Timestamp(time), Value::Duration(by)) => timestamp(time.checked_sub_signed(*by)),
        ("_-_", Value::Timestamp(left), Value::Timestamp(right)) => {
            Ok(Value::Duration(left.signed_duration_since(right)))
        }
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

/// `getHours()` and its siblings.
pub(super) fn part(function: &str, of: &Value, zone: Option<&str>) -> Result<Value, EvaluationError> {
    let number = match of {
        Value::Duration(duration) => match function {
            "getHours" => duration.num_hours(),
            "getMinutes" => duration.num_minutes(),
            "getSeconds" => duration.num_seconds(),
            "getMilliseconds" => duration.num_milliseconds(),
            _ => return Err(EvaluationError::NoSuchOverload),
        },
        Value::Timestamp(time) => part_of_time(function, time.with_timezone(&zone_offset(zone)?))?,
        _ => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::Int(number))
}

fn part_of_time(function: &str, time: DateTime<FixedOffset>) -> Result<i64, EvaluationError> {
    Ok(match function {
        "getFullYear" => time.year().into(),
        "getMonth" => time.month0().into(),
        "getDayOfYear" => time.ordinal0().into(),
        "getDayOfMonth" => time.day0().into(),
        "getDate" => time.day().into(),
        "getDayOfWeek" => time.weekday().num_days_from_sunday().into(),
        "getHours" => time.hour().into(),
        "getMinutes" => time.minute().into(),
        "getSeconds" => time.second().into(),
        "getMilliseconds" => (time.nanosecond() / 1_000_000).into(),
        _ => return Err(EvaluationError::NoSuchOverload),
    })
}

/// `UTC` or `+02:00`; no table of named zones is at hand.
fn zone_offset(zone: Option<&str>) -> Result<FixedOffset, EvaluationError> {
    let utc = FixedOffset::east_opt(0).expect("zero is an offset");
    let zone = match zone {
        None | Some("" | "UTC") => return Ok(utc),
        Some(zone) => zone,
    };
    let unknown = || EvaluationError::Function(format!("unknown time zone {zone}"));
    let (hours, minutes) = zone.split_once(':').ok_or_else(unknown)?;
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let number = |text: &str| text.trim_start_matches(['+', '-']).parse::<i32>().map_err(|_| unknown());
    let seconds = number(hours)?.saturating_mul(3_600).saturating_add(number(minutes)?.saturating_mul(60));
    FixedOffset::east_opt(sign * seconds).ok_or_else(unknown)
}
