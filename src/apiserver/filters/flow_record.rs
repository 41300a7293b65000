//! Notes the way of a write through the filters in the causal record, and every request that is refused. The
//! filters themselves know nothing of it: these layers stand between them, in the handler chain.
//!
//! Each layer makes its step the cause of what follows, in the request's context; the storage finds the last
//! one there. Reads are noted only when they are refused (401 and 403) or another server should have answered
//! them and did not, or is not known to the mux, and then afterwards; and people's questions what is served.
//! Nothing comes of the others, and their number would push everything else out of the record. The same holds
//! for renewals of leases. Reads of a client that traces them are noted while somebody collects spans.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use http_body_util::{BodyExt, Limited};

use super::exchange;
use super::flow_asked::{FlowQuestion, TRACE_PARENT, asked_before, is_told, is_unknown_path, routed};
use super::passed::{Impersonator, Passed};
use super::{Next, Passing};
use crate::authentication::{Authenticated, CredentialsRefused, Said};
use crate::authorizer::{self, Allowed};
use crate::request::{PassedOn, RequestInfo, bounded};
use apimachinery::decode::{BodyFormat, name_in};
use apimachinery::gvk::GroupResource;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiResponse, Attempted, DecodedBody, InProcessUser, StatusAnswer, UnreadBody};
use clock::Clock;
use flow::{Flow, PassedOnRequest, Step, StepId, TraceParent};

/// What is read of the body of a create that was refused before anybody read it, to learn its object's name.
/// An attempt with a longer body has no name. It is as little as is counted nowhere else, for strangers may
/// send it.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long such a body may take to come; then the attempt has no name. The server reads it in any case
/// before it answers, and has more patience.
const BODY_PATIENCE: Duration = Duration::from_secs(1);
/// The longest name that an object can have. A text that is longer is no name, and is not kept.
const MAX_NAME_BYTES: usize = 253;

/// What is noted of a request beside what its answer says.
struct AskedRequest {
    info: Arc<RequestInfo>,
    /// The component of this process that asks.
    component: Option<Arc<UserInfo>>,
    cause: Option<StepId>,
    /// How the body is written.
    format: Option<BodyFormat>,
    /// The step of a write; none of a read that is noted only when it is refused.
    step: StepId,
}

/// On an answer that refuses a read: who asked, as authentication found out.
#[derive(Clone)]
struct KnownRefused {
    user: Arc<UserInfo>,
    by: &'static str,
}

/// Behind the filter that reads what is asked for: notes the request, and later its answer.
pub async fn record_request(
    (flow, clock): &(Flow, Clock),
    mut request: Passing,
    next: Next<'_>,
) -> ApiResponse {
    let (asked, question) = (asked(flow, &mut request), FlowQuestion::of(flow, &request));
    let kept = asked.as_ref().filter(|asked| is_told(&asked.info));
    let kept = kept.and_then(|asked| exchange::keep(flow, asked.step, &mut request));
    let mut response = next.run(request).await;
    if let Some(kept) = kept {
        response = kept.answered(response);
    }
    if let Some(asked) = asked {
        finish(flow, clock, asked, &mut response).await;
    }
    if let Some((asked, refused)) = question.and_then(|question| question.answered(flow, &response)) {
        for step in words(flow, &response).into_iter().chain([refused]) {
            flow.record(asked.cause(), step);
        }
    }
    if response.status().as_u16() >= 400 {
        // Where the story is told nobody needs it any more, and the server wants to read the rest of it.
        response.extensions_mut().remove::<UnreadBody>();
    }
    response
}

