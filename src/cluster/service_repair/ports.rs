//! Node ports: who has which, and those that nobody has (`portallocator/controller.Repair`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::holder::Holder;
use apimachinery::object::Object;
use apis::networking::port_range::PortRange;
use apiserver::storage::RangeAllocation;

/// So often a port is seen to be nobody's until it is given back (`numRepairsBeforeLeakCleanup`).
const LOOKS_BEFORE_CLEANUP: u32 = 3;

/// Node ports: who has which, and which nobody has.
pub(super) struct PortBook {
    range: PortRange,
    /// Ports that nobody has, and how often that is to be seen yet. Bound: the range.
    unclaimed: BTreeMap<u16, u32>,
}

/// What a Service is told of a port.
pub(super) type PortWarning = (Arc<Object>, &'static str, String);

impl PortBook {
    pub(super) fn of(range: PortRange) -> PortBook {
        PortBook { range, unclaimed: BTreeMap::new() }
    }

    pub(super) fn range(&self) -> PortRange {
        self.range
    }

    /// What is wrong where the Services alone say which ports are taken.
    pub(super) fn wrong<'a>(&self, holders: impl Iterator<Item = &'a Holder>) -> Vec<PortWarning> {
        self.claimed(|_| true, holders).1
    }

    /// What should be taken, and what is wrong with what is.
    pub(super) fn mended<'a>(
        &mut self,
        stored: &RangeAllocation,
        holders: impl Iterator<Item = &'a Holder> + Clone,
    ) -> (RangeAllocation, Vec<PortWarning>) {
        for port in holders.clone().flat_map(|holder| &holder.ports) {
            self.unclaimed.remove(port);
        }
        let (mut rebuilt, warnings) = self.claimed(|place| stored.has(place), holders);
        for place in stored.places() {
            let place_in_range = u16::try_from(place).unwrap_or(u16::MAX);
            let port = self.range.first.saturating_add(place_in_range);
            if !rebuilt.has(place) && !self.has_leaked(port) {
                rebuilt.take(place);
            }
        }
        (rebuilt, warnings)
    }

    /// What Services hold, and what is wrong with it where these places are known to be taken.
    fn claimed<'a>(
        &self,
        is_known: impl Fn(usize) -> bool,
        holders: impl Iterator<Item = &'a Holder>,
    ) -> (RangeAllocation, Vec<PortWarning>) {
        let mut taken = RangeAllocation::of(self.range.to_string());
        let mut warnings = Vec::new();
        for holder in holders {
            for port in &holder.ports {
                let warning = self.take(*port, &is_known, &mut taken);
                warnings.extend(warning.map(|(reason, text)| (holder.object.clone(), reason, text)));
            }
        }
        (taken, warnings)
    }

    fn take(
        &self,
        port: u16,
        is_known: impl Fn(usize) -> bool,
        taken: &mut RangeAllocation,
    ) -> Option<(&'static str, String)> {
        let range = self.range;
        if !range.contains(port) {
            let text = format!("Port {port} is not within the port range {range}; please recreate service");
            return Some(("PortOutOfRange", text));
        }
        let place = usize::from(port - range.first);
        if taken.has(place) {
            let text = format!("Port {port} was assigned to multiple services; please recreate service");
            return Some(("PortAlreadyAllocated", text));
        }
        taken.take(place);
        (!is_known(place)).then(|| ("PortNotAllocated", format!("Port {port} is not allocated; repairing")))
    }

    /// Nobody has this port; whether that was seen often enough.
    fn has_leaked(&mut self, port: u16) -> bool {
        let left = self.unclaimed.entry(port).or_insert(LOOKS_BEFORE_CLEANUP - 1);
        if *left > 0 {
            *left -= 1;
            return false;
        }
        tracing::info!("the node port {port} appears to have leaked: cleaning up");
        self.unclaimed.remove(&port);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::holder::service;
    use super::*;

    fn taken(places: &[usize]) -> RangeAllocation {
        let mut range = RangeAllocation::of("30000-30009");
        places.iter().for_each(|place| range.take(*place));
        range
    }

    #[test]
    fn a_port_that_nobody_has_is_given_back_when_that_was_seen_three_times() {
        let range = PortRange { first: 30_000, last: 30_009 };
        let mut book = PortBook::of(range);
        let holders = [service("a", &[], &[30_001]), service("b", &[], &[30_001, 30_003, 31_000])];
        let stored = taken(&[1, 5]);
        let (first, warnings) = book.mended(&stored, holders.iter());
        assert_eq!(first.places().collect::<Vec<_>>(), [1, 3, 5], "one was missing, one may be written yet");
        let told: Vec<(&str, &str)> =
            warnings.iter().map(|(object, reason, _)| (&*object.metadata.name, *reason)).collect();
        let wanted = [("b", "PortAlreadyAllocated"), ("b", "PortNotAllocated"), ("b", "PortOutOfRange")];
        assert_eq!(told, wanted);
        assert_eq!(warnings[1].2, "Port 30003 is not allocated; repairing");
        let alone: Vec<&str> = book.wrong(holders.iter()).iter().map(|(_, reason, _)| *reason).collect();
        assert_eq!(alone, ["PortAlreadyAllocated", "PortOutOfRange"]);
        let (second, _) = book.mended(&first, holders.iter());
        assert!(second.has(5));
        let (third, _) = book.mended(&second, holders.iter());
        assert_eq!(third.places().collect::<Vec<_>>(), [1, 3]);
        assert!(book.unclaimed.is_empty());
        // One that is used meanwhile begins anew.
        let (_, _) = book.mended(&taken(&[1, 3, 6]), holders.iter());
        let (_, _) = book.mended(&taken(&[1, 3, 6]), [service("c", &[], &[30_006])].iter());
        let (again, _) = book.mended(&taken(&[1, 3, 6]), holders.iter());
        assert!(again.has(6) && book.unclaimed.contains_key(&30_006));
    }
}
