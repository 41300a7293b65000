//! Hints by zone, for services that ask for them with the annotation `service.kubernetes.io/topology-mode:
//! Auto` (`topologycache`): each zone uses so many endpoints as it has CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::desired::EndpointGroup;
use super::pack::{Packed, SlicePlan, identity};
use super::zone_shares::{CpuRatios, EndpointsByZone, NoHints, ZoneShare, exchange};
use crate::controller::Key;
use apimachinery::object::Object;
use apis::views::endpoints::{Endpoint, EndpointHints, EndpointSlice, NamedHint};
use sync::Mutex;

/// What a service is told of its hints.
#[derive(Debug, PartialEq)]
pub(super) struct HintEvent {
    pub(super) event_type: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The endpoints that were given to zones, by service and address type. Bound: the services that have such
/// hints; forgotten when they lose them, or go. Cloning shares it.
#[derive(Clone, Default)]
pub(super) struct TopologyCache(Arc<Mutex<BTreeMap<Key, GivenByType>>>);

type GivenByType = BTreeMap<&'static str, EndpointsByZone>;

/// The slices of one address type of a service.
struct TypedSlices<'a> {
    address_type: &'static str,
    plan: &'a mut SlicePlan,
    unchanged: Vec<Arc<Object>>,
}

/// Endpoints keep the hints that they have, until it is known whether those are right.
pub(super) fn keep_hints(groups: &mut BTreeMap<EndpointGroup, Vec<Endpoint>>, slices: &[Arc<Object>]) {
    let views = slices.iter().map(|slice| slice.view::<EndpointSlice>());
    let had: BTreeMap<String, Endpoint> =
        views.flat_map(|view| view.endpoints.clone()).map(|it| (identity(&it), it)).collect();
    for endpoint in groups.values_mut().flatten() {
        let Some(old) = had.get(&identity(endpoint)) else { continue };
        let same = Endpoint { hints: old.hints.clone(), ..endpoint.clone() };
        if same == *old {
            *endpoint = same;
        }
    }
}

impl TopologyCache {
    /// Puts hints onto what is to be written, and writes what has wrong ones; says what the service is told.
    pub(super) fn add_hints(
        &self,
        key: &Key,
        types: BTreeSet<&'static str>,
        ratios: &CpuRatios,
        plan: &mut SlicePlan,
        slices: &[Arc<Object>],
    ) -> Vec<HintEvent> {
        let mut events = Vec::new();
        for address_type in types {
            let mut slices = TypedSlices::new(address_type, plan, slices);
            let given = slices.add_hints(ratios);
            let outcome = given.map(|given| self.enable(key, address_type, given));
            let event = outcome.unwrap_or_else(|why| {
                slices.remove_hints();
                self.disable(key, address_type);
                Some(disabled(&why.0, address_type))
            });
            events.extend(event);
        }
        events
    }

    fn enable(&self, key: &Key, address_type: &'static str, given: EndpointsByZone) -> Option<HintEvent> {
        let mut all = self.0.lock();
        let is_new = !all.contains_key(key);
        all.entry(key.clone()).or_default().insert(address_type, given);
        let message = || format!("Topology Aware Hints has been enabled, addressType: {address_type}");
        let event =
            || HintEvent { event_type: "Normal", reason: "TopologyAwareHintsEnabled", message: message() };
        is_new.then(event)
    }

    fn disable(&self, key: &Key, address_type: &str) {
        let mut all = self.0.lock();
        let Some(given) = all.get_mut(key) else { return };
        given.remove(address_type);
        if given.is_empty() {
            all.remove(key);
        }
    }

    /// The service asks for no hints; that it did is told of.
    pub(super) fn forget(&self, key: &Key) -> Option<HintEvent> {
        let given = self.0.lock().remove(key)?;
        given
            .keys()
            .next()
            .map(|address_type| disabled("Topology Aware Hints has been disabled", address_type))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The services of which a zone has too few endpoints, as the CPUs are now (`GetOverloadedServices`).
    pub(super) fn overloaded(&self, ratios: &CpuRatios) -> Vec<Key> {
        let all = self.0.lock();
        let has_few = |given: &GivenByType| given.values().any(|given| ratios.overload(given));
        all.iter().filter(|(_, given)| has_few(given)).map(|(key, _)| key.clone()).collect()
    }
}

fn disabled(why: &str, address_type: &str) -> HintEvent {
    let message = format!("{why}, addressType: {address_type}");
    HintEvent { event_type: "Warning", reason: "TopologyAwareHintsDisabled", message }
}

impl<'a> TypedSlices<'a> {
    fn new(address_type: &'static str, plan: &'a mut SlicePlan, slices: &[Arc<Object>]) -> TypedSlices<'a> {
        let written = plan.write.iter().filter_map(|packed| packed.slice.as_ref());
        let touched: BTreeSet<&str> =
            written.chain(&plan.delete).map(|slice| slice.metadata.name.as_str()).collect();
        let is_unchanged = |slice: &&Arc<Object>| {
            !touched.contains(slice.metadata.name.as_str())
                && slice.view::<EndpointSlice>().address_type == address_type
        };
        let unchanged = slices.iter().filter(is_unchanged).cloned().collect();
        TypedSlices { address_type, plan, unchanged }
    }

