//! The OpenAPI documents of remote servers (`kube-aggregator/pkg/controllers/{openapi,openapiv3}`).
//!
//! Upstream fetches them every minute. Here they are fetched when somebody asks for OpenAPI and a minute has
//! passed, with the ETag of what is known; one that fails is left alone for a minute, then two, at most an
//! hour. What was good once is kept until the APIService goes: a server that is gone, or that answers
//! something else than a document, changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use http::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use serde_json::Value;
use tokio::sync::Mutex;

use super::remote::Remote;
use apimachinery::user::UserInfo;
use clock::Clock;
use openapi::{self, is_v2};

/// Upstream's `successfulUpdateDelay`.
const PERIOD: TimeDelta = TimeDelta::minutes(1);
/// After so many failures, each doubling the time, the time is upstream's `failedUpdateMaxExpDelay`.
const MAX_DOUBLINGS: u32 = 6;
const MAX_DELAY: TimeDelta = TimeDelta::hours(1);
const JSON: &str = "application/json";

/// What one remote server publishes.
pub(super) struct Documents {
    pub(super) v2: Document,
    pub(super) v3: Document,
}

/// One of its documents, as it was last seen.
pub(super) struct Document {
    path: &'static str,
    is_good: fn(&Value) -> bool,
    /// Held while the server is asked, so that it is asked once.
    known: Mutex<Known>,
}

#[derive(Clone, Default)]
pub(super) struct Known {
    /// None before there was an answer.
    answer: Option<Answer>,
    /// When it may be asked again.
    due: DateTime<Utc>,
    failures: u32,
}

#[derive(Clone)]
enum Answer {
    Body {
        body: Bytes,
        etag: String,
        hash: String,
    },
    /// The server has no such document.
    None,
}

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

impl Default for Documents {
    fn default() -> Documents {
        let new = |path, is_good| Document { path, is_good, known: Mutex::default() };
        Documents {
            v2: new("/openapi/v2", is_v2),
            v3: new("/openapi/v3", |index| index["paths"].is_object()),
        }
    }
}

impl Documents {
    /// Its APIService says something new: it may be asked at once.
    pub(super) fn forget_failures(&self) {
        for document in [&self.v2, &self.v3] {
            // One that is being asked will be as new.
            if let Ok(mut known) = document.known.try_lock() {
                known.due = DateTime::default();
            }
        }
    }
}

impl Document {
    /// What is known of it, after asking again if that is due and the server is there; None when nothing is.
    pub(super) async fn get(&self, remote: &Remote, clock: &Clock, is_there: bool) -> Option<Known> {
        let mut known = self.known.lock().await;
        let now = clock.now();
        if is_there && known.due <= now {
            match self.ask(remote, clock, known.answer.as_ref()).await {
                Ok(answer) => *known = Known { answer: Some(answer), due: now + PERIOD, failures: 0 },
                Err(_) => {
                    let doublings = known.failures.min(MAX_DOUBLINGS);
                    known.due = now + (PERIOD * (1 << doublings)).min(MAX_DELAY);
                    known.failures += 1;
                }
            }
        }
        known.answer.is_some().then(|| known.clone())
    }

    async fn ask(&self, remote: &Remote, clock: &Clock, known: Option<&Answer>) -> Result<Answer, String> {
        let user = UserInfo { name: "system:aggregator".into(), ..UserInfo::default() };
        let mut headers = vec![(ACCEPT, JSON)];
        if let Some(Answer::Body { etag, .. }) = known
            && !etag.is_empty()
        {
            headers.push((IF_NONE_MATCH, etag));
        }
        let response = remote.ask(self.path, &user, &headers, clock).await?;
        match (response.status(), known) {
            (StatusCode::NOT_MODIFIED, Some(known)) => return Ok(known.clone()),
            // A document that was there does not go.
            (StatusCode::NOT_FOUND, None | Some(Answer::None)) => return Ok(Answer::None),
            (StatusCode::OK, _) => {}
            (code, _) => {
                return Err(format!("failed to retrieve openAPI spec, http error: {}", code.as_u16()));
            }
        }
        let document: Value = serde_json::from_slice(response.body()).map_err(|error| error.to_string())?;
        if !(self.is_good)(&document) {
            return Err("it is no OpenAPI document".into());
        }
        let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).unwrap_or_default();
        let hash = openapi::hash(response.body());
        Ok(Answer::Body { etag: etag.into(), hash, body: response.into_body() })
    }
}

impl Known {
    /// The document and its hash, if the server has it.
    pub(super) fn document(self) -> Option<(Bytes, String)> {
        match self.answer? {
            Answer::Body { body, hash, .. } => Some((body, hash)),
            Answer::None => None,
        }
    }
}

impl RemoteIndex {
    pub(super) async fn ask(remote: Arc<Remote>, clock: &Clock, is_there: bool) -> Option<RemoteIndex> {
        if let Some((body, _)) = remote.documents.v3.get(&remote, clock, is_there).await?.document() {
            let index: Value = serde_json::from_slice(&body).ok()?;
            let url = |entry: &Value| entry["serverRelativeURL"].as_str().unwrap_or_default().to_owned();
            let paths = index["paths"].as_object().into_iter().flatten();
            let urls = paths.map(|(path, entry)| (path.clone(), url(entry))).collect();
            return Some(RemoteIndex { remote, urls, legacy: None });
        }
        let (body, hash) = remote.documents.v2.get(&remote, clock, is_there).await?.document()?;
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
