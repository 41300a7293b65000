//! `date`, and what it and `touch` read of times.

use std::fmt::Write;

use chrono::{DateTime, Datelike, Duration, Months, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use crate::interpreter::player::Player;

/// Dates with a time of day, and days.
const TIMES: &[&str] = &["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
const DAYS: &[&str] = &["%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d %b %Y", "%b %d %Y", "%b %d, %Y", "%m/%d/%Y"];
const HOURS: &[&str] = &["%H:%M:%S", "%H:%M"];
/// What `-I` says of each precision.
const ISO: &[(&str, &str)] = &[
    ("hours", "%Y-%m-%dT%H+00:00"),
    ("minutes", "%Y-%m-%dT%H:%M+00:00"),
    ("seconds", "%Y-%m-%dT%H:%M:%S+00:00"),
    ("ns", "%Y-%m-%dT%H:%M:%S,%f+00:00"),
];
const PLAIN: &str = "%a %b %e %H:%M:%S UTC %Y";
const MAIL: &str = "%a, %d %b %Y %H:%M:%S +0000";

/// `date [-uR] [-I[PRECISION]] [-d TIME | -r FILE] [+FORMAT]`; there is no other time zone.
pub(super) fn date(player: &mut Player<'_>, words: &[&str]) {
    match told(player, words) {
        Ok(said) => player.say(&format!("{said}\n")),
        Err(why) => player.fail(&format!("date: {why}\n")),
    }
}

fn told(player: &Player<'_>, words: &[&str]) -> Result<String, String> {
    let invalid = |text: &str| format!("invalid date '{text}'");
    let mut time = player.now();
    let mut format = PLAIN.to_owned();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if let Some(wanted) = word.strip_prefix('+') {
            format = chronos(wanted);
            continue;
        }
        let asked = word.strip_prefix("--date=").or_else(|| {
            let joined = word.strip_prefix("-d").or(word.strip_prefix("-ud"))?;
            if joined.is_empty() { words.next() } else { Some(joined) }
        });
        if let Some(text) = asked {
            time = read(text, time).ok_or_else(|| invalid(text))?;
            continue;
        }
        match word {
            "-u" | "--utc" | "--universal" => {}
            "-R" | "--rfc-email" | "--rfc-2822" => format = MAIL.to_owned(),
            "-r" => {
                let path = words.next().unwrap_or_default();
                let missing = || format!("{path}: No such file or directory");
                let file = player.file(path).ok_or_else(missing)?;
                time = player.stamp_of(&file).modified;
            }
            _ => format = iso(word).ok_or_else(|| invalid(word))?.to_owned(),
        }
    }
    let is_unknown = |item| item == chrono::format::Item::Error;
    if chrono::format::StrftimeItems::new(&format).any(is_unknown) {
        return Ok(format);
    }
    // Of some of what it reads chrono writes nothing.
    let mut said = String::new();
    match write!(said, "{}", time.format(&format)) {
        Ok(()) => Ok(said),
        Err(std::fmt::Error) => Ok(format),
    }
}

/// `-I`, `-Iseconds`, `--iso-8601=ns`
fn iso(word: &str) -> Option<&'static str> {
    let precision = word.strip_prefix("-I").or(word.strip_prefix("--iso-8601"))?.trim_start_matches('=');
    if matches!(precision, "" | "date") {
        return Some("%Y-%m-%d");
    }
    ISO.iter().find(|(name, _)| *name == precision).map(|(_, format)| *format)
}

/// What the C library and chrono write differently.
fn chronos(format: &str) -> String {
    let format = format.replace("%3N", "%3f").replace("%6N", "%6f").replace("%9N", "%9f").replace("%N", "%f");
    format.replace("%1f", "%f").replace("%Z", "UTC")
}

/// A time as somebody writes it; `now` is what it is relative to.
pub(super) fn read(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Some(seconds) = text.strip_prefix('@') {
        return DateTime::from_timestamp(seconds.split('.').next()?.parse().ok()?, 0);
    }
    if let Some(exact) = exact(text, now) {
        return Some(exact);
    }
    if let Some(digits) = stamped(text, now) {
        return Some(digits);
    }
    // A time, and what is added to it.
    for (at, _) in text.match_indices(' ').rev() {
        if let Some(base) = exact(text[..at].trim_end(), now) {
            return moved(base, &text[at + 1..]);
        }
    }
    moved(now, text)
}

fn exact(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let midnight = |day: NaiveDate| Some(day.and_time(NaiveTime::MIN).and_utc());
    match text {
        "now" => return Some(now),
        "today" => return Some(now),
        "yesterday" => return now.checked_sub_signed(Duration::days(1)),
        "tomorrow" => return now.checked_add_signed(Duration::days(1)),
        _ => {}
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text)) {
        return Some(time.to_utc());
    }
    let plain =
        ["UTC", "GMT", "Z"].iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text).trim_end();
    if let Some(time) = TIMES.iter().find_map(|format| NaiveDateTime::parse_from_str(plain, format).ok()) {
        return Some(time.and_utc());
    }
    if let Some(day) = DAYS.iter().find_map(|format| NaiveDate::parse_from_str(plain, format).ok()) {
        return midnight(day);
    }
    let hour = HOURS.iter().find_map(|format| NaiveTime::parse_from_str(plain, format).ok())?;
    Some(now.date_naive().and_time(hour).and_utc())
}

