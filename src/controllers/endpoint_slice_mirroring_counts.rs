//! What the controller of mirrored EndpointSlices counts (`endpointslicemirroring/metrics`).

use std::time::Duration;

use super::controller::Key;
use super::endpoint_slice::counts::{ENDPOINT_BOUNDS, SliceSync, render_numbers};
use apimachinery::object::Object;
use client_go::lister::Lister;
use component_base::metrics::{FROM_A_MILLISECOND, Family, Render};

/// What is counted of all Endpoints that are mirrored.
pub(super) struct MirrorCounts {
    slices: Lister,
    /// The Endpoints that a slice mirrors.
    mirrored: fn(&Object) -> Option<Key>,
    /// How many endpoints a slice takes.
    most: usize,
    changes: Family<1>,
    added: Family<0>,
    updated: Family<0>,
    removed: Family<0>,
    skipped: Family<0>,
    durations: Family<0>,
}

fn per_sync(name: &'static str, help: &'static str) -> Family<0> {
    Family::histogram(name, help, [], &ENDPOINT_BOUNDS)
}

impl MirrorCounts {
    /// Of these slices, of which those count that mirror something.
    pub(super) fn new(slices: Lister, mirrored: fn(&Object) -> Option<Key>, most: usize) -> MirrorCounts {
        MirrorCounts {
            slices,
            mirrored,
            most,
            changes: Family::counter(
                "endpoint_slice_mirroring_controller_changes",
                "[ALPHA] Number of EndpointSlice changes",
                ["operation"],
            ),
            added: per_sync(
                "endpoint_slice_mirroring_controller_endpoints_added_per_sync",
                "[ALPHA] Number of endpoints added on each Endpoints sync",
            ),
            updated: per_sync(
                "endpoint_slice_mirroring_controller_endpoints_updated_per_sync",
                "[ALPHA] Number of endpoints updated on each Endpoints sync",
            ),
            removed: per_sync(
                "endpoint_slice_mirroring_controller_endpoints_removed_per_sync",
                "[ALPHA] Number of endpoints removed on each Endpoints sync",
            ),
            skipped: per_sync(
                "endpoint_slice_mirroring_controller_addresses_skipped_per_sync",
                "[ALPHA] Number of addresses skipped on each Endpoints sync due to being invalid or \
                 exceeding MaxEndpointsPerSubset",
            ),
            durations: Family::histogram(
                "endpoint_slice_mirroring_controller_endpoints_sync_duration",
                "[ALPHA] Duration of syncEndpoints() in seconds",
                [],
                &FROM_A_MILLISECOND,
            ),
        }
    }

    /// A slice was created, updated or deleted.
    pub(super) fn changed(&self, operation: &str) {
        self.changes.count([operation]);
    }

    /// Endpoints were looked at, and their slices are as they should be, but for so many addresses.
    pub(super) fn synced(&self, sync: SliceSync, skipped: usize) {
        let number = |number: u32| Duration::from_secs(u64::from(number));
        self.added.observe([], number(sync.added));
        self.updated.observe([], number(sync.updated));
        self.removed.observe([], number(sync.removed));
        self.skipped.observe([], number(u32::try_from(skipped).unwrap_or(u32::MAX)));
    }

    /// A sync took so long, however it ended.
    pub(super) fn took(&self, duration: Duration) {
        self.durations.observe([], duration);
    }
}

impl Render for MirrorCounts {
    fn render(&self, out: &mut String) {
        self.skipped.render(out);
        self.changes.render(out);
        let name = ("endpoint_slice_mirroring_controller", "[ALPHA]");
        render_numbers(out, name, &self.slices.all(), (self.mirrored, self.most));
        for family in [&self.added, &self.removed, &self.durations, &self.updated] {
            family.render(out);
        }
    }
}
