//! The ranges that a cluster's Services take their addresses from (`--service-cluster-ip-range`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use super::ip_range::{BadRange, IpRange};

/// The fewest addresses that a range has (`ServiceIPRange`).
const MIN_ADDRESSES: u128 = 8;

/// One range, or one of each IP family. The first says which family Services have that name none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRanges {
    /// The first; the Service `kubernetes` has its first address.
    pub primary: IpRange,
    /// One of the other family, where Services may have two addresses.
    pub secondary: Option<IpRange>,
}

impl Default for ServiceRanges {
    /// `10.96.0.0/16`
    fn default() -> ServiceRanges {
        let network = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 0));
        ServiceRanges { primary: IpRange { network, bits: 16 }, secondary: None }
    }
}

impl ServiceRanges {
    /// Reads one or two ranges with a comma between them.
    ///
    /// # Errors
    /// Upstream's words (`getServiceIPAndRanges`, `validateClusterIPFlags`) for what is no range, has too few
    /// addresses, or is not one of each family.
    pub fn parse(text: &str) -> Result<ServiceRanges, BadRange> {
        let parts: Vec<&str> = text.split(',').collect();
        let primary = network(parts[0]).ok_or("service-cluster-ip-range[0] is not a valid cidr")?;
        if primary.size() < MIN_ADDRESSES {
            let why = format!(
                "error determining service IP ranges for primary service cidr: the service cluster IP range \
                 must be at least {MIN_ADDRESSES} IP addresses"
            );
            return Err(why.into());
        }
        let secondary = parts.get(1).map(|part| network(part));
        let secondary = match secondary {
            Some(None) => return Err("service-cluster-ip-range[1] is not an ip net".into()),
            Some(found) => found,
            None => None,
        };
        if parts.len() > 2 {
            return Err("--service-cluster-ip-range must not contain more than two entries".into());
        }
        if secondary.is_some_and(|secondary| secondary.network.is_ipv4() == primary.network.is_ipv4()) {
            return Err(
                "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different \
                        IP family"
                    .into(),
            );
        }
        Ok(ServiceRanges { primary, secondary })
    }

    /// The ranges, in order.
    pub fn all(&self) -> impl Iterator<Item = IpRange> + use<> {
        [Some(self.primary), self.secondary].into_iter().flatten()
    }

    /// The address of the Service `default/kubernetes`: the first of the first range.
    pub fn api_server(&self) -> IpAddr {
        self.primary.address(1)
    }

    /// The address of the cluster's name server: the tenth of the first range, as kubeadm has it.
    pub fn cluster_dns(&self) -> IpAddr {
        self.primary.address(10)
    }

    /// As a ServiceCIDR has them.
    pub fn texts(&self) -> Vec<String> {
        self.all().map(|range| range.to_string()).collect()
    }
}

impl fmt::Display for ServiceRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.texts().join(","))
    }
}

/// The network that an address with a length is in (`net.ParseCIDR`).
fn network(text: &str) -> Option<IpRange> {
    let range = IpRange::parse(text)?;
    Some(IpRange { network: range.address(0), bits: range.bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_upstream_reads_them() {
        for (text, shown, first) in [
            ("10.0.0.0/24", "10.0.0.0/24", "10.0.0.1"),
            ("10.0.0.77/24", "10.0.0.0/24", "10.0.0.1"),
            ("192.168.0.0/29", "192.168.0.0/29", "192.168.0.1"),
            ("fd00::/108", "fd00::/108", "fd00::1"),
            ("10.0.0.0/8,fd00:1::/64", "10.0.0.0/8,fd00:1::/64", "10.0.0.1"),
            ("fd00:1::/112,10.0.0.0/16", "fd00:1::/112,10.0.0.0/16", "fd00:1::1"),
        ] {
            let ranges = ServiceRanges::parse(text).unwrap();
            assert_eq!(
                (ranges.to_string().as_str(), ranges.api_server().to_string().as_str()),
                (shown, first)
            );
        }
        assert_eq!(ServiceRanges::default().to_string(), "10.96.0.0/16");
        let small = "error determining service IP ranges for primary service cidr: the service cluster IP range \
                     must be at least 8 IP addresses";
        let same =
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family";
        for (text, why) in [
            ("", "service-cluster-ip-range[0] is not a valid cidr"),
            ("10.0.0.0", "service-cluster-ip-range[0] is not a valid cidr"),
            ("10.0.0.0/33", "service-cluster-ip-range[0] is not a valid cidr"),
            ("10.0.0.0/30", small),
            ("10.0.0.0/24,", "service-cluster-ip-range[1] is not an ip net"),
            ("10.0.0.0/24,fd00::", "service-cluster-ip-range[1] is not an ip net"),
            ("10.0.0.0/24,10.1.0.0/24", same),
            (
                "10.0.0.0/24,fd00::/112,10.1.0.0/24",
                "--service-cluster-ip-range must not contain more than two entries",
            ),
        ] {
            assert_eq!(ServiceRanges::parse(text).unwrap_err().to_string(), why, "{text}");
        }
    }
}
