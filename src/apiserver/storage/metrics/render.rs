//! The page: what the storage has counted, in Prometheus' text format.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::kind_counter::{CounterRow, ROWS};
use super::{KindMetrics, StorageMetrics};
use crate::storage::interface::Storage;
use component_base::metrics::{Render, gauge, heading};

/// Of a resource version so much is shown: its last 15 digits.
const SHOWN_REVISIONS: u64 = 1_000_000_000_000_000;
/// `fallback` and `success`, in the order of `ConsistentRead`.
const CONSISTENT_READS: [(&str, &str); 3] = [("false", "true"), ("true", "true"), ("true", "false")];

impl Render for Storage {
    /// How large an etcd is, is not asked for: who runs it has its own metrics.
    fn render(&self, out: &mut String) {
        self.metrics().render(out);
        if let Some(bytes) = self.kv().bytes_on_disk() {
            let help = "[STABLE] Size of the storage database file physically allocated in bytes.";
            let about = ("apiserver_storage_size_bytes", help);
            gauge(out, about, ["storage_cluster_id"], [(["etcd-0"], bytes)]);
        }
    }
}

impl Render for StorageMetrics {
    fn render(&self, out: &mut String) {
        let mut kinds: Vec<Arc<KindMetrics>> = self.kinds.read().values().cloned().collect();
        kinds.sort_by(|a, b| (&a.group, &a.resource).cmp(&(&b.group, &b.resource)));
        ROWS.iter().for_each(|row| render_row(out, &kinds, row));
        render_requests(out, &kinds);
        render_consistent_reads(out, &kinds);
        render_waits(out, &kinds);
        render_caches(out, &kinds);
        if let Some(counts) = self.lease_objects.get() {
            let name = "etcd_lease_object_counts";
            heading(out, name, "histogram", "[ALPHA] Number of objects attached to a single etcd lease.");
            counts.render(out, name, "");
        }
    }
}

/// One metric: what each kind has of it, and nothing where none has any.
fn render_family(
    out: &mut String,
    (name, metric_type, help): (&str, &str, &str),
    kinds: &[Arc<KindMetrics>],
    show: impl Fn(&KindMetrics, &mut String),
) {
    let mut samples = String::new();
    kinds.iter().for_each(|kind| show(kind, &mut samples));
    if !samples.is_empty() {
        heading(out, name, metric_type, help);
        out.push_str(&samples);
    }
}

fn render_row(out: &mut String, kinds: &[Arc<KindMetrics>], row: &CounterRow) {
    let index = if row.has_index { "index=\"\"," } else { "" };
    render_family(out, (row.name, "counter", row.help), kinds, |kind, samples| {
        let KindMetrics { group, resource, .. } = kind;
        if kind.count(row.shown_with) > 0 {
            let count = kind.count(row.counter);
            let _ = writeln!(samples, "{}{{group={group:?},{index}resource={resource:?}}} {count}", row.name);
        }
    });
}

fn render_requests(out: &mut String, kinds: &[Arc<KindMetrics>]) {
    let name = "etcd_request_duration_seconds";
    let help = "[ALPHA] Etcd request latency in seconds for each operation and object type.";
    render_family(out, (name, "histogram", help), kinds, |kind, samples| {
        kind.requests.render_durations(samples, name, &kind.group, &kind.resource);
    });
    let name = "etcd_requests_total";
    let help = "[ALPHA] Etcd request counts for each operation and object type.";
    render_family(out, (name, "counter", help), kinds, |kind, samples| {
        kind.requests.render_counts(samples, name, &kind.group, &kind.resource);
    });
    let name = "etcd_request_errors_total";
    let help = "[ALPHA] Etcd failed request counts for each operation and object type.";
    render_family(out, (name, "counter", help), kinds, |kind, samples| {
        kind.requests.render_errors(samples, name, &kind.group, &kind.resource);
    });
}

fn render_consistent_reads(out: &mut String, kinds: &[Arc<KindMetrics>]) {
    let name = "apiserver_watch_cache_consistent_read_total";
    render_family(
        out,
        (name, "counter", "[ALPHA] Counter for consistent reads from cache."),
        kinds,
        |kind, samples| {
            let KindMetrics { group, resource, .. } = kind;
            for ((fallback, success), count) in CONSISTENT_READS.iter().zip(&kind.consistent_reads) {
                let labels = format!(
                    "fallback={fallback:?},group={group:?},resource={resource:?},success={success:?}"
                );
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let _ = writeln!(samples, "{name}{{{labels}}} {count}");
                }
            }
        },
    );
}

fn render_waits(out: &mut String, kinds: &[Arc<KindMetrics>]) {
    let name = "apiserver_watch_cache_read_wait_seconds";
    let help = "[ALPHA] Histogram of time spent waiting for a watch cache to become fresh.";
    render_family(out, (name, "histogram", help), kinds, |kind, samples| {
        let KindMetrics { group, resource, .. } = kind;
        if let Some(waits) = kind.waits.get() {
            waits.render(samples, name, &format!("group={group:?},resource={resource:?}"));
        }
    });
}

/// The state of each watch cache that has heard something. Its capacity is for how many changes its ring has
/// room; many large ones may leave it for their bytes before that.
fn render_caches(out: &mut String, kinds: &[Arc<KindMetrics>]) {
    let mut show = |name: &str, help: &str, value: fn(&KindMetrics) -> u64| {
        let filled = kinds.iter().filter(|kind| kind.revision.load(Ordering::Relaxed) > 0);
        let sample = |kind: &Arc<KindMetrics>| ([kind.group.clone(), kind.resource.clone()], value(kind));
        gauge(out, (name, help), ["group", "resource"], filled.map(sample));
    };
    show(
        "apiserver_watch_cache_resource_version",
        "[ALPHA] Current resource version of watch cache broken by resource type. This is truncated to the 15 least \
         significant digits.",
        |kind| kind.revision.load(Ordering::Relaxed) % SHOWN_REVISIONS,
    );
    show("watch_cache_capacity", "[ALPHA] Total capacity of watch cache broken by resource type.", |kind| {
        kind.capacity.load(Ordering::Relaxed) as u64
    });
    // Of kinds that nobody has read, and of those without a watch cache, nobody knows the sizes.
    show(
        "apiserver_resource_size_estimate_bytes",
        "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of \
         serialized objects. In case of a fetching error, the value will be -1.",
        |kind| kind.bytes.load(Ordering::Relaxed) as u64,
    );
}
