//! A trace as the spans of one OpenTelemetry trace (`ExportTraceServiceRequest`, in the JSON form of OTLP).
//!
//! Each component is a service with spans of its own, called as upstream's components that have tracing call
//! themselves: kubelets are one service, told apart by their nodes, and controllers are scopes of the process
//! that they are in. What one component does because another has told it
//! through a watch has a link to that span, beside being its child, so that tools show one tree.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lane::{APISERVER, SCHEDULER};
use crate::step::Step;
use crate::story::{RequestTarget, Unit, UnitKind, units};
use crate::trace::{Trace, TraceStep};
use crate::words::describe;
use golang::fnv;

/// `SPAN_KIND_INTERNAL`, `SPAN_KIND_SERVER`.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
/// `STATUS_CODE_ERROR`
const ERROR: u8 = 2;

/// Where a span stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanPlace {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    pub(crate) parent: Option<ParentSpan>,
}

/// What led to a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentSpan {
    pub(crate) span: u64,
    /// Whether it is of another component, which was told through a watch.
    pub(crate) is_elsewhere: bool,
}

/// All spans of a trace.
pub(super) fn request(trace: &Trace) -> Value {
    let units = units(&trace.steps);
    let id = trace_id(trace);
    let place = |unit: &Unit<'_>| SpanPlace {
        trace: id,
        span: unit.first().id.0,
        parent: unit.parent.map(|parent| &units[parent]).map(|parent| ParentSpan {
            span: parent.first().id.0,
            is_elsewhere: component(parent) != component(unit),
        }),
    };
    let spans: Vec<(SpanPlace, Unit<'_>)> = units.iter().map(|unit| (place(unit), unit.clone())).collect();
    request_of(trace.began_unix_microseconds, &spans)
}

