//! `AskedFor`: what a rule looks at in a request.

use std::sync::Arc;

use http::header::USER_AGENT;

use super::expired::WatcherKey;
use apimachinery::user::UserInfo;
use apiserver::filters::passed::Passed;
use apiserver::request::{RequestInfo, query_value};

/// What a rule looks at.
pub(super) struct AskedFor {
    pub(super) user: Arc<UserInfo>,
    pub(super) info: Arc<RequestInfo>,
    pub(super) agent: String,
    /// The revision that it starts from.
    pub(super) from: Option<u64>,
}

impl AskedFor {
    pub(super) fn watcher(&self) -> WatcherKey {
        (self.user.name.clone(), self.info.group.clone(), self.info.resource.clone())
    }

    pub(super) fn of(request: &Passed) -> AskedFor {
        let agent = agent(request).to_owned();
        let from = query_value(request.uri().query().unwrap_or_default(), "resourceVersion");
        let from = from.and_then(|revision| revision.parse().ok());
        AskedFor { user: request.ctx.user.clone(), info: request.ctx.info.clone(), agent, from }
    }
}

/// What program asks.
pub(super) fn agent(request: &Passed) -> &str {
    request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
