//! Durations as Go writes and reads them (`time.Duration`): `1m20s`, `250ms`, `5m0s`.

use std::time::Duration;

const UNITS: &[(&str, f64)] =
    &[("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];

/// Reads a duration; nothing for what is none, or for one that is negative or too long.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let (unit, factor) = UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        seconds += number * factor;
        rest = &rest[digits + unit.len()..];
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(seconds).ok() }
}

/// Writes whole milliseconds: what the kubelet prints of pulls and back-offs.
pub fn format(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds == 0 {
        return "0s".into();
    }
    if milliseconds < 1000 {
        return format!("{milliseconds}ms");
    }
    let (hours, minutes) = (milliseconds / 3_600_000, milliseconds / 60_000 % 60);
    let seconds = (milliseconds % 60_000) as f64 / 1000.0;
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write_as_go() {
        let cases = [("250ms", 250), ("10s", 10_000), ("1m20s", 80_000), ("5m0s", 300_000), ("1.5s", 1_500)];
        for (text, milliseconds) in cases {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse(text), Some(duration), "{text}");
            assert_eq!(format(duration), text);
        }
        assert_eq!(format(Duration::from_secs(3600)), "1h0m0s");
        for text in ["", "5", "s", "-1s", "1x", "1e400s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
