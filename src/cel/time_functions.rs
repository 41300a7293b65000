//! Durations and timestamps: their parts and their arithmetic.

use chrono::{DateTime, Datelike, FixedOffset, TimeDelta, Timelike, Utc};

use super::error::EvaluationError;
use super::value::Value;

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