    fn written(&mut self) -> impl Iterator<Item = &mut Endpoint> {
        let address_type = self.address_type;
        let of_type = self.plan.write.iter_mut().filter(move |it| it.group.address_type == address_type);
        of_type.flat_map(|packed| &mut packed.endpoints)
    }

    fn ready(&mut self) -> usize {
        let unchanged = self.unchanged.iter().map(|slice| slice.view::<EndpointSlice>());
        let unchanged: usize =
            unchanged.map(|it| it.endpoints.iter().filter(|it| is_ready(it)).count()).sum();
        unchanged + self.written().filter(|endpoint| is_ready(endpoint)).count()
    }

    /// `AddHints`: gives each zone as many as it is due, its own first.
    fn add_hints(&mut self, ratios: &CpuRatios) -> Result<EndpointsByZone, NoHints> {
        let shares = ratios.allocate(self.ready())?;
        let mut given = self.keep_right_ones(&shares);
        for endpoint in self.written() {
            endpoint.hints = None;
            if !is_ready(endpoint) {
                continue;
            }
            let zone = endpoint.zone.clone().filter(|zone| !zone.is_empty());
            let zone =
                zone.ok_or_else(|| NoHints("One or more endpoints do not have a zone specified".to_owned()))?;
            *given.entry(zone.clone()).or_default() += 1;
            endpoint.hints = Some(hint(zone));
        }
        self.redistribute(&shares, &mut given);
        if given.is_empty() { Err(NoHints("No hints allocated for zones".to_owned())) } else { Ok(given) }
    }

    /// Slices whose hints can stay are left alone (`getAllocatedHintsByZone`); the others are written.
    fn keep_right_ones(&mut self, shares: &BTreeMap<String, ZoneShare>) -> EndpointsByZone {
        let mut given = EndpointsByZone::new();
        for slice in std::mem::take(&mut self.unchanged) {
            match right_hints(&slice.view::<EndpointSlice>().endpoints, &given, shares) {
                Some(of_slice) => {
                    for (zone, count) in of_slice {
                        *given.entry(zone).or_default() += count;
                    }
                    self.unchanged.push(slice);
                }
                None => self.write(slice),
            }
        }
        given
    }

    fn redistribute(&mut self, shares: &BTreeMap<String, ZoneShare>, given: &mut EndpointsByZone) {
        let (mut giving, mut receiving) = exchange(shares, given);
        for endpoint in self.written().filter(|endpoint| is_ready(endpoint)) {
            let Some(receiver) = receiving.keys().next().cloned() else { return };
            let Some(giver) = endpoint.zone.clone().filter(|zone| giving.contains_key(zone)) else {
                continue;
            };
            take_one(&mut giving, &giver);
            take_one(&mut receiving, &receiver);
            take_one(given, &giver);
            *given.entry(receiver.clone()).or_default() += 1;
            endpoint.hints = Some(hint(receiver));
        }
    }

    /// `RemoveHintsFromSlices`
    fn remove_hints(&mut self) {
        for slice in std::mem::take(&mut self.unchanged) {
            if slice.view::<EndpointSlice>().endpoints.iter().any(|endpoint| endpoint.hints.is_some()) {
                self.write(slice);
            }
        }
        self.written().for_each(|endpoint| endpoint.hints = None);
    }

    fn write(&mut self, slice: Arc<Object>) {
        let view = slice.view::<EndpointSlice>();
        let mut ports = view.ports.clone();
        ports.sort();
        let group = EndpointGroup { address_type: self.address_type, ports };
        let endpoints = view.endpoints.clone();
        self.plan.write.push(Packed { slice: Some(slice.clone()), group, endpoints });
    }
}

/// One less; a zone that has none is not mentioned.
fn take_one(counts: &mut EndpointsByZone, zone: &str) {
    let Some(count) = counts.get_mut(zone) else { return };
    *count = count.saturating_sub(1);
    if *count == 0 {
        counts.remove(zone);
    }
}

fn hint(zone: String) -> EndpointHints {
    EndpointHints { for_zones: vec![NamedHint { name: zone }], for_nodes: vec![] }
}

fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.ready == Some(true)
}

