//! `MeasureBook`: the ResourceUsages, ClusterResourceUsages and Metrics that there are just now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::exposition;
use super::expression::MeasureHost;
use super::metric::{MeasuredNode, ReadMetric};
use super::node_usage::NodeUsage;
use super::resource_usage::ReadUsage;
use apimachinery::time::Time;
use sync::RwLock;
use usage::Curve;

/// Those of one cluster. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct MeasureBook(Arc<MeasureBookShared>);

#[derive(Debug, Default)]
struct MeasureBookShared {
    contents: RwLock<Arc<BookContents>>,
    /// Whether anything is said of what pods use: asked for each look at each container.
    has_usages: AtomicBool,
    /// Whether anything is said of what they fill of the disk.
    fills_storage: AtomicBool,
    /// How often what pods use has been said otherwise.
    changes: watch::Sender<u64>,
}

/// Bound: the objects that there are.
#[derive(Clone, Debug, Default)]
struct BookContents {
    /// By namespace and name of the pod.
    usages: BTreeMap<(String, String), Arc<ReadUsage>>,
    /// By name.
    cluster_usages: BTreeMap<String, Arc<ReadUsage>>,
    metrics: BTreeMap<String, Arc<ReadMetric>>,
}

/// What is said of a resource.
#[derive(Clone, Debug)]
pub enum SaidUsage {
    /// Nothing: it is as it would be.
    Nothing,
    /// Of the container, but not of the resource: none of it is used.
    None,
    /// So much.
    Curve(Arc<Curve>),
}

impl MeasureBook {
    /// What a container of a pod uses of a resource: what a ResourceUsage of the pod's name says, and nobody
    /// else then; else the first ClusterResourceUsage, by name, that says anything of the container. Costs
    /// nothing where there are none.
    pub fn usage(&self, namespace: &str, pod: &str, container: &str, resource: &str) -> SaidUsage {
        if !self.0.has_usages.load(Ordering::Acquire) {
            return SaidUsage::Nothing;
        }
        let contents = self.0.contents.read().clone();
        if let Some(own) = contents.usages.get(&(namespace.to_owned(), pod.to_owned())) {
            return said(own.of(container, resource).unwrap_or_default());
        }
        let mut meant = contents.cluster_usages.values().filter(|usage| usage.matches(namespace, pod));
        meant.find_map(|usage| usage.of(container, resource)).map_or(SaidUsage::Nothing, said)
    }

    /// Whether anything at all is said.
    pub fn has_usages(&self) -> bool {
        self.0.has_usages.load(Ordering::Acquire)
    }

    /// Whether anything is said of what anybody fills of the disk.
    pub fn fills_storage(&self) -> bool {
        self.0.fills_storage.load(Ordering::Acquire)
    }

    /// Told whenever what pods use is said otherwise.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// How often that was ([`MeasureBook::changes`]).
    pub fn count_changes(&self) -> u64 {
        *self.0.changes.borrow()
    }

    /// Whether a Metric answers at a path for a node.
    pub fn answers(&self, node: &str, path: &str) -> bool {
        self.metric(node, path).is_some()
    }

    /// What a Metric answers there at a moment, in Prometheus' text format; nothing where none does.
    pub fn answer(
        &self,
        (name, path): (&str, &str),
        node: &MeasuredNode,
        usage: Arc<dyn NodeUsage>,
        now: Time,
    ) -> Option<String> {
        let metric = self.metric(name, path)?;
        Some(exposition::text(&metric, node, &MeasureHost::at(now, Some(usage))))
    }

    fn metric(&self, node: &str, path: &str) -> Option<Arc<ReadMetric>> {
        let contents = self.0.contents.read().clone();
        contents.metrics.values().find(|metric| metric.answers(node, path)).cloned()
    }

    pub(super) fn set_usages(&self, usages: BTreeMap<(String, String), Arc<ReadUsage>>) {
        self.change(|contents| contents.usages = usages);
    }

    pub(super) fn set_cluster_usages(&self, usages: BTreeMap<String, Arc<ReadUsage>>) {
        self.change(|contents| contents.cluster_usages = usages);
    }

    pub(super) fn set_metrics(&self, metrics: BTreeMap<String, Arc<ReadMetric>>) {
        let mut contents = self.0.contents.write();
        Arc::make_mut(&mut contents).metrics = metrics;
    }

    fn change(&self, change: impl FnOnce(&mut BookContents)) {
        let mut contents = self.0.contents.write();
        let had_some = self.has_usages();
        change(Arc::make_mut(&mut contents));
        let all = || contents.usages.values().chain(contents.cluster_usages.values());
        let has_some = all().next().is_some();
        self.0.fills_storage.store(all().any(|usage| usage.mentions("ephemeral-storage")), Ordering::Release);
        self.0.has_usages.store(has_some, Ordering::Release);
        drop(contents);
        if had_some || has_some {
            self.0.changes.send_modify(|changes| *changes += 1);
        }
    }
}

fn said(curve: Option<Arc<Curve>>) -> SaidUsage {
    curve.map_or(SaidUsage::None, SaidUsage::Curve)
}
