//! Records that are written down by hand, and the stories that are told of them.

use std::sync::Arc;

use super::*;
use crate::handwritten::{Handwritten, deployment};
use crate::lane::Lane;
use crate::parts::{
    CalledWebhook, ComparedCount, DecodedObject, FieldFromTo, FitRefusal, PassedOnRequest, RoutedRequest,
};
use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::trace::StoragePlace;
use crate::wanted::WantedSteps;

/// What is printed, without colours and as wide as it is.
pub(super) fn printed(trace: &Trace) -> String {
    trace.story().print(Look::default())
}

#[track_caller]
pub(super) fn contains(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let at =
            rest.find(line).unwrap_or_else(|| panic!("{line:?} is not behind what comes before in\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn a_deployment_is_told_in_a_line_for_each_stage() {
    let text = printed(&deployment().flow.trace("deployments.apps", "ns", "web"));
    let golden = include_str!("../testdata/story.txt");
    assert_eq!(text, golden, "\n{text}");
}

pub(super) fn request(
    record: &Handwritten,
    cause: Option<StepId>,
    user: &str,
    verb: &str,
    path: &str,
) -> Option<StepId> {
    record.step(cause, Step::RequestReceived { user: user.into(), verb: verb.into(), path: path.into() })
}

pub(super) fn written(
    record: &Handwritten,
    cause: Option<StepId>,
    resource: &str,
    name: &str,
    revision: u64,
) -> Option<StepId> {
    let (resource, namespace, name) = (resource.into(), "ns".into(), name.into());
    let (operation, uid, bytes) = (WriteOperation::Create, None, 100);
    record.step(cause, Step::Stored { resource, namespace, name, revision, operation, uid, bytes })
}

fn refused(record: &Handwritten, cause: Option<StepId>, code: u16, why: &str) -> Option<StepId> {
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    record.step(cause, Step::Refused { resource, namespace, name, code, why: why.into() })
}

fn said(words: &[(&str, &str)]) -> Vec<(Arc<str>, Arc<str>)> {
    words.iter().map(|(who, words)| ((*who).into(), (*words).into())).collect()
}

#[test]
fn a_403_says_who_was_asked_and_which_rule_would_have_allowed_it() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    let (user, by) = ("system:serviceaccount:ns:robot".into(), "ServiceAccount".into());
    record.step(asked, Step::Authenticated { user, by, said: said(&[("X509", "no opinion")]) });
    record.step(asked, Step::NotAuthorized { said: said(&[("Node", "no opinion"), ("RBAC", "no opinion")]) });
    refused(&record, asked, 403, "pods is forbidden");
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    contains(
        &text,
        &[
            "system:serviceaccount:ns:robot creates pods ns/a, as v1",
            "ServiceAccount knows system:serviceaccount:ns:robot (X509: no opinion)",
            "nobody allows it (Node: no opinion; RBAC: no opinion) <- 1",
            "refused with 403 <- 2",
            "- pods is forbidden",
            " => a Role with apiGroups [\"\"], resources [\"pods\"], verbs [\"create\"], bound to ServiceAccount \
             ns/robot in namespace ns, would allow it",
        ],
    );
}

#[test]
fn a_dry_run_is_answered_behind_the_checks() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    record.step(asked, Step::Authenticated { user: "jane".into(), by: "X509".into(), said: vec![] });
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    record.step(asked, Step::DryRun { resource, namespace, name, code: 201 });
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    contains(&text, &["X509 knows jane <- 1", "answered 201: a dry run, nothing is stored <- 2"]);
}

#[test]
fn a_person_in_this_process_is_told_as_one_and_a_component_is_not() {
    for (user, wanted) in [("kubernetes-admin", 2), ("system:kube-scheduler", 1)] {
        let record = Handwritten::new();
        let asked = request(&record, None, user, "create", "/api/v1/namespaces/ns/pods");
        written(&record, asked, "pods", "a", 7);
        let story = record.flow.trace("pods", "ns", "a").story();
        assert_eq!(story.stages.len(), wanted, "{user}: {story:?}");
    }
}

