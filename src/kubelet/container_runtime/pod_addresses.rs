//! The addresses of a node's pods, out of its pod CIDRs (the CNI plugin `host-local`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::sandbox_status::PodSandboxStatus;
use apis::networking::ip_range::IpRange;
use sync::{Mutex, MutexGuard};

/// What is said when all are in use.
pub(super) const NO_ADDRESS: &str =
    "Failed to create pod sandbox: plugin type=\"bridge\" failed (add): no IP addresses available in range";
/// The lengths of prefixes of which addresses are handed out; others are refused.
const IPV4_LENGTHS: RangeInclusive<u32> = 8..=30;
/// [`IPV4_LENGTHS`] of IPv6.
const IPV6_LENGTHS: RangeInclusive<u32> = 8..=126;
/// So many of a range are handed out: more pods no node has. What is behind stays free.
const MOST: u128 = u32::MAX as u128;

/// Hands out the addresses of one range, or of one of each IP family, to one pod at a time.
#[derive(Debug)]
pub struct PodAddresses {
    /// The pods' own family first.
    pools: Vec<AddressPool>,
}

/// The addresses of one range.
#[derive(Debug)]
struct AddressPool {
    range: IpRange,
    count: u128,
    taken: Mutex<TakenPodAddresses>,
}

#[derive(Debug, Default)]
struct TakenPodAddresses {
    next: u128,
    /// By address, whose it is: the uid of a pod. Bound: the pods of the node.
    used: BTreeMap<u128, Arc<str>>,
}

impl PodAddresses {
    /// Of ranges as `10.244.1.0/24`: not their first address, which is the network's, nor the second, which
    /// is the gateway's, nor, of IPv4, the last. Nothing without a range, or when one of them cannot be used.
    pub fn new<Cidr: AsRef<str>>(cidrs: &[Cidr]) -> Option<PodAddresses> {
        let pools: Vec<AddressPool> =
            cidrs.iter().map(|cidr| AddressPool::new(cidr.as_ref())).collect::<Option<_>>()?;
        (!pools.is_empty()).then_some(PodAddresses { pools })
    }

    /// The next free address of each family after the one handed out last; nothing when one has none left.
    pub fn allocate(&self, pod: &Arc<str>) -> Option<PodSandboxStatus> {
        let mut ips = vec![];
        for pool in &self.pools {
            let Some(ip) = pool.allocate(pod) else {
                ips.iter().for_each(|ip: &String| self.release(ip));
                return None;
            };
            ips.push(ip);
        }
        PodSandboxStatus::of(ips)
    }

    /// As [`PodAddresses::allocate`], of the pods' own family alone.
    pub fn allocate_one(&self, pod: &Arc<str>) -> Option<String> {
        self.pools.first()?.allocate(pod)
    }

    /// Marks an address that a pod has already.
    pub fn reserve(&self, address: &str, pod: &Arc<str>) {
        if let Some((pool, offset)) = self.find(address) {
            pool.lock().used.insert(offset, pod.clone());
        }
    }

    /// Whose an address is.
    pub fn owner(&self, address: &str) -> Option<Arc<str>> {
        let (pool, offset) = self.find(address)?;
        pool.lock().used.get(&offset).cloned()
    }

    /// Takes an address back.
    pub fn release(&self, address: &str) {
        if let Some((pool, offset)) = self.find(address) {
            pool.lock().used.remove(&offset);
        }
    }

    fn find(&self, address: &str) -> Option<(&AddressPool, u128)> {
        let address: IpAddr = address.parse().ok()?;
        self.pools.iter().find_map(|pool| Some((pool, pool.offset(address)?)))
    }
}

impl AddressPool {
    fn new(cidr: &str) -> Option<AddressPool> {
        let range = IpRange::parse(cidr)?;
        let is_ipv4 = range.network.is_ipv4();
        let lengths = if is_ipv4 { IPV4_LENGTHS } else { IPV6_LENGTHS };
        let kept = if is_ipv4 { 3 } else { 2 };
        let count = range.size().saturating_sub(kept).min(MOST);
        lengths.contains(&range.bits).then(|| AddressPool { range, count, taken: Mutex::default() })
    }

    fn allocate(&self, pod: &Arc<str>) -> Option<String> {
        let mut taken = self.lock();
        let free = |offset: &u128| !taken.used.contains_key(offset);
        let offset = (taken.next..self.count).chain(0..taken.next).find(free)?;
        taken.used.insert(offset, pod.clone());
        taken.next = (offset + 1) % self.count;
        Some(self.range.address(offset + 2).to_string())
    }

    fn offset(&self, address: IpAddr) -> Option<u128> {
        self.range.place(address)?.checked_sub(2).filter(|offset| *offset < self.count)
    }

    fn lock(&self) -> MutexGuard<'_, TakenPodAddresses> {
        self.taken.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_round_and_are_not_shared() {
        let addresses = PodAddresses::new(&["10.244.1.0/29"]).unwrap();
        let pod: Arc<str> = "uid".into();
        let next = || addresses.allocate(&pod).map(|status| status.ip);
        let taken: Vec<String> = std::iter::from_fn(next).collect();
        assert_eq!(taken, ["10.244.1.2", "10.244.1.3", "10.244.1.4", "10.244.1.5", "10.244.1.6"]);
        addresses.release("10.244.1.4");
        addresses.release("10.244.1.2");
        addresses.reserve("10.244.1.2", &pod);
        assert_eq!(addresses.allocate_one(&pod).as_deref(), Some("10.244.1.4"));
        assert_eq!(addresses.owner("10.244.1.4"), Some(pod.clone()));
        assert_eq!(addresses.owner("10.244.1.7"), None);
        assert_eq!(addresses.allocate(&pod), None);
    }

    #[test]
    fn pods_have_an_address_of_each_family_or_none() {
        let addresses = PodAddresses::new(&["10.244.1.0/30", "fd00:10:244:1::/64"]).unwrap();
        let pod: Arc<str> = "uid".into();
        let status = addresses.allocate(&pod).unwrap();
        assert_eq!(status.ips().collect::<Vec<_>>(), ["10.244.1.2", "fd00:10:244:1::2"]);
        assert_eq!(addresses.owner("fd00:10:244:1::2"), Some(pod.clone()));
        assert_eq!(addresses.allocate(&pod), None, "there is one address of IPv4");
        let swapped = PodAddresses::new(&["fd00:10:244:1::/64", "10.244.1.0/30"]).unwrap();
        assert!(swapped.allocate(&pod).is_some());
        assert_eq!(swapped.allocate(&pod), None);
        assert_eq!(
            swapped.allocate_one(&pod).as_deref(),
            Some("fd00:10:244:1::4"),
            "and what was drawn is back"
        );
        assert_eq!(swapped.owner("fd00:10:244:1::3"), None);
    }

    #[test]
    fn what_is_no_range_of_pods_is_refused() {
        for cidrs in
            [&[] as &[&str], &["10.244.1.0/33"], &["10.244.1.0/31"], &["10.244.1.0/24", "fd00::/127"]]
        {
            assert!(PodAddresses::new(cidrs).is_none(), "{cidrs:?}");
        }
        assert!(PodAddresses::new(&["fd00::/126"]).is_some_and(|it| it.pools[0].count == 2));
        assert!(PodAddresses::new(&["fd00::/64"]).is_some_and(|it| it.pools[0].count == MOST));
    }
}
