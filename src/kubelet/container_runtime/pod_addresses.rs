//! The addresses of a node's pods, out of its pod CIDR (the CNI plugin `host-local`).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use sync::{Mutex, MutexGuard};

/// What is said when all are in use.
pub(super) const NO_ADDRESS: &str =
    "Failed to create pod sandbox: plugin type=\"bridge\" failed (add): no IP addresses available in range";

/// Hands out the addresses of an IPv4 range, each to one pod at a time.
#[derive(Debug)]
pub struct PodAddresses {
    first: u32,
    count: u32,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u32,
    /// By address, whose it is: the uid of a pod.
    used: BTreeMap<u32, Arc<str>>,
}

impl PodAddresses {
    /// Of a range as `10.244.1.0/24`: not its first address, which is the network's, nor the second, which
    /// is the gateway's, nor the last.
    pub fn new(cidr: &str) -> Option<PodAddresses> {
        let (address, length) = cidr.split_once('/')?;
        let length: u32 = length.parse().ok().filter(|length| (8..=30).contains(length))?;
        let network = u32::from(address.parse::<Ipv4Addr>().ok()?) & (u32::MAX << (32 - length));
        Some(PodAddresses { first: network + 2, count: (1 << (32 - length)) - 3, taken: Mutex::default() })
    }

    /// The next free address after the one handed out last; nothing when all are in use.
    pub fn allocate(&self, pod: &Arc<str>) -> Option<String> {
        let mut taken = self.lock();
        let free = |offset: &u32| !taken.used.contains_key(offset);
        let offset = (taken.next..self.count).chain(0..taken.next).find(free)?;
        taken.used.insert(offset, pod.clone());
        taken.next = (offset + 1) % self.count;
        Some(Ipv4Addr::from(self.first + offset).to_string())
    }

    /// Marks an address that a pod has already.
    pub fn reserve(&self, address: &str, pod: &Arc<str>) {
        if let Some(offset) = self.offset(address) {
            self.lock().used.insert(offset, pod.clone());
        }
    }

    /// Whose an address is.
    pub fn owner(&self, address: &str) -> Option<Arc<str>> {
        let offset = self.offset(address)?;
        self.lock().used.get(&offset).cloned()
    }

    /// Takes an address back.
    pub fn release(&self, address: &str) {
        if let Some(offset) = self.offset(address) {
            self.lock().used.remove(&offset);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock()
    }

    fn offset(&self, address: &str) -> Option<u32> {
        let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
        address.checked_sub(self.first).filter(|offset| *offset < self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_round_and_are_not_shared() {
        let addresses = PodAddresses::new("10.244.1.0/29").unwrap();
        let pod: Arc<str> = "uid".into();
        let taken: Vec<String> = std::iter::from_fn(|| addresses.allocate(&pod)).collect();
        assert_eq!(taken, ["10.244.1.2", "10.244.1.3", "10.244.1.4", "10.244.1.5", "10.244.1.6"]);
        addresses.release("10.244.1.4");
        addresses.release("10.244.1.2");
        addresses.reserve("10.244.1.2", &pod);
        assert_eq!(addresses.allocate(&pod).as_deref(), Some("10.244.1.4"));
        assert_eq!(addresses.owner("10.244.1.4"), Some(pod.clone()));
        assert_eq!(addresses.owner("10.244.1.7"), None);
        assert_eq!(addresses.allocate(&pod), None);
        assert!(PodAddresses::new("10.244.1.0/33").is_none());
    }
}
