//! `PortRange`: the ports that Services take on nodes (`k8s.io/apimachinery/pkg/util/net.PortRange`).

use std::fmt;
use std::ops::RangeInclusive;

use super::ip_range::BadRange;

/// Ports from the first to the last, both of them included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl Default for PortRange {
    /// `30000-32767` (`DefaultServiceNodePortRange`)
    fn default() -> PortRange {
        PortRange { first: 30_000, last: 32_767 }
    }
}

impl PortRange {
    /// Reads `30000-32767`, `30000+2767`, or one port alone; nothing is the default range.
    ///
    /// # Errors
    /// Upstream's words (`PortRange.Set`).
    pub fn parse(text: &str) -> Result<PortRange, BadRange> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(PortRange::default());
        }
        let (first, last) = match (text.split_once('-'), text.split_once('+')) {
            (Some(_), Some(_)) => return Err(format!("unable to parse port range: {text}").into()),
            (Some((first, last)), None) => (number(first)?, number(last)?),
            (None, Some((first, more))) => (number(first)?, number(first)?.saturating_add(number(more)?)),
            (None, None) => (number(text)?, number(text)?),
        };
        let port = |number: u32| {
            u16::try_from(number).map_err(|_| format!("the port range cannot be greater than 65535: {text}"))
        };
        let range = PortRange { first: port(first)?, last: port(last)? };
        if range.last < range.first {
            return Err(format!("end port cannot be less than start port: {text}").into());
        }
        if range.first == 0 {
            return Err(format!("port 0 is no port: {text}").into());
        }
        Ok(range)
    }

    /// Whether a port is in it.
    pub fn contains(&self, port: u16) -> bool {
        self.ports().contains(&port)
    }

    /// All of them.
    pub fn ports(&self) -> RangeInclusive<u16> {
        self.first..=self.last
    }

    /// How many of the lowest are drawn only when the others are spent: people ask for these by hand
    /// (`portallocator.calculateRangeOffset`).
    pub fn static_band(&self) -> u16 {
        match self.last - self.first {
            0..=15 => 0,
            more => ((u32::from(more) + 1) / 32).clamp(16, 128) as u16,
        }
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("strconv.Atoi: parsing {text:?}: invalid syntax"))
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_upstream_reads_them() {
        let range = |first, last| Ok::<_, String>(PortRange { first, last });
        for (text, expected) in [
            ("", range(30_000, 32_767)),
            ("30000-32767", range(30_000, 32_767)),
            (" 20000+10 ", range(20_000, 20_010)),
            ("80", range(80, 80)),
            ("65535-65535", range(65_535, 65_535)),
            ("1-2+3", Err("unable to parse port range: 1-2+3".into())),
            ("1-70000", Err("the port range cannot be greater than 65535: 1-70000".into())),
            ("65000+1000", Err("the port range cannot be greater than 65535: 65000+1000".into())),
            ("9-8", Err("end port cannot be less than start port: 9-8".into())),
            ("x-8", Err("strconv.Atoi: parsing \"x\": invalid syntax".into())),
            ("0-8", Err("port 0 is no port: 0-8".into())),
        ] {
            assert_eq!(PortRange::parse(text).map_err(String::from), expected, "{text}");
        }
        assert_eq!(PortRange::default().to_string(), "30000-32767");
    }

    #[test]
    fn a_part_is_left_for_those_who_choose() {
        let band = |first, last| PortRange { first, last }.static_band();
        let bands = [band(1, 16), band(1, 17), band(30_000, 32_767), band(1, 65_535)];
        assert_eq!(bands, [0, 16, 86, 128]);
    }
}
