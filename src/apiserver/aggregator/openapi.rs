//! Asks remote servers for their OpenAPI documents
//! (`kube-aggregator/pkg/controllers/{openapi,openapiv3}`); what they said is in `documents`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use serde_json::Value;

use super::documents::{DocumentAnswer, KnownDocument, MAX_DELAY, MAX_DOUBLINGS, PERIOD, PublishedDocument};
use super::remote::Remote;
use apimachinery::user::UserInfo;
use clock::Clock;

const JSON: &str = "application/json";

/// The swagger 2.0 document of a remote server.
pub struct RemoteDocument {
    /// Whose it is.
    pub remote: Arc<Remote>,
    /// As JSON.
    pub body: Bytes,
    /// What tells it from another.
    pub hash: String,
}

/// The paths under which a remote server publishes v3 documents, and where.
pub struct RemoteIndex {
    /// Whose they are.
    pub remote: Arc<Remote>,
    /// As `apis/metrics.k8s.io/v1beta1`, with their URLs.
    pub urls: BTreeMap<String, String>,
    /// The v2 document of a server that has no v3: its one path is to be served from that.
    pub legacy: Option<RemoteDocument>,
}

/// What is known of it, after asking again if that is due and the server is there; None when nothing is.
pub(super) async fn get(
    document: &PublishedDocument,
    remote: &Remote,
    clock: &Clock,
    is_there: bool,
) -> Option<KnownDocument> {
    let mut known = document.known.lock().await;
    let now = clock.now();
    if is_there && known.due <= now {
        match ask(document, remote, clock, known.answer.as_ref()).await {
            Ok(answer) => *known = KnownDocument { answer: Some(answer), due: now + PERIOD, failures: 0 },
            Err(_) => {
                let doublings = known.failures.min(MAX_DOUBLINGS);
                known.due = now + (PERIOD * (1 << doublings)).min(MAX_DELAY);
                known.failures += 1;
            }
        }
    }
    known.answer.is_some().then(|| known.clone())
}

async fn ask(
    document: &PublishedDocument,
    remote: &Remote,
    clock: &Clock,
    known: Option<&DocumentAnswer>,
) -> Result<DocumentAnswer, String> {
    let user = UserInfo { name: "system:aggregator".into(), ..UserInfo::default() };
    let mut headers = vec![(ACCEPT, JSON)];
    if let Some(DocumentAnswer::Body { etag, .. }) = known
        && !etag.is_empty()
    {
        headers.push((IF_NONE_MATCH, etag));
    }
    let response = remote.ask(document.path, &user, &headers, clock).await?;
    match (response.status(), known) {
        (StatusCode::NOT_MODIFIED, Some(known)) => return Ok(known.clone()),
        // A document that was there does not go.
        (StatusCode::NOT_FOUND, None | Some(DocumentAnswer::None)) => return Ok(DocumentAnswer::None),
        (StatusCode::OK, _) => {}
        (code, _) => {
            return Err(format!("failed to retrieve openAPI spec, http error: {}", code.as_u16()));
        }
    }
    let tree: Value = serde_json::from_slice(response.body()).map_err(|error| error.to_string())?;
    if !(document.is_good)(&tree) {
        return Err("it is no OpenAPI document".into());
    }
    let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).unwrap_or_default();
    let hash = openapi::hash(response.body());
    Ok(DocumentAnswer::Body { etag: etag.into(), hash, body: response.into_body() })
}

impl RemoteIndex {
    pub(super) async fn ask(remote: Arc<Remote>, clock: &Clock, is_there: bool) -> Option<RemoteIndex> {
        if let Some((body, _)) = get(&remote.documents.v3, &remote, clock, is_there).await?.document() {
            let index: Value = serde_json::from_slice(&body).ok()?;
            let url = |entry: &Value| entry["serverRelativeURL"].as_str().unwrap_or_default().to_owned();
            let paths = index["paths"].as_object().into_iter().flatten();
            let urls = paths.map(|(path, entry)| (path.clone(), url(entry))).collect();
            return Some(RemoteIndex { remote, urls, legacy: None });
        }
        let (body, hash) = get(&remote.documents.v2, &remote, clock, is_there).await?.document()?;
        let path = openapi::v3_path(&remote.group, &remote.version);
        let urls = BTreeMap::from([(path.clone(), openapi::v3_url(&path, &hash))]);
        let legacy = Some(RemoteDocument { remote: remote.clone(), body, hash });
        Some(RemoteIndex { remote, urls, legacy })
    }
}

/// Groups in the order of the highest `groupPriorityMinimum` in each. Within a group upstream compares a
/// version's priority with itself, so that names decide (`sortByPriority`).
pub(super) fn sort(documents: &mut [RemoteDocument]) {
    let mut priorities: HashMap<String, u32> = HashMap::new();
    for RemoteDocument { remote, .. } in documents.iter() {
        let priority = priorities.entry(remote.group.clone()).or_default();
        *priority = remote.group_priority.max(*priority);
    }
    documents.sort_by_cached_key(|document| {
        let RemoteDocument { remote, .. } = document;
        (Reverse(priorities[&remote.group]), remote.name.clone())
    });
}