/// None where nothing is to be noted whatever comes.
fn asked(flow: &Flow, request: &mut Passed) -> Option<AskedRequest> {
    let is_noted = request.ctx.info.is_resource_request || request.ctx.info.is_beside();
    if !flow.is_on() || !is_noted {
        return None;
    }
    let info = request.ctx.info.clone();
    let component = request.extensions().get().map(|InProcessUser(user)| user.clone());
    request.ctx.cause = request.ctx.cause.or_else(|| asked_before(request));
    let cause = cause(request);
    let format = BodyFormat::of(request.headers());
    let mut asked = AskedRequest { info, component, cause, format, step: StepId::NONE };
    asked.step = note(flow, request, |_| received(flow, &asked));
    let given = request.headers().get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    let Some((text, parent)) = given.and_then(|text| Some((text, TraceParent::parse(text)?))) else {
        return Some(asked);
    };
    let traceparent = text.into();
    if asked.step != StepId::NONE {
        note(flow, request, |_| Step::TraceContinued { traceparent });
    } else if parent.is_sampled && asked.info.is_read_only() && flow.collects_spans() {
        // A read is a span, and no story: what is found out about it on its way is not told.
        asked.step = flow.record(asked.cause, received(flow, &asked));
        flow.record(asked.step.cause(), Step::TraceContinued { traceparent });
    }
    Some(asked)
}

fn received(flow: &Flow, AskedRequest { info, component, .. }: &AskedRequest) -> Step {
    let user = component.as_ref().map(|user| user.name.clone()).unwrap_or_default();
    Step::RequestReceived { user, verb: flow.name(&info.verb), path: info.path.as_str().into() }
}

/// Notes what came of a request.
async fn finish(flow: &Flow, clock: &Clock, mut asked: AskedRequest, response: &mut ApiResponse) {
    let is_read = asked.step == StepId::NONE;
    let is_astray = asked.component.is_none() && is_unknown_path(response);
    if is_read && !is_astray && !is_no(response) {
        return;
    }
    let passed = response.extensions_mut().remove::<PassedOn>();
    if is_read {
        asked.step = flow.record(asked.cause, received(flow, &asked));
    }
    let cause = asked.step.cause();
    let code = response.status().as_u16();
    let mut passed_name = None;
    if let Some(passed) = passed {
        let request = passed_on(flow, &asked, passed, code);
        passed_name = Some(request.name.clone());
        flow.record(cause, Step::PassedOn(Box::new(request)));
    }
    if code < 400 && response.extensions().get::<Attempted>().is_none() {
        let is_persons = asked.component.is_none();
        let audit_id = is_persons.then(|| response.headers().get("audit-id")?.to_str().ok().map(Arc::from));
        flow.record(cause, Step::Responded { code, audit_id: audit_id.flatten() });
        return;
    }
    for step in words(flow, response) {
        flow.record(cause, step);
    }
    let name = match asked.info.name.as_str() {
        "" if asked.info.is_beside() => "".into(),
        "" if passed_name.is_some() => passed_name.unwrap_or_default(),
        "" => name_in_body(clock, asked.format, response).await.unwrap_or_default(),
        name => name.into(),
    };
    flow.record(cause, outcome(flow, &asked.info, name, response));
}

/// To whom a request was handed that another server has the objects of.
fn passed_on(flow: &Flow, asked: &AskedRequest, passed: PassedOn, code: u16) -> PassedOnRequest {
    let RequestInfo { group, resource, namespace, name, .. } = &*asked.info;
    let sent = || name_in(&passed.body.as_ref()?.whole()?, asked.format?);
    let name = if name.is_empty() { sent().unwrap_or_default() } else { name.clone() };
    PassedOnRequest {
        resource: flow.name(&GroupResource::new(group, resource).to_string()),
        namespace: flow.name(namespace),
        name: Some(name).filter(|name| name.len() <= MAX_NAME_BYTES).unwrap_or_default().into(),
        api_service: flow.name(&passed.api_service),
        service: flow.name(&passed.service),
        address: passed.address.map(Arc::from),
        trust: flow.name(&passed.trust),
        code,
        microseconds: u64::try_from(passed.took.as_micros()).unwrap_or(u64::MAX),
        why: passed.why.map(|why| bounded(&why)),
        reviews: passed.reviews.iter().map(|review| bounded(review)).collect(),
    }
}

