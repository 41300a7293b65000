//! What is one stage and what is several, by records that are written down by hand.

use crate::handwritten::Handwritten;
use crate::parts::ComparedCount;
use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::story::tests::{contains, printed, request, written};

const REPLICA_SETS: &str = "system:serviceaccount:kube-system:replicaset-controller";

/// A ReplicaSet's round that makes a pod; returns what comes of the pod.
fn make_pod(record: &Handwritten, cause: Option<StepId>, name: &str, revision: u64) -> Option<StepId> {
    let reconcile = record.reconcile_after(cause, "replicaset", "ns/web", 0, 0);
    let asked = request(record, reconcile, REPLICA_SETS, "create", "/api/v1/namespaces/ns/pods");
    let stored = written(record, asked, "pods", name, revision);
    let compared = Some(ComparedCount { of: "pods".into(), wanted: 1, found: 0 });
    record.step(reconcile, Step::ReconcileEnded { result: "done".into(), compared });
    stored
}

/// A sync of a pod's worker that begins or ends its only container, and what it writes then.
fn sync(
    record: &Handwritten,
    cause: Option<StepId>,
    name: &str,
    state: &str,
    revision: u64,
) -> Option<StepId> {
    let of = || ("n1".into(), format!("ns/{name}").into());
    let (node, pod) = of();
    let sync =
        record.step(cause, Step::PodWorkerSync { node, pod, state: state.trim_end_matches('!').into() });
    let ((node, pod), container) = (of(), "main".into());
    if state == "sync" {
        record.step(sync, Step::ContainerStarted { node, pod, container });
    } else {
        let (exit_code, reason) = (0, "".into());
        record.step(sync, Step::ContainerExited { node, pod, container, exit_code, reason });
        let (node, pod) = of();
        record.step(sync, Step::SandboxStopped { node, pod });
    }
    let path = format!("/api/v1/namespaces/ns/pods/{name}/status");
    let status = request(record, sync, "system:node:n1", "patch", &path);
    written(record, status, "pods", name, revision)
}

fn begun(record: &Handwritten) -> Option<StepId> {
    let asked = request(record, None, "", "create", "/apis/apps/v1/namespaces/ns/replicasets");
    written(record, asked, "replicasets.apps", "web", 7)
}

#[test]
fn a_pod_in_place_of_one_that_was_evicted_is_made_afterwards_and_because_of_that() {
    let record = Handwritten::new();
    let made = make_pod(&record, begun(&record), "a", 8);
    let runs = sync(&record, made, "a", "sync", 9);
    let (component, object, reason) = ("kubelet".into(), "ns/a".into(), "Evicted".into());
    let message = "The node was low on resource: memory.".into();
    let event = Step::EventRecorded { component, object, reason, message, warning: true, host: None };
    record.step(runs, event);
    let ended = sync(&record, runs, "a", "terminating", 10);
    let second = make_pod(&record, ended, "b", 11);
    sync(&record, second, "b", "sync", 12);
    let trace = record.flow.trace("replicasets.apps", "ns", "web");
    contains(
        &printed(&trace),
        &[
            "replicaset-controller creates pods a (wants 1 pods, has 0) <- 2",
            "kubelet/n1: pods a: StartContainer (main) <- 3",
            "kubelet/n1 writes the status of pods a <- 4",
            "kubelet warns of a: Evicted: The node was low on resource: memory. <- 5",
            "kubelet/n1: pods a: main ends with exit code 0, StopPodSandbox <- 6",
            "kubelet/n1 writes the status of pods a <- 7",
            "replicaset-controller creates pods b (wants 1 pods, has 0) <- 8",
            "kubelet/n1: pods b: StartContainer (main) <- 9",
        ],
    );
}

#[test]
fn a_pod_that_makes_room_and_the_one_that_takes_it_are_told_apart() {
    let record = Handwritten::new();
    let made = make_pod(&record, begun(&record), "low", 8);
    // Its end is seen in the state in which pods run, too.
    let ended = sync(&record, made, "low", "sync!", 9);
    sync(&record, ended, "high", "sync", 10);
    contains(
        &printed(&record.flow.trace("replicasets.apps", "ns", "web")),
        &[
            "kubelet/n1: pods low: main ends with exit code 0, StopPodSandbox <- 3",
            "kubelet/n1: pods high: StartContainer (main) <- 5",
        ],
    );
}

