//! What a store is asked, how long it takes and how often it fails (`RecordEtcdRequest`). Our own store is
//! asked in memory, and counted as an etcd would be. What is kept beside the objects, as the addresses of
//! servers that share an etcd, is of no kind and not counted.

use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use component_base::metrics::{Histogram, REQUEST_BUCKETS};

/// How many operations there are.
const OPERATION_COUNT: usize = 6;

/// In the order of [`EtcdOperation`].
const OPERATIONS: [&str; OPERATION_COUNT] = ["create", "delete", "get", "list", "listWithCount", "update"];

/// What a store can be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EtcdOperation {
    /// To put what is not there yet.
    Create,
    /// To delete.
    Delete,
    /// For one key, or how new it is itself.
    Get,
    /// For keys.
    List,
    /// How many keys there are.
    ListWithCount,
    /// To put another value.
    Update,
}

/// The requests for objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    /// Made with the first one of each operation.
    durations: [OnceLock<Histogram>; OPERATION_COUNT],
    errors: [AtomicU64; OPERATION_COUNT],
}

impl RequestCounts {
    /// The store was asked, and took so long. A write that found another revision has not failed.
    pub(crate) fn record(&self, operation: EtcdOperation, duration: Duration, failed: bool) {
        let at = operation as usize;
        self.durations[at].get_or_init(|| Histogram::new(&REQUEST_BUCKETS)).observe(duration);
        if failed {
            self.errors[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The samples of `etcd_request_duration_seconds`.
    pub(super) fn render_durations(&self, out: &mut String, name: &str, group: &str, resource: &str) {
        for (operation, durations) in self.made() {
            durations.render(out, name, &labels(group, operation, resource));
        }
    }

    /// Those of `etcd_requests_total`.
    pub(super) fn render_counts(&self, out: &mut String, name: &str, group: &str, resource: &str) {
        for (operation, durations) in self.made() {
            let labels = labels(group, operation, resource);
            let _ = writeln!(out, "{name}{{{labels}}} {}", durations.count());
        }
    }

    /// Those of `etcd_request_errors_total`.
    pub(super) fn render_errors(&self, out: &mut String, name: &str, group: &str, resource: &str) {
        for (operation, errors) in OPERATIONS.iter().zip(&self.errors) {
            let errors = errors.load(Ordering::Relaxed);
            if errors > 0 {
                let _ = writeln!(out, "{name}{{{}}} {errors}", labels(group, operation, resource));
            }
        }
    }

    fn made(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let each = OPERATIONS.into_iter().zip(&self.durations);
        each.filter_map(|(operation, durations)| Some((operation, durations.get()?)))
    }
}

fn labels(group: &str, operation: &str, resource: &str) -> String {
    format!("group={group:?},operation={operation:?},resource={resource:?}")
}
