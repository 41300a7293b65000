//! The schedule of a CronJob: five fields, or a descriptor (`github.com/robfig/cron`'s standard parser).

use chrono::{Datelike, Months, NaiveDateTime, TimeDelta, Timelike};

use apimachinery::time::Time;
use apimachinery::time_zone::TimeZone;

golang::text_error! {
    /// What is no schedule of a CronJob; in the words of upstream's library.
    pub struct BadSchedule;
}

/// A schedule that is not due within so many years never is.
const YEARS: i32 = 5;

/// When a CronJob is due: a set of values for each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CronSchedule {
    /// At the minutes whose parts are all in their sets.
    Fields(Box<CronFields>),
    /// `@every 1h30m`, in seconds.
    Every(u64),
}

/// The values of the five fields, as bits: bit n is set when n is one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CronFields {
    /// 0 to 59.
    pub minutes: u64,
    /// 0 to 23.
    pub hours: u64,
    /// 1 to 31.
    pub days_of_month: u64,
    /// 1 to 12.
    pub months: u64,
    /// 0 (Sunday) to 6.
    pub days_of_week: u64,
    /// Whether the day of the month was given as `*`: then the day of the week alone decides.
    pub any_day_of_month: bool,
    /// Whether the day of the week was given as `*`: then the day of the month alone decides.
    pub any_day_of_week: bool,
}

