//! Holds requests while somebody steps the cluster (`kubarium step`). Upstream has nothing like it; the
//! nearest is a debugger that has stopped the process.
//!
//! It stands in front of the limits, so that who is held takes nobody's place. Reads are not held, for they
//! are no steps; nor are health checks, what is mounted beside the API, and what only asks who somebody is or
//! what they may.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, Limited};
use tokio::sync::watch;
use tower::Service;

use super::chain::Chain;
use super::flow_asked::is_told;
use super::interceptor::is_own;
use super::passed::Passed;
use super::{Next, Passing};
use crate::request::RequestInfo;
use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, InProcessUser, status_response};
use clock::Clock;
use flow::{Flow, HeldStage, HeldStep, StepId};

/// A longer body is not read before it is asked for: strangers may send it. Whose request it is has no name
/// then, if it is never let go.
const MAX_EARLY_BYTES: usize = 64 * 1024;

/// Where it is looked up why a client waited in vain.
#[derive(Clone)]
pub struct Holds(pub Flow);

impl Holds {
    /// Of a request that gave up, by a step of it: where it was held, if it was.
    pub(super) fn held_up(&self, step: Option<u64>) -> Option<String> {
        let step = self.0.held_up(StepId(step?))?;
        Some(format!(
            "somebody steps this cluster, and held it in {step}. `kubarium step` lets one step happen, \
             `kubarium step continue` all"
        ))
    }
}

/// On a request that may be held: whether its client is still there.
#[derive(Clone)]
pub(super) struct ClientThere(watch::Receiver<()>);

impl ClientThere {
    /// Returns when the client waits no longer.
    pub(super) async fn gone(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// Reads the body of a create that may be held, if it is short: it alone says which object the story of a
/// request is about that is never let go.
pub(super) async fn read_early(request: &mut Passed) -> Option<Bytes> {
    let info = &request.ctx.info;
    let is_nameless = info.verb == "create" && info.name.is_empty() && is_held(info);
    let length = request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse::<usize>().ok()?;
    if !is_nameless || length > MAX_EARLY_BYTES {
        return None;
    }
    // What breaks off is refused as what is left of it.
    let body = std::mem::take(request.body_mut());
    let bytes = Limited::new(body, MAX_EARLY_BYTES).collect().await.ok()?.to_bytes();
    *request.body_mut() = Body::from(bytes.clone());
    Some(bytes)
}

/// The chain, which comes to its end with a request that may be held even if its client waits no longer: else
/// nobody would tell what became of it. It is not done any more then.
#[derive(Clone)]
pub struct OutlivesClient {
    /// What answers.
    pub chain: Chain,
    /// Whether somebody steps the cluster.
    pub flow: Flow,
    /// By which it is at work.
    pub clock: Clock,
}

impl Service<ApiRequest> for OutlivesClient {
    type Response = ApiResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<ApiResponse, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: ApiRequest) -> Self::Future {
        let is_in_process = request.extensions().get::<InProcessUser>().is_some();
        if !self.flow.is_stepped() || is_in_process || request.method().is_safe() {
            return self.chain.call(request);
        }
        let (here, there) = watch::channel(());
        request.extensions_mut().insert(ClientThere(there));
        let answering = self.clock.spawn(self.chain.call(request));
        async move {
            // Gone with this future, which the server drops when the client has gone.
            let _here = here;
            let ended = |error| Ok(status_response(Status::internal(error), true));
            answering.await.unwrap_or_else(ended)
        }
        .boxed()
    }
}

/// Waits in front of a request that would change something.
pub async fn hold_request(flow: &Flow, request: Passing, next: Next<'_>) -> ApiResponse {
    if !flow.is_stepped() || !is_held(&request.ctx.info) {
        return next.run(request).await;
    }
    let cause = request.ctx.cause.map(StepId);
    let through = is_own(&request.ctx.user).then(|| flow.let_through(cause)).flatten();
    if through.is_none() {
        let info = request.ctx.info.clone();
        let step = || {
            let (verb, path) = (flow.name(&info.verb), info.path.as_str().into());
            HeldStep::in_apiserver(HeldStage::Request, verb, path).caused_by(cause)
        };
        flow.gate(step).await;
    }
    next.run(request).await
}

fn is_held(info: &RequestInfo) -> bool {
    let only_asks = matches!(info.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io");
    is_told(info) && !info.is_beside() && !info.is_long_running() && !only_asks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_held_and_nothing_else() {
        let info = |verb: &str, group: &str, resource: &str, subresource: &str| RequestInfo {
            is_resource_request: true,
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            ..RequestInfo::default()
        };
        assert!(is_held(&info("create", "apps", "deployments", "")));
        assert!(is_held(&info("patch", "", "pods", "status")));
        assert!(!is_held(&info("list", "", "pods", "")));
        assert!(!is_held(&info("create", "", "pods", "exec")));
        assert!(!is_held(&info("update", "coordination.k8s.io", "leases", "")));
        assert!(!is_held(&info("create", "authorization.k8s.io", "subjectaccessreviews", "")));
        for path in ["/healthz", "/readyz", "/metrics", "/kubarium/v1/step/next"] {
            let info = RequestInfo { verb: "post".into(), path: path.into(), ..RequestInfo::default() };
            assert!(!is_held(&info), "{path}");
        }
    }
}
