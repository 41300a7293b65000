//! The allocators of cluster IPs and node ports (`ipallocator`, `portallocator`).

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sync::{Mutex, MutexGuard};
use tokio::sync::OnceCell;

use super::allocator_metrics::{AllocationScope, AllocatorMetrics, Given};
use super::options::ServiceOptions;
use apis::networking::ip_range::IpRange;
use apis::networking::port_range::PortRange;
use apis::networking::service_ranges::ServiceRanges;
use clock::Clock;
use entropy::Entropy;

golang::text_error! {
    /// Why an address or a port is not given; in upstream's words.
    pub struct Unallocated;
}

/// The ServiceCIDR that the server makes of `--service-cluster-ip-range`. One that is there already counts,
/// and not the flag.
pub(super) const DEFAULT_RANGE: &str = "kubernetes";
/// The lowest of a range are drawn only when the others are spent: people ask for these by hand (`10.96.0.10`
/// for DNS). A sixteenth of the range, but so many.
const STATIC_BAND: (u128, u128) = (16, 256);
/// Of larger ranges no address beyond is drawn: so many services there are not (upstream: 64 bits).
const DRAWN: u128 = 1 << 48;
/// So many draws before the free ones are looked for in order.
const DRAWS: usize = 16;

/// What a service holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAllocations {
    /// Its cluster IPs.
    pub ips: HashSet<IpAddr>,
    /// Its node ports.
    pub ports: HashSet<u16>,
}

impl ServiceAllocations {
    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.ips.is_empty() && self.ports.is_empty()
    }

    /// With what another holds.
    pub fn add(&mut self, other: &ServiceAllocations) {
        self.ips.extend(&other.ips);
        self.ports.extend(&other.ports);
    }
}

/// Which cluster IPs and node ports are taken. At most one entry an address: the ranges are the bound.
pub struct Allocators {
    shared: Arc<Mutex<ServiceAllocations>>,
    loaded: OnceCell<()>,
    /// What the flags say.
    configured: OnceLock<ServiceOptions>,
    /// What ServiceCIDRs add to the configured range, by their names. Bound: the objects of the kind.
    ranges: Mutex<BTreeMap<String, Vec<IpRange>>>,
    metrics: Arc<AllocatorMetrics>,
    clock: Clock,
    entropy: Entropy,
}

/// What a write has allocated. Dropped without [`Allocation::commit`], it is given back.
#[derive(Default)]
pub struct Allocation {
    /// Where others have to be told what is given back.
    give_back: Option<Box<dyn FnOnce(ServiceAllocations) + Send>>,
    allocators: Option<Arc<Mutex<ServiceAllocations>>>,
    taken: ServiceAllocations,
    /// Given back on commit: what the write no longer wants.
    unwanted: ServiceAllocations,
    /// What was given for it; counted when it is over, whatever becomes of the write.
    given: Vec<Given>,
    /// Where it is counted; a dry run is not.
    metrics: Option<Arc<AllocatorMetrics>>,
}

impl Allocators {
    /// Nothing is taken.
    pub fn new(clock: Clock, entropy: Entropy) -> Allocators {
        let shared = Arc::default();
        let loaded = OnceCell::new();
        let ranges = Mutex::default();
        let metrics = Arc::default();
        Allocators { shared, loaded, configured: OnceLock::new(), ranges, metrics, clock, entropy }
    }

    /// What is counted of them.
    pub(super) fn metrics(&self) -> &Arc<AllocatorMetrics> {
        &self.metrics
    }

    /// How many addresses of each range are taken, and how many node ports of theirs.
    pub(super) fn taken_of(&self, ranges: &[IpRange]) -> (Vec<usize>, usize) {
        let state = lock(&self.shared);
        let taken = |range: &IpRange| state.ips.iter().filter(|ip| range.contains(**ip)).count();
        let ports = state.ports.iter().filter(|port| self.place_of(**port).is_some()).count();
        (ranges.iter().map(taken).collect(), ports)
    }

    /// What the flags say; who says it first is believed.
    pub fn configure(&self, options: ServiceOptions) {
        let _ = self.configured.set(options);
    }

    /// `--service-cluster-ip-range`
    pub fn configured(&self) -> ServiceRanges {
        self.options().service_cluster_ip_range
    }

    fn options(&self) -> &ServiceOptions {
        self.configured.get_or_init(ServiceOptions::default)
    }

    /// Filled once what is stored has been read.
    pub fn loaded(&self) -> &OnceCell<()> {
        &self.loaded
    }

    /// These are taken.
    pub fn take(&self, held: &ServiceAllocations) {
        let mut state = lock(&self.shared);
        state.ips.extend(&held.ips);
        state.ports.extend(&held.ports);
    }

