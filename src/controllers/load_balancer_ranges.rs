//! The ranges of `--load-balancer-range`: one, or one of each IP family.

use std::fmt;
use std::net::IpAddr;

use apis::networking::ip_range::{BadRange, IpRange, IpRanges};

/// Where load balancers have their addresses of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadBalancerRanges(IpRanges);

impl LoadBalancerRanges {
    /// As `192.168.100.0/24,fd00:100::/112`.
    ///
    /// # Errors
    /// What is no range, or is one too many.
    pub fn parse(text: &str) -> Result<LoadBalancerRanges, BadRange> {
        let range = |part: &str| {
            let why = || format!("invalid CIDR address: {part}; must be a range, as 192.168.100.0/24");
            IpRange::parse(part.trim()).ok_or_else(|| BadRange::from(why()))
        };
        let ranges = text.split(',').map(range).collect::<Result<Vec<_>, _>>()?;
        let why = "must be one range, or one of each IP family with a comma between them";
        IpRanges::of(&ranges).map(LoadBalancerRanges).ok_or_else(|| why.into())
    }

    /// Whether an address is of one of them.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.all().any(|range| range.contains(address))
    }

    /// Those of a Service that has these families, in their order; of one that says none, the first.
    pub(crate) fn of_families(&self, families: &[&str]) -> Vec<IpRange> {
        if families.is_empty() {
            return vec![self.0.primary];
        }
        let of = |family: &&str| self.0.all().find(|range| range.network.is_ipv4() == (*family == "IPv4"));
        families.iter().filter_map(of).collect()
    }
}

impl fmt::Display for LoadBalancerRanges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_range_or_one_of_each_family() {
        let both = LoadBalancerRanges::parse("192.0.2.0/24,fd00::/112").unwrap();
        assert_eq!(both.to_string(), "192.0.2.0/24,fd00::/112");
        let families = |names: &[&str]| {
            both.of_families(names).iter().map(|range| range.network.is_ipv4()).collect::<Vec<_>>()
        };
        assert_eq!(families(&[]), [true]);
        assert_eq!(families(&["IPv6", "IPv4"]), [false, true]);
        for (text, why) in [
            ("192.0.2.0/24,198.51.100.0/24", "must be one range, or one of each IP family"),
            ("192.0.2.0/24,fd00::/112,fd01::/112", "must be one range"),
            ("192.0.2.0/24,", "invalid CIDR address: ;"),
        ] {
            let said = LoadBalancerRanges::parse(text).unwrap_err().to_string();
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }
}
