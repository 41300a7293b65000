//! Hears of ResourceUsages, ClusterResourceUsages and Metrics, and keeps the book of them.

use serde_json::Value as Json;

use super::book::MeasureBook;
use super::metric::ReadMetric;
use super::resource_usage::ReadUsage;
use crate::error::StageError;
use crate::following::{KindFollowing, by_name, follow_kind};
use crate::stagehand::Stagehand;

/// Follows all three kinds for as long as it is polled; those that are not served are waited for, and nothing
/// else is done.
pub async fn follow_measures(stagehand: Stagehand, book: MeasureBook) {
    let context = &stagehand.context;
    let nothing = "counts for nothing";
    let (of_usages, of_cluster, of_metrics) = (book.clone(), book.clone(), book);
    let mut usages = KindFollowing::new(context, read_usage, nothing, move |read| of_usages.set_usages(read));
    let mut cluster_usages = KindFollowing::new(context, read_usage, nothing, move |read| {
        of_cluster.set_cluster_usages(by_name(read));
    });
    let mut metrics =
        KindFollowing::new(context, read_metric, nothing, move |read| of_metrics.set_metrics(by_name(read)));
    tokio::join!(
        follow_kind(&stagehand, "resourceusages", &mut usages),
        follow_kind(&stagehand, "clusterresourceusages", &mut cluster_usages),
        follow_kind(&stagehand, "metrics", &mut metrics),
    );
}

fn read_usage(_name: &str, spec: &Json) -> Result<Option<ReadUsage>, StageError> {
    ReadUsage::read(spec).map(Some)
}

fn read_metric(name: &str, spec: &Json) -> Result<Option<ReadMetric>, StageError> {
    ReadMetric::read(name, spec).map(Some)
}
