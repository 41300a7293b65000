//! Go's durations as text (`time.ParseDuration`, `time.Duration.String`): `1m20s`, `250ms`, `5m0s`.

use std::time::Duration;

crate::text_error! {
    /// A text that is no duration, or not one that its flag takes; in Go's words.
    pub struct InvalidDuration;
}

const UNITS: &[(&str, f64)] =
    &[("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];

/// Go's `time.ParseDuration`: `30s`, `1m30s`, `1.5h`, `250ms`, `0`. Nothing for what is none, or is negative
/// or too long.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let (unit, factor) = UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        seconds += number * factor;
        rest = &rest[digits + unit.len()..];
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|_| !text.is_empty())
}

/// Reads a duration that is the value of a flag.
///
/// # Errors
/// Go's words.
pub fn parse_flag(text: &str) -> Result<Duration, InvalidDuration> {
    parse(text).ok_or_else(|| format!("time: invalid duration {text:?}").into())
}

/// Reads a duration that is the value of a flag and must be more than nothing: who never waits would keep
/// everybody else from working.
///
/// # Errors
/// Go's words, or what it may be.
pub fn parse_period(text: &str) -> Result<Duration, InvalidDuration> {
    let period = parse_flag(text)?;
    if period.is_zero() {
        return Err("must be longer than 0s, as 30s, 5m or 1h30m".into());
    }
    Ok(period)
}

/// Go's `time.Duration.String`: `10s`, `1m30s`, `500ms`, `1.5s`, `0s`.
pub fn format(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".into();
    }
    for (unit, below, scale) in [("ns", 1_000, 1), ("µs", 1_000_000, 1_000), ("ms", 1_000_000_000, 1_000_000)]
    {
        if nanoseconds < below {
            return format!("{}{unit}", decimal(nanoseconds, scale));
        }
    }
    let seconds = decimal(nanoseconds % 60_000_000_000, 1_000_000_000);
    match (duration.as_secs() / 3600, duration.as_secs() / 60 % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `amount / scale`, without zeros at its end.
fn decimal(amount: u128, scale: u128) -> String {
    let (whole, rest) = (amount / scale, amount % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    format!("{whole}.{rest:0width$}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        let cases = [
            ("30s", Some(30.0)),
            ("1m30s", Some(90.0)),
            ("1.5h", Some(5400.0)),
            ("250ms", Some(0.25)),
            ("0", Some(0.0)),
            ("", None),
            ("5", None),
            ("s", None),
            ("-1s", None),
            ("1d", None),
            ("1e400s", None),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse(text), seconds.map(Duration::from_secs_f64), "{text}");
        }
        for (microseconds, text) in [
            (0, "0s"),
            (15, "15µs"),
            (1_100, "1.1ms"),
            (500_000, "500ms"),
            (1_500_000, "1.5s"),
            (60_000_000, "1m0s"),
            (61_100_000, "1m1.1s"),
            (3_661_000_000, "1h1m1s"),
        ] {
            assert_eq!(format(Duration::from_micros(microseconds)), text);
        }
    }
}
