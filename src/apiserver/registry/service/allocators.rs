//! The allocators of cluster IPs and node ports (`ipallocator`, `portallocator`).

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::OnceCell;

use crate::apis::networking::ip_range::IpRange;
use crate::entropy::Entropy;

/// `--service-cluster-ip-range`
const CLUSTER_IPS: IpRange = IpRange { network: IpAddr::V4(Ipv4Addr::new(10, 96, 0, 0)), bits: 16 };
/// The lowest of a range are drawn only when the others are spent: people ask for these by hand (`10.96.0.10`
/// for DNS). A sixteenth of the range, but so many.
const STATIC_BAND: (u32, u32) = (16, 256);
/// `--service-node-port-range`
const NODE_PORTS: RangeInclusive<u16> = 30_000..=32_767;
/// The same for ports.
const STATIC_PORTS: u16 = 86;
/// So many draws before the free ones are looked for in order.
const DRAWS: usize = 16;

/// What a service holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Its cluster IPs.
    pub ips: HashSet<Ipv4Addr>,
    /// Its node ports.
    pub ports: HashSet<u16>,
}

/// Which cluster IPs and node ports are taken. At most one entry an address: the ranges are the bound.
pub struct Allocators {
    shared: Arc<Mutex<Held>>,
    loaded: OnceCell<()>,
    /// What ServiceCIDRs add to the configured range, by their names. Bound: the objects of the kind.
    ranges: Mutex<BTreeMap<String, Vec<IpRange>>>,
    entropy: Entropy,
}

/// What a write has allocated. Dropped without [`Allocation::commit`], it is given back.
#[derive(Default)]
pub struct Allocation {
    allocators: Option<Arc<Mutex<Held>>>,
    taken: Held,
    /// Given back on commit: what the write no longer wants.
    unwanted: Held,
}

impl Allocators {
    /// Nothing is taken.
    pub fn new(entropy: Entropy) -> Allocators {
        Allocators { shared: Arc::default(), loaded: OnceCell::new(), ranges: Mutex::default(), entropy }
    }

    /// Filled once what is stored has been read.
    pub fn loaded(&self) -> &OnceCell<()> {
        &self.loaded
    }

    /// These are taken.
    pub fn take(&self, held: &Held) {
        let mut state = lock(&self.shared);
        state.ips.extend(&held.ips);
        state.ports.extend(&held.ports);
    }

    /// These are free again.
    pub fn release(&self, held: &Held) {
        give_back(&self.shared, held);
    }

    /// Begins to allocate; a dry run gives everything back.
    pub fn begin(&self, dry_run: bool) -> Allocation {
        let mut allocation = Allocation::default();
        // A dry run shares nothing: what it takes, it takes from a copy.
        let copy = || Arc::new(Mutex::new(lock(&self.shared).clone()));
        allocation.allocators = Some(if dry_run { copy() } else { self.shared.clone() });
        allocation
    }

    /// A ServiceCIDR is ready with these ranges, or with none any more.
    pub fn set_ranges(&self, name: &str, ranges: Vec<IpRange>) {
        let mut known = lock(&self.ranges);
        match ranges.is_empty() {
            true => known.remove(name),
            false => known.insert(name.into(), ranges),
        };
    }

    /// Any free IP (`AllocateNext`), of the first range that has one.
    pub fn next_ip(&self, allocation: &mut Allocation) -> Result<Ipv4Addr, String> {
        let found = self.ranges().into_iter().find_map(|range| self.next_ip_of(range, allocation));
        found.ok_or_else(|| "range is full".into())
    }

    fn next_ip_of(&self, (base, size): (u32, u32), allocation: &mut Allocation) -> Option<Ipv4Addr> {
        let band = match size {
            0..=16 => 1,
            size => (size / 16).clamp(STATIC_BAND.0, STATIC_BAND.1),
        };
        // Not the network's own address, and not the broadcast address.
        let upper = (band..size.saturating_sub(1)).len();
        let drawn = (0..DRAWS).map(|_| band + self.entropy.below(upper.max(1)) as u32);
        let in_order = (band..size.saturating_sub(1)).chain(1..band);
        let draws = if upper == 0 { 0 } else { DRAWS };
        let mut candidates = drawn.take(draws).chain(in_order).map(|offset| Ipv4Addr::from(base + offset));
        candidates.find(|ip| allocation.take_ip(*ip))
    }

