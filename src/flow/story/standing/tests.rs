//! What stands in the way, by records that are written down by hand.

use crate::handwritten::Handwritten;
use crate::parts::ComparedCount;
use crate::recorded::StepId;
use crate::step::Step;
use crate::story::tests::{printed, request, written};

/// What is said at the end of an object's story.
fn told(record: &Handwritten, resource: &str, name: &str) -> Vec<String> {
    let namespace = if resource == "nodes" { "" } else { "ns" };
    let text = printed(&record.flow.trace(resource, namespace, name));
    text.lines().filter_map(|line| line.strip_prefix(" => ")).map(str::to_owned).collect()
}

fn pod(record: &Handwritten, name: &str, revision: u64) -> Option<StepId> {
    let asked = request(record, None, "", "create", "/api/v1/namespaces/ns/pods");
    written(record, asked, "pods", name, revision)
}

fn sync(record: &Handwritten, cause: Option<StepId>) -> Option<StepId> {
    let (node, pod) = ("n1".into(), "ns/a".into());
    record.step(cause, Step::PodWorkerSync { node, pod, state: "sync".into() })
}

fn warn(record: &Handwritten, cause: Option<StepId>, component: &str, reason: &str, message: &str) {
    let (component, object, reason) = (component.into(), "ns/a".into(), reason.into());
    let message = message.into();
    record.step(cause, Step::EventRecorded { component, object, reason, message, warning: true, host: None });
}

fn starts(record: &Handwritten, cause: Option<StepId>) {
    let (node, pod, container) = ("n1".into(), "ns/a".into(), "main".into());
    record.step(cause, Step::ContainerStarted { node, pod, container });
}

fn status(record: &Handwritten, cause: Option<StepId>, user: &str, path: &str) {
    request(record, cause, user, "patch", path);
}

#[test]
fn what_another_pod_lacks_is_not_in_the_way_of_this_one() {
    let record = Handwritten::new();
    let seen = pod(&record, "a", 7);
    let attempt = record.step(seen, Step::SchedulingAttempt { pod: "ns/big".into() });
    let pod = "ns/big".into();
    record.step(attempt, Step::Filtered { pod, feasible: 0, nodes: 3, refusals: vec![] });
    assert_eq!(told(&record, "pods", "a"), [""; 0]);
}

#[test]
fn what_was_made_of_an_object_is_its_own() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/apis/apps/v1/namespaces/ns/deployments");
    let stored = written(&record, asked, "deployments.apps", "web", 7);
    let make = |cause, controller: &str, of: &str, resource: &str, name: &str, revision| {
        let reconcile = record.reconcile_after(cause, controller, of, 0, 0);
        let user = format!("system:serviceaccount:kube-system:{controller}-controller");
        let path = format!("/apis/apps/v1/namespaces/ns/{}", resource.split('.').next().unwrap());
        let asked = request(&record, reconcile, &user, "create", &path);
        written(&record, asked, resource, name, revision)
    };
    let set = make(stored, "deployment", "ns/web", "replicasets.apps", "web-1", 8);
    let seen = make(set, "replicaset", "ns/web-1", "pods", "web-1-x", 9);
    for name in ["web-1-x", "other"] {
        let pod = || format!("ns/{name}").into();
        let attempt = record.step(seen, Step::SchedulingAttempt { pod: pod() });
        record.step(attempt, Step::Filtered { pod: pod(), feasible: 0, nodes: 3, refusals: vec![] });
    }
    assert_eq!(told(&record, "deployments.apps", "web"), ["pod ns/web-1-x has no node: none of 3 fits"]);
}

