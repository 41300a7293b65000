//! Which addresses nodes have, and which ranges for their pods: what one has nobody else may have.

use std::collections::BTreeMap;
use std::net::IpAddr;

use network::address_range::AddressRange;

/// What nodes have. Bound: those of the register, and the Nodes that were stored when the cluster began.
#[derive(Clone, Default)]
pub(super) struct TakenAddresses {
    /// Addresses and ranges, as they are written.
    by_node: BTreeMap<String, (Vec<String>, Vec<String>)>,
    /// Whose an address is.
    addresses: BTreeMap<String, String>,
    /// By first address, and whose it is. No two overlap.
    ranges: BTreeMap<IpAddr, (AddressRange, String)>,
}

impl TakenAddresses {
    /// A node has these; where it has none, they are empty. What is another's already stays that one's.
    pub(super) fn take(&mut self, node: &str, addresses: &[String], ranges: &[String]) {
        self.release(node);
        for address in addresses {
            self.addresses.entry(address.clone()).or_insert_with(|| node.into());
        }
        for range in ranges.iter().filter_map(|range| AddressRange::parse(range)) {
            if self.overlapping(node, range).is_none() {
                self.ranges.insert(range.first(), (range, node.into()));
            }
        }
        self.by_node.insert(node.into(), (addresses.to_vec(), ranges.to_vec()));
    }

    /// A node has nothing any more.
    pub(super) fn release(&mut self, node: &str) {
        let Some((addresses, ranges)) = self.by_node.remove(node) else { return };
        for address in addresses {
            if self.addresses.get(&address).is_some_and(|owner| owner == node) {
                self.addresses.remove(&address);
            }
        }
        for first in ranges.iter().filter_map(|range| AddressRange::parse(range)).map(|range| range.first()) {
            if self.ranges.get(&first).is_some_and(|it| it.1 == node) {
                self.ranges.remove(&first);
            }
        }
    }

    /// The addresses and the ranges of a node.
    pub(super) fn of(&self, node: &str) -> Option<&(Vec<String>, Vec<String>)> {
        self.by_node.get(node)
    }

    /// Why a node cannot have these.
    pub(super) fn refusal(&self, node: &str, addresses: &[String], ranges: &[String]) -> Option<String> {
        let of_address = |address: &String| {
            let owner = self.addresses.get(address).filter(|owner| *owner != node)?;
            Some(format!("its address {address} is that of node {owner:?}"))
        };
        let of_range = |range: &String| {
            let owner = self.overlapping(node, AddressRange::parse(range)?)?;
            Some(format!("its pod CIDR {range} overlaps that of node {owner:?}"))
        };
        addresses.iter().find_map(of_address).or_else(|| ranges.iter().find_map(of_range))
    }

    /// Another node, whose range has addresses of this one.
    fn overlapping(&self, node: &str, range: AddressRange) -> Option<&str> {
        let before = self.ranges.range(..=range.last()).rev().map(|(_, taken)| taken);
        let mut overlapping = before.take_while(|(taken, _)| taken.last() >= range.first());
        overlapping.find(|(_, owner)| owner != node).map(|(_, owner)| owner.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_has_nobody_else_may_have() {
        let mut taken = TakenAddresses::default();
        let list =
            |text: &str| text.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let take = |taken: &mut TakenAddresses, node: &str, addresses: &str, ranges: &str| {
            taken.take(node, &list(addresses), &list(ranges));
        };
        take(&mut taken, "a", "10.0.0.1,fc00::1", "10.244.1.0/24,fd00:1::/64");
        take(&mut taken, "b", "", "10.244.8.0/22");
        let refusal = |taken: &TakenAddresses, node: &str, addresses: &str, ranges: &str| {
            taken.refusal(node, &list(addresses), &list(ranges)).unwrap_or_default()
        };
        assert_eq!(refusal(&taken, "c", "10.0.0.2,fc00::1", ""), "its address fc00::1 is that of node \"a\"");
        assert_eq!(refusal(&taken, "c", "10.0.0.1", ""), "its address 10.0.0.1 is that of node \"a\"");
        for (range, whose) in [
            ("10.244.1.128/25", "\"a\""),
            ("10.244.0.0/16", "\"b\""),
            ("10.244.11.0/24", "\"b\""),
            ("10.244.0.0/21", "\"a\""),
            ("10.244.2.0/24,fd00:1::/72", "\"a\""),
        ] {
            assert!(refusal(&taken, "c", "", range).ends_with(whose), "{range}");
        }
        for range in ["10.244.12.0/24", "10.244.0.0/24", "fd00::/64", "none"] {
            assert_eq!(refusal(&taken, "c", "10.0.0.2", range), "", "{range}");
        }
        assert_eq!(refusal(&taken, "a", "10.0.0.1", "10.244.0.0/21"), "");
        take(&mut taken, "c", "10.0.0.1", "10.244.1.0/25");
        taken.release("c");
        assert!(!refusal(&taken, "c", "10.0.0.1", "").is_empty(), "it is still of the first");
        taken.release("a");
        assert_eq!(refusal(&taken, "c", "10.0.0.1,fc00::1", "10.244.1.0/24,fd00:1::/64"), "");
    }
}
