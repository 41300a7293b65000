//! The time as NCSA's common log format and as HTTP have it.

use chrono::{DateTime, Datelike, Timelike, Utc};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `24/Nov/2026:13:05:31 +0000`, by hand: a pattern of chrono's would be read anew for each line of a log.
pub(crate) fn common_time(at: DateTime<Utc>) -> String {
    let month = MONTHS[at.month0() as usize];
    let (day, year) = (at.day(), at.year());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
}

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// `Tue, 24 Nov 2026 13:05:31 GMT`, by hand for the same reason.
pub(crate) fn http_time(at: DateTime<Utc>) -> String {
    let day_name = DAYS[at.weekday().num_days_from_monday() as usize];
    let month = MONTHS[at.month0() as usize];
    let (day, year) = (at.day(), at.year());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{day_name}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_zeros() {
        let at = DateTime::from_timestamp(1_709_341_505, 7).unwrap();
        assert_eq!(common_time(at), "02/Mar/2024:01:05:05 +0000");
        assert_eq!(http_time(at), "Sat, 02 Mar 2024 01:05:05 GMT");
        assert_eq!(common_time(DateTime::UNIX_EPOCH), "01/Jan/1970:00:00:00 +0000");
    }
}