    /// These are free again.
    pub fn release(&self, held: &ServiceAllocations) {
        give_back(&self.shared, held);
    }

    /// Begins to allocate; a dry run gives everything back.
    pub fn begin(&self, dry_run: bool) -> Allocation {
        let mut allocation = Allocation::default();
        // A dry run shares nothing: what it takes, it takes from a copy.
        let copy = || Arc::new(Mutex::new(lock(&self.shared).clone()));
        allocation.allocators = Some(if dry_run { copy() } else { self.shared.clone() });
        allocation.metrics = (!dry_run).then(|| self.metrics.clone());
        allocation
    }

    /// Begins to allocate of what is not among these, for a write that is no dry run.
    pub fn begin_among(&self, held: ServiceAllocations) -> Allocation {
        let mut allocation = Allocation::among(held);
        allocation.metrics = Some(self.metrics.clone());
        allocation
    }

    /// A ServiceCIDR is ready with these ranges, or with none any more.
    pub fn set_ranges(&self, name: &str, ranges: Vec<IpRange>) {
        let mut known = lock(&self.ranges);
        if ranges.is_empty() {
            known.remove(name)
        } else {
            known.insert(name.into(), ranges)
        };
    }

    /// These are all the ServiceCIDRs, by name.
    pub fn replace_ranges(&self, all: impl Iterator<Item = (String, Vec<IpRange>)>) {
        *lock(&self.ranges) = all.filter(|(_, ranges)| !ranges.is_empty()).collect();
    }

    /// The node ports that there are.
    pub fn node_ports(&self) -> impl Iterator<Item = u16> {
        self.options().service_node_port_range.ports()
    }

    /// As `30000-32767`.
    pub fn node_port_range(&self) -> String {
        self.options().service_node_port_range.to_string()
    }

    /// Which of the node ports one is; None for one of another range.
    pub fn place_of(&self, port: u16) -> Option<usize> {
        let range = self.options().service_node_port_range;
        range.contains(port).then(|| usize::from(port - range.first))
    }

    /// Any free IP of a family (`AllocateNext`), of the first range that has one.
    pub fn next_ip(&self, allocation: &mut Allocation, is_v4: bool) -> Result<IpAddr, Unallocated> {
        let ranges = self.ranges().into_iter().filter(|range| range.network.is_ipv4() == is_v4);
        let found = ranges.into_iter().find_map(|range| self.next_ip_of(range, allocation));
        found.ok_or_else(|| "range is full".into())
    }

    fn next_ip_of(&self, range: IpRange, allocation: &mut Allocation) -> Option<IpAddr> {
        let band = match range.size() {
            0..=16 => 1,
            size => (size / 16).clamp(STATIC_BAND.0, STATIC_BAND.1),
        };
        // Not the network's own address.
        let end = last_place(&range);
        let upper = end.saturating_sub(band).min(DRAWN);
        let below = usize::try_from(upper).unwrap_or(usize::MAX).max(1);
        let drawn = (0..DRAWS).map(|_| band + self.entropy.below(below) as u128);
        let in_order = (band..end).chain(1..band);
        let draws = if upper == 0 { 0 } else { DRAWS };
        let mut candidates = drawn.take(draws).chain(in_order).map(|at| range.address(at));
        let began = self.clock.elapsed();
        let found = candidates.find(|ip| allocation.take_ip(*ip));
        let took = self.clock.elapsed().saturating_sub(began);
        allocation.note_ip(found.is_some(), range, AllocationScope::Dynamic, took);
        found
    }