#[test]
fn a_quota_that_is_spent_is_in_the_way_until_there_is_room() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/apis/apps/v1/namespaces/ns/replicasets");
    let stored = written(&record, asked, "replicasets.apps", "web", 7);
    let round = |result: &str, found| {
        let reconcile = record.reconcile_after(stored, "replicaset", "ns/web", 0, 0);
        let compared = Some(ComparedCount { of: "pods".into(), wanted: 3, found });
        record.step(reconcile, Step::ReconcileEnded { result: result.into(), compared });
    };
    let why = "pods \"web-x\" is forbidden: exceeded quota: tiny";
    round(why, 1);
    let wanted = format!("replicaset-controller of ns/web wants 3 pods, has 1, and is refused: {why}");
    assert_eq!(told(&record, "replicasets.apps", "web"), [wanted]);
    round("done", 1);
    assert_eq!(told(&record, "replicasets.apps", "web"), [""; 0]);
}

#[test]
fn a_pod_whose_image_or_config_is_missing_says_so_until_it_starts() {
    let record = Handwritten::new();
    let seen = pod(&record, "a", 7);
    let first = sync(&record, seen);
    warn(&record, first, "kubelet", "Failed", "Failed to pull image \"x\": not there");
    warn(&record, first, "kubelet", "Failed", "Error: ErrImagePull");
    // The other container can be had.
    starts(&record, first);
    let is_told = |reason: &str, why: &str| {
        assert_eq!(told(&record, "pods", "a"), [format!("pod ns/a cannot start ({reason}): {why}")]);
    };
    is_told("ErrImagePull", "Failed to pull image \"x\": not there");
    warn(&record, sync(&record, seen), "kubelet", "Failed", "Error: ImagePullBackOff");
    is_told("ImagePullBackOff", "Failed to pull image \"x\": not there");
    warn(&record, sync(&record, seen), "kubelet", "Failed", "Error: configmap \"c\" not found");
    is_told("CreateContainerConfigError", "configmap \"c\" not found");
    starts(&record, sync(&record, seen));
    assert_eq!(told(&record, "pods", "a"), [""; 0]);
}

#[test]
fn a_probe_that_fails_is_in_the_way_until_the_kubelet_says_something_else_of_the_pod() {
    let record = Handwritten::new();
    let seen = pod(&record, "a", 7);
    let probed = sync(&record, seen);
    warn(&record, probed, "kubelet", "Unhealthy", "Readiness probe failed: no");
    assert_eq!(told(&record, "pods", "a"), ["pod ns/a is not ready: Readiness probe failed: no"]);
    status(&record, probed, "system:node:n1", "/api/v1/namespaces/ns/pods/a/status");
    assert_eq!(told(&record, "pods", "a"), [""; 0]);
}

#[test]
fn an_evicted_pod_a_claim_without_a_class_and_a_silent_node_say_so() {
    let record = Handwritten::new();
    let seen = pod(&record, "a", 7);
    warn(&record, seen, "kubelet", "Evicted", "The node was low on resource: memory.");
    let evicted = ["pod ns/a was evicted: The node was low on resource: memory."];
    assert_eq!(told(&record, "pods", "a"), evicted);

    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/persistentvolumeclaims");
    let seen = written(&record, asked, "persistentvolumeclaims", "a", 7);
    let why = "storageclass.storage.k8s.io \"nope\" not found";
    warn(&record, seen, "persistentvolume-controller", "ProvisioningFailed", why);
    let claim = format!("persistentvolumeclaim ns/a has no volume: ProvisioningFailed: {why}");
    assert_eq!(told(&record, "persistentvolumeclaims", "a"), [claim]);

    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/nodes");
    let (resource, name) = ("nodes".into(), "n1".into());
    let (namespace, operation) = ("".into(), crate::step::WriteOperation::Create);
    let step = Step::Stored { resource, namespace, name, revision: 7, operation, uid: None, bytes: 1 };
    let seen = record.step(asked, step);
    let user = "system:serviceaccount:kube-system:node-controller";
    status(&record, seen, user, "/api/v1/nodes/n1/status");
    let silent = ["node n1 is not ready: its kubelet says nothing any more, node-controller speaks for it"];
    assert_eq!(told(&record, "nodes", "n1"), silent);
    status(&record, seen, "system:node:n1", "/api/v1/nodes/n1/status");
    assert_eq!(told(&record, "nodes", "n1"), [""; 0]);
}

