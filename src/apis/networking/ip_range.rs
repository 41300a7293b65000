//! A range of addresses (`net.IPNet`).

use std::fmt;
use std::net::IpAddr;

use crate::validation::texts::parse_cidr;

golang::text_error! {
    /// What is no range of addresses or ports, or not one that its flag takes; in upstream's words.
    pub struct BadRange;
}

/// One range, or one of each IP family, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpRanges {
    /// The first.
    pub primary: IpRange,
    /// That of the other family.
    pub secondary: Option<IpRange>,
}

impl IpRanges {
    /// None for none, for two of one family, and for more than two.
    pub fn of(ranges: &[IpRange]) -> Option<IpRanges> {
        match *ranges {
            [primary] => Some(IpRanges { primary, secondary: None }),
            [primary, other] if primary.network.is_ipv4() != other.network.is_ipv4() => {
                Some(IpRanges { primary, secondary: Some(other) })
            }
            _ => None,
        }
    }

    /// The ranges, in order.
    pub fn all(&self) -> impl Iterator<Item = IpRange> + use<> {
        [Some(self.primary), self.secondary].into_iter().flatten()
    }
}

impl fmt::Display for IpRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.all().map(|range| range.to_string()).collect();
        f.write_str(&texts.join(","))
    }
}

/// As `10.96.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpRange {
    /// Its own address.
    pub network: IpAddr,
    /// How many bits its addresses share.
    pub bits: u32,
}

impl IpRange {
    /// None for what is no range.
    pub fn parse(text: &str) -> Option<IpRange> {
        let (network, bits) = parse_cidr(text)?;
        Some(IpRange { network, bits })
    }

    /// Whether the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differ = u32::from(network) ^ u32::from(address);
                differ.checked_shr(32 - self.bits).unwrap_or_default() == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differ = u128::from(network) ^ u128::from(address);
                differ.checked_shr(128 - self.bits).unwrap_or_default() == 0
            }
            _ => false,
        }
    }

    /// How many addresses it has. All of IPv6 are one more than a number holds, and counted without it.
    pub fn size(&self) -> u128 {
        1_u128.checked_shl(self.width() - self.bits).unwrap_or(u128::MAX)
    }

    /// The address at a place of it: its own is at 0. One beyond its end begins again.
    pub fn address(&self, at: u128) -> IpAddr {
        let within = self.size().wrapping_sub(u128::from(self.size() != u128::MAX));
        let number = (self.number(self.network) & !within) | (at & within);
        match self.network {
            IpAddr::V4(_) => IpAddr::V4((number as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(number.into()),
        }
    }

    /// Where in it an address is; none when it is not.
    pub fn place(&self, address: IpAddr) -> Option<u128> {
        self.contains(address).then(|| self.number(address) - self.number(self.address(0)))
    }

    fn number(&self, address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(address) => u32::from(address).into(),
            IpAddr::V6(address) => address.into(),
        }
    }

    fn width(&self) -> u32 {
        if self.network.is_ipv4() { 32 } else { 128 }
    }

    /// Whether all of another is in it.
    pub fn contains_range(&self, other: &IpRange) -> bool {
        self.bits <= other.bits && self.contains(other.network)
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_shares_its_bits() {
        let range = |text: &str| IpRange::parse(text).unwrap();
        for (outer, inner, expected) in [
            ("10.96.0.0/16", "10.96.3.0/24", true),
            ("10.96.0.0/16", "10.96.0.0/16", true),
            ("10.96.3.0/24", "10.96.0.0/16", false),
            ("10.96.0.0/16", "10.97.0.0/24", false),
            ("0.0.0.0/0", "10.0.0.0/8", true),
            ("fd00::/8", "fd00:1::/64", true),
            ("fd00::/8", "10.0.0.0/8", false),
        ] {
            assert_eq!(range(outer).contains_range(&range(inner)), expected, "{outer} {inner}");
        }
        assert_eq!(range("10.96.0.0/16").to_string(), "10.96.0.0/16");
    }

    #[test]
    fn its_addresses_are_counted() {
        for (text, size, at, address) in [
            ("10.96.0.0/16", 1 << 16, 1, "10.96.0.1"),
            ("10.96.3.9/24", 256, 255, "10.96.3.255"),
            ("10.96.0.1/32", 1, 0, "10.96.0.1"),
            ("0.0.0.0/0", 1 << 32, 7, "0.0.0.7"),
            ("fd00::/64", 1 << 64, 16, "fd00::10"),
            ("::/0", u128::MAX, 2, "::2"),
        ] {
            let range = IpRange::parse(text).unwrap();
            let found: IpAddr = address.parse().unwrap();
            assert_eq!(
                (range.size(), range.address(at), range.place(found)),
                (size, found, Some(at)),
                "{text}"
            );
        }
        let range = IpRange::parse("10.0.0.0/8").unwrap();
        assert_eq!(range.place("11.0.0.0".parse().unwrap()), None);
    }
}