#[test]
fn what_admission_did_is_told_with_values_webhooks_and_the_key_in_etcd() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "patch", "/api/v1/namespaces/ns/pods/a");
    let change = |path: &str, from: Option<&str>, to: Option<&str>| FieldFromTo {
        path: path.into(),
        from: from.map(Arc::from),
        to: to.map(Arc::from),
    };
    let values = vec![change("spec.priority", None, Some("0"))];
    let (plugin, changed) = ("Priority".into(), "spec.priority".into());
    let admitted = record.step(asked, Step::Admitted { plugin, changed, values });
    let (webhook, verdict) = ("a.example.com".into(), "allowed it".into());
    let called = CalledWebhook { webhook, microseconds: 3400, verdict, ..CalledWebhook::default() };
    let called = record.step(admitted, Step::WebhookCalled(Box::new(called)));
    let changed = vec![change("spec.replicas", Some("2"), Some("5"))];
    let plugins = Some("LimitRanger, Priority".into());
    let valid = record.step(called, Step::Validated { plugins, changed });
    written(&record, valid, "pods", "a", 7);
    record.step(asked, Step::Responded { code: 200, audit_id: Some("0b39".into()) });
    let mut trace = record.flow.trace("pods", "ns", "a");
    let place = StoragePlace { prefix: "/registry/pods/".into(), version: "v1".into() };
    trace.storage.insert("pods".into(), place);
    let text = trace.story().print(Look { details: true, ..Look::default() });
    contains(
        &text,
        &[
            "somebody unknown patches pods ns/a, as v1",
            "- Audit-Id 0b39",
            "admission: changed by Priority",
            "- Priority: spec.priority = 0",
            "- webhook a.example.com: allowed it (3.4 ms)",
            "- plugins: LimitRanger, Priority",
            "etcd has it created at revision 7: /registry/pods/ns/a as v1, 100 bytes",
            "- spec.replicas: 2 -> 5",
        ],
    );
}

#[test]
fn an_object_of_another_server_has_the_story_of_its_requests() {
    let record = Handwritten::new();
    let passed = |name: &str, why: Option<&str>| {
        let path = "/apis/agg.example.com/v1/namespaces/ns/bars";
        let asked = request(&record, None, "", "create", path);
        let request = PassedOnRequest {
            resource: "bars.agg.example.com".into(),
            namespace: "ns".into(),
            name: name.into(),
            api_service: "v1.agg.example.com".into(),
            service: "default/agg:443".into(),
            address: Some("10.0.0.7:8443".into()),
            trust: "TLS verified by the caBundle: CN=agg".into(),
            code: 201,
            microseconds: 3200,
            why: why.map(Arc::from),
            reviews: vec!["agg asked here".into()],
        };
        record.step(asked, Step::PassedOn(Box::new(request)));
        record.step(asked, Step::Responded { code: 201, audit_id: None });
    };
    passed("a", None);
    passed("b", Some("nobody is there"));
    passed("", None);
    let told = |name| record.flow.trace("bars.agg.example.com", "ns", name).story().print(Look::default());
    let way = "passed on for APIService v1.agg.example.com to Service default/agg:443 at 10.0.0.7:8443, TLS \
               verified by the caBundle: CN=agg";
    let first = [
        "creates bars.agg.example.com ns/a, as agg.example.com/v1",
        &format!("aggregator {way}: answered 201 after 3.2 ms <- 1"),
        "- agg asked here",
    ];
    contains(&told("a"), &first);
    contains(&told("b"), &[&format!("{way}: no answer: nobody is there")]);
    assert!(!told("a").contains("ns/b") && !told("b").contains("ns/a"));
    contains(&told(""), &[&format!("{way}: answered 201")]);
}

#[test]
fn who_hears_of_an_object_has_listed_its_resource_before() {
    let record = Handwritten::new();
    let list = |component: &str, resource: &str, revision| {
        let (component, resource) = (component.into(), resource.into());
        record.step(
            None,
            Step::Listed { component, resource, items: 0, revision, again: false, indices: None },
        );
    };
    list("kube-scheduler", "pods", 3);
    list("kube-scheduler", "pods", 5);
    list("kube-scheduler", "nodes", 5);
    list("kubelet/n", "pods", 5);
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    let stored = written(&record, asked, "pods", "a", 7);
    record.step(stored, Step::informed("kube-scheduler".into(), "pods".into(), "ns/a".into(), 7));
    let text = record.flow.trace("pods", "ns", "a").story().print(Look { details: true, ..Look::default() });
    contains(&text, &["- kube-scheduler has listed pods at revision 5 (#2), and watches since"]);
    assert!(!text.contains("nodes") && !text.contains("kubelet/n"), "{text}");
    let brief = record.flow.trace("pods", "ns", "a").story().print(Look::default());
    assert!(!brief.contains("has listed"), "{brief}");
}