/// Of that there is no warning, and nobody caused it.
#[test]
fn a_node_is_as_its_kubelet_says_until_that_says_otherwise_or_nothing() {
    let record = Handwritten::new();
    let asked = request(&record, None, "", "create", "/api/v1/nodes");
    let (resource, name) = ("nodes".into(), "n1".into());
    let (namespace, operation) = ("".into(), crate::step::WriteOperation::Create);
    let step = Step::Stored { resource, namespace, name, revision: 7, operation, uid: None, bytes: 1 };
    let seen = record.step(asked, step);
    let says = |component: &str, object: &str, reason: &str| {
        let (component, object, reason) = (component.into(), object.into(), reason.into());
        let (message, warning, host) = ("Node n1 status is now".into(), false, None);
        record.step(None, Step::EventRecorded { component, object, reason, message, warning, host });
    };
    let said =
        |what: &str| format!("node n1 is {what}: its kubelet says so itself; why: kubectl describe node n1");
    says("kubelet", "n1", "NodeNotReady");
    says("kubelet", "n2", "NodeHasDiskPressure");
    says("somebody", "n1", "NodeHasDiskPressure");
    assert_eq!(told(&record, "nodes", "n1"), [said("not ready")]);
    says("kubelet", "n1", "NodeHasInsufficientPID");
    assert_eq!(told(&record, "nodes", "n1"), [said("not ready and under PIDPressure")]);
    says("kubelet", "n1", "NodeReady");
    assert_eq!(told(&record, "nodes", "n1"), [said("under PIDPressure")]);
    let user = "system:serviceaccount:kube-system:node-controller";
    status(&record, seen, user, "/api/v1/nodes/n1/status");
    let silent = ["node n1 is not ready: its kubelet says nothing any more, node-controller speaks for it"];
    assert_eq!(told(&record, "nodes", "n1"), silent);
    status(&record, seen, "system:node:n1", "/api/v1/nodes/n1/status");
    says("kubelet", "n1", "NodeHasSufficientPID");
    assert_eq!(told(&record, "nodes", "n1"), [""; 0]);
}

#[test]
fn a_container_that_waits_before_it_is_started_again_is_in_crash_loop_back_off() {
    let record = Handwritten::new();
    let seen = pod(&record, "a", 7);
    let ran = sync(&record, seen);
    let (node, pod, container) = ("n1".into(), "ns/a".into(), "main".into());
    record.step(ran, Step::ContainerExited { node, pod, container, exit_code: 3, reason: "".into() });
    warn(&record, ran, "kubelet", "BackOff", "Back-off restarting failed container main in pod a_ns(1)");
    let failed = "container main of pod ns/a has failed, with exit code 3";
    let said = "what it said: kubectl logs a -c main -n ns --previous";
    assert_eq!(told(&record, "pods", "a"), [format!("{failed}, and is in CrashLoopBackOff; {said}")]);
    starts(&record, sync(&record, seen));
    assert_eq!(told(&record, "pods", "a"), [format!("{failed}; {said}")]);
}

#[test]
fn a_container_that_had_too_little_memory_says_so() {
    let record = Handwritten::new();
    let seen = pod(&record, "a", 7);
    let (node, pod, container) = ("n1".into(), "ns/a".into(), "main".into());
    let (exit_code, reason) = (137, "OOMKilled".into());
    let ran = sync(&record, seen);
    record.step(ran, Step::ContainerExited { node, pod, container, exit_code, reason });
    let text = printed(&record.flow.trace("pods", "ns", "a"));
    assert!(text.contains("main ends with exit code 137 (OOMKilled)"), "{text}");
    assert!(
        text.contains("container main of pod ns/a has failed, with exit code 137 (OOMKilled);"),
        "{text}"
    );
}