/// Whether somebody may not do what they ask for, or was not told why another server does not answer it.
fn is_no(response: &ApiResponse) -> bool {
    let is_unanswered = |passed: &PassedOn| passed.why.is_some();
    matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        || response.extensions().get().is_some_and(is_unanswered)
}

/// What is said of a refusal beside its status: who it was, and what authenticators and authorizers said.
fn words(flow: &Flow, response: &ApiResponse) -> Vec<Step> {
    let extensions = response.extensions();
    let known = extensions.get().map(|KnownRefused { user, by }: &KnownRefused| Step::Authenticated {
        user: user.name.clone(),
        by: flow.name(by),
        said: vec![],
    });
    let strange = extensions
        .get()
        .map(|CredentialsRefused { said, .. }| Step::NotAuthenticated { said: told(flow, said) });
    let acting = extensions.get().map(|impersonator| impersonated(flow, impersonator));
    let forbidden = extensions.get().map(|refused: &authorizer::Refused| Step::NotAuthorized {
        said: refused.said.iter().map(|(name, words)| (flow.name(name), words.as_str().into())).collect(),
    });
    [known, strange, acting, forbidden].into_iter().flatten().collect()
}

/// The name of the object that a create would have made; nothing where nobody can know.
async fn name_in_body(
    clock: &Clock,
    format: Option<BodyFormat>,
    response: &mut ApiResponse,
) -> Option<Arc<str>> {
    let extensions = response.extensions_mut();
    let name: Arc<str> = if let Some(Attempted { name, .. }) = extensions.get() {
        name.clone()
    } else if let Some(DecodedBody(tree)) = extensions.remove() {
        tree["metadata"]["name"].as_str()?.into()
    } else {
        let body = extensions.get::<UnreadBody>()?.take()?;
        read_name(clock, format?, body).await?.into()
    };
    Some(name).filter(|name| name.len() <= MAX_NAME_BYTES)
}

async fn read_name(clock: &Clock, format: BodyFormat, body: Body) -> Option<String> {
    let read = clock.timeout_for_client(BODY_PATIENCE, Limited::new(body, MAX_BODY_BYTES).collect()).await;
    name_in(&read.ok()?.ok()?.to_bytes(), format)
}

/// What came of a request that stored nothing; a failure with what the client was told.
fn outcome(flow: &Flow, info: &RequestInfo, name: Arc<str>, response: &ApiResponse) -> Step {
    let code = response.status().as_u16();
    let resource = match response.extensions().get() {
        Some(Attempted { resource, .. }) => resource.clone(),
        None => flow.name(&GroupResource::new(&info.group, &info.resource).to_string()),
    };
    // The path of a namespace names itself.
    let is_in_itself = info.group.is_empty() && info.resource == "namespaces";
    let namespace = flow.name(if is_in_itself { "" } else { &info.namespace });
    if code < 400 {
        return Step::DryRun { resource, namespace, name, code };
    }
    let why = match response.extensions().get() {
        Some(StatusAnswer(status)) => bounded(&with_causes(status)),
        None => response.status().canonical_reason().unwrap_or_default().into(),
    };
    Step::Refused { resource, namespace, name, code, why }
}