#[test]
fn a_pod_that_fits_nowhere_says_what_each_plugin_said_of_which_node() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    let mut seen = written(&record, asked, "pods", "a", 7);
    for _ in 0..3 {
        let attempt = record.step(seen, Step::SchedulingAttempt { pod: "ns/a".into() });
        let refusal = |plugin: &str, reason: &str, count, nodes: &[&str]| FitRefusal {
            plugin: plugin.into(),
            reason: reason.into(),
            count,
            nodes: nodes.iter().map(|node| (*node).into()).collect(),
        };
        let refusals = vec![
            refusal("NodeResourcesFit", "Insufficient cpu", 3, &["n1", "n2"]),
            refusal("NodeName", "node(s) didn't match", 1, &["n4"]),
        ];
        record.step(attempt, Step::Filtered { pod: "ns/a".into(), feasible: 0, nodes: 4, refusals });
        seen = attempt;
    }
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    contains(
        &text,
        &[
            "kube-scheduler finds no node for pods a: 0 of 4 fit, 3 times <- 2",
            "- n1, n2 and 1 more: NodeResourcesFit: Insufficient cpu",
            "- n4: NodeName: node(s) didn't match",
            " => pod ns/a has no node: n1, n2 and 1 more: NodeResourcesFit: Insufficient cpu; n4: NodeName",
        ],
    );
}

#[test]
fn a_container_that_crashes_again_and_again_is_one_stage() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    let mut seen = written(&record, asked, "pods", "a", 7);
    let (node, pod, container): (Arc<str>, Arc<str>, Arc<str>) = ("n1".into(), "ns/a".into(), "main".into());
    for round in 0..4 {
        let of = || (node.clone(), pod.clone());
        let ((node, pod), state) = (of(), "sync".into());
        let sync = record.step(seen, Step::PodWorkerSync { node, pod, state });
        let ((node, pod), container) = (of(), container.clone());
        record.step(sync, Step::ContainerStarted { node, pod, container: container.clone() });
        let (node, pod) = of();
        record.step(sync, Step::ContainerExited { node, pod, container, exit_code: 3, reason: "".into() });
        let (component, object, reason) = ("kubelet".into(), "ns/a".into(), "BackOff".into());
        let (message, host) = ("Back-off restarting failed container".into(), None);
        record.step(sync, Step::EventRecorded { component, object, reason, message, warning: true, host });
        let status = request(&record, sync, "system:node:n1", "patch", "/api/v1/namespaces/ns/pods/a/status");
        seen = written(&record, status, "pods", "a", 8 + round);
    }
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    contains(
        &text,
        &[
            "kubelet/n1: pods a: StartContainer (main), main ends with exit code 3, 4 times <- 2",
            "kubelet warns of a: BackOff: Back-off restarting failed container, 4 times <- 3",
            "kubelet/n1 writes the status of pods a, 4 times <- 3",
            " => container main of pod ns/a has failed 4 times, with exit code 3; what it said: kubectl logs a -c \
             main -n ns --previous",
        ],
    );
    assert_eq!(text.lines().filter(|line| line.contains("kubelet/n1")).count(), 2, "{text}");
}

#[test]
fn what_a_controller_is_refused_is_told_once_with_what_it_wanted() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/apis/apps/v1/namespaces/ns/replicasets");
    let stored = written(&record, asked, "replicasets.apps", "web", 7);
    let mut cause = record.reconcile_after(stored, "replicaset", "ns/web", 0, 0);
    for round in 1..4 {
        for name in ["x", "y"] {
            let create = request(
                &record,
                cause,
                "system:serviceaccount:kube-system:replicaset-controller",
                "create",
                "/api/v1/namespaces/ns/pods",
            );
            let why = format!("pods \"web-{name}{round}\" is forbidden: exceeded quota: q");
            let (resource, namespace, name) = ("pods".into(), "ns".into(), "".into());
            record.step(create, Step::Refused { resource, namespace, name, code: 403, why: why.into() });
        }
        let compared = Some(ComparedCount { of: "pods".into(), wanted: 2, found: 0 });
        record.step(cause, Step::ReconcileEnded { result: "exceeded quota".into(), compared });
        cause = record.reconcile_after(cause, "replicaset", "ns/web", round, 5 << round);
    }
    let text = printed(&record.flow.trace("replicasets.apps", "ns", "web"));
    contains(
        &text,
        &[
            "replicaset-controller is refused (403) when it creates pods, 6 times <- 2",
            "- pods is forbidden: exceeded quota: q",
            "- tried again 2 times, the last time after 20 ms",
        ],
    );
    assert_eq!(text.matches("exceeded quota").count(), 1, "{text}");
}

