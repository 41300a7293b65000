//! A range of addresses (`net.IPNet`).

use std::fmt;
use std::net::IpAddr;

use crate::apis::validation::texts::parse_cidr;

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
}
