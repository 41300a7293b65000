//! `SeenRequests`: the last requests of users, and each thing that they ever asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use serde::Serialize;

use super::uses::{RbacUse, RbacUses};
use apimachinery::time::rfc3339_micro;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiResponse, Faulted};
use apiserver::filters::interceptor::Interceptor;
use apiserver::filters::passed::Passed;
use apiserver::filters::{Next, Passing};
use apiserver::request::RequestInfo;
use clock::Clock;
use sync::Mutex;

/// So many requests are remembered; then the oldest is forgotten.
pub const REMEMBERED: usize = 4096;

/// What the test kit's own users are called.
const OWN_USERS: &str = "kubarium:";

/// What was seen in one cluster. Cloning shares it.
#[derive(Clone)]
pub struct SeenRequests(Arc<WitnessLog>);

struct WitnessLog {
    clock: Clock,
    state: Mutex<WitnessState>,
}

#[derive(Default)]
struct WitnessState {
    last: VecDeque<NotedRequest>,
    uses: RbacUses,
}

struct NotedRequest {
    at: DateTime<Utc>,
    user: Arc<UserInfo>,
    info: Arc<RequestInfo>,
    code: u16,
    cause: Option<u64>,
    fault: Option<Arc<str>>,
}

/// A request, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenRequest {
    /// When it was answered, by the cluster's clock.
    pub at: String,
    /// Who asked; behind impersonation, who acted.
    pub user: String,
    /// As in RBAC.
    pub verb: String,
    /// As `deployments.apps/status`; of what is no resource, nothing.
    pub resource: String,
    /// Empty at the cluster's scope.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// The path, without the query.
    pub path: String,
    /// The HTTP status.
    pub code: u16,
    /// The step of the causal record that made a caller in this process ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<u64>,
    /// The fault on purpose that hit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl SeenRequests {
    /// Nothing yet.
    pub fn new(clock: Clock) -> SeenRequests {
        SeenRequests(Arc::new(WitnessLog { clock, state: Mutex::default() }))
    }

    /// The last requests of a user, oldest first; of all users when it is empty.
    pub fn of(&self, user: &str) -> Vec<SeenRequest> {
        let state = self.0.state.lock();
        let is_meant = |noted: &&NotedRequest| user.is_empty() || *noted.user.name == *user;
        state.last.iter().filter(is_meant).map(NotedRequest::show).collect()
    }

    /// What users have asked for, each thing once.
    pub fn uses(&self) -> Vec<RbacUse> {
        self.0.state.lock().uses.all()
    }

    /// In how many requests something was asked for that is not in [`SeenRequests::uses`], because there was
    /// too much of it.
    pub fn left_out(&self) -> u64 {
        self.0.state.lock().uses.left_out
    }

    /// Forgets everything: what comes is of the test that begins.
    pub fn clear(&self) {
        *self.0.state.lock() = WitnessState::default();
    }

    fn note(&self, noted: NotedRequest) {
        let mut state = self.0.state.lock();
        state.uses.add(&noted.user, &noted.info);
        if state.last.len() == REMEMBERED {
            state.last.pop_front();
        }
        state.last.push_back(noted);
    }
}

impl Interceptor for SeenRequests {
    fn wants(&self, request: &Passed) -> bool {
        let user = &request.ctx.user;
        !user.is_component() && !user.name.starts_with(OWN_USERS) && !request.ctx.info.is_beside()
    }

    fn intercept<'a>(&'a self, request: Passing, next: Next<'a>) -> BoxFuture<'a, ApiResponse> {
        Box::pin(async move {
            let user = request.ctx.user.clone();
            let info = request.ctx.info.clone();
            let cause = request.ctx.cause;
            let response = next.run(request).await;
            let fault = response.extensions().get().map(|Faulted(name)| name.clone());
            let code = response.status().as_u16();
            self.note(NotedRequest { at: self.0.clock.now(), user, info, code, cause, fault });
            response
        })
    }
}

impl NotedRequest {
    fn show(&self) -> SeenRequest {
        let RequestInfo { verb, group, resource, subresource, namespace, name, path, .. } = &*self.info;
        let dot = if group.is_empty() { "" } else { "." };
        let slash = if subresource.is_empty() { "" } else { "/" };
        SeenRequest {
            at: rfc3339_micro(self.at),
            user: self.user.name.to_string(),
            verb: verb.clone(),
            resource: format!("{resource}{dot}{group}{slash}{subresource}"),
            namespace: namespace.clone(),
            name: name.clone(),
            path: path.clone(),
            code: self.code,
            cause: self.cause,
            fault: self.fault.as_deref().map(str::to_owned),
        }
    }
}