#[test]
fn a_delete_that_waits_for_a_finalizer_says_for_which() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "delete", "/api/v1/namespaces/ns/pods/a");
    let stored = written(&record, asked, "pods", "a", 7);
    let finalizers = vec!["example.com/keep".into()];
    record.step(stored, Step::Terminating { finalizers, grace_seconds: Some(30) });
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    contains(
        &text,
        &[
            "- it has 30 s to end, waits for the finalizers example.com/keep",
            " => pods ns/a is deleted and still there: whoever put the finalizers example.com/keep there",
            "kubectl patch pods a -n ns --type=merge",
        ],
    );
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    let (operation, uid, bytes) = (WriteOperation::Delete, None, 0);
    record.step(None, Step::Stored { resource, namespace, name, revision: 9, operation, uid, bytes });
    let gone = printed(&record.flow.trace("pods", "ns", "a"));
    assert!(!gone.contains("still there"), "{gone}");
}

#[test]
fn of_many_stages_a_screen_shows_the_first_and_the_last() {
    let record = Handwritten::new();
    for revision in 0..40 {
        let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
        written(&record, asked, "pods", "a", revision + 1);
    }
    let trace = record.flow.trace("pods", "ns", "a");
    let text = printed(&trace);
    assert!(text.lines().count() < 36 && text.contains("... 50 stages more: --all tells them ..."), "{text}");
    contains(&text, &["at revision 1,", "at revision 40,"]);
    let whole = trace.story().print(Look { whole: true, ..Look::default() });
    contains(&whole, &["at revision 1,", "at revision 20,", "at revision 40,"]);
}

#[test]
fn parts_of_a_story_are_told_to_who_wants_no_more() {
    let record = deployment();
    let trace = |wanted: &WantedSteps| {
        let mut trace = record.flow.trace("deployments.apps", "ns", "web");
        wanted.of(&mut trace);
        let mut story = trace.story();
        story.keep(|stage| wanted.tells(stage));
        story.print(Look::default())
    };
    let scheduler = trace(&WantedSteps { lane: Some(Lane::Scheduler), ..WantedSteps::default() });
    assert!(
        scheduler.contains("kube-scheduler") && !scheduler.contains("replicaset-controller"),
        "{scheduler}"
    );
    let writes = trace(&WantedSteps { only_writes: true, ..WantedSteps::default() });
    assert!(writes.contains("creates pods web-5d4-x") && !writes.contains("informers of"), "{writes}");
    let user = WantedSteps { user: Some("replicaset-controller".into()), ..WantedSteps::default() };
    let by_user = trace(&user);
    assert!(
        by_user.contains("creates pods web-5d4-x") && !by_user.contains("replicasets.apps web"),
        "{by_user}"
    );
    let pod = trace(&WantedSteps { pod: Some("web-5d4-x".into()), ..WantedSteps::default() });
    contains(&pod, &["creates deployments.apps ns/web", "creates pods web-5d4-x", "StartContainer"]);
    let none = trace(&WantedSteps { pod: Some("other".into()), ..WantedSteps::default() });
    assert!(none.contains("nothing that is recorded of deployments.apps ns/web passes the filter"), "{none}");
    let since = trace(&WantedSteps { since_microseconds: Some(500), ..WantedSteps::default() });
    assert!(since.contains("StartContainer") && !since.contains("creates deployments.apps"), "{since}");
}

#[test]
fn a_watch_that_is_faster_than_the_writer_and_a_record_that_is_odd_are_told() {
    let record = Handwritten::new();
    let (component, resource, key) = ("kubelet/n".into(), "pods".into(), "ns/a".into());
    record.step(None, Step::informed(component, resource, key, 3));
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    written(&record, asked, "pods", "a", 3);
    let mut trace = record.flow.trace("pods", "ns", "a");
    contains(&printed(&trace), &["informers of kubelet/n hear of it"]);
    for step in &mut trace.steps {
        step.cause = Some(step.id);
    }
    assert!(!printed(&trace).is_empty(), "a step that is its own cause");
}

