//! Which node an address belongs to.

use std::collections::BTreeMap;
use std::net::IpAddr;

use network::address_range::AddressRange;

use kubelet::kubelet::Kubelet;

/// The nodes by their own addresses and by those of their pods. Bound: two entries for each node and IP
/// family.
#[derive(Default)]
pub(super) struct NodeAddresses {
    running: BTreeMap<IpAddr, (AddressRange, Kubelet)>,
    /// The ranges of pods: pods stay where they are when their kubelet stops. Bound: one for each node and IP
    /// family.
    for_pods: BTreeMap<IpAddr, AddressRange>,
}

impl NodeAddresses {
    pub(super) fn add(&mut self, kubelet: &Kubelet) {
        for range in kubelet.addresses().map(AddressRange::one).chain(kubelet.pod_ranges()) {
            self.running.insert(range.first(), (range, kubelet.clone()));
        }
        self.for_pods.extend(kubelet.pod_ranges().map(|range| (range.first(), range)));
    }

    /// Whether an address is of a range that some node has for its pods.
    pub(super) fn is_for_pods(&self, address: IpAddr) -> bool {
        let before = self.for_pods.range(..=address).next_back();
        before.is_some_and(|(_, range)| range.contains(address))
    }

    pub(super) fn remove(&mut self, node: &str) {
        self.running.retain(|_, (_, kubelet)| kubelet.node_name() != node);
    }

    /// No node has this range for its pods any more.
    pub(super) fn forget(&mut self, range: AddressRange) {
        self.for_pods.remove(&range.first());
    }

    pub(super) fn at(&self, address: IpAddr) -> Option<&Kubelet> {
        let (_, (range, kubelet)) = self.running.range(..=address).next_back()?;
        range.contains(address).then_some(kubelet)
    }
}