    /// This IP (`Allocate`).
    pub fn ip(&self, allocation: &mut Allocation, ip: IpAddr) -> Result<(), Unallocated> {
        let place = |range: IpRange| Some((range, range.place(ip)?));
        let Some((range, at)) = self.ranges().into_iter().find_map(place) else {
            return Err("the provided network does not match the current range".into());
        };
        let began = self.clock.elapsed();
        let is_valid = at != 0 && at < last_place(&range);
        let is_given = is_valid && allocation.take_ip(ip);
        let took = self.clock.elapsed().saturating_sub(began);
        allocation.note_ip(is_given, range, AllocationScope::Static, took);
        if !is_valid {
            let range = IpRange { network: range.address(0), ..range };
            return Err(format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {range}"
            )
            .into());
        }
        if is_given { Ok(()) } else { Err("provided IP is already allocated".into()) }
    }

    /// The ranges, those of the cluster first.
    pub(super) fn ranges(&self) -> Vec<IpRange> {
        let known = lock(&self.ranges);
        let own = known.get(DEFAULT_RANGE).cloned();
        let own = own.unwrap_or_else(|| self.configured().all().collect());
        let others = known.iter().filter(|(name, _)| *name != DEFAULT_RANGE);
        own.into_iter().chain(others.flat_map(|(_, ranges)| ranges.iter().copied())).collect()
    }

    /// Any free port.
    pub fn next_port(&self, allocation: &mut Allocation) -> Result<u16, Unallocated> {
        let range = self.options().service_node_port_range;
        let PortRange { first, last } = range;
        let upper = first + range.static_band();
        let drawn = (0..DRAWS).map(|_| upper + self.entropy.below(usize::from(last - upper) + 1) as u16);
        let mut candidates = drawn.chain(upper..=last).chain(first..upper);
        let found = candidates.find(|port| allocation.take_port(*port));
        allocation.note_port(found.is_some(), AllocationScope::Dynamic);
        found.ok_or_else(|| "range is full".into())
    }

    /// This port.
    pub fn port(&self, allocation: &mut Allocation, port: u16) -> Result<(), Unallocated> {
        let range = self.options().service_node_port_range;
        let is_free = range.contains(port) && allocation.take_port(port);
        allocation.note_port(is_free, AllocationScope::Static);
        if !range.contains(port) {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {range}"
            )
            .into());
        }
        if is_free { Ok(()) } else { Err("provided port is already allocated".into()) }
    }
}

impl Allocation {
    /// An allocation of what is not among these.
    pub fn among(held: ServiceAllocations) -> Allocation {
        let mut allocation = Allocation::default();
        allocation.allocators = Some(Arc::new(Mutex::new(held)));
        allocation
    }

    /// Who is told what is given back.
    pub fn given_back_by(mut self, give_back: Box<dyn FnOnce(ServiceAllocations) + Send>) -> Allocation {
        self.give_back = Some(give_back);
        self
    }

    /// It came to nothing, as others have been faster: nothing was given.
    pub fn lose(mut self) {
        self.given.clear();
    }

    /// What was free before.
    pub fn taken(&self) -> &ServiceAllocations {
        &self.taken
    }

    /// The write got through.
    pub fn commit(mut self) {
        self.give_back = None;
        if let Some(allocators) = self.allocators.take() {
            give_back(&allocators, &self.unwanted);
        }
    }

    /// These are to be given back when the write has got through.
    pub fn give_up(&mut self, unwanted: ServiceAllocations) {
        self.unwanted = unwanted;
    }

    fn note_ip(&mut self, taken: bool, range: IpRange, scope: AllocationScope, took: Duration) {
        match &self.metrics {
            Some(_) if taken => self.given.push(Given::Ip(range, scope, took)),
            Some(metrics) => metrics.refused_ip(range, scope),
            None => {}
        }
    }

    fn note_port(&mut self, taken: bool, scope: AllocationScope) {
        match &self.metrics {
            Some(_) if taken => self.given.push(Given::Port(scope)),
            Some(metrics) => metrics.refused_port(scope),
            None => {}
        }
    }

    fn take_ip(&mut self, ip: IpAddr) -> bool {
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
        if let Some(metrics) = &self.metrics {
            self.given.drain(..).for_each(|given| metrics.gave(given));
        }
        if let Some(tell) = self.give_back.take().filter(|_| !self.taken.is_empty()) {
            tell(std::mem::take(&mut self.taken));
        }
    }
}

/// The first place that is given to nobody: behind a range, and IPv4 has a broadcast address.
fn last_place(range: &IpRange) -> u128 {
    range.size() - u128::from(range.network.is_ipv4())
}