struct CronBounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MINUTES: CronBounds = CronBounds { least: 0, most: 59, names: &[] };
const HOURS: CronBounds = CronBounds { least: 0, most: 23, names: &[] };
const DAYS_OF_MONTH: CronBounds = CronBounds { least: 1, most: 31, names: &[] };
const MONTHS: CronBounds = CronBounds {
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAYS_OF_WEEK: CronBounds =
    CronBounds { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl CronSchedule {
    /// The first time after another at which it is due by the clocks of `zone`; nothing when it never is.
    pub fn next(&self, after: Time, zone: &TimeZone) -> Option<Time> {
        let after = after.with_nanosecond(0)?;
        match self {
            CronSchedule::Every(seconds) => {
                let delay = TimeDelta::try_seconds(i64::try_from(*seconds).ok()?)?;
                after.checked_add_signed(delay)
            }
            CronSchedule::Fields(fields) => {
                let time = after.checked_add_signed(TimeDelta::seconds(1))?;
                FireTimeSearch { fields, zone, time, is_cut: false }.run()
            }
        }
    }
}

/// A time that moves on until all fields fit, the greatest first. Where a lesser field runs over, the greater
/// ones are looked at again.
struct FireTimeSearch<'a> {
    fields: &'a CronFields,
    zone: &'a TimeZone,
    time: Time,
    /// Whether what is less than the field that moved first is at its beginning.
    is_cut: bool,
}

impl FireTimeSearch<'_> {
    fn run(mut self) -> Option<Time> {
        let last_year = self.local().year() + YEARS;
        while self.local().year() <= last_year {
            if self.seek_month()? && self.seek_day()? && self.seek_hour()? && self.seek_minute() {
                return Some(self.time);
            }
        }
        None
    }

    fn local(&self) -> NaiveDateTime {
        self.zone.local(self.time)
    }

    /// False when it ran over into another year; nothing at the end of time.
    fn seek_month(&mut self) -> Option<bool> {
        while self.fields.months >> self.local().month() & 1 == 0 {
            self.cut(|local| local.date().with_day(1)?.and_hms_opt(0, 0, 0))?;
            self.time = self.zone.date(self.local().checked_add_months(Months::new(1))?);
            if self.local().month() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn seek_day(&mut self) -> Option<bool> {
        while !self.fields.has_day(self.local()) {
            self.cut(|local| local.date().and_hms_opt(0, 0, 0))?;
            self.time = self.zone.date(self.local().checked_add_signed(TimeDelta::days(1))?);
            // Where clocks are changed at midnight, a day need not begin at 0.
            let hour = i64::from(self.local().hour());
            self.time += TimeDelta::hours(if hour > 12 { 24 - hour } else { -hour });
            if self.local().day() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn seek_hour(&mut self) -> Option<bool> {
        while self.fields.hours >> self.local().hour() & 1 == 0 {
            self.cut(|local| local.date().and_hms_opt(local.hour(), 0, 0))?;
            self.time = self.time.checked_add_signed(TimeDelta::hours(1))?;
            if self.local().hour() == 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// It is due at the first second of a minute.
    fn seek_minute(&mut self) -> bool {
        let is_due = |search: &Self| search.fields.minutes >> search.local().minute() & 1 == 1;
        while !is_due(self) || self.time.second() != 0 {
            self.is_cut = true;
            self.time += TimeDelta::seconds(60 - i64::from(self.time.second()));
            if self.local().minute() == 0 {
                return false;
            }
        }
        true
    }

    fn cut(&mut self, begin: impl Fn(NaiveDateTime) -> Option<NaiveDateTime>) -> Option<()> {
        if !std::mem::replace(&mut self.is_cut, true) {
            self.time = self.zone.date(begin(self.local())?);
        }
        Some(())
    }
}

impl CronFields {
    /// When both days are given, one of them is enough.
    fn has_day(&self, local: NaiveDateTime) -> bool {
        let of_month = self.days_of_month >> local.day() & 1 == 1;
        let of_week = self.days_of_week >> local.weekday().num_days_from_sunday() & 1 == 1;
        if self.any_day_of_month || self.any_day_of_week { of_month && of_week } else { of_month || of_week }
    }
}

/// Reads a schedule; the error is upstream's.
pub fn parse(text: &str) -> Result<CronSchedule, BadSchedule> {
    if text.is_empty() {
        return Err("empty spec string".into());
    }
    let (zone, text) = split_time_zone(text);
    if let Some(zone) = zone.filter(|zone| TimeZone::load(zone).is_none()) {
        return Err(format!("provided bad location {zone}: unknown time zone {zone}").into());
    }
    if text.starts_with('@') {
        return descriptor(text);
    }
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = parts.as_slice() else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")).into());
    };
    let is_star = |range: &str| matches!(range, "*" | "?" | "*/1" | "?/1");
    let is_any = |part: &str| part.split(',').any(is_star);
    Ok(CronSchedule::Fields(Box::new(CronFields {
        minutes: field(minutes, &MINUTES)?,
        hours: field(hours, &HOURS)?,
        days_of_month: field(days, &DAYS_OF_MONTH)?,
        months: field(months, &MONTHS)?,
        days_of_week: field(weekdays, &DAYS_OF_WEEK)?,
        any_day_of_month: is_any(days),
        any_day_of_week: is_any(weekdays),
    })))
}

/// The zone that a schedule names itself, with `TZ=` or `CRON_TZ=`. Only those have one that were stored
/// before that was refused.
pub fn own_time_zone(text: &str) -> Option<TimeZone> {
    TimeZone::load(split_time_zone(text).0?)
}

fn split_time_zone(text: &str) -> (Option<&str>, &str) {
    let Some(zoned) = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) else {
        return (None, text);
    };
    let (zone, schedule) = zoned.split_once(' ').unwrap_or((zoned, ""));
    (Some(zone), schedule.trim())
}

fn descriptor(text: &str) -> Result<CronSchedule, BadSchedule> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => match text.strip_prefix("@every ") {
            Some(duration) => return every(text, duration),
            None => return Err(format!("unrecognized descriptor: {text}").into()),
        },
    };
    parse(fields)
}

/// Go's durations, in whole seconds; at least one.
fn every(text: &str, duration: &str) -> Result<CronSchedule, BadSchedule> {
    match apimachinery::duration::parse(duration) {
        Some(duration) => Ok(CronSchedule::Every(duration.as_secs().max(1))),
        None => Err(format!("failed to parse duration {text}: time: invalid duration {duration:?}").into()),
    }
}

fn field(text: &str, bounds: &CronBounds) -> Result<u64, String> {
    text.split(',').filter(|part| !part.is_empty()).try_fold(0, |bits, part| Ok(bits | range(part, bounds)?))
}

/// `*`, `5`, `1-5`, each with a `/step`.
fn range(text: &str, bounds: &CronBounds) -> Result<u64, String> {
    let (ends, step) = text.split_once('/').map_or((text, None), |(ends, step)| (ends, Some(step)));
    let (first, last) = ends.split_once('-').map_or((ends, None), |(first, last)| (first, Some(last)));
    if last.is_some_and(|last| last.contains('-')) {
        return Err(format!("too many hyphens: {text}"));
    }
    if step.is_some_and(|step| step.contains('/')) {
        return Err(format!("too many slashes: {text}"));
    }
    let (first, mut last) = match (first, last) {
        ("*" | "?", _) => (bounds.least, bounds.most),
        (first, None) => (value(first, bounds)?, value(first, bounds)?),
        (first, Some(last)) => (value(first, bounds)?, value(last, bounds)?),
    };
    let step = step.map_or(Ok(1), number)?;
    if text.contains('/') && !ends.contains(['-', '*', '?']) {
        last = bounds.most;
    }
    match () {
        () if first < bounds.least => {
            Err(format!("beginning of range ({first}) below minimum ({}): {text}", bounds.least))
        }
        () if last > bounds.most => {
            Err(format!("end of range ({last}) above maximum ({}): {text}", bounds.most))
        }
        () if first > last => {
            Err(format!("beginning of range ({first}) beyond end of range ({last}): {text}"))
        }
        () if step == 0 => Err(format!("step of range should be a positive number: {text}")),
        () => Ok((first..=last)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .fold(0, |bits, n| bits | 1 << n)),
    }
}

fn value(text: &str, bounds: &CronBounds) -> Result<u64, String> {
    match bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(at) => Ok(bounds.least + at as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(text: &str) -> Vec<u64> {
        match parse(&format!("{text} * * * *")) {
            Ok(CronSchedule::Fields(fields)) => {
                (0..60).filter(|minute| fields.minutes >> minute & 1 == 1).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn fields_are_sets() {
        assert_eq!(minutes("5"), [5]);
        assert_eq!(minutes("1-3,10"), [1, 2, 3, 10]);
        assert_eq!(minutes("*/20"), [0, 20, 40]);
        assert_eq!(minutes("50/5"), [50, 55]);
        assert_eq!(minutes("*").len(), 60);
        assert_eq!(parse("@daily"), parse("0 0 * * *"));
        assert_eq!(parse("0 0 * JAN Sun"), parse("0 0 * 1 0"));
        assert_eq!(parse("@every 1h30m"), Ok(CronSchedule::Every(5400)));
    }

    /// What the original gives for these (its own tests, and what follows from its rules).
    #[test]
    fn the_next_time_is_the_originals() {
        let cases = [
            ("0/15 * * * *", "UTC", "2012-07-09T14:45:00Z", Some("2012-07-09T15:00:00Z")),
            ("0/15 * * * *", "UTC", "2012-07-09T14:59:59Z", Some("2012-07-09T15:00:00Z")),
            ("20-35/15 * * * *", "UTC", "2012-07-09T15:45:00Z", Some("2012-07-09T16:20:00Z")),
            ("0 0 1 * *", "UTC", "2012-07-09T23:35:51Z", Some("2012-08-01T00:00:00Z")),
            ("0 0 * Feb Mon", "UTC", "2012-07-09T23:35:00Z", Some("2013-02-04T00:00:00Z")),
            ("0 0 29 Feb ?", "UTC", "2012-07-09T23:35:00Z", Some("2016-02-29T00:00:00Z")),
            ("0 0 1 * Mon", "UTC", "2026-01-02T00:00:00Z", Some("2026-01-05T00:00:00Z")),
            ("0 0 */2 * Mon", "UTC", "2026-01-01T00:00:00Z", Some("2026-01-03T00:00:00Z")),
            ("0 0 * * 6", "UTC", "2026-01-01T00:00:00Z", Some("2026-01-03T00:00:00Z")),
            ("59 23 31 2 *", "UTC", "2026-01-01T00:00:00Z", None),
            ("@hourly", "UTC", "2026-12-31T23:30:00Z", Some("2027-01-01T00:00:00Z")),
            ("@weekly", "UTC", "2026-01-01T00:00:00Z", Some("2026-01-04T00:00:00Z")),
            ("@every 90m", "UTC", "2026-01-01T00:00:07Z", Some("2026-01-01T01:30:07Z")),
            ("0 9 * * *", "America/New_York", "2026-01-01T00:00:00Z", Some("2026-01-01T14:00:00Z")),
            ("0 9 * * *", "America/New_York", "2026-07-01T14:00:00Z", Some("2026-07-02T13:00:00Z")),
            // The hour that is left out in spring, and the one that comes twice in autumn.
            ("30 2 * * *", "America/New_York", "2012-03-11T05:00:00Z", Some("2012-03-12T06:30:00Z")),
            ("0 * * * *", "America/New_York", "2012-03-11T06:59:00Z", Some("2012-03-11T07:00:00Z")),
            ("30 1 * * *", "America/New_York", "2012-11-04T04:00:00Z", Some("2012-11-04T05:30:00Z")),
            ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T04:00:00Z", Some("2018-11-05T02:00:00Z")),
        ];
        for (text, zone, after, due) in cases {
            let (zone, parsed) = (TimeZone::load(zone).unwrap(), apimachinery::time::parse);
            let next = parse(text).unwrap().next(parsed(after).unwrap(), &zone);
            assert_eq!(next, due.and_then(parsed), "{text} after {after}");
        }
    }

    #[test]
    fn a_schedule_may_name_its_zone_as_it_once_could() {
        for text in ["TZ=Europe/Berlin  0 9 * * *", "CRON_TZ=Europe/Berlin 0 9 * * *"] {
            let (zone, after) = (own_time_zone(text).unwrap(), apimachinery::time::parse);
            let next = parse(text).unwrap().next(after("2026-01-01T00:00:00Z").unwrap(), &zone);
            assert_eq!(next, after("2026-01-01T08:00:00Z"), "{text}");
        }
        assert!(own_time_zone("0 9 * * *").is_none());
    }

    #[test]
    fn what_is_no_schedule_is_said_in_upstreams_words() {
        for (text, words) in [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("TZ=Nowhere 0 * * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
            ("TZ=UTC", "expected exactly 5 fields, found 0: []"),
        ] {
            assert_eq!(parse(text).unwrap_err(), words, "{text}");
        }
    }
}
