//! The pod CIDRs of nodes, as parts of the cluster's (`pkg/controller/nodeipam/ipam/cidrset`).

use std::net::IpAddr;

use apis::networking::ip_range::IpRange;

/// A node has the addresses of one part; kubelets here hand out those of parts of these sizes.
pub const NODE_MASKS: std::ops::RangeInclusive<u32> = 8..=30;

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
    /// Upstream's words for parts that are larger than the whole.
    pub fn new(cluster: IpRange, mask: u32) -> Result<CidrSet, String> {
        if cluster.bits > mask {
            Err("the controller's --cluster-cidr mask size must be less than or equal to \
                         --node-cidr-mask-size configured for CIDR family"
                .into())
        } else {
            Ok(CidrSet { cluster, mask })
        }
    }

    /// How many parts there are.
    pub fn count(&self) -> u128 {
        1 << (self.mask - self.cluster.bits)
    }

    /// A part, counted from 0, as `10.244.0.0/24`; none beyond the last.
    pub fn part(&self, at: u32) -> Option<String> {
        let size = 1_u128 << (32 - self.mask);
        let address = self.cluster.address(u128::from(at) * size);
        (u128::from(at) < self.count()).then(|| format!("{address}/{}", self.mask))
    }
}

/// Reads `--cluster-cidr`.
///
/// # Errors
/// What is no range of IPv4 addresses: pods have none of IPv6 here.
pub fn cluster_cidr(text: &str) -> Result<IpRange, String> {
    let range = IpRange::parse(text)
        .ok_or_else(|| format!("invalid CIDR address: {text}; must be a range, as 10.244.0.0/16"))?;
    match range.network {
        IpAddr::V4(_) => Ok(range),
        IpAddr::V6(_) => {
            Err("must be a range of IPv4 addresses, as 10.244.0.0/16: pods have no others".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_so_many_parts_and_no_more() {
        let set = |cluster: &str, mask| CidrSet::new(cluster_cidr(cluster).unwrap(), mask);
        let parts = set("10.7.0.0/23", 24).unwrap();
        assert_eq!(parts.count(), 2);
        let shown = [0, 1, 2].map(|at| parts.part(at));
        assert_eq!(shown, [Some("10.7.0.0/24".into()), Some("10.7.1.0/24".into()), None]);
        assert_eq!(set("10.7.0.0/24", 26).unwrap().part(3), Some("10.7.0.192/26".into()));
        assert!(set("10.7.0.0/24", 16).is_err_and(|why| why.contains("--node-cidr-mask-size")));
        assert!(cluster_cidr("fd00::/64").is_err_and(|why| why.contains("IPv4")));
        assert!(cluster_cidr("10.7.0.0").is_err_and(|why| why.starts_with("invalid CIDR address")));
    }
}
