//! `SeenRequests`: the last requests of users, and each thing that they ever asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use golang::first_bytes::first_bytes;
use serde::Serialize;

use super::uses::{RbacUse, RbacUses};
use apimachinery::time::rfc3339_micro;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiResponse, Faulted};
use apiserver::filters::interceptor::{Interceptor, is_own};
use apiserver::filters::passed::Passed;
use apiserver::filters::{Next, Passing};
use apiserver::request::{RequestInfo, SecondChecks};
use clock::Clock;
use sync::Mutex;

/// So many requests are remembered; then the oldest is forgotten.
pub const REMEMBERED: usize = 4096;

/// So many bytes of a path, and of each of its parts, are remembered; what is longer is cut there.
const MAX_TEXT_BYTES: usize = 512;
/// Who was not authenticated. Nobody grants them a role by what they have tried, and there is no end of that.
const UNAUTHENTICATED: &str = "system:unauthenticated";

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

    fn note(&self, noted: NotedRequest, checked: &SecondChecks) {
        let mut state = self.0.state.lock();
        state.uses.add(&noted.user, &noted.info);
        for info in checked.noted() {
            state.uses.add(&noted.user, &cut(&info));
        }
        if state.last.len() == REMEMBERED {
            state.last.pop_front();
        }
        state.last.push_back(noted);
    }
}

impl Interceptor for SeenRequests {
    fn wants(&self, request: &Passed) -> bool {
        let user = &request.ctx.user;
        let is_seen = !user.is_component() && !is_own(user) && !user.is_member_of(UNAUTHENTICATED);
        is_seen && !request.ctx.info.is_beside()
    }

    fn intercept<'a>(&'a self, mut request: Passing, next: Next<'a>) -> BoxFuture<'a, ApiResponse> {
        Box::pin(async move {
            let user = request.ctx.user.clone();
            let info = cut(&request.ctx.info);
            let cause = request.ctx.cause;
            let checked = SecondChecks::listened_to();
            request.ctx.second_checks = checked.clone();
            let response = next.run(request).await;
            let fault = response.extensions().get().map(|Faulted(name)| name.clone());
            let code = response.status().as_u16();
            let noted = NotedRequest { at: self.0.clock.now(), user, info, code, cause, fault };
            self.note(noted, &checked);
            response
        })
    }
}

/// What is asked for, in texts of bounded length. The selectors are in nothing that is shown.
fn cut(info: &Arc<RequestInfo>) -> Arc<RequestInfo> {
    let RequestInfo { path, name, field_selector, label_selector, .. } = &**info;
    let texts = [path, name, field_selector, label_selector];
    if texts.iter().all(|text| text.len() <= MAX_TEXT_BYTES) {
        return info.clone();
    }
    let mut cut = (**info).clone();
    cut.field_selector.clear();
    cut.label_selector.clear();
    let RequestInfo { path, verb, group, version, namespace, resource, subresource, name, .. } = &mut cut;
    for text in [path, verb, group, version, namespace, resource, subresource, name] {
        text.truncate(first_bytes(text, MAX_TEXT_BYTES).len());
        text.shrink_to_fit();
    }
    Arc::new(cut)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_texts_the_beginning_is_remembered() {
        let info =
            |path: &str, query: &str| Arc::new(RequestInfo::new(&http::Method::GET, path, query).unwrap());
        let short = info("/api/v1/namespaces/n/pods/a", "");
        assert!(Arc::ptr_eq(&cut(&short), &short));
        let long = "ä".repeat(40_000);
        let named = cut(&info(&format!("/api/v1/namespaces/{long}/pods/{long}/{long}"), ""));
        let texts = [&named.path, &named.namespace, &named.name, &named.subresource];
        assert!(texts.iter().all(|text| text.len() <= MAX_TEXT_BYTES && text.len() >= MAX_TEXT_BYTES - 1));
        let selected = cut(&info("/api/v1/pods", &format!("labelSelector={}", "x".repeat(40_000))));
        assert_eq!((&*selected.resource, &*selected.label_selector), ("pods", ""));
        let other = cut(&info(&format!("/{}", "x".repeat(40_000)), ""));
        assert_eq!((other.path.len(), other.path.capacity()), (MAX_TEXT_BYTES, MAX_TEXT_BYTES));
    }
}
