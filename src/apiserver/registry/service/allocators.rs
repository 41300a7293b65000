//! The allocators of cluster IPs and node ports (`ipallocator`, `portallocator`).

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::OnceCell;

use crate::entropy::Entropy;

/// `--service-cluster-ip-range`
const CLUSTER_IPS: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 96, 0, 0), 16);
/// The lowest of them are drawn only when the others are spent: people ask for these by hand (`10.96.0.10`
/// for DNS).
const STATIC_BAND: u32 = 256;
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
        Allocators { shared: Arc::default(), loaded: OnceCell::new(), entropy }
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

    /// Any free IP (`AllocateNext`).
    pub fn next_ip(&self, allocation: &mut Allocation) -> Result<Ipv4Addr, String> {
        let size = 1_u32 << (32 - CLUSTER_IPS.1);
        let base = u32::from(CLUSTER_IPS.0);
        // Not the network's own address, and not the broadcast address.
        let upper = (STATIC_BAND..size - 1).len();
        let drawn = (0..DRAWS).map(|_| STATIC_BAND + self.entropy.below(upper) as u32);
        let in_order = (STATIC_BAND..size - 1).chain(1..STATIC_BAND);
        let mut candidates = drawn.chain(in_order).map(|offset| Ipv4Addr::from(base + offset));
        candidates.find(|ip| allocation.take_ip(*ip)).ok_or_else(|| "range is full".into())
    }

    /// This IP (`Allocate`).
    pub fn ip(&self, allocation: &mut Allocation, ip: Ipv4Addr) -> Result<(), String> {
        let mask = u32::MAX << (32 - CLUSTER_IPS.1);
        let offset = u32::from(ip) & !mask;
        if u32::from(ip) & mask != u32::from(CLUSTER_IPS.0) || offset == 0 || offset == !mask {
            let (network, bits) = CLUSTER_IPS;
            return Err(format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {network}/{bits}"
            ));
        }
        if allocation.take_ip(ip) { Ok(()) } else { Err("provided IP is already allocated".into()) }
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

fn lock(allocators: &Mutex<Held>) -> MutexGuard<'_, Held> {
    allocators.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
        assert!(outside.ends_with("The range of valid IPs is 10.96.0.0/16"), "{outside}");
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
