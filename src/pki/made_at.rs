//! From when to when what is signed is valid: those who look at it may live by different clocks.

use apimachinery::time::LAST_YEAR;
use chrono::{DateTime, Datelike, TimeDelta, Utc};
use rcgen::{CertificateParams, date_time_ymd};

/// When a certificate is made, by the clocks of all who will look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeAt {
    earliest: DateTime<Utc>,
    latest: DateTime<Utc>,
    is_for_ever: bool,
}

impl MadeAt {
    /// By the cluster's clock, and by the machine's, by which its clients live.
    pub fn by_both(cluster: DateTime<Utc>, machine: DateTime<Utc>) -> MadeAt {
        MadeAt { earliest: cluster.min(machine), latest: cluster.max(machine), is_for_ever: false }
    }

    /// Of a cluster whose time can pass in no time: it is valid as long as that can.
    #[must_use]
    pub fn for_ever(self) -> MadeAt {
        MadeAt { is_for_ever: true, ..self }
    }

    /// For so many days; from a day back, for clocks that disagree.
    pub(crate) fn set_validity(self, params: &mut CertificateParams, days: i64) {
        let (year, month, date) = day(self.earliest - TimeDelta::days(1));
        params.not_before = date_time_ymd(year, month, date);
        let end = self.latest.checked_add_signed(TimeDelta::days(days));
        let end = end.filter(|end| !self.is_for_ever && end.year() <= LAST_YEAR);
        let (year, month, date) = end.map_or((LAST_YEAR, 12, 31), day);
        params.not_after = date_time_ymd(year, month, date);
    }
}

/// Its day.
fn day(at: DateTime<Utc>) -> (i32, u8, u8) {
    let number = |n: u32| u8::try_from(n).unwrap_or(1);
    (at.year(), number(at.month()), number(at.day()))
}

impl From<DateTime<Utc>> for MadeAt {
    /// Where everybody has the same time.
    fn from(now: DateTime<Utc>) -> MadeAt {
        MadeAt::by_both(now, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validity(made: MadeAt) -> [i64; 2] {
        let mut params = CertificateParams::default();
        made.set_validity(&mut params, 366);
        [params.not_before, params.not_after].map(|at| at.unix_timestamp() / (24 * 60 * 60))
    }

    #[test]
    fn it_is_valid_for_all_clocks() {
        let day = |number| DateTime::UNIX_EPOCH + TimeDelta::days(number);
        assert_eq!(validity(day(20_000).into()), [19_999, 20_366]);
        for made in [MadeAt::by_both(day(20_000), day(21_000)), MadeAt::by_both(day(21_000), day(20_000))] {
            assert_eq!(validity(made), [19_999, 21_366]);
        }
    }

    #[test]
    fn the_last_year_is_the_end() {
        let last = DateTime::parse_from_rfc3339("9999-12-31T00:00:00Z").unwrap().to_utc();
        let last_day = last.timestamp() / (24 * 60 * 60);
        assert_eq!(validity(last.into()), [last_day - 1, last_day]);
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        assert_eq!(validity(MadeAt::from(now).for_ever()), [19_999, last_day]);
    }
}
