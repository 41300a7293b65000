//! Timestamps as they are written in objects (`metav1.Time`, `metav1.MicroTime`) and durations for people.

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

/// An instant in UTC.
pub type Time = DateTime<Utc>;

/// The last year that a timestamp can say, a certificate too: those of RFC 3339 have four digits.
pub const LAST_YEAR: i32 = 9999;

/// `metav1.Time`: RFC 3339 in UTC with whole seconds.
pub fn rfc3339(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// `metav1.MicroTime`: RFC 3339 in UTC with six digits of fraction.
pub fn rfc3339_micro(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Reads any RFC 3339 time.
pub fn parse(text: &str) -> Option<Time> {
    parse_whole_seconds(text).or_else(|| DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc()))
}

/// `2006-01-02T15:04:05Z`, as nearly all times are that are read; None for anything else.
fn parse_whole_seconds(text: &str) -> Option<Time> {
    let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_u32, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0'))
        })
    };
    let has = |places: [usize; 2], byte: u8| places.iter().all(|at| bytes[*at] == byte);
    if !has([4, 7], b'-') || !has([13, 16], b':') || !has([10, 10], b'T') || !has([19, 19], b'Z') {
        return None;
    }
    let year = i32::try_from(number(0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, number(5, 7)?, number(8, 10)?)?;
    let time = date.and_hms_opt(number(11, 13)?, number(14, 16)?, number(17, 19)?)?;
    Some(time.and_utc())
}

/// `duration.HumanDuration`: the AGE column. Two units where one would be too coarse.
pub fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |whole: i64, unit: &str, rest: i64, rest_unit: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{rest_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => with(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_read_as_any_other_time() {
        let times = [
            "2026-11-20T12:00:00Z",
            "1969-12-31T23:59:59Z",
            "2024-02-29T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2026-13-20T12:00:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T23:59:60Z",
            "2026-11-20t12:00:00z",
            "2026-11-20 12:00:00Z",
            "2026-11-20T12:00:0xZ",
            "2026-11-20T12:00:00+",
            "0000-01-01T00:00:00Z",
            "2026-11-20T12:00:00.5Z",
            "2026-11-20T12:00:00+01:00",
            "",
            "2026-11-20T1\u{e9}:00:00Z",
        ];
        for text in times {
            let expected = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn ages_read_as_upstream_prints_them() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (10_800, "3h"),
            (28_740, "7h59m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000 + 86_400, "2y1d"),
            (-2, "<invalid>"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
