//! The OpenAPI documents of remote servers, as they were last seen, and when they are due again.
//!
//! Upstream fetches them every minute. Here they are fetched when somebody asks for OpenAPI and a minute has
//! passed, with the ETag of what is known; one that fails is left alone for a minute, then two, at most an
//! hour. What was good once is kept until the APIService goes: a server that is gone, or that answers
//! something else than a document, changes nothing.

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tokio::sync::Mutex;

use openapi::is_v2;

/// Upstream's `successfulUpdateDelay`.
pub(super) const PERIOD: TimeDelta = TimeDelta::minutes(1);
/// After so many failures, each doubling the time, the time is upstream's `failedUpdateMaxExpDelay`.
pub(super) const MAX_DOUBLINGS: u32 = 6;
pub(super) const MAX_DELAY: TimeDelta = TimeDelta::hours(1);

/// What one remote server publishes.
pub(super) struct PublishedDocuments {
    pub(super) v2: PublishedDocument,
    pub(super) v3: PublishedDocument,
}

/// One of its documents, as it was last seen.
pub(super) struct PublishedDocument {
    pub(super) path: &'static str,
    pub(super) is_good: fn(&Value) -> bool,
    /// Held while the server is asked, so that it is asked once.
    pub(super) known: Mutex<KnownDocument>,
}

#[derive(Clone, Default)]
pub(super) struct KnownDocument {
    /// None before there was an answer.
    pub(super) answer: Option<DocumentAnswer>,
    /// When it may be asked again.
    pub(super) due: DateTime<Utc>,
    pub(super) failures: u32,
}

/// What a remote server said.
#[derive(Clone)]
pub(super) enum DocumentAnswer {
    Body {
        body: Bytes,
        etag: String,
        hash: String,
    },
    /// The server has no such document.
    None,
}

impl Default for PublishedDocuments {
    fn default() -> PublishedDocuments {
        let new = |path, is_good| PublishedDocument { path, is_good, known: Mutex::default() };
        PublishedDocuments {
            v2: new("/openapi/v2", is_v2),
            v3: new("/openapi/v3", |index| index["paths"].is_object()),
        }
    }
}

impl PublishedDocuments {
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

impl KnownDocument {
    /// The document and its hash, if the server has it.
    pub(super) fn document(self) -> Option<(Bytes, String)> {
        match self.answer? {
            DocumentAnswer::Body { body, hash, .. } => Some((body, hash)),
            DocumentAnswer::None => None,
        }
    }
}
