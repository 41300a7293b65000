//! When a CronJob's next Job is due, and which one is overdue (`mostRecentScheduleTime`).

use std::time::Duration;

use chrono::TimeDelta;

use apimachinery::time::Time;
use apimachinery::time_zone::TimeZone;
use apis::batch::schedule::CronSchedule;

/// What is added to the time to wait, so that a clock that goes wrong a little does not wake too early.
const NEXT_SCHEDULE_DELTA: Duration = Duration::from_millis(100);
/// So many missed times are told of.
const MANY: i64 = 100;

/// A CronJob's schedule, and from when on it counts.
pub(super) struct Timetable {
    /// As it is written.
    pub schedule: CronSchedule,
    /// By whose clocks.
    pub zone: TimeZone,
    /// The last time that a Job was due; before the first one, the creation of the CronJob.
    pub since: Time,
    /// A Job that could not be made within this time is not made at all.
    pub starting_deadline_seconds: Option<i64>,
}

/// The Job that should have been made last.
#[derive(Debug, PartialEq)]
pub(super) struct Overdue {
    /// When it was due.
    pub at: Time,
    /// Whether so many were missed that something must be wrong.
    pub is_one_of_many: bool,
}

struct RecentTimes {
    latest: Option<Time>,
    missed: i64,
}

impl Timetable {
    /// The last Job that was due and has not been made (`nextScheduleTime`).
    pub(super) fn overdue(&self, now: Time) -> Result<Option<Overdue>, &'static str> {
        let deadline = self.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        let deadline = deadline.and_then(|deadline| now.checked_sub_signed(deadline));
        let since = deadline.map_or(self.since, |deadline| deadline.max(self.since));
        let RecentTimes { latest, missed } = self.recent(since, now)?;
        Ok(latest.map(|at| Overdue { at, is_one_of_many: missed > MANY }))
    }

    /// How long until the next Job is due; nothing when none ever is (`nextScheduleTimeDuration`).
    pub(super) fn wait(&self, now: Time) -> Option<Duration> {
        let after = match self.recent(self.since, now) {
            Ok(RecentTimes { latest: Some(latest), .. }) => latest,
            Ok(RecentTimes { missed: 0, .. }) => self.since,
            _ => now,
        };
        let next = self.schedule.next(after, &self.zone)?;
        Some((next - now).to_std().unwrap_or(Duration::ZERO) + NEXT_SCHEDULE_DELTA)
    }

    /// The last time between `since` and `now`, and about how many there were.
    fn recent(&self, since: Time, now: Time) -> Result<RecentTimes, &'static str> {
        const NEVER: &str = "time difference between two schedules is less than 1 second";
        let next = |after| self.schedule.next(after, &self.zone);
        let first = next(since).ok_or(NEVER)?;
        if now < first {
            return Ok(RecentTimes { latest: None, missed: 0 });
        }
        let second = next(first).ok_or(NEVER)?;
        if now < second {
            return Ok(RecentTimes { latest: Some(first), missed: 0 });
        }
        let between = (second - first).num_seconds().max(1);
        let missed = (now - first).num_seconds() / between + 1;
        // Not from the first on: there may be thousands. One more step back, should they not be regular.
        let from = first + TimeDelta::seconds((missed - 2) * between);
        let times = std::iter::successors(next(from), |time| next(*time));
        Ok(RecentTimes { latest: times.take_while(|time| *time <= now).last(), missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::time::parse;
    use apis::batch::schedule;

    fn at(text: &str) -> Time {
        parse(&format!("2026-01-{text}Z")).unwrap()
    }

    fn timetable(text: &str, since: &str, deadline: Option<i64>) -> Timetable {
        let schedule = schedule::parse(text).unwrap();
        Timetable { schedule, zone: TimeZone::UTC, since: at(since), starting_deadline_seconds: deadline }
    }

    #[test]
    fn the_last_of_those_that_were_missed_is_overdue() {
        type Case = (&'static str, &'static str, Option<i64>, &'static str, Option<(&'static str, bool)>);
        let cases: &[Case] = &[
            ("0 * * * *", "05T10:00:00", None, "05T10:59:59", None),
            ("0 * * * *", "05T10:00:00", None, "05T11:00:00", Some(("05T11:00:00", false))),
            ("0 * * * *", "05T10:00:00", None, "05T14:10:00", Some(("05T14:00:00", false))),
            ("* * * * *", "05T10:00:00", None, "05T14:10:30", Some(("05T14:10:00", true))),
            ("0 * * * *", "05T10:00:00", Some(300), "05T14:10:00", None),
            ("0 * * * *", "05T10:00:00", Some(900), "05T14:10:00", Some(("05T14:00:00", false))),
            // Only the last step is looked at, as upstream does: on a Sunday Friday's is lost.
            ("30 6-16/4 * * 1-5", "07T00:00:00", None, "11T12:00:00", None),
            ("@every 1h", "05T10:20:00", None, "05T13:30:00", Some(("05T13:20:00", false))),
        ];
        for (text, since, deadline, now, due) in cases {
            let overdue = timetable(text, since, *deadline).overdue(at(now)).unwrap();
            let due = due.map(|(due, is_one_of_many)| Overdue { at: at(due), is_one_of_many });
            assert_eq!(overdue, due, "{text} at {now}");
        }
        assert!(timetable("0 0 31 2 *", "05T10:00:00", None).overdue(at("06T00:00:00")).is_err());
    }

    #[test]
    fn the_next_one_is_waited_for() {
        let wait =
            |text, now| timetable(text, "05T10:00:00", None).wait(at(now)).map(|wait| wait.as_millis());
        assert_eq!(wait("0 * * * *", "05T10:59:00"), Some(60_100));
        assert_eq!(wait("0 * * * *", "05T12:30:00"), Some(1_800_100));
        assert_eq!(wait("0 0 31 2 *", "05T10:00:00"), None);
    }
}
