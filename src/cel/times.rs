//! Durations and timestamps: reading and writing.

use chrono::{DateTime, Datelike, SecondsFormat, TimeDelta, Utc};

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
            total = total.checked_add(i128::from(digit.checked_sub(b'0')?).checked_mul(digit_worth)?)?;
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

/// As `string(x)` gives it; None beyond what nanoseconds can say.
pub(super) fn duration_text(duration: TimeDelta) -> Option<String> {
    let nanoseconds = duration.num_nanoseconds()?;
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let seconds = nanoseconds.unsigned_abs() / 1_000_000_000;
    let rest = nanoseconds.unsigned_abs() % 1_000_000_000;
    let fraction = format!(".{rest:09}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    Some(format!("{sign}{seconds}{fraction}s"))
}

/// As `string(x)` gives it.
pub(super) fn timestamp_text(time: DateTime<Utc>) -> String {
    let text = time.to_rfc3339_opts(SecondsFormat::Nanos, true);
    let (head, fraction) = text.trim_end_matches('Z').split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{head}Z") } else { format!("{head}.{fraction}Z") }
}
