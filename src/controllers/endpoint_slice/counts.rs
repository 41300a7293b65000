//! What the controller of EndpointSlices counts (`endpointslice/metrics`). How many there are is looked up
//! when somebody asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::owned::service_key;
use super::pack::{MAX_ENDPOINTS_PER_SLICE, Packed, SlicePlan};
use crate::controller::Key;
use apimachinery::object::Object;
use apis::views::endpoints::{Endpoint, EndpointSlice};
use apis::views::service::Service;
use client_go::lister::Lister;
use component_base::metrics::{DEFAULT_BUCKETS, Family, Render, gauge, plain_gauge};

/// Of endpoints: `ExponentialBuckets(2, 2, 15)`.
pub(crate) const ENDPOINT_BOUNDS: [f64; 15] =
    [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0];

/// What is counted of all services.
pub(super) struct SliceCounts {
    services: Lister,
    slices: Lister,
    added: Family<0>,
    removed: Family<0>,
    changes: Family<1>,
    changed: Family<2>,
    syncs: Family<1>,
}

/// What one sync did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceSync {
    pub(crate) added: u32,
    /// Endpoints that stay, and are otherwise than they were.
    pub(crate) updated: u32,
    pub(crate) removed: u32,
    /// Slices that were written or deleted.
    pub(super) changed: u32,
}

impl SliceSync {
    /// What will be done: endpoints that a slice has and had not, and the other way round.
    pub(crate) fn of(plan: &SlicePlan) -> SliceSync {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let changed = number(plan.write.len() + plan.delete.len());
        let mut sync = SliceSync { changed, ..SliceSync::default() };
        for Packed { slice, endpoints, .. } in &plan.write {
            let old = slice.as_ref().map(|slice| slice.view::<EndpointSlice>());
            let old: BTreeMap<&[String], &Endpoint> = by_addresses(old.iter().flat_map(|old| &old.endpoints));
            let new: BTreeMap<&[String], &Endpoint> = by_addresses(endpoints);
            let without = |all: &BTreeMap<&[String], &Endpoint>, known: &BTreeMap<&[String], &Endpoint>| {
                number(all.keys().filter(|addresses| !known.contains_key(*addresses)).count())
            };
            let is_other = |(addresses, endpoint): &(&&[String], &&Endpoint)| {
                old.get(*addresses).is_some_and(|old| old != *endpoint)
            };
            sync.added = sync.added.saturating_add(without(&new, &old));
            sync.updated = sync.updated.saturating_add(number(new.iter().filter(is_other).count()));
            sync.removed = sync.removed.saturating_add(without(&old, &new));
        }
        for slice in &plan.delete {
            sync.removed = sync.removed.saturating_add(number(slice.view::<EndpointSlice>().endpoints.len()));
        }
        sync
    }
}

fn by_addresses<'a>(
    endpoints: impl IntoIterator<Item = &'a Endpoint>,
) -> BTreeMap<&'a [String], &'a Endpoint> {
    endpoints.into_iter().map(|endpoint| (&*endpoint.addresses, endpoint)).collect()
}

/// Writes how many slices and endpoints there are, and how many slices there would be at best: of these
/// `slices`, as far as somebody's, each of which takes so many endpoints. `name` is what the metrics' names
/// begin with, and how stable they are.
pub(crate) fn render_numbers(
    out: &mut String,
    (name, stability): (&str, &str),
    slices: &[Arc<Object>],
    (owner, most): (fn(&Object) -> Option<Key>, usize),
) {
    let mut count: u64 = 0;
    let mut groups: BTreeMap<(Key, String, String), usize> = BTreeMap::new();
    for slice in slices {
        let Some(owner) = owner(slice) else { continue };
        let view = slice.view::<EndpointSlice>();
        count += 1;
        let group = (owner, view.address_type.clone(), format!("{:?}", view.ports));
        *groups.entry(group).or_default() += view.endpoints.len();
    }
    let endpoints: usize = groups.values().sum();
    let best: usize = groups.values().map(|count| count.div_ceil(most).max(1)).sum();
    let gauges = [
        (
            "desired_endpoint_slices",
            "Number of EndpointSlices that would exist with perfect endpoint allocation",
            best as u64,
        ),
        ("endpoints_desired", "Number of endpoints desired", endpoints as u64),
        ("num_endpoint_slices", "Number of EndpointSlices", count),
    ];
    for (gauge, help, value) in gauges {
        plain_gauge(out, (&format!("{name}_{gauge}"), &format!("{stability} {help}")), value);
    }
}