/// What the client was told, with what stands beside the message alone, as which budget forbids an eviction.
fn with_causes(status: &Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let beside = causes.filter(|cause| cause.field.is_empty() && !status.message.contains(&cause.message));
    let said = std::iter::once(&status.message).chain(beside.map(|cause| &cause.message));
    said.map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Behind authentication: notes who asks.
pub async fn record_authenticated(flow: &Flow, mut request: Passing, next: Next<'_>) -> ApiResponse {
    let step = note(flow, &mut request, |request| match &request.story.authenticated {
        Some(Authenticated { user, by, said, .. }) => {
            Step::Authenticated { user: user.name.clone(), by: flow.name(by), said: told(flow, said) }
        }
        None => Step::Authenticated { user: "".into(), by: "".into(), said: vec![] },
    });
    let known = request.story.authenticated.as_ref().filter(|_| flow.is_on() && step == StepId::NONE);
    let known = known.map(|Authenticated { user, by, .. }| KnownRefused { user: user.clone(), by });
    let mut response = next.run(request).await;
    if let Some(known) = known.filter(|_| is_no(&response) || is_unknown_path(&response)) {
        response.extensions_mut().insert(known);
    }
    response
}

/// Behind authorization: notes who allowed it, and why.
pub async fn record_authorized(flow: &Flow, mut request: Passing, next: Next<'_>) -> ApiResponse {
    if let Some(impersonator) = request.story.impersonator.clone() {
        note(flow, &mut request, |_| impersonated(flow, &impersonator));
    }
    note(flow, &mut request, |request| match &request.story.allowed {
        Some(Allowed { by, reason, before }) => Step::Authorized {
            by: flow.name(by),
            reason: reason.clone().unwrap_or_default(),
            before: before.clone(),
        },
        None => Step::Authorized { by: "".into(), reason: "".into(), before: None },
    });
    if !request.ctx.wants_objects && !request.ctx.info.is_beside() {
        note(flow, &mut request, routed);
    }
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
fn note(flow: &Flow, request: &mut Passed, make: impl FnOnce(&Passed) -> Step) -> StepId {
    if !flow.is_on() || !is_told(&request.ctx.info) {
        return StepId::NONE;
    }
    let step = flow.record(cause(request), make(request));
    request.ctx.cause = Some(step.0);
    step
}

/// The step that was noted last, or the one that made the caller ask.
fn cause(request: &Passed) -> Option<StepId> {
    request.ctx.cause.and_then(|cause| StepId(cause).cause())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use chrono::DateTime;
    use tower::{ServiceBuilder, ServiceExt};

    use super::super::chain::{Chain, endpoint, from_fn, from_fn_with_state as with};
    use super::super::request_info::resolve_request_info;
    use super::*;
    use apimachinery::status::{StatusCause, StatusDetails};
    use apimachinery::user::UserInfo;
    use clock::Clock;
    use flow::WriteOperation;

    async fn know(known: &Authenticated, mut request: Passing, next: Next<'_>) -> ApiResponse {
        request.story.authenticated = Some(known.clone());
        next.run(request).await
    }

    /// Sends a request through the layers to a store that writes whatever comes; and is answered with this
    /// code.
    async fn send(flow: &Flow, method: http::Method, user: &str, code: u16) {
        let path = "/api/v1/namespaces/ns/pods";
        let request = http::Request::builder().method(&method).uri(path).body(Body::empty()).unwrap();
        let user = Arc::new(UserInfo::authenticated(user, &[]));
        let said = vec![("RequestHeader", "no".into())];
        let known = Authenticated { user, by: "X509", said, remarks: Arc::default() };
        let store = flow.clone();
        let service = ServiceBuilder::new()
            .layer(from_fn(resolve_request_info))
            .layer(with((flow.clone(), Clock::real()), record_request))
            .layer(with(known, know))
            .layer(with(flow.clone(), record_authenticated))
            .layer(with(flow.clone(), record_authorized))
            .service(endpoint(move |request: Passed| {
                let cause = request.ctx.cause.map(StepId);
                let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
                let (operation, uid) = (WriteOperation::Create, None);
                if code == 200 {
                    store.record(
                        cause,
                        Step::Stored { resource, namespace, name, revision: 2, operation, uid, bytes: 9 },
                    );
                }
                async move { http::Response::builder().status(code).body(Body::empty()).unwrap() }
            }));
        Chain::new(service).oneshot(request).await.unwrap();
    }

    #[tokio::test]
    async fn a_write_is_told_from_its_request_to_its_answer() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        send(&flow, http::Method::POST, "somebody", 200).await;
        let steps = flow.trace("pods", "ns", "a").steps;
        let causes: Vec<Option<u64>> = steps.iter().map(|step| step.cause.map(|cause| cause.0)).collect();
        assert_eq!(causes, [None, Some(1), Some(2), Some(3), Some(4), Some(1)]);
        let (user, by, said) =
            ("somebody".into(), "X509".into(), vec![("RequestHeader".into(), "no".into())]);
        assert_eq!(steps[1].step, Step::Authenticated { user, by, said });
        assert!(matches!(steps[3].step, Step::Routed(_)), "{steps:?}");
        assert_eq!(steps[5].step, Step::Responded { code: 200, audit_id: None });
    }

    #[tokio::test]
    async fn a_read_is_not_noted() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        send(&flow, http::Method::GET, "somebody", 200).await;
        assert_eq!(
            flow.trace("pods", "ns", "a").steps.len(),
            1,
            "the write that the test's store makes of it"
        );
    }

    #[tokio::test]
    async fn a_read_that_is_refused_is_noted_afterwards() {
        for code in [401, 403] {
            let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
            send(&flow, http::Method::GET, "somebody", code).await;
            let steps = flow.trace("pods", "ns", "").steps;
            let told: Vec<&Step> = steps.iter().map(|step| &step.step).collect();
            let [Step::RequestReceived { verb, .. }, Step::Authenticated { user, .. }, refused] = *told
            else {
                panic!("{told:?}")
            };
            assert_eq!((&**verb, &**user), ("list", "somebody"));
            let Step::Refused { code: answered, .. } = refused else { panic!("{refused:?}") };
            assert_eq!(*answered, code);
        }
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        send(&flow, http::Method::GET, "somebody", 404).await;
        assert_eq!(flow.record(None, Step::VALIDATED), StepId(1), "what is not there is no refusal");
    }

    #[test]
    fn what_stands_beside_the_message_is_told_once() {
        let status = Status::failure(429, "TooManyRequests", "Cannot evict pod.");
        assert_eq!(with_causes(&status), "Cannot evict pod.");
        let cause = |field: &str, message: &str| StatusCause {
            reason: "DisruptionBudget".into(),
            message: message.into(),
            field: field.into(),
        };
        let causes = vec![cause("", "The budget b needs 2."), cause("", "evict"), cause("spec.x", "bad")];
        let status = status.with_details(StatusDetails { causes, ..StatusDetails::default() });
        assert_eq!(with_causes(&status), "Cannot evict pod. The budget b needs 2.");
    }

    #[tokio::test]
    async fn the_name_is_read_from_a_body_that_nobody_read() {
        let name = async |body: Body| {
            let mut response = ApiResponse::default();
            response.extensions_mut().insert(UnreadBody::new(body));
            name_in_body(&Clock::real(), Some(BodyFormat::Json), &mut response).await
        };
        let body = |name: &str| Body::from(format!("{{\"metadata\":{{\"name\":{name:?}}}}}"));
        assert_eq!(name(body("web")).await.as_deref(), Some("web"));
        assert_eq!(name(body(&"x".repeat(254))).await, None, "no object can be called that");
        assert_eq!(name(Body::from(" ".repeat(MAX_BODY_BYTES) + "{}")).await, None);
        assert_eq!(name(Body::from("{\"metadata\":{\"name\":")).await, None);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for_longer() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut response = ApiResponse::default();
        let never = Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>());
        response.extensions_mut().insert(UnreadBody::new(never));
        let reading = name_in_body(&clock, Some(BodyFormat::Json), &mut response);
        let passing = async {
            tokio::task::yield_now().await;
            clock.advance(BODY_PATIENCE);
        };
        assert_eq!(tokio::join!(reading, passing).0, None);
    }
}
