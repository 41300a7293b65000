//! Keeps what is sent to and fro in a write, while somebody wants to see it (`flow::Exchange`). Upstream's
//! nearest is an audit event of level `RequestResponse`, and kubectl's `-v=9`.
//!
//! Secrets never: of resources that are secrets or ask for some nothing is kept, of headers and parameters
//! only values that are known to be none; of all others that they were there. Streams into pods and what is
//! passed on to them is not for this.

use std::sync::Arc;

use http::HeaderMap;
use sync::Mutex;

use super::passed::Passed;
use super::request_log::with_shown_query;
use crate::request::{RequestInfo, seen};
use apimachinery::wire::{ApiResponse, DecodedBody, ObjectAnswer, StatusAnswer};
use flow::{Exchange, Flow, MAX_HEADERS, SentBody, SentHeaders, SentMessage, StepId};

/// A longer value of a header is no more than counted.
const MAX_VALUE_BYTES: usize = 512;
/// Resources and subresources whose bodies are secrets, whatever their group.
const SECRET: &[&str] = &["secrets", "tokenreviews", "token"];
/// Subresources that pass something on to a pod, a Service or a node.
const PASSED_ON: &[&str] = &["proxy", "exec", "attach", "portforward"];
/// Headers whose values are told.
const TOLD_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "audit-id",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "etag",
    "host",
    "impersonate-group",
    "impersonate-uid",
    "impersonate-user",
    "kubectl-command",
    "kubectl-session",
    "location",
    "retry-after",
    "traceparent",
    "transfer-encoding",
    "user-agent",
    "vary",
    "warning",
    "x-kubernetes-pf-flowschema-uid",
    "x-kubernetes-pf-prioritylevel-uid",
];
/// Where the answer goes.
pub(super) struct KeptAnswer(Arc<Mutex<Option<SentMessage>>>);

/// Begins to keep a request whose first step this is; none where nobody asks for it, or nobody may have it.
pub(super) fn keep(flow: &Flow, step: StepId, request: &mut Passed) -> Option<KeptAnswer> {
    if step == StepId::NONE || !flow.keeps_exchanges() || !may_be_kept(&request.ctx.info) {
        return None;
    }
    let exchanges = flow.exchanges()?;
    let body = match request.extensions().get::<DecodedBody>() {
        Some(DecodedBody(tree)) => SentBody::of_tree(tree),
        None => SentBody::Bytes(seen(request.body_mut())),
    };
    let sent = SentMessage { code: 0, headers: headers(request.headers()), body };
    let answer: Arc<Mutex<Option<SentMessage>>> = Arc::default();
    let line = line(request).into();
    let is_persons = !request.ctx.wants_objects;
    exchanges.keep(step, Exchange { line, request: sent, response: answer.clone() }, is_persons);
    Some(KeptAnswer(answer))
}

impl KeptAnswer {
    /// What came of it.
    pub(super) fn answered(self, mut response: ApiResponse) -> ApiResponse {
        let extensions = response.extensions();
        let body = if let Some(ObjectAnswer(object)) = extensions.get() {
            SentBody::of_bytes(&object.stored())
        } else if let Some(StatusAnswer(status)) = extensions.get() {
            SentBody::of_bytes(&serde_json::to_vec(status).unwrap_or_default())
        } else {
            SentBody::Bytes(seen(response.body_mut()))
        };
        let message =
            SentMessage { code: response.status().as_u16(), headers: headers(response.headers()), body };
        *self.0.lock() = Some(message);
        response
    }
}

fn may_be_kept(info: &RequestInfo) -> bool {
    let RequestInfo { resource, subresource, .. } = info;
    let is_secret = SECRET.iter().any(|one| one == resource || one == subresource);
    info.is_resource_request && !is_secret && !PASSED_ON.contains(&subresource.as_str())
}