/// The hints of endpoints that are written as they are; nothing when one is missing, or a zone has too many
/// (`getHintsByZone`).
fn right_hints(
    endpoints: &[Endpoint],
    given: &EndpointsByZone,
    shares: &BTreeMap<String, ZoneShare>,
) -> Option<EndpointsByZone> {
    let mut counts = EndpointsByZone::new();
    for endpoint in endpoints.iter().filter(|endpoint| is_ready(endpoint)) {
        let zones =
            endpoint.hints.as_ref().map(|hints| &hints.for_zones).filter(|zones| !zones.is_empty())?;
        for zone in zones {
            shares.get(&zone.name)?;
            *counts.entry(zone.name.clone()).or_default() += 1;
        }
    }
    let most = |zone: &String| shares.get(zone).map_or(0, |share| share.maximum);
    let fits = |(zone, count): (&String, &usize)| count + given.get(zone).unwrap_or(&0) <= most(zone);
    counts.iter().all(fits).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint_slice::pack;
    use apis::core::node_labels::ZONE;
    use serde_json::json;

    const TYPES: [&str; 1] = ["IPv4"];

    fn ratios(cpus: &[(&str, &str)]) -> CpuRatios {
        let node = |(zone, cpu): &(&str, &str)| {
            let tree = json!({"metadata": {"name": zone, "labels": {ZONE: zone}},
                "status": {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": "True"}]}});
            Arc::new(Object::from_value(&tree, vec![]).unwrap())
        };
        CpuRatios::of(&cpus.iter().map(node).collect::<Vec<_>>())
    }

    fn endpoints(zones: &[&str]) -> BTreeMap<EndpointGroup, Vec<Endpoint>> {
        let endpoint = |(at, zone): (usize, &&str)| {
            let tree = json!({"addresses": [format!("10.0.0.{at}")], "conditions": {"ready": true},
                "zone": (!zone.is_empty()).then_some(zone)});
            serde_json::from_value(tree).unwrap()
        };
        let group = EndpointGroup { address_type: "IPv4", ports: vec![] };
        [(group, zones.iter().enumerate().map(endpoint).collect())].into()
    }

    /// One sync: what the slices are afterwards, and what is told.
    fn sync(
        cache: &TopologyCache,
        slices: &mut Vec<Arc<Object>>,
        zones: &[&str],
        ratios: &CpuRatios,
    ) -> (usize, Vec<HintEvent>) {
        let mut groups = endpoints(zones);
        keep_hints(&mut groups, slices);
        let mut plan = pack::plan(slices.clone(), groups, &BTreeMap::new(), 100);
        let events = cache.add_hints(&"ns/web".to_owned(), TYPES.into(), ratios, &mut plan, slices);
        let written = plan.write.len();
        for packed in plan.write {
            let tree =
                json!({"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": packed.endpoints});
            *slices = vec![Arc::new(Object::from_value(&tree, vec![]).unwrap())];
        }
        (written, events)
    }

    fn hinted(slices: &[Arc<Object>]) -> Vec<String> {
        let zone = |endpoint: &Endpoint| {
            let hints = endpoint.hints.as_ref();
            hints.map_or("-".to_owned(), |hints| hints.for_zones[0].name.clone())
        };
        slices[0].view::<EndpointSlice>().endpoints.iter().map(zone).collect()
    }

    fn messages(events: Vec<HintEvent>) -> Vec<String> {
        events.into_iter().map(|event| format!("{} {}", event.reason, event.message)).collect()
    }

    #[test]
    fn zones_use_their_own_endpoints_and_some_of_others() {
        let cache = TopologyCache::default();
        let mut slices = Vec::new();
        let even = ratios(&[("a", "2"), ("b", "2")]);
        let (_, told) = sync(&cache, &mut slices, &["a", "a", "a", "b"], &even);
        assert_eq!(
            messages(told),
            ["TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"]
        );
        assert_eq!(hinted(&slices), ["b", "a", "a", "b"]);
        let (written, told) = sync(&cache, &mut slices, &["a", "a", "a", "b"], &even);
        assert!(written == 0 && told.is_empty(), "what is right is left alone");
        let uneven = ratios(&[("a", "3"), ("b", "1")]);
        assert_eq!(cache.overloaded(&uneven), ["ns/web"]);
        sync(&cache, &mut slices, &["a", "a", "a", "b"], &uneven);
        assert_eq!(hinted(&slices), ["a", "a", "a", "b"]);
        assert!(cache.overloaded(&uneven).is_empty());
    }

    #[test]
    fn hints_go_where_they_would_do_harm() {
        let cache = TopologyCache::default();
        let mut slices = Vec::new();
        let even = ratios(&[("a", "2"), ("b", "2")]);
        sync(&cache, &mut slices, &["a", "b"], &even);
        assert_eq!(hinted(&slices), ["a", "b"]);
        let why = |told| messages(told).concat();
        let (_, told) = sync(&cache, &mut slices, &["a", "b"], &CpuRatios::default());
        assert!(why(told).contains("Insufficient Node information") && hinted(&slices) == ["-", "-"]);
        sync(&cache, &mut slices, &["a", "b"], &even);
        let (_, told) = sync(&cache, &mut slices, &["a"], &even);
        let few = "TopologyAwareHintsDisabled Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4";
        assert!(why(told) == few && hinted(&slices) == ["-"]);
        let (_, told) = sync(&cache, &mut slices, &["a", ""], &even);
        assert!(why(told).contains("do not have a zone specified") && hinted(&slices) == ["-", "-"]);
        assert_eq!(cache.forget(&"ns/web".to_owned()), None, "it has none any more");
        sync(&cache, &mut slices, &["a", "b"], &even);
        let told = cache.forget(&"ns/web".to_owned()).map(|event| event.message);
        assert_eq!(told.as_deref(), Some("Topology Aware Hints has been disabled, addressType: IPv4"));
    }
}