#[test]
fn what_comes_round_with_other_pods_each_time_is_told_a_few_times_and_then_counted() {
    let record = Handwritten::new();
    let mut cause = begun(&record);
    for round in 0..12 {
        let name = format!("p{round}");
        let made = make_pod(&record, cause, &name, 8 + 2 * round);
        cause = sync(&record, made, &name, "sync", 9 + 2 * round);
    }
    let text = printed(&record.flow.trace("replicasets.apps", "ns", "web"));
    contains(&text, &["creates pods p0", "creates pods p3", "creates 8 pods: p4, p5, p6, ..."]);
    assert_eq!(text.matches("replicaset-controller creates").count(), 5, "{text}");
}

#[test]
fn an_attempt_of_which_no_more_is_known_says_nothing_and_one_that_failed_early_says_why() {
    let told = |event: &str| {
        let record = Handwritten::new();
        let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
        let seen = written(&record, asked, "pods", "a", 7);
        let attempt = record.step(seen, Step::SchedulingAttempt { pod: "ns/a".into() });
        let (component, object, reason) = ("default-scheduler".into(), "ns/a".into(), event.into());
        let (message, warning, host) = ("no such claim".into(), event != "Scheduled", None);
        let event = Step::EventRecorded { component, object, reason, message, warning, host };
        record.step(attempt, event);
        printed(&record.flow.trace("pods", "ns", "a"))
    };
    let placed = told("Scheduled");
    assert!(!placed.contains("kube-scheduler"), "{placed}");
    contains(
        &told("FailedScheduling"),
        &["kube-scheduler finds no node for pods a <- 2\n", "- no such claim"],
    );
}

#[test]
fn what_a_plugin_wrote_is_not_what_was_asked_for() {
    let record = Handwritten::new();
    let reconcile = record.reconcile_after(begun(&record), "replicaset", "ns/web", 0, 0);
    let asked = request(&record, reconcile, REPLICA_SETS, "create", "/api/v1/namespaces/ns/pods");
    written(&record, asked, "resourcequotas", "tiny", 8);
    written(&record, asked, "pods", "a", 9);
    let text = printed(&record.flow.trace("replicasets.apps", "ns", "web"));
    contains(&text, &["replicaset-controller creates pods a <- 2"]);
    assert!(!text.contains("tiny"), "{text}");
}

#[test]
fn one_refusal_names_its_object() {
    let record = Handwritten::new();
    let reconcile = record.reconcile_after(begun(&record), "replicaset", "ns/web", 0, 0);
    let asked = request(&record, reconcile, REPLICA_SETS, "create", "/api/v1/namespaces/ns/pods");
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    let why = "pods \"a\" already exists".into();
    record.step(asked, Step::Refused { resource, namespace, name, code: 409, why });
    contains(
        &printed(&record.flow.trace("replicasets.apps", "ns", "web")),
        &["meets a conflict (409) when it creates pods a <- 2", "- pods \"a\" already exists"],
    );
}

#[test]
fn what_has_no_name_is_told_by_its_namespace_or_its_path() {
    let record = Handwritten::new();
    let lists = request(&record, None, "", "list", "/api/v1/namespaces/ns/pods");
    record.step(lists, Step::Denied { plugin: "ResourceQuota".into() });
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "".into());
    let why = "no".into();
    record.step(lists, Step::Refused { resource, namespace, name, code: 403, why });
    request(&record, None, "kubernetes-admin", "delete", "/kubarium/faults/a");
    request(&record, None, "system:admin", "post", "/kubarium/faults");
    let text = printed(&record.flow.trace_all());
    contains(
        &text,
        &[
            "somebody unknown lists pods in namespace ns, as v1\n",
            "- ResourceQuota said no\n",
            "deletes /kubarium/faults/a\n",
            "admin posts /kubarium/faults\n",
        ],
    );
    assert!(!text.contains("by ResourceQuota"), "{text}");
}

/// The controller looks into every resource that the server has.
#[test]
fn what_is_swept_in_vain_at_the_end_of_a_namespace_is_one_stage() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
    let seen = written(&record, asked, "pods", "a", 7);
    let reconcile = record.reconcile_after(seen, "namespace", "ns", 0, 0);
    let user = "system:serviceaccount:kube-system:namespace-controller";
    let sweep = |resource: &str| {
        let path = format!("/api/v1/namespaces/ns/{resource}");
        request(&record, reconcile, user, "deletecollection", &path)
    };
    sweep("configmaps");
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    contains(&text, &["deletes all of resources of which there are none: configmaps"]);
    let swept = sweep("pods");
    sweep("secrets");
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    let (operation, uid, bytes) = (WriteOperation::Delete, None, 0);
    record.step(swept, Step::Stored { resource, namespace, name, revision: 8, operation, uid, bytes });
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    let in_vain =
        "namespace-controller deletes all of 2 resources of which there are none: configmaps, secrets";
    contains(&text, &[in_vain, "namespace-controller deletes all of pods a"]);
}
