//! The pod CIDRs of nodes, as parts of the cluster's (`pkg/controller/nodeipam/ipam/cidrset`).

use std::fmt;
use std::net::IpAddr;

use apis::networking::ip_range::{BadRange, IpRange, IpRanges};

/// A node has the addresses of one part; kubelets here hand out those of IPv4 parts of these sizes.
pub const NODE_MASKS: std::ops::RangeInclusive<u32> = 8..=30;
/// [`NODE_MASKS`] of IPv6.
pub const NODE_MASKS_IPV6: std::ops::RangeInclusive<u32> = 8..=126;
/// Parts of an IPv6 range are that many bits smaller at most (`clusterSubnetMaxDiff`).
const MOST_BITS_IPV6: u32 = 16;

/// The parts of one size that a range has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CidrSet {
    cluster: IpRange,
    mask: u32,
}

impl CidrSet {
    /// Of a range, in parts with so many leading bits.
    ///
    /// # Errors
    /// Upstream's words for parts that are larger than the whole, and for too many of IPv6.
    pub fn new(cluster: IpRange, mask: u32) -> Result<CidrSet, BadRange> {
        if cluster.bits > mask {
            let why = "the controller's --cluster-cidr mask size must be less than or equal to \
                       --node-cidr-mask-size configured for CIDR family";
            return Err(why.into());
        }
        if cluster.network.is_ipv6() && mask - cluster.bits > MOST_BITS_IPV6 {
            let why = format!(
                "New CIDR set failed; the node CIDR size is too big: parts of {mask} bits of \
                 --cluster-cidr {cluster} may have at most {MOST_BITS_IPV6} bits more than it has"
            );
            return Err(why.into());
        }
        Ok(CidrSet { cluster, mask })
    }

    /// How many parts there are.
    pub fn count(&self) -> u128 {
        1 << (self.mask - self.cluster.bits)
    }

    /// A part, counted from 0, as `10.244.0.0/24`; none beyond the last.
    pub fn part(&self, at: u32) -> Option<String> {
        let width = if self.cluster.network.is_ipv4() { 32 } else { 128 };
        let address = self.cluster.address(u128::from(at) << (width - self.mask));
        (u128::from(at) < self.count()).then(|| format!("{address}/{}", self.mask))
    }
}

impl fmt::Display for CidrSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has {} of --node-cidr-mask-size {}", self.cluster, self.count(), self.mask)
    }
}

/// `--cluster-cidr`: one range, or one of each IP family. The first says which family is the pods' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterCidrs(IpRanges);

impl ClusterCidrs {
    /// Reads one or two ranges with a comma between them.
    ///
    /// # Errors
    /// Upstream's words (`validateCIDRs`) for what is no range, or not one of each family.
    pub fn parse(text: &str) -> Result<ClusterCidrs, BadRange> {
        let range = |text: &str| {
            let invalid = || format!("invalid CIDR address: {text}; must be a range, as 10.244.0.0/16");
            IpRange::parse(text).ok_or_else(invalid)
        };
        let ranges = text.split(',').map(range).collect::<Result<Vec<IpRange>, String>>()?;
        let is_mixed = ranges.iter().any(|one| one.network.is_ipv4() != ranges[0].network.is_ipv4());
        let count = ranges.len();
        let why = if is_mixed {
            format!("len of clusters is:{count} > more than max allowed of 2")
        } else {
            format!(
                "len of ClusterCIDRs=={count} and they are not configured as dual stack (at least one from \
                 each IPFamily)"
            )
        };
        IpRanges::of(&ranges).map(ClusterCidrs).ok_or_else(|| why.into())
    }

    /// The ranges, in order.
    pub fn all(&self) -> impl Iterator<Item = IpRange> + use<> {
        self.0.all()
    }

    /// Whether there is one of each family.
    pub fn is_dual(&self) -> bool {
        self.0.secondary.is_some()
    }

    /// Whether there is none of IPv4.
    pub fn is_ipv6_alone(&self) -> bool {
        matches!(self.0.primary.network, IpAddr::V6(_)) && !self.is_dual()
    }
}

impl fmt::Display for ClusterCidrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_so_many_parts_and_no_more() {
        let set = |cluster: &str, mask| CidrSet::new(IpRange::parse(cluster).unwrap(), mask);
        let parts = set("10.7.0.0/23", 24).unwrap();
        assert_eq!(parts.count(), 2);
        let shown = [0, 1, 2].map(|at| parts.part(at));
        assert_eq!(shown, [Some("10.7.0.0/24".into()), Some("10.7.1.0/24".into()), None]);
        assert_eq!(set("10.7.0.0/24", 26).unwrap().part(3), Some("10.7.0.192/26".into()));
        assert!(set("10.7.0.0/24", 16).is_err_and(|why| why.to_string().contains("--node-cidr-mask-size")));
        let parts = set("fd00:10:244::/56", 64).unwrap();
        assert_eq!((parts.count(), parts.part(2)), (256, Some("fd00:10:244:2::/64".into())));
        assert!(set("fd00::/40", 64).is_err_and(|why| why.to_string().contains("too big")));
    }

    #[test]
    fn a_cluster_has_one_range_or_one_of_each_family() {
        let shown = |text: &str| ClusterCidrs::parse(text).map(|ranges| ranges.to_string());
        for text in ["10.7.0.0/16", "10.7.0.0/16,fd00::/56", "fd00::/56,10.7.0.0/16", "fd00::/56"] {
            assert_eq!(shown(text).as_deref(), Ok(text));
        }
        for (text, why) in [
            ("10.7.0.0", "invalid CIDR address: 10.7.0.0"),
            ("10.7.0.0/16,", "invalid CIDR address: ;"),
            ("10.7.0.0/16,10.8.0.0/16", "len of ClusterCIDRs==2 and they are not configured as dual stack"),
            ("10.7.0.0/16,fd00::/56,fd01::/56", "len of clusters is:3 > more than max allowed of 2"),
        ] {
            assert!(shown(text).is_err_and(|said| said.to_string().starts_with(why)), "{text}");
        }
    }
}