    /// This IP (`Allocate`).
    pub fn ip(&self, allocation: &mut Allocation, ip: Ipv4Addr) -> Result<(), String> {
        let within =
            |(base, size): &(u32, u32)| u32::from(ip).checked_sub(*base).is_some_and(|at| at < *size);
        let Some((base, size)) = self.ranges().into_iter().find(within) else {
            return Err("the provided network does not match the current range".into());
        };
        let offset = u32::from(ip) - base;
        if offset == 0 || offset == size - 1 {
            let (network, bits) = (Ipv4Addr::from(base), 32 - size.trailing_zeros());
            return Err(format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {network}/{bits}"
            ));
        }
        if allocation.take_ip(ip) { Ok(()) } else { Err("provided IP is already allocated".into()) }
    }

    /// The ranges of IPv4, the configured one first: where each begins, and how many it has.
    fn ranges(&self) -> Vec<(u32, u32)> {
        let more = lock(&self.ranges);
        let all = [CLUSTER_IPS].into_iter().chain(more.values().flatten().copied());
        let of_v4 = |range: IpRange| match range.network {
            IpAddr::V4(network) => {
                let size = 1_u32.checked_shl(32 - range.bits).unwrap_or(1 << 31);
                Some((u32::from(network) & !(size - 1), size))
            }
            IpAddr::V6(_) => None,
        };
        all.filter_map(of_v4).collect()
    }

    /// Any free port.
    pub fn next_port(&self, allocation: &mut Allocation) -> Result<u16, String> {
        let (first, last) = (*NODE_PORTS.start(), *NODE_PORTS.end());
        let upper = first + STATIC_PORTS;
        let drawn = (0..DRAWS).map(|_| upper + self.entropy.below(usize::from(last - upper) + 1) as u16);
        let mut candidates = drawn.chain(upper..=last).chain(first..upper);
        candidates.find(|port| allocation.take_port(*port)).ok_or_else(|| "range is full".into())
    }

    /// This port.
    pub fn port(&self, allocation: &mut Allocation, port: u16) -> Result<(), String> {
        if !NODE_PORTS.contains(&port) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            ));
        }
        if allocation.take_port(port) { Ok(()) } else { Err("provided port is already allocated".into()) }
    }
}

impl Allocation {
    /// The write got through.
    pub fn commit(mut self) {
        if let Some(allocators) = self.allocators.take() {
            give_back(&allocators, &self.unwanted);
        }
    }

    /// These are to be given back when the write has got through.
    pub fn give_up(&mut self, unwanted: Held) {
        self.unwanted = unwanted;
    }

    fn take_ip(&mut self, ip: Ipv4Addr) -> bool {
        let Some(allocators) = &self.allocators else { return false };
        let is_new = lock(allocators).ips.insert(ip);
        if is_new {
            self.taken.ips.insert(ip);
        }
        is_new
    }

    fn take_port(&mut self, port: u16) -> bool {
        let Some(allocators) = &self.allocators else { return false };
        let is_new = lock(allocators).ports.insert(port);
        if is_new {
            self.taken.ports.insert(port);
        }
        is_new
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(allocators) = &self.allocators {
            give_back(allocators, &self.taken);
        }
    }
}

fn give_back(allocators: &Mutex<Held>, held: &Held) {
    let mut state = lock(allocators);
    state.ips.retain(|ip| !held.ips.contains(ip));
    state.ports.retain(|port| !held.ports.contains(port));
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_not_given_twice_and_comes_back() {
        let allocators = Allocators::new(Entropy::seeded(1));
        let ip = Ipv4Addr::new(10, 96, 0, 10);
        let mut first = allocators.begin(false);
        allocators.ip(&mut first, ip).unwrap();
        let mut second = allocators.begin(false);
        assert_eq!(allocators.ip(&mut second, ip).unwrap_err(), "provided IP is already allocated");
        drop(first);
        allocators.ip(&mut second, ip).unwrap();
        second.commit();
        let mut third = allocators.begin(true);
        assert!(allocators.ip(&mut third, ip).is_err());
        let drawn = allocators.next_ip(&mut third).unwrap();
        assert!(u32::from(drawn) >= u32::from(Ipv4Addr::new(10, 96, 1, 0)));
        let outside = allocators.ip(&mut third, Ipv4Addr::new(10, 97, 0, 1)).unwrap_err();
        assert_eq!(outside, "the provided network does not match the current range");
        let broadcast = allocators.ip(&mut third, Ipv4Addr::new(10, 96, 255, 255)).unwrap_err();
        assert!(broadcast.ends_with("The range of valid IPs is 10.96.0.0/16"), "{broadcast}");
    }

    #[test]
    fn another_range_is_used_by_name_and_when_the_first_is_full() {
        let allocators = Allocators::new(Entropy::seeded(1));
        allocators.set_ranges("more", vec![IpRange::parse("192.168.7.0/29").unwrap()]);
        let mut allocation = allocators.begin(false);
        allocators.ip(&mut allocation, Ipv4Addr::new(192, 168, 7, 1)).unwrap();
        let base = u32::from(Ipv4Addr::new(10, 96, 0, 0));
        let ips = (1..0xffff).map(|offset| Ipv4Addr::from(base + offset)).collect();
        allocators.take(&Held { ips, ..Held::default() });
        let left: HashSet<Ipv4Addr> = (0..5).map(|_| allocators.next_ip(&mut allocation).unwrap()).collect();
        assert!(left.len() == 5 && left.iter().all(|ip| ip.octets()[..3] == [192, 168, 7]), "{left:?}");
        assert_eq!(allocators.next_ip(&mut allocation).unwrap_err(), "range is full");
        allocators.set_ranges("more", vec![]);
        let gone = allocators.ip(&mut allocation, Ipv4Addr::new(192, 168, 7, 1)).unwrap_err();
        assert_eq!(gone, "the provided network does not match the current range");
    }

    #[test]
    fn ports_run_out() {
        let allocators = Allocators::new(Entropy::seeded(1));
        let mut allocation = allocators.begin(false);
        let ports: HashSet<u16> =
            NODE_PORTS.map(|_| allocators.next_port(&mut allocation).unwrap()).collect();
        assert_eq!(ports.len(), NODE_PORTS.len());
        assert_eq!(allocators.next_port(&mut allocation).unwrap_err(), "range is full");
        assert!(allocators.port(&mut allocation, 80).unwrap_err().ends_with("30000-32767"));
    }
}