/// These spans, by component. Their times are since `began`, in microseconds since 1970.
pub(crate) fn request_of(began: i64, spans: &[(SpanPlace, Unit<'_>)]) -> Value {
    let began = u64::try_from(began).unwrap_or_default();
    let mut services: BTreeMap<ServiceInstance, BTreeMap<String, Vec<Value>>> = BTreeMap::new();
    for (place, unit) in spans {
        let (instance, scope) = source(&unit.first().step);
        services.entry(instance).or_default().entry(scope).or_default().push(span(began, place, unit));
    }
    let resources: Vec<Value> =
        services.iter().map(|(instance, scopes)| resource(instance, scopes)).collect();
    json!({"resourceSpans": resources})
}

/// Controllers that are no part of kube-controller-manager: kwok's, and one of the apiserver.
const CONTROLLERS_ELSEWHERE: [&str; 2] = ["kwok-controller", "kubernetes-service-cidr-controller"];

/// A process of the cluster, as OpenTelemetry names it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServiceInstance {
    /// One for all processes of a kind.
    service: String,
    /// The node of a kubelet; empty where there is but one.
    host: String,
}

/// In which process a span is, and in which part of it. Upstream's apiserver and kubelet call themselves so
/// (`options.apiserverService`, `componentKubelet`); the others send no spans there, and have their own
/// names.
fn source(step: &Step) -> (ServiceInstance, String) {
    let component = step.component().unwrap_or_else(|| APISERVER.into());
    let host = match step {
        Step::EventRecorded { host: Some(host), .. } => &host.0,
        _ => "",
    };
    let (part, host) = component.split_once('/').unwrap_or((&component, host));
    let is_controller = part.ends_with("-controller") || part == "horizontal-pod-autoscaler";
    let is_controller = is_controller && !CONTROLLERS_ELSEWHERE.contains(&part);
    let service = match part {
        APISERVER => "apiserver",
        "default-scheduler" => SCHEDULER,
        _ if is_controller => "kube-controller-manager",
        _ => part,
    };
    (ServiceInstance { service: service.to_owned(), host: host.to_owned() }, part.to_owned())
}

fn resource(
    ServiceInstance { service, host }: &ServiceInstance,
    scopes: &BTreeMap<String, Vec<Value>>,
) -> Value {
    let mut attributes = vec![attribute("service.name", service)];
    if !host.is_empty() {
        attributes.push(attribute("service.instance.id", host));
        attributes.push(attribute("host.name", host));
    }
    let scopes = scopes.iter().map(|(scope, spans)| json!({"scope": {"name": scope}, "spans": spans}));
    json!({"resource": {"attributes": attributes}, "scopeSpans": scopes.collect::<Vec<_>>()})
}

/// Each time the same of a story: of the object's uid, else of its name and beginning.
fn trace_id(trace: &Trace) -> u128 {
    let of_uid = trace.uid.and_then(|uid| u128::from_str_radix(&uid.to_string().replace('-', ""), 16).ok());
    of_uid.unwrap_or_else(|| {
        let seed = format!("{}{}", trace.subject, trace.began_unix_microseconds);
        (u128::from(hash(&seed, 1)) << 64) | u128::from(hash(&seed, 2))
    })
}

pub(crate) fn hash(text: &str, salt: u64) -> u64 {
    fnv::salted_64a(salt, text.bytes())
}

pub(crate) fn component(unit: &Unit<'_>) -> String {
    unit.first().step.component().unwrap_or_else(|| APISERVER.into())
}

fn span(began: u64, place: &SpanPlace, unit: &Unit<'_>) -> Value {
    let first = unit.first();
    let kind = if unit.kind == UnitKind::Request { SERVER } else { INTERNAL };
    let (trace_id, span_id) = (format!("{:032x}", place.trace), |span: u64| format!("{span:016x}"));
    let mut told = json!({
        "traceId": trace_id,
        "spanId": span_id(place.span),
        "name": name(unit).unwrap_or_else(|| step_name(&first.step)),
        "kind": kind,
        "startTimeUnixNano": nanoseconds(began, first.at_microseconds),
        "endTimeUnixNano": nanoseconds(began, unit.until()),
        "attributes": attributes(unit),
        "events": unit.steps.iter().map(|step| event(began, step)).collect::<Vec<_>>(),
    });
    if let Some(parent) = place.parent {
        told["parentSpanId"] = span_id(parent.span).into();
        if parent.is_elsewhere {
            let cause = attribute("kubarium.cause", "watch");
            let link = json!({"traceId": trace_id, "spanId": span_id(parent.span), "attributes": [cause]});
            told["links"] = json!([link]);
        }
    }
    // As otelhttp has it: what a client asks wrongly is no fault of the server.
    if let Some((code, why)) = unit.refusal().filter(|(code, _)| *code >= 500) {
        told["status"] = json!({"code": ERROR, "message": format!("{code}: {why}")});
    }
    told
}

/// As upstream names them where it has a span for it, and never by an object: tools count spans by their
/// names. None of a step whose beginning is not known.
pub(super) fn name(unit: &Unit<'_>) -> Option<String> {
    Some(match &unit.first().step {
        Step::RequestReceived { verb, path, .. } => request_name(verb, path),
        Step::Enqueued { queue, .. } => format!("{queue} reconcile"),
        Step::ReconcileStarted { controller, .. } => format!("{controller} reconcile"),
        Step::SchedulingAttempt { .. } => "schedulePod".into(),
        Step::PodWorkerSync { state, .. } if &**state == "sync" => "syncPod".into(),
        Step::PodWorkerSync { state, .. } => format!("syncPod {state}"),
        Step::EventRecorded { reason, .. } => format!("event {reason}"),
        Step::Stored { resource, .. } => format!("write {resource}"),
        Step::WatchDelivered { resource, .. } | Step::InformerUpdated { resource, .. } => {
            format!("watch {resource}")
        }
        _ => return None,
    })
}

/// Of a span that upstream has no name for: by what happens in it, never by its words, which name objects.
fn step_name(step: &Step) -> String {
    match step {
        Step::Started { .. } => "start".into(),
        Step::Discovered { .. } => "discovery".into(),
        Step::Listed { resource, .. } => format!("list {resource}"),
        other => variant(other).unwrap_or_else(|| "step".into()),
    }
}

/// As `ImagePulled`.
fn variant(step: &Step) -> Option<String> {
    let told = serde_json::to_value(step).ok()?;
    Some(told["step"].as_str()?.to_owned())
}

/// As `POST /apis/apps/v1/namespaces/{:namespace}/deployments` (`filters.getSpanNameFromRequestInfo`); of
/// what is no resource the method alone.
fn request_name(verb: &str, path: &str) -> String {
    let Some(target) = RequestTarget::of(path) else { return method(verb).to_owned() };
    let root = if target.version.contains('/') { "/apis" } else { "/api" };
    let resource = target.resource.split('.').next().unwrap_or_default();
    let has_name = !target.name.is_empty();
    // A namespace is in itself, as `RequestInfo` sees it.
    let is_in_namespace = !target.namespace.is_empty() || (target.resource == "namespaces" && has_name);
    let namespace = if is_in_namespace { "/namespaces/{:namespace}" } else { "" };
    let name = if has_name { "/{:name}" } else { "" };
    let slash = if target.subresource.is_empty() { "" } else { "/" };
    let RequestTarget { version, subresource, .. } = &target;
    format!("{} {root}/{version}{namespace}/{resource}{name}{slash}{subresource}", method(verb))
}

/// HTTP's have the names of OpenTelemetry's semantic conventions.
fn attributes(unit: &Unit<'_>) -> Vec<Value> {
    let mut attributes = Vec::new();
    for step in &unit.steps {
        match &step.step {
            Step::RequestReceived { verb, path, .. } => {
                attributes.push(attribute("http.request.method", method(verb)));
                attributes.push(attribute("url.path", path));
                attributes.push(attribute("k8s.verb", verb));
            }
            Step::Responded { code, audit_id } => {
                attributes.push(status_code(*code));
                attributes.extend(audit_id.as_ref().map(|id| attribute("audit-id", id)));
            }
            Step::Refused { code, .. } => attributes.push(status_code(*code)),
            Step::Authenticated { user, .. } if !user.is_empty() => {
                attributes.push(attribute("enduser.id", user))
            }
            Step::Enqueued { key, .. } => attributes.push(attribute("k8s.key", key)),
            Step::SchedulingAttempt { pod } | Step::PodWorkerSync { pod, .. } => {
                attributes.push(attribute("k8s.pod.name", pod));
            }
            _ => {}
        }
    }
    attributes
}

fn status_code(code: u16) -> Value {
    json!({"key": "http.response.status_code", "value": {"intValue": code.to_string()}})
}

fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        "delete" | "deletecollection" => "DELETE",
        _ => "GET",
    }
}

