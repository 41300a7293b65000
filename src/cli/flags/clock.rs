//! `--clock`: by which time a cluster lives.

use std::str::FromStr;
use std::time::Duration;

use apimachinery::duration::parse_flag;
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;

/// The machine's wall clock may be called wrong by a year.
pub const MAX_OFF: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// As many times as fast as the machine's clock as a cluster's may go.
pub const MAX_FASTER: u32 = 10_000;

/// By which time a cluster lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChoice {
    /// The machine's, so many times as fast.
    Real(u32),
    /// The machine's, ahead by so much, or behind.
    Off(TimeDelta),
    /// It stands until somebody lets it pass.
    Stepped,
}

impl ClockChoice {
    /// Such a clock, from now on; a stepped one from `past`, if there is one to go on from.
    pub fn clock(self, past: Option<DateTime<Utc>>) -> Clock {
        match self {
            ClockChoice::Real(times) => Clock::faster(times),
            ClockChoice::Off(by) => Clock::off_by(by),
            ClockChoice::Stepped => Clock::stepped(past.unwrap_or_else(|| Clock::real().now())),
        }
    }
}

impl FromStr for ClockChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<ClockChoice, String> {
        let times = text.strip_prefix('x').and_then(|times| times.parse::<u32>().ok());
        if let Some(off) = off_by(text) {
            return Ok(ClockChoice::Off(off));
        }
        match (text, times) {
            ("real", _) => Ok(ClockChoice::Real(1)),
            ("stepped", _) => Ok(ClockChoice::Stepped),
            (_, Some(times)) if (1..=MAX_FASTER).contains(&times) => Ok(ClockChoice::Real(times)),
            _ => Err(format!(
                "must be real, stepped, x1 to x{MAX_FASTER} for so many times as fast, or +10m and -10m for ahead \
                 and behind, by at most a year"
            )),
        }
    }
}

/// Ahead (`+10m`) or behind (`-10m`).
fn off_by(text: &str) -> Option<TimeDelta> {
    let (is_behind, by) = match text.split_at_checked(1)? {
        ("+", by) => (false, by),
        ("-", by) => (true, by),
        _ => return None,
    };
    let by = parse_flag(by).ok().filter(|by| *by <= MAX_OFF)?;
    let by = TimeDelta::from_std(by).ok()?;
    Some(if is_behind { -by } else { by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_real_stepped_or_faster() {
        assert_eq!("real".parse(), Ok(ClockChoice::Real(1)));
        assert_eq!("x60".parse(), Ok(ClockChoice::Real(60)));
        assert_eq!("x10000".parse(), Ok(ClockChoice::Real(MAX_FASTER)));
        assert!("stepped".parse::<ClockChoice>().unwrap().clock(None).is_stepped());
        assert_eq!("+90s".parse(), Ok(ClockChoice::Off(TimeDelta::seconds(90))));
        assert_eq!("-10m".parse(), Ok(ClockChoice::Off(TimeDelta::minutes(-10))));
        let behind = "-8760h".parse::<ClockChoice>().unwrap().clock(None);
        assert!(Clock::real().now() - behind.now() >= TimeDelta::days(364));
        for text in ["", "x0", "x10001", "60x", "slow", "+", "10m", "+-1m", "+8761h", "-soon"] {
            assert!(text.parse::<ClockChoice>().unwrap_err().contains("stepped, x1"), "{text}");
        }
    }

    #[test]
    fn a_stepped_clock_goes_on_from_where_the_past_ends_and_no_other_does() {
        let past = DateTime::UNIX_EPOCH + TimeDelta::days(40_000);
        assert_eq!(ClockChoice::Stepped.clock(Some(past)).now(), past);
        assert!(ClockChoice::Real(1).clock(Some(past)).now() < past);
    }
}
