//! The handles of snapshots, of what is different from one, and of exports.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::header::CONTENT_TYPE;

use super::difference::SnapshotDiff;
use super::export::{self, Export};
use super::inside::{Inside, for_masters};
use super::snapshot::Snapshot;
use super::stock::ExportError;
use apimachinery::status::Status;
use handles::{ClusterHandle, HandleCall, Handles, answer};

/// A snapshot that is sent may be so long; a longer one is answered with 413.
const MAX_SNAPSHOT_BYTES: usize = 256 * 1024 * 1024;

/// The whole cluster as a file, or as YAML.
pub(super) fn handles(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let snapshot = ClusterHandle::get("/snapshot", "A snapshot of the whole cluster, as a file.")
        .query("keys", "false: without the keys that the cluster signs with.");
    let export = ClusterHandle::get("/export", "All objects as YAML that kubectl apply takes.")
        .query("all", "true: also what controllers and the cluster itself have made.");
    let difference = ClusterHandle::post(
        "/diff",
        "What is different now from a snapshot, which is the body.",
    )
    .query("all", "true: also what goes on all the time and what only says how something was written.");
    let (of_snapshot, of_export, of_difference) = (inside.clone(), inside.clone(), inside.clone());
    handles
        .with(snapshot, move |call| {
            let inside = of_snapshot.clone();
            let with_keys = wanted_keys(&call);
            async move { take(inside, with_keys?).await }
        })
        .with(export, move |call| {
            let inside = of_export.clone();
            async move {
                for_masters(&call, "an export holds all secrets")?;
                let all = is_true(&call, "all")?.unwrap_or(false);
                let stock = inside.stock().await.map_err(|error| Status::internal(error.to_string()))?;
                let text = export::manifest(stock, Export::new().all(all));
                Ok(response(text.into(), "application/yaml"))
            }
        })
        .with(difference, move |call| compare(of_difference.clone(), call))
}

/// As `kubarium diff SNAPSHOT live`.
async fn compare(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    for_masters(&call, "a difference tells of all secrets")?;
    let all = is_true(&call, "all")?.unwrap_or(false);
    let bytes = call.bytes(MAX_SNAPSHOT_BYTES).await?;
    let before = Snapshot::decode(bytes.into(), "the body");
    let before = before.map_err(|error| Status::bad_request(error.to_string()))?;
    let failed = |error: ExportError| Status::internal(error.to_string());
    let before = inside.stock_of(before).await.map_err(failed)?;
    let now = inside.stock().await.map_err(failed)?;
    answer(&SnapshotDiff::between(&before, &now, all))
}

/// Whether the keys are to be in it.
fn wanted_keys(call: &HandleCall) -> Result<bool, Status> {
    for_masters(call, "a snapshot holds all secrets and the keys that the cluster signs with")?;
    Ok(is_true(call, "keys")?.unwrap_or(true))
}

/// On a thread of its own: all that is stored is copied and encoded.
async fn take(inside: Arc<Inside>, with_keys: bool) -> Result<Response, Status> {
    let busy = inside.clock.busy();
    let taking = tokio::task::spawn_blocking(move || {
        let _busy = busy;
        let snapshot = inside.snapshot().map_err(|error| Status::internal(error.to_string()))?;
        let snapshot = if with_keys { snapshot } else { snapshot.without_keys() };
        Ok::<_, Status>(snapshot.encode())
    });
    let bytes = taking.await.map_err(Status::internal)??;
    Ok(response(bytes.into(), "application/octet-stream"))
}

fn is_true(call: &HandleCall, name: &str) -> Result<Option<bool>, Status> {
    let Some(text) = call.query(name) else { return Ok(None) };
    let wrong = |_| Status::bad_request(format!("{name}={text}: true or false"));
    text.parse().map(Some).map_err(wrong)
}

fn response(body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
