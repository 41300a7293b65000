//! What the causal record tells of a person's request beside its path: with what it came, who answers it, and
//! what its client asked of the server before.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, Method};

use super::passed::Passed;
use crate::request::{RequestInfo, UnknownPath, bounded};
use apimachinery::gvk::GroupResource;
use apimachinery::wire::{ApiResponse, AskedBefore, InProcessUser};
use flow::{Flow, RoutedRequest, Step, StepId, WriteOperation, is_renewal};

/// The header in which a client says of which trace it is (W3C Trace Context).
pub(super) const TRACE_PARENT: &str = "traceparent";

/// The parameters that are told: others may hold what is not for everybody, as the command of an exec.
const TOLD: &[&str] = &[
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "orphanDependents",
    "propagationPolicy",
    "timeout",
];

/// The mux has found who answers a person's request.
pub(super) fn routed(request: &Passed) -> Step {
    let header = |name| header(request.headers(), name);
    let level = request.ctx.audit.as_ref().map(|audit| format!("{:?}", audit.level));
    Step::Routed(Box::new(RoutedRequest {
        client: client(request.headers()),
        options: options(request.uri().query().unwrap_or_default()).into(),
        sent_as: header(CONTENT_TYPE).into(),
        accepts: bounded(header(ACCEPT)),
        groups: bounded(&request.ctx.user.groups.join(", ")),
        handler: handler(&request.ctx.info).into(),
        audit_level: level.map(Arc::from),
    }))
}

/// The client without what it says of its machine.
fn client(headers: &HeaderMap) -> Arc<str> {
    bounded(header(headers, USER_AGENT).split(' ').next().unwrap_or_default())
}

