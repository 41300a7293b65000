//! Hears of ResourceUsages, ClusterResourceUsages and Metrics, and keeps the book of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::book::MeasureBook;
use super::metric::ReadMetric;
use super::resource_usage::ReadUsage;
use crate::error::StageError;
use crate::following::{KindFollower, follow_kind};
use crate::stagehand::Stagehand;
use apimachinery::object::Object;
use apis::kind::Kind;
use client_go::ComponentContext;

/// Follows all three kinds for as long as it is polled; those that are not served are waited for, and nothing
/// else is done.
pub async fn follow_measures(stagehand: Stagehand, book: MeasureBook) {
    let context = &stagehand.context;
    let (of_usages, of_cluster, of_metrics) = (book.clone(), book.clone(), book);
    let mut usages = BookKeeper::new(context, read_usage, move |read| of_usages.set_usages(read));
    let mut cluster_usages = BookKeeper::new(context, read_usage, move |read| {
        of_cluster.set_cluster_usages(by_name(read));
    });
    let mut metrics =
        BookKeeper::new(context, ReadMetric::read, move |read| of_metrics.set_metrics(by_name(read)));
    tokio::join!(
        follow_kind(&stagehand, "resourceusages", &mut usages),
        follow_kind(&stagehand, "clusterresourceusages", &mut cluster_usages),
        follow_kind(&stagehand, "metrics", &mut metrics),
    );
}

type ByKey<T> = BTreeMap<(String, String), Arc<T>>;

fn read_usage(_name: &str, spec: &Json) -> Result<ReadUsage, StageError> {
    ReadUsage::read(spec)
}

fn by_name<T>(read: ByKey<T>) -> BTreeMap<String, Arc<T>> {
    read.into_iter().map(|((_, name), read)| (name, read)).collect()
}

/// The revision of an object, and what was read of it.
type ReadAt<T> = (u64, Option<Arc<T>>);

/// Reads the objects of a kind, and hands over all that can be read whenever one has changed.
struct BookKeeper<T, P> {
    context: ComponentContext,
    read_spec: fn(&str, &Json) -> Result<T, StageError>,
    /// By namespace and name, the revision and what was read; nothing of one that is wrong. Bound: the
    /// objects that there are.
    read: BTreeMap<(String, String), ReadAt<T>>,
    publish: P,
    has_changed: bool,
}

impl<T, P> BookKeeper<T, P> {
    fn new(
        context: &ComponentContext,
        read_spec: fn(&str, &Json) -> Result<T, StageError>,
        publish: P,
    ) -> BookKeeper<T, P> {
        BookKeeper { context: context.clone(), read_spec, read: BTreeMap::new(), publish, has_changed: false }
    }
}

impl<T: Send + Sync, P: FnMut(ByKey<T>) + Send> KindFollower for BookKeeper<T, P> {
    fn retain(&mut self, are_there: &[&Object]) {
        let count = self.read.len();
        self.read.retain(|key, _| are_there.iter().any(|object| key_of(object) == *key));
        self.has_changed |= self.read.len() != count;
    }

    fn take(&mut self, kind: &Kind, object: &Object) {
        let (key, revision) = (key_of(object), object.metadata.resource_version);
        if self.read.get(&key).is_some_and(|(known, _)| *known == revision) {
            return;
        }
        let read = (self.read_spec)(&key.1, &object.to_value()["spec"]);
        if let Err(why) = &read {
            let message = format!("This {} counts for nothing: spec.{why}", kind.kind);
            let reason = format!("Invalid{}", kind.kind);
            self.context.recorder.event((kind, object), "Warning", &reason, message);
        }
        self.read.insert(key, (revision, read.ok().map(Arc::new)));
        self.has_changed = true;
    }

    fn remove(&mut self, object: &Object) {
        self.has_changed |= self.read.remove(&key_of(object)).is_some();
    }

    fn publish(&mut self) {
        if std::mem::take(&mut self.has_changed) {
            let read = self.read.iter();
            (self.publish)(read.filter_map(|(key, (_, read))| Some((key.clone(), read.clone()?))).collect());
        }
    }
}

fn key_of(object: &Object) -> (String, String) {
    (object.metadata.namespace.to_string(), object.metadata.name.to_string())
}
