//! `--clock`: by which time a cluster lives.

use std::str::FromStr;

use clock::Clock;

/// As many times as fast as the machine's clock as a cluster's may go.
pub const MAX_FASTER: u32 = 10_000;

/// By which time a cluster lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChoice {
    /// The machine's, so many times as fast.
    Real(u32),
    /// It stands until somebody lets it pass.
    Stepped,
}

impl ClockChoice {
    /// Such a clock, from now on.
    pub fn clock(self) -> Clock {
        match self {
            ClockChoice::Real(times) => Clock::faster(times),
            ClockChoice::Stepped => Clock::stepped(Clock::real().now()),
        }
    }
}

impl FromStr for ClockChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<ClockChoice, String> {
        let times = text.strip_prefix('x').and_then(|times| times.parse::<u32>().ok());
        match (text, times) {
            ("real", _) => Ok(ClockChoice::Real(1)),
            ("stepped", _) => Ok(ClockChoice::Stepped),
            (_, Some(times)) if (1..=MAX_FASTER).contains(&times) => Ok(ClockChoice::Real(times)),
            _ => Err(format!("must be real, stepped, or x1 to x{MAX_FASTER} for so many times as fast")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_real_stepped_or_faster() {
        assert_eq!("real".parse(), Ok(ClockChoice::Real(1)));
        assert_eq!("x60".parse(), Ok(ClockChoice::Real(60)));
        assert_eq!("x10000".parse(), Ok(ClockChoice::Real(MAX_FASTER)));
        assert!("stepped".parse::<ClockChoice>().unwrap().clock().is_stepped());
        for text in ["", "x0", "x10001", "60x", "slow"] {
            assert!(text.parse::<ClockChoice>().unwrap_err().contains("stepped, or x1"), "{text}");
        }
    }
}