fn header(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn options(query: &str) -> String {
    let is_told = |pair: &&str| TOLD.contains(&pair.split('=').next().unwrap_or_default());
    query.split('&').filter(is_told).collect::<Vec<_>>().join("&")
}

/// As upstream calls it, with the storage that it is given (`installer.registerResourceHandlers`).
fn handler(info: &RequestInfo) -> String {
    let name = match (info.verb.as_str(), info.subresource.as_str()) {
        (_, "exec" | "attach" | "portforward" | "proxy") => "ConnectResource",
        ("create", "") => "CreateResource",
        ("create", _) => "CreateNamedResource",
        ("update", _) => "UpdateResource",
        ("patch", _) => "PatchResource",
        ("delete", _) => "DeleteResource",
        _ => "DeleteCollection",
    };
    let below = if info.subresource.is_empty() { String::new() } else { format!("/{}", info.subresource) };
    format!("handlers.{name}, storage of {}{below}", GroupResource::new(&info.group, &info.resource))
}

/// A person's question about what is no resource, from a socket.
pub(super) struct FlowQuestion {
    client: Arc<str>,
    path: String,
    before: AskedBefore,
}

impl FlowQuestion {
    /// None of anything else.
    pub(super) fn of(flow: &Flow, request: &Passed) -> Option<FlowQuestion> {
        let (info, extensions) = (&request.ctx.info, request.extensions());
        let is_one = !info.is_resource_request && !info.is_beside() && *request.method() == Method::GET;
        if !flow.is_on() || !is_one || extensions.get::<InProcessUser>().is_some() {
            return None;
        }
        let before = extensions.get::<AskedBefore>()?.clone();
        Some(FlowQuestion { client: client(request.headers()), path: info.path.clone(), before })
    }

    /// Notes what it was answered, if that is what is served. Where there is no such path the request is
    /// noted, and it is left to whoever knows more to tell who asked, and then this refusal.
    pub(super) fn answered(self, flow: &Flow, response: &ApiResponse) -> Option<(StepId, Step)> {
        let FlowQuestion { client, path, before } = self;
        let code = response.status().as_u16();
        let path: Arc<str> = bounded(&path);
        if code < 400 && is_about_what_is_served(&path) {
            let form = bounded(header(response.headers(), CONTENT_TYPE));
            let cause = before.step().map(StepId);
            before.note(flow.record(cause, Step::Discovered { client, path, form, code }).0);
        } else if is_unknown_path(response) {
            let (user, verb) = ("".into(), flow.name("get"));
            let asked = flow.record(None, Step::RequestReceived { user, verb, path: path.clone() });
            let (resource, namespace, why) = ("".into(), "".into(), "the mux knows no such path".into());
            return Some((asked, Step::Refused { resource, namespace, name: path, code, why }));
        }
        None
    }
}

fn is_about_what_is_served(path: &str) -> bool {
    matches!(path, "/api" | "/apis" | "/version")
        || ["/api/", "/apis/", "/openapi/"].iter().any(|root| path.starts_with(root))
}

/// What a client asked last that now asks for a change. It led to no other one, and to none that is part of a
/// trace of the client's own.
pub(super) fn asked_before(request: &Passed) -> Option<u64> {
    if request.headers().contains_key(TRACE_PARENT) {
        return None;
    }
    let is_change = request.ctx.info.is_resource_request && is_told(&request.ctx.info);
    request.extensions().get::<AskedBefore>().filter(|_| is_change)?.take()
}

/// Whether there is no such path, and not only no such object.
pub(super) fn is_unknown_path(response: &ApiResponse) -> bool {
    response.extensions().get::<UnknownPath>().is_some()
}

/// Whether it is noted whatever comes of it: writes are, but for renewals of leases; and what is done to the
/// cluster as a whole.
pub(super) fn is_told(info: &RequestInfo) -> bool {
    if info.is_beside() {
        return !info.is_read_only();
    }
    if !info.is_resource_request || matches!(info.verb.as_str(), "get" | "list" | "watch") {
        return false;
    }
    let is_update = info.resource == "leases" && matches!(info.verb.as_str(), "update" | "patch");
    let resource = || GroupResource::new(&info.group, &info.resource).to_string();
    !(is_update && is_renewal(&resource(), WriteOperation::Update))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use chrono::DateTime;

    use super::*;
    use apimachinery::user::UserInfo;
    use clock::Clock;

    fn passed(method: &str, path: &str, headers: &[(&str, &str)]) -> Passed {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut passed = Passed::new(request.body(Body::empty()).unwrap());
        let uri = passed.uri().clone();
        let info = RequestInfo::new(passed.method(), uri.path(), uri.query().unwrap_or_default()).unwrap();
        passed.ctx.info = Arc::new(info);
        passed
    }

    #[test]
    fn a_request_says_who_answers_it_and_with_what_it_came() {
        let path = "/api/v1/namespaces/n/pods/a/exec?command=secret&fieldManager=me&container=c";
        let agent = ("user-agent", "kubectl/v1.36.2 (linux/amd64) kubernetes/1");
        let mut request = passed("POST", path, &[agent, ("content-type", "application/json")]);
        request.ctx.user = Arc::new(UserInfo::authenticated("jane", &["dev"]));
        let Step::Routed(told) = routed(&request) else { panic!() };
        assert_eq!((&*told.client, &*told.options), ("kubectl/v1.36.2", "fieldManager=me"));
        assert_eq!(&*told.handler, "handlers.ConnectResource, storage of pods/exec");
        assert_eq!((&*told.sent_as, &*told.groups), ("application/json", "dev, system:authenticated"));
        assert_eq!(told.audit_level, None);
    }

    #[test]
    fn what_is_asked_before_a_change_led_to_it_and_to_no_other() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let before = AskedBefore::default();
        let ask = |path: &str, code: u16| {
            let mut request = passed("GET", path, &[("user-agent", "kubectl/v1 (x)")]);
            request.extensions_mut().insert(before.clone());
            let mut response = http::Response::builder().status(code).body(Body::empty()).unwrap();
            if path == "/nope" {
                response.extensions_mut().insert(UnknownPath);
            }
            let unknown = FlowQuestion::of(&flow, &request).unwrap().answered(&flow, &response);
            if let Some((asked, refused)) = unknown {
                flow.record(asked.cause(), refused);
            }
        };
        ask("/apis", 200);
        ask("/openapi/v3", 304);
        ask("/nope", 404);
        ask("/healthz", 200);
        ask("/flowz", 404);
        let maps = "/api/v1/namespaces/n/configmaps";
        let traced = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
        let mut elsewhere = passed("POST", maps, &traced);
        elsewhere.extensions_mut().insert(before.clone());
        assert_eq!(asked_before(&elsewhere), None);
        let mut change = passed("POST", maps, &[]);
        change.extensions_mut().insert(before.clone());
        assert_eq!((asked_before(&change), asked_before(&change)), (Some(2), None));
        let steps = flow.trace_all().steps;
        let causes: Vec<Option<u64>> = steps.iter().map(|step| step.cause.map(|cause| cause.0)).collect();
        assert_eq!(causes, [None, Some(1), None, Some(3)]);
        assert!(matches!(&steps[1].step, Step::Discovered { code: 304, .. }), "{steps:?}");
        assert!(matches!(&steps[3].step, Step::Refused { name, code: 404, .. } if &**name == "/nope"));
        let read = passed("GET", "/api/v1/pods", &[]);
        assert!(FlowQuestion::of(&flow, &read).is_none() && asked_before(&read).is_none());
    }

    #[test]
    fn renewals_of_leases_are_not_noted() {
        let is_told = |method: &str, path: &str| {
            is_told(&RequestInfo::new(&method.parse().unwrap(), path, "").unwrap())
        };
        let leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases";
        assert!(is_told("POST", leases) && is_told("DELETE", &format!("{leases}/a")));
        assert!(!is_told("PUT", &format!("{leases}/a")) && !is_told("PATCH", &format!("{leases}/a")));
        assert!(is_told("PUT", "/apis/example.com/v1/namespaces/n/leases/a"), "of another group");
    }
}
