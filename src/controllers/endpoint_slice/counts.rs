//! What the controller of EndpointSlices counts (`endpointslice/metrics`). How many there are is looked up
//! when somebody asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use super::owned::service_key;
use super::pack::{MAX_ENDPOINTS_PER_SLICE, Packed, SlicePlan};
use apimachinery::object::Object;
use apis::views::endpoints::EndpointSlice;
use apis::views::service::Service;
use client_go::lister::Lister;
use component_base::metrics::{Family, Render, heading};

/// Of endpoints: `ExponentialBuckets(2, 2, 15)`.
const ENDPOINT_BOUNDS: [f64; 15] =
    [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0];
/// Of slices: Prometheus' own (`DefBuckets`).
const SLICE_BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

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
pub(super) struct SliceSync {
    pub(super) added: u32,
    pub(super) removed: u32,
    /// Slices that were written or deleted.
    pub(super) changed: u32,
}

impl SliceSync {
    /// What will be done: endpoints that a slice has and had not, and the other way round.
    pub(super) fn of(plan: &SlicePlan) -> SliceSync {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut sync =
            SliceSync { changed: number(plan.write.len() + plan.delete.len()), added: 0, removed: 0 };
        for Packed { slice, endpoints, .. } in &plan.write {
            let old = slice.as_ref().map(|slice| slice.view::<EndpointSlice>());
            let old: BTreeSet<&[String]> =
                old.iter().flat_map(|old| &old.endpoints).map(|endpoint| &*endpoint.addresses).collect();
            let new: BTreeSet<&[String]> = endpoints.iter().map(|endpoint| &*endpoint.addresses).collect();
            sync.added = sync.added.saturating_add(number(new.difference(&old).count()));
            sync.removed = sync.removed.saturating_add(number(old.difference(&new).count()));
        }
        for slice in &plan.delete {
            sync.removed = sync.removed.saturating_add(number(slice.view::<EndpointSlice>().endpoints.len()));
        }
        sync
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
                &SLICE_BOUNDS,
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

    fn render_numbers(&self, out: &mut String) {
        let mut slices: u64 = 0;
        let mut groups: BTreeMap<(_, String, String), usize> = BTreeMap::new();
        for slice in self.slices.all() {
            let Some(service) = service_key(&slice) else { continue };
            let view = slice.view::<EndpointSlice>();
            slices += 1;
            let group = (service, view.address_type.clone(), format!("{:?}", view.ports));
            *groups.entry(group).or_default() += view.endpoints.len();
        }
        let endpoints: usize = groups.values().sum();
        let best: usize = groups.values().map(|count| count.div_ceil(MAX_ENDPOINTS_PER_SLICE).max(1)).sum();
        let gauges = [
            (
                "desired_endpoint_slices",
                "[BETA] Number of EndpointSlices that would exist with perfect endpoint allocation",
                best as u64,
            ),
            ("endpoints_desired", "[BETA] Number of endpoints desired", endpoints as u64),
            ("num_endpoint_slices", "[BETA] Number of EndpointSlices", slices),
        ];
        for (name, help, value) in gauges {
            let name = format!("endpoint_slice_controller_{name}");
            heading(out, &name, "gauge", help);
            // Writing into a text cannot fail.
            let _ = writeln!(out, "{name} {value}");
        }
    }

    fn render_distributions(&self, out: &mut String) {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for service in self.services.all() {
            let distribution = distribution_of(&service);
            if !distribution.is_empty() {
                *counts.entry(distribution).or_default() += 1;
            }
        }
        if counts.is_empty() {
            return;
        }
        let name = "endpoint_slice_controller_services_count_by_traffic_distribution";
        heading(out, name, "gauge", "[BETA] Number of Services using some specific trafficDistribution");
        for (distribution, count) in counts {
            let _ = writeln!(out, "{name}{{traffic_distribution={distribution:?}}} {count}");
        }
    }
}

impl Render for SliceCounts {
    fn render(&self, out: &mut String) {
        self.changes.render(out);
        self.render_numbers(out);
        self.added.render(out);
        self.removed.render(out);
        self.changed.render(out);
        self.render_distributions(out);
        self.syncs.render(out);
    }
}
