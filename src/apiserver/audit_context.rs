//! `AuditContext`: what is gathered about one request while it is worked on (`audit.AuditContext`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sync::{Mutex, MutexGuard};

use apimachinery::status::Status;
use apimachinery::user::UserInfo;

/// Annotations of one event; what comes later is left out (a plugin writes a handful).
const MAX_ANNOTATIONS: usize = 256;

/// How much of a request is told.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, serde::Serialize,
)]
pub enum Level {
    /// Nothing is told of the request.
    #[default]
    None,
    /// Who, what, when.
    Metadata,
    /// And the body.
    Request,
    /// And the answer.
    RequestResponse,
}

/// Travels with a request that is audited.
#[derive(Debug)]
pub struct AuditContext {
    /// How much is to be told.
    pub level: Level,
    /// Whether managed fields are told.
    pub omits_managed_fields: bool,
    gathered: Mutex<Gathered>,
}

/// What was gathered so far.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// For the event's `annotations`.
    pub annotations: BTreeMap<String, String>,
    /// Whom the user acts as.
    pub impersonated: Option<Arc<UserInfo>>,
    /// The verb that allowed it, where it is not the old one.
    pub impersonation_constraint: Option<&'static str>,
    /// The body, as it was decoded.
    pub request_object: Option<Value>,
    /// The answer.
    pub response_object: Option<Value>,
    /// A Status that was answered.
    pub response_status: Option<Status>,
}

impl AuditContext {
    /// Nothing gathered.
    pub fn new(level: Level, omits_managed_fields: bool) -> AuditContext {
        AuditContext { level, omits_managed_fields, gathered: Mutex::default() }
    }

    /// Adds an annotation; the first one under a key stays.
    pub fn annotate(&self, key: &str, value: &str) {
        let annotations = &mut self.lock().annotations;
        if annotations.len() < MAX_ANNOTATIONS {
            annotations.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    }

    /// The body, as it was read. Of one that is not told only what names it is kept.
    pub fn heard(&self, body: impl FnOnce() -> Value) {
        let body = body();
        let body = if self.level >= Level::Request {
            body
        } else {
            json!({"metadata": {"name": body["metadata"]["name"], "namespace": body["metadata"]["namespace"],
                "uid": body["metadata"]["uid"], "resourceVersion": body["metadata"]["resourceVersion"]}})
        };
        self.gather(|gathered| gathered.request_object = Some(body));
    }

    /// Changes what was gathered.
    pub fn gather(&self, change: impl FnOnce(&mut Gathered)) {
        change(&mut self.lock());
    }

    /// What was gathered.
    pub fn gathered(&self) -> Gathered {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock()
    }
}