/// As `POST /api/v1/namespaces/default/pods?fieldManager=kubectl`.
fn line(request: &Passed) -> String {
    let path = with_shown_query(&request.ctx.info.path, request.uri().query());
    format!("{} {path}", request.method())
}

fn headers(all: &HeaderMap) -> SentHeaders {
    let told = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        let is_told = TOLD_HEADERS.contains(&name.as_str()) && value.len() <= MAX_VALUE_BYTES;
        let value = value.to_str().ok().filter(|_| is_told);
        (name.as_str().into(), value.map(Arc::from))
    };
    all.iter().take(MAX_HEADERS).map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use clock::Clock;
    use http_body_util::BodyExt;

    fn passed(line: &str, headers: &[(&str, &str)], body: &str) -> Passed {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut passed = Passed::new(request.body(Body::from(body.to_owned())).unwrap());
        let uri = passed.uri().clone();
        let info = RequestInfo::new(passed.method(), uri.path(), uri.query().unwrap_or_default());
        passed.ctx.info = info.unwrap().into();
        passed
    }

    fn flow() -> Flow {
        Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH))
    }

    #[tokio::test]
    async fn what_is_sent_is_kept_and_goes_on_as_it_was() {
        let flow = flow();
        let _keeps = flow.exchanges().unwrap().ask();
        let given = [("authorization", "Bearer s3cret"), ("cookie", "s3cret"), ("x-auth", "s3cret")];
        let line = "POST /api/v1/namespaces/n/pods?fieldManager=me&token=s3cret";
        let mut request = passed(line, &[&given[..], &[("user-agent", "kubectl")]].concat(), "{\"a\":1}");
        let kept = keep(&flow, StepId(1), &mut request).unwrap();
        let sent = std::mem::take(request.body_mut()).collect().await.unwrap().to_bytes();
        assert_eq!(&sent[..], b"{\"a\":1}");
        let response = kept.answered(ApiResponse::new(Body::from("fine")));
        assert_eq!(&response.into_body().collect().await.unwrap().to_bytes()[..], b"fine");
        let [(step, exchange)] = &flow.exchanges().unwrap().kept(None)[..] else { panic!("one") };
        let told = exchange.text(*step, &|_, _, _| None);
        assert_eq!(&*told.line, "POST /api/v1/namespaces/n/pods?fieldManager=me&token=...");
        assert_eq!(told.request.body.text, "{\"a\":1}");
        assert_eq!(told.response.as_ref().unwrap().body.text, "fine");
        let text = serde_json::to_string(&told).unwrap();
        assert!(!text.contains("s3cret") && text.contains("[\"authorization\",null]"), "{text}");
        assert!(text.contains("[\"user-agent\",\"kubectl\"]"), "{text}");
    }

    #[test]
    fn nothing_is_kept_of_secrets_nor_when_nobody_asks() {
        let flow = flow();
        let maps = "POST /api/v1/namespaces/n/configmaps";
        assert!(keep(&flow, StepId(1), &mut passed(maps, &[], "")).is_none(), "nobody asks");
        let _keeps = flow.exchanges().unwrap().ask();
        assert!(keep(&flow, StepId(1), &mut passed(maps, &[], "")).is_some());
        assert!(keep(&flow, StepId::NONE, &mut passed(maps, &[], "")).is_none(), "it is not recorded");
        for line in [
            "POST /api/v1/namespaces/n/secrets",
            "PATCH /api/v1/namespaces/n/secrets/a",
            "POST /apis/example.com/v1/namespaces/n/secrets",
            "POST /api/v1/namespaces/n/serviceaccounts/a/token",
            "POST /apis/authentication.k8s.io/v1/tokenreviews",
            "POST /api/v1/namespaces/n/pods/a/exec",
            "POST /api/v1/namespaces/n/services/a/proxy/login",
            "POST /kubarium/v1/ui",
        ] {
            assert!(keep(&flow, StepId(1), &mut passed(line, &[], "s3cret")).is_none(), "{line}");
        }
    }
}
