//! Notes the way of a write through the filters in the causal record. The filters themselves know nothing of
//! it: these layers stand between them, in the handler chain.
//!
//! Each layer makes its step the cause of what follows, in the request's [`CausedBy`]; the storage finds the
//! last one there. Reads are not noted: nothing comes of them, and their number would push everything else
//! out of the record.

use std::sync::Arc;

use super::filters::impersonation::Impersonator;
use super::filters::{Next, Passing};
use crate::apimachinery::gvk::GroupResource;
use crate::apimachinery::wire::{ApiRequest, ApiResponse, CausedBy, InProcessUser, StatusAnswer};
use crate::apiserver::authentication::{Authenticated, Refused, Said};
use crate::apiserver::authorizer::Allowed;
use crate::apiserver::request::RequestInfo;
use crate::flow::{Flow, Step, StepId};

/// Behind the filter that reads what is asked for: notes the request, and later its answer.
pub async fn record_request(flow: &Flow, mut request: Passing, next: Next<'_>) -> ApiResponse {
    let step = note(flow, &mut request, |request, info| {
        let component = request.extensions().get().map(|InProcessUser(user)| user.name.clone());
        let (user, path) = (component.unwrap_or_default(), info.path.as_str().into());
        Step::RequestReceived { user, verb: flow.name(&info.verb), path }
    });
    let info = request.extensions().get::<Arc<RequestInfo>>().cloned().filter(|_| step != StepId::NONE);
    let response = next.run(request).await;
    if let Some(info) = info {
        if let Some(Refused(said)) = response.extensions().get() {
            flow.record(step.cause(), Step::NotAuthenticated { said: told(flow, said) });
        }
        if let Some(impersonator) = response.extensions().get() {
            flow.record(step.cause(), impersonated(flow, impersonator));
        }
        flow.record(step.cause(), outcome(flow, &info, &response));
    }
    response
}

/// What came of a request; a failure with what the client was told.
fn outcome(flow: &Flow, info: &RequestInfo, response: &ApiResponse) -> Step {
    let code = response.status().as_u16();
    let Some(StatusAnswer(status)) = response.extensions().get().filter(|_| code >= 400) else {
        return Step::Responded { code };
    };
    let details = status.details.as_deref();
    let told = details.map(|details| details.name.as_str()).filter(|name| !name.is_empty());
    let name = if info.name.is_empty() { told.unwrap_or_default() } else { &info.name };
    Step::Refused {
        resource: flow.name(&GroupResource::new(&info.group, &info.resource).to_string()),
        namespace: flow.name(&info.namespace),
        name: name.into(),
        code,
        why: status.message.as_str().into(),
    }
}

/// Behind authentication: notes who asks.
pub async fn record_authenticated(flow: &Flow, mut request: Passing, next: Next<'_>) -> ApiResponse {
    note(flow, &mut request, |request, _| match request.extensions().get::<Authenticated>() {
        Some(Authenticated { user, by, said }) => {
            Step::Authenticated { user: user.name.clone(), by: flow.name(by), said: told(flow, said) }
        }
        None => Step::Authenticated { user: "".into(), by: "".into(), said: vec![] },
    });
    next.run(request).await
}

/// Behind authorization: notes who allowed it, and why.
pub async fn record_authorized(flow: &Flow, mut request: Passing, next: Next<'_>) -> ApiResponse {
    if let Some(impersonator) = request.extensions().get::<Impersonator>().cloned() {
        note(flow, &mut request, |_, _| impersonated(flow, &impersonator));
    }
    note(flow, &mut request, |request, _| match request.extensions().get::<Allowed>() {
        Some(Allowed { by, reason }) => {
            Step::Authorized { by: flow.name(by), reason: reason.clone().unwrap_or_default() }
        }
        None => Step::Authorized { by: "".into(), reason: "".into() },
    });
    next.run(request).await
}