/// `[[CC]YY]MMDDhhmm[.ss]`, as `touch -t` has it.
fn stamped(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let (digits, seconds) = text.split_once('.').unwrap_or((text, "00"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(digits) || !is_number(seconds) {
        return None;
    }
    let whole = match digits.len() {
        8 => format!("{}{digits}", now.year()),
        10 => format!("20{digits}"),
        12 => digits.to_owned(),
        _ => return None,
    };
    let time = NaiveDateTime::parse_from_str(&format!("{whole}{seconds}"), "%Y%m%d%H%M%S").ok()?;
    Some(time.and_utc())
}

/// `2 days ago`, `+1 hour`, `next month`, `1 day 2 hours`
fn moved(from: DateTime<Utc>, text: &str) -> Option<DateTime<Utc>> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let sign = if words.last() == Some(&"ago") {
        words.pop();
        -1
    } else {
        1
    };
    let mut time = from;
    let mut words = words.into_iter();
    let mut is_moved = false;
    while let Some(word) = words.next() {
        let (count, unit) = match word {
            "next" => (1, words.next()?),
            "last" => (-1, words.next()?),
            "+" | "-" => {
                let count: i64 = words.next()?.parse().ok()?;
                (if word == "-" { count.checked_neg()? } else { count }, words.next()?)
            }
            _ => {
                let end = word.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(word.len());
                let count = word[..end].parse().ok()?;
                (count, if end < word.len() { &word[end..] } else { words.next()? })
            }
        };
        time = by(time, count.checked_mul(sign)?, unit)?;
        is_moved = true;
    }
    is_moved.then_some(time)
}

fn by(time: DateTime<Utc>, count: i64, unit: &str) -> Option<DateTime<Utc>> {
    let months = |count: i64| {
        let months = Months::new(u32::try_from(count.unsigned_abs()).ok()?);
        // A day that the month has not is so many days into the next.
        let first = time.with_day(1)?;
        let first =
            if count < 0 { first.checked_sub_months(months) } else { first.checked_add_months(months) };
        first?.checked_add_signed(Duration::days(i64::from(time.day0())))
    };
    let duration = match unit.strip_suffix('s').filter(|short| !short.is_empty()).unwrap_or(unit) {
        "sec" | "second" | "s" => Duration::try_seconds(count),
        "min" | "minute" => Duration::try_minutes(count),
        "hour" | "h" => Duration::try_hours(count),
        "day" => Duration::try_days(count),
        "week" => Duration::try_weeks(count),
        "fortnight" => Duration::try_weeks(count.checked_mul(2)?),
        "month" => return months(count),
        "year" => return months(count.checked_mul(12)?),
        _ => None,
    };
    time.checked_add_signed(duration?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        for (text, wanted) in [
            ("@0", "1970-01-01 00:00:00"),
            ("2020-01-02 03:04:05", "2020-01-02 03:04:05"),
            ("2020-01-02T03:04:05Z", "2020-01-02 03:04:05"),
            ("2020-01-02T03:04:05+02:00", "2020-01-02 01:04:05"),
            ("2020-01-02", "2020-01-02 00:00:00"),
            ("Thu, 02 Jan 2020 03:04:05 GMT", "2020-01-02 03:04:05"),
            ("2020-01-31 +1 month", "2020-03-02 00:00:00"),
            ("2021-01-31 -3 month", "2020-10-31 00:00:00"),
            ("2020-02-29 +1 year", "2021-03-01 00:00:00"),
            ("2020-01-31 10:00 - 2 days", "2020-01-29 10:00:00"),
            ("yesterday", "2026-09-20 14:13:20"),
            ("2 hours ago", "2026-09-21 12:13:20"),
            ("1 day 1 hour", "2026-09-22 15:13:20"),
            ("next week", "2026-09-28 14:13:20"),
            ("10:30", "2026-09-21 10:30:00"),
            ("202001020304.05", "2020-01-02 03:04:05"),
        ] {
            let read = read(text, now).map(|time| time.format("%Y-%m-%d %H:%M:%S").to_string());
            assert_eq!(read.as_deref(), Some(wanted), "{text}");
        }
        for text in ["-9223372036854775808 days ago", "- -9223372036854775808 days"] {
            assert_eq!(read(text, now), None, "{text}");
        }
        for text in ["", "never", "5", "1 blink", "2020-13-01", "99999999999999 years", "@x"] {
            assert_eq!(read(text, now), None, "{text}");
        }
    }
}