fn give_back(allocators: &Mutex<ServiceAllocations>, held: &ServiceAllocations) {
    let mut state = lock(allocators);
    state.ips.retain(|ip| !held.ips.contains(ip));
    state.ports.retain(|port| !held.ports.contains(port));
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
        IpAddr::from([a, b, c, d])
    }

    fn allocators() -> Allocators {
        Allocators::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH), Entropy::seeded(1))
    }

    #[test]
    fn what_is_taken_is_not_given_twice_and_comes_back() {
        let allocators = allocators();
        let ip = v4(10, 96, 0, 10);
        let mut first = allocators.begin(false);
        allocators.ip(&mut first, ip).unwrap();
        let mut second = allocators.begin(false);
        assert_eq!(allocators.ip(&mut second, ip).unwrap_err(), "provided IP is already allocated");
        drop(first);
        allocators.ip(&mut second, ip).unwrap();
        second.commit();
        let mut third = allocators.begin(true);
        assert!(allocators.ip(&mut third, ip).is_err());
        let drawn = allocators.next_ip(&mut third, true).unwrap();
        assert!(drawn >= v4(10, 96, 1, 0));
        let outside = allocators.ip(&mut third, v4(10, 97, 0, 1)).unwrap_err();
        assert_eq!(outside, "the provided network does not match the current range");
        let broadcast = allocators.ip(&mut third, v4(10, 96, 255, 255)).unwrap_err();
        assert!(broadcast.ends_with("The range of valid IPs is 10.96.0.0/16"), "{broadcast}");
    }

    #[test]
    fn another_range_is_used_by_name_and_when_the_first_is_full() {
        let allocators = allocators();
        allocators.set_ranges("more", vec![IpRange::parse("192.168.7.0/29").unwrap()]);
        let mut allocation = allocators.begin(false);
        allocators.ip(&mut allocation, v4(192, 168, 7, 1)).unwrap();
        let ips = (1..0xffff).map(|at| ServiceRanges::default().primary.address(at)).collect();
        allocators.take(&ServiceAllocations { ips, ..ServiceAllocations::default() });
        let left: HashSet<IpAddr> =
            (0..5).map(|_| allocators.next_ip(&mut allocation, true).unwrap()).collect();
        let range = IpRange::parse("192.168.7.0/29").unwrap();
        assert!(left.len() == 5 && left.iter().all(|ip| range.contains(*ip)), "{left:?}");
        assert_eq!(allocators.next_ip(&mut allocation, true).unwrap_err(), "range is full");
        allocators.set_ranges("more", vec![]);
        let gone = allocators.ip(&mut allocation, v4(192, 168, 7, 1)).unwrap_err();
        assert_eq!(gone, "the provided network does not match the current range");
    }

    #[test]
    fn ports_run_out() {
        let allocators = allocators();
        let mut allocation = allocators.begin(false);
        let range = PortRange::default();
        let ports: HashSet<u16> =
            range.ports().map(|_| allocators.next_port(&mut allocation).unwrap()).collect();
        assert_eq!(ports.len(), range.ports().len());
        assert_eq!(allocators.next_port(&mut allocation).unwrap_err(), "range is full");
        assert!(allocators.port(&mut allocation, 80).unwrap_err().ends_with("30000-32767"));
    }

    #[test]
    fn ports_are_of_the_range_that_the_flag_says() {
        let allocators = allocators();
        let service_node_port_range = PortRange::parse("7000-7019").unwrap();
        allocators.configure(ServiceOptions { service_node_port_range, ..ServiceOptions::default() });
        let mut allocation = allocators.begin(false);
        let refused = allocators.port(&mut allocation, 30_000).unwrap_err();
        let why = "provided port is not in the valid range. The range of valid ports is 7000-7019";
        assert_eq!(refused, why);
        // Those that people choose come last.
        let drawn: Vec<u16> = (0..20).map(|_| allocators.next_port(&mut allocation).unwrap()).collect();
        assert!(drawn[..4].iter().all(|port| *port >= 7016), "{drawn:?}");
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 20);
        assert_eq!(allocators.next_port(&mut allocation).unwrap_err(), "range is full");
    }

    #[test]
    fn each_family_has_the_range_that_the_flag_says() {
        let allocators = allocators();
        let service_cluster_ip_range = ServiceRanges::parse("10.1.0.0/28,fd00:7::/64").unwrap();
        allocators.configure(ServiceOptions { service_cluster_ip_range, ..ServiceOptions::default() });
        let mut allocation = allocators.begin(false);
        let outside = allocators.ip(&mut allocation, v4(10, 96, 0, 10)).unwrap_err();
        assert_eq!(outside, "the provided network does not match the current range");
        let of_v4: HashSet<IpAddr> =
            (0..14).map(|_| allocators.next_ip(&mut allocation, true).unwrap()).collect();
        assert!(of_v4.contains(&v4(10, 1, 0, 1)) && of_v4.contains(&v4(10, 1, 0, 14)), "{of_v4:?}");
        assert_eq!(allocators.next_ip(&mut allocation, true).unwrap_err(), "range is full");
        let range = IpRange::parse("fd00:7::/64").unwrap();
        assert!(range.contains(allocators.next_ip(&mut allocation, false).unwrap()));
        let network = allocators.ip(&mut allocation, "fd00:7::".parse().unwrap()).unwrap_err();
        assert!(network.ends_with("The range of valid IPs is fd00:7::/64"), "{network}");
        allocators.set_ranges(DEFAULT_RANGE, vec![IpRange::parse("10.96.0.0/16").unwrap()]);
        allocators.ip(&mut allocation, v4(10, 96, 0, 10)).unwrap();
        assert!(allocators.ip(&mut allocation, v4(10, 1, 0, 3)).is_err(), "what is stored counts");
    }
}