#[test]
fn what_a_client_asked_before_and_with_what_it_came_begins_the_story() {
    let record = Handwritten::new();
    let ask = |cause, path: &str, code| {
        let (client, form) = ("kubectl/v1.36.2".into(), "application/json".into());
        record.step(cause, Step::Discovered { client, path: path.into(), form, code })
    };
    let before = ask(ask(None, "/api", 200), "/openapi/v3", 304);
    let asked = request(&record, before, "", "create", "/apis/extensions/v1beta1/namespaces/ns/deployments");
    let routed = RoutedRequest {
        client: "kubectl/v1.36.2".into(),
        options: "fieldValidation=Strict".into(),
        groups: "dev".into(),
        handler: "handlers.CreateResource, storage of deployments.extensions".into(),
        ..RoutedRequest::default()
    };
    let routed = record.step(asked, Step::Routed(Box::new(routed)));
    let decoded = DecodedObject {
        bytes: 9,
        read_as: "extensions/v1beta1 Deployment".into(),
        resource: "extensions/v1beta1 deployments".into(),
        stored_as: "apps/v1".into(),
        defaulted: vec!["spec.strategy".into()],
    };
    let decoded = record.step(routed, Step::Decoded(Box::new(decoded)));
    // A plugin counts before the object is written.
    written(&record, decoded, "resourcequotas", "q", 6);
    let stored = written(&record, decoded, "deployments.apps", "a", 7);
    let (version, after) = ("extensions/v1beta1".into(), "".into());
    record.step(stored, Step::ReadBack { revision: 7, version, after });
    let look = Look { details: true, ..Look::default() };
    let text = record.flow.trace("deployments.apps", "ns", "a").story().print(look);
    contains(
        &text,
        &[
            "discovery  kubectl/v1.36.2 asks what is served: /api (200), /openapi/v3 (304)",
            "creates deployments.apps ns/a, as extensions/v1beta1 (kubectl/v1.36.2: fieldValidation=Strict) <- 1",
            "handlers.CreateResource, storage of deployments.extensions: decoded 9 bytes as extensions/v1beta1 \
             Deployment (extensions/v1beta1 deployments), worked on and stored as apps/v1; defaults for \
             spec.strategy",
            "in the groups dev",
            "- read back at 7 as extensions/v1beta1; no hook behind the write",
        ],
    );
    let again = ask(None, "/version", 200);
    let asked = request(&record, again, "", "update", "/apis/apps/v1/namespaces/ns/deployments/a");
    written(&record, asked, "deployments.apps", "a", 8);
    let text = printed(&record.flow.trace("deployments.apps", "ns", "a"));
    contains(&text, &["asks what is served: /version (200)", "updates deployments.apps ns/a"]);
    let trace = record.flow.trace("deployments.apps", "ns", "a");
    let diagram = trace.export("mermaid", &WantedSteps::default()).unwrap();
    assert!(diagram.contains("U->>A: 1. kubectl/v1.36.2 asks what is served"), "{diagram}");
}

#[test]
fn a_patch_says_of_which_sort_it_is() {
    for (sent_as, sort) in
        [("application/merge-patch+json", ": a JSON merge patch <- "), ("application/cbor", " <- ")]
    {
        let record = Handwritten::new();
        let asked = request(&record, None, "", "patch", "/api/v1/namespaces/ns/pods/a");
        let (sent_as, handler) = (sent_as.into(), "handlers.PatchResource, storage of pods".into());
        let routed = RoutedRequest { sent_as, handler, ..RoutedRequest::default() };
        let routed = record.step(asked, Step::Routed(Box::new(routed)));
        written(&record, routed, "pods", "a", 7);
        contains(&printed(&record.flow.trace("pods", "ns", "a")), &["storage of pods", sort]);
    }
}

#[test]
fn what_waits_for_initializers_says_for_which() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    let list = "{\"pending\":[{\"name\":\"a.example.com\"}]}";
    let values =
        vec![FieldFromTo { path: "metadata.initializers".into(), from: None, to: Some(list.into()) }];
    let (plugin, changed) = ("Initializers".into(), "metadata.initializers".into());
    let admitted = record.step(asked, Step::Admitted { plugin, changed, values });
    written(&record, admitted, "pods", "a", 7);
    let waits = format!("=> pods ns/a is seen by nobody, and its create not answered, until each of {list}");
    contains(&printed(&record.flow.trace("pods", "ns", "a")), &[&waits]);
    record.step(asked, Step::Responded { code: 201, audit_id: None });
    assert!(!printed(&record.flow.trace("pods", "ns", "a")).contains("is seen by nobody"));
}

#[test]
fn a_component_that_starts_says_how_far_it_has_come() {
    let record = Handwritten::new();
    for what in ["etcd is open", "post-start hook rbac/bootstrap-roles"] {
        let (component, what) = ("kube-apiserver".into(), what.into());
        record.step(None, Step::Started { component, what });
    }
    let text = printed(&record.flow.trace_all());
    contains(
        &text,
        &["start      kube-apiserver starts", "- etcd is open", "- post-start hook rbac/bootstrap"],
    );
}