fn event(began: u64, step: &TraceStep) -> Value {
    json!({"timeUnixNano": nanoseconds(began, step.at_microseconds), "name": describe(&step.step)})
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// OTLP's JSON writes 64 bits as a text.
fn nanoseconds(began: u64, microseconds: u64) -> String {
    began.saturating_add(microseconds).saturating_mul(1000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::EventHost;
    use crate::recorded::StepId;

    #[test]
    fn kubelets_are_one_service_and_controllers_scopes_of_another() {
        let event = |component: &str, host: &str| Step::EventRecorded {
            component: component.into(),
            object: "ns/a".into(),
            reason: "Started".into(),
            message: "".into(),
            warning: false,
            host: (!host.is_empty()).then(|| Box::new(EventHost(host.into()))),
        };
        let sync = Step::PodWorkerSync { node: "node-1".into(), pod: "ns/a".into(), state: "sync".into() };
        let informed = |component: &str| Step::informed(component.into(), "pods".into(), "ns/a".into(), 7);
        for (step, service, host, scope) in [
            (Step::VALIDATED, "apiserver", "", "kube-apiserver"),
            (sync, "kubelet", "node-1", "kubelet"),
            (event("kubelet", "node-1"), "kubelet", "node-1", "kubelet"),
            (informed("kubelet/node-1"), "kubelet", "node-1", "kubelet"),
            (event("default-scheduler", ""), "kube-scheduler", "", "default-scheduler"),
            (event("deployment-controller", ""), "kube-controller-manager", "", "deployment-controller"),
            (informed("kube-controller-manager"), "kube-controller-manager", "", "kube-controller-manager"),
            (informed("coredns"), "coredns", "", "coredns"),
            (event("kwok-controller", ""), "kwok-controller", "", "kwok-controller"),
        ] {
            let (service, host) = (service.to_owned(), host.to_owned());
            assert_eq!(source(&step), (ServiceInstance { service, host }, scope.to_owned()), "{step:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_named_by_what_happens() {
        let started =
            Step::Started { component: "kube-apiserver".into(), what: "storage for 80 kinds".into() };
        let asked =
            Step::Discovered { client: "kubectl".into(), path: "/apis".into(), form: "".into(), code: 200 };
        let responded = Step::Responded { code: 200, audit_id: None };
        for (step, name) in [
            (started, "start"),
            (asked, "discovery"),
            (responded, "Responded"),
            (Step::Bound { pod: "ns/a".into(), node: "node-1".into() }, "Bound"),
            (Step::informed("kubelet/node-1".into(), "pods".into(), "ns/a".into(), 7), "watch pods"),
        ] {
            let step = TraceStep { id: StepId(1), cause: None, at_microseconds: 0, step };
            let unit = Unit { kind: UnitKind::Other, parent: None, steps: vec![&step] };
            let place = SpanPlace { trace: 1, span: 1, parent: None };
            assert_eq!(span(0, &place, &unit)["name"], name);
        }
    }

    #[test]
    fn requests_are_named_as_upstream_names_them_and_never_by_an_object() {
        for (verb, path, name) in [
            (
                "create",
                "/apis/apps/v1/namespaces/default/deployments",
                "POST /apis/apps/v1/namespaces/{:namespace}/deployments",
            ),
            (
                "patch",
                "/api/v1/namespaces/a/pods/web/status",
                "PATCH /api/v1/namespaces/{:namespace}/pods/{:name}/status",
            ),
            ("update", "/api/v1/nodes/node-1", "PUT /api/v1/nodes/{:name}"),
            ("create", "/api/v1/namespaces", "POST /api/v1/namespaces"),
            ("delete", "/api/v1/namespaces/a", "DELETE /api/v1/namespaces/{:namespace}/namespaces/{:name}"),
            (
                "update",
                "/api/v1/namespaces/a/finalize",
                "PUT /api/v1/namespaces/{:namespace}/namespaces/{:name}/finalize",
            ),
            (
                "create",
                "/api/v1/namespaces/a/pods/web/proxy/of/anything",
                "POST /api/v1/namespaces/{:namespace}/pods/{:name}/proxy",
            ),
            ("get", "/version", "GET"),
            ("get", "/apis/apps/v1", "GET"),
            ("get", "/apis", "GET"),
        ] {
            assert_eq!(request_name(verb, path), name);
        }
    }
}