fn impersonated(flow: &Flow, impersonator: &Impersonator) -> Step {
    let Impersonator { user, acting, verb } = impersonator;
    Step::Impersonated { user: user.name.clone(), acting: acting.name.clone(), verb: flow.name(verb) }
}

/// What authenticators said, as the record keeps it.
fn told(flow: &Flow, said: &[Said]) -> Vec<(Arc<str>, Arc<str>)> {
    said.iter().map(|(name, words)| (flow.name(name), words.as_ref().into())).collect()
}

/// Notes a step of a write, caused by the step before it.
fn note(
    flow: &Flow,
    request: &mut ApiRequest,
    make: impl FnOnce(&ApiRequest, &RequestInfo) -> Step,
) -> StepId {
    let info = request.extensions().get::<Arc<RequestInfo>>().filter(|_| flow.is_on()).cloned();
    let Some(info) = info.filter(|info| is_write(info)) else { return StepId::NONE };
    let cause = request.extensions().get::<CausedBy>().and_then(|cause| StepId(cause.0).cause());
    let step = flow.record(cause, make(request, &info));
    match request.extensions_mut().get_mut() {
        Some(CausedBy(last)) => *last = step.0,
        None => drop(request.extensions_mut().insert(CausedBy(step.0))),
    }
    step
}

fn is_write(info: &RequestInfo) -> bool {
    info.is_resource_request && !matches!(info.verb.as_str(), "get" | "list" | "watch")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use chrono::DateTime;
    use tower::{ServiceBuilder, ServiceExt};

    use super::super::filters::chain::{Chain, endpoint, from_fn_with_state as with};
    use super::*;
    use crate::apimachinery::user::UserInfo;
    use crate::clock::Clock;
    use crate::flow::Operation;

    /// Sends a request through the layers to a store that writes whatever comes.
    async fn send(flow: &Flow, method: http::Method, user: &str) {
        let path = "/api/v1/namespaces/ns/pods";
        let mut request = http::Request::builder().method(&method).uri(path).body(Body::empty()).unwrap();
        let extensions = request.extensions_mut();
        extensions.insert(Arc::new(RequestInfo::new(&method, path, "").unwrap()));
        let user = Arc::new(UserInfo::authenticated(user, &[]));
        extensions.insert(Authenticated { user, by: "X509", said: vec![("RequestHeader", "no".into())] });
        let store = flow.clone();
        let service = ServiceBuilder::new()
            .layer(with(flow.clone(), record_request))
            .layer(with(flow.clone(), record_authenticated))
            .layer(with(flow.clone(), record_authorized))
            .service(endpoint(move |request: ApiRequest| {
                let cause = request.extensions().get::<CausedBy>().map(|cause| StepId(cause.0));
                let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
                let operation = Operation::Create;
                store.record(cause, Step::Stored { resource, namespace, name, revision: 2, operation });
                async { http::Response::new(Body::empty()) }
            }));
        Chain::new(service).oneshot(request).await.unwrap();
    }

    #[tokio::test]
    async fn a_write_is_told_from_its_request_to_its_answer() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        send(&flow, http::Method::POST, "somebody").await;
        let steps = flow.trace("pods", "ns", "a").steps;
        let causes: Vec<Option<u64>> = steps.iter().map(|step| step.cause.map(|cause| cause.0)).collect();
        assert_eq!(causes, [None, Some(1), Some(2), Some(3), Some(1)]);
        let (user, by, said) =
            ("somebody".into(), "X509".into(), vec![("RequestHeader".into(), "no".into())]);
        assert_eq!(steps[1].step, Step::Authenticated { user, by, said });
        assert_eq!(steps[4].step, Step::Responded { code: 200 });
    }

    #[tokio::test]
    async fn a_read_is_not_noted() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        send(&flow, http::Method::GET, "somebody").await;
        assert_eq!(
            flow.trace("pods", "ns", "a").steps.len(),
            1,
            "the write that the test's store makes of it"
        );
    }
}