/// `spec.trafficDistribution`, empty where it is not said.
fn distribution_of(service: &Object) -> String {
    service.view::<Service>().spec.traffic_distribution.clone().unwrap_or_default()
}

impl SliceCounts {
    /// Of what these know.
    pub(super) fn new(services: Lister, slices: Lister) -> SliceCounts {
        SliceCounts {
            services,
            slices,
            added: Family::histogram(
                "endpoint_slice_controller_endpoints_added_per_sync",
                "[BETA] Number of endpoints added on each Service sync",
                [],
                &ENDPOINT_BOUNDS,
            ),
            removed: Family::histogram(
                "endpoint_slice_controller_endpoints_removed_per_sync",
                "[BETA] Number of endpoints removed on each Service sync",
                [],
                &ENDPOINT_BOUNDS,
            ),
            changes: Family::counter(
                "endpoint_slice_controller_changes",
                "[ALPHA] Number of EndpointSlice changes",
                ["operation"],
            ),
            changed: Family::histogram(
                "endpoint_slice_controller_endpointslices_changed_per_sync",
                "[ALPHA] Number of EndpointSlices changed on each Service sync",
                ["topology", "traffic_distribution"],
                &DEFAULT_BUCKETS,
            ),
            syncs: Family::counter(
                "endpoint_slice_controller_syncs",
                "[ALPHA] Number of EndpointSlice syncs",
                ["result"],
            ),
        }
    }

    /// A slice was created, updated or deleted.
    pub(super) fn changed(&self, operation: &str) {
        self.changes.count([operation]);
    }

    /// A service was looked at, and its slices are as they should be.
    pub(super) fn synced(&self, service: &Object, sync: SliceSync) {
        let number = |number: u32| Duration::from_secs(u64::from(number));
        self.added.observe([], number(sync.added));
        self.removed.observe([], number(sync.removed));
        self.changed.observe(["Disabled", &distribution_of(service)], number(sync.changed));
    }

    /// How a sync ended: `success`, `stale` or `error`.
    pub(super) fn ended(&self, result: &str) {
        self.syncs.count([result]);
    }

    fn render_distributions(&self, out: &mut String) {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for service in self.services.all() {
            let distribution = distribution_of(&service);
            if !distribution.is_empty() {
                *counts.entry(distribution).or_default() += 1;
            }
        }
        let name = "endpoint_slice_controller_services_count_by_traffic_distribution";
        let help = "[BETA] Number of Services using some specific trafficDistribution";
        let values = counts.into_iter().map(|(distribution, count)| ([distribution], count));
        gauge(out, (name, help), ["traffic_distribution"], values);
    }
}

impl Render for SliceCounts {
    fn render(&self, out: &mut String) {
        self.changes.render(out);
        let owned: (fn(&Object) -> Option<Key>, usize) = (service_key, MAX_ENDPOINTS_PER_SLICE);
        render_numbers(out, ("endpoint_slice_controller", "[BETA]"), &self.slices.all(), owned);
        self.added.render(out);
        self.removed.render(out);
        self.changed.render(out);
        self.render_distributions(out);
        self.syncs.render(out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::endpoint_slice::desired::EndpointGroup;
    use crate::endpoint_slice::pack;

    #[test]
    fn a_sync_tells_what_comes_goes_and_changes() {
        let slice = json!({"metadata": {"name": "s"}, "addressType": "IPv4", "ports": [], "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": true}},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": true}}]});
        let slice = Arc::new(Object::from_value(&slice, vec![]).unwrap());
        let mut endpoints = slice.view::<EndpointSlice>().endpoints.clone();
        endpoints[0].conditions.ready = Some(false);
        endpoints[2].addresses = vec!["10.0.0.4".into()];
        let group = EndpointGroup { address_type: "IPv4", ports: vec![] };
        let plan = pack::plan(vec![slice], BTreeMap::from([(group, endpoints)]), &BTreeMap::new(), 100);
        assert_eq!(SliceSync::of(&plan), SliceSync { added: 1, updated: 1, removed: 1, changed: 1 });
    }
}
