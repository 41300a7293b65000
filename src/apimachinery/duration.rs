//! Go's durations as text (`time.ParseDuration`, `time.Duration.String`).

use std::time::Duration;

/// Go's `time.ParseDuration`, without negative durations: `30s`, `1m30s`, `1.5h`, `250ms`, `0`.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        seconds += number
            * match &rest[..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|_| !text.is_empty())
}

/// Go's `time.Duration.String` of at least a millisecond: `10s`, `1m30s`, `500ms`, `1.5s`.
pub fn format(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return format!("{}ms", duration.as_millis());
    }
    let (minutes, rest) = (duration.as_secs() / 60, duration.as_secs_f64() % 60.0);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
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
            ("5", None),
            ("s", None),
            ("-1s", None),
            ("1d", None),
            ("1e400s", None),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse(text), seconds.map(Duration::from_secs_f64), "{text}");
        }
        for (milliseconds, text) in
            [(10_000, "10s"), (500, "500ms"), (1500, "1.5s"), (60_000, "1m0s"), (3_661_000, "1h1m1s")]
        {
            assert_eq!(format(Duration::from_millis(milliseconds)), text);
        }
    }
}
