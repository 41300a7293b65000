//! Which node an address belongs to.

use std::collections::BTreeMap;
use std::net::IpAddr;

use network::address_range::AddressRange;

use kubelet::kubelet::Kubelet;

/// The nodes by their own addresses and by those of their pods. Bound: two entries for each node.
#[derive(Default)]
pub(super) struct NodeAddresses(BTreeMap<IpAddr, (AddressRange, Kubelet)>);

impl NodeAddresses {
    pub(super) fn add(&mut self, kubelet: &Kubelet) {
        let own = kubelet.address().map(AddressRange::one);
        for range in own.into_iter().chain(kubelet.pod_range()) {
            self.0.insert(range.first(), (range, kubelet.clone()));
        }
    }

    pub(super) fn remove(&mut self, node: &str) {
        self.0.retain(|_, (_, kubelet)| kubelet.node_name() != node);
    }

    pub(super) fn at(&self, address: IpAddr) -> Option<&Kubelet> {
        let (_, (range, kubelet)) = self.0.range(..=address).next_back()?;
        range.contains(address).then_some(kubelet)
    }
}
