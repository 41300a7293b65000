//! Answers as client-go reads them: shared objects where the server gave them, else bytes (client-go's
//! `rest.Result`).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http::header::RETRY_AFTER;
use http_body_util::BodyExt;
use serde_json::Value;

use apimachinery::list::List;
use apimachinery::object::{Object, encode_for_storage};
use apimachinery::status::Status;
use apimachinery::wire::{ApiResponse, ListAnswer, ObjectAnswer, StatusAnswer};
use apis::kind::{Kind, Selectable, read_object};

/// How long to wait before asking again, if the answer says so: 429 or 5xx with `Retry-After` in whole
/// seconds.
pub(super) fn retry_after(response: &ApiResponse) -> Option<Duration> {
    let code = response.status();
    if code != StatusCode::TOO_MANY_REQUESTS && !code.is_server_error() {
        return None;
    }
    let header = || response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse::<u64>().ok();
    let detail = || {
        let StatusAnswer(status) = response.extensions().get()?;
        status
            .details
            .as_ref()
            .map(|details| u64::from(details.retry_after_seconds))
            .filter(|seconds| *seconds > 0)
    };
    header().or_else(detail).map(Duration::from_secs)
}

/// An answer that is one object.
pub(super) async fn object(kind: &Kind, mut response: ApiResponse) -> Result<Arc<Object>, Status> {
    if let Some(ObjectAnswer(object)) = response.extensions_mut().remove() {
        return Ok(object);
    }
    let tree = value(response).await?;
    Ok(Arc::new(object_of(&kind.selectable, &tree)?))
}

/// An answer that is a list.
pub(super) async fn list(kind: &Kind, mut response: ApiResponse) -> Result<List, Status> {
    if let Some(list) = response.extensions_mut().remove::<ListAnswer>() {
        return Ok(list);
    }
    let tree = value(response).await?;
    let items = tree["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let objects: Result<Vec<_>, Status> =
        items.iter().map(|item| object_of(&kind.selectable, item).map(Arc::new)).collect();
    let text = |name: &str| tree["metadata"][name].as_str().unwrap_or_default();
    Ok(List {
        items: objects?.into(),
        resource_version: text("resourceVersion").parse().unwrap_or(0),
        continue_token: text("continue").to_owned(),
        remaining_item_count: tree["metadata"]["remainingItemCount"].as_u64(),
    })
}

/// An answer of which only matters that it is no failure.
pub(super) async fn done(response: ApiResponse) -> Result<(), Status> {
    if response.status().is_success() { Ok(()) } else { Err(failure(response).await) }
}

/// Any answer, as a tree.
pub(super) async fn value(mut response: ApiResponse) -> Result<Value, Status> {
    if !response.status().is_success() {
        return Err(failure(response).await);
    }
    if let Some(ObjectAnswer(object)) = response.extensions_mut().remove() {
        return Ok(object.to_value());
    }
    if let Some(StatusAnswer(status)) = response.extensions_mut().remove() {
        return Ok(status.to_value());
    }
    let body = collect(response.into_body()).await?;
    serde_json::from_slice(&body)
        .map_err(|error| Status::internal(format!("the answer is not JSON: {error}")))
}

/// An object out of its tree on the wire.
pub(super) fn object_of(selectable: &[Selectable], tree: &Value) -> Result<Object, Status> {
    let revision = tree["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
    let stored = encode_for_storage(tree).map_err(Status::internal)?;
    read_object(selectable, stored, revision.unwrap_or(0)).map_err(Status::internal)
}

/// The failure that an answer tells of.
pub(super) async fn failure(mut response: ApiResponse) -> Status {
    if let Some(StatusAnswer(status)) = response.extensions_mut().remove() {
        return status;
    }
    let code = response.status();
    match collect(response.into_body()).await {
        Ok(body) => serde_json::from_slice(&body).unwrap_or_else(|_| unknown(code, &body)),
        Err(status) => status,
    }
}

/// A failure that did not come from an apiserver.
fn unknown(code: StatusCode, body: &[u8]) -> Status {
    let text = String::from_utf8_lossy(body);
    let message = format!("the server answered {code}: {}", text.chars().take(256).collect::<String>());
    Status::failure(code.as_u16(), "", message)
}

async fn collect(body: Body) -> Result<Bytes, Status> {
    Ok(body.collect().await.map_err(Status::internal)?.to_bytes())
}
