//! The causal record over the wire: refused attempts, objects of one name, kubelets, pods that somebody woke.

use std::time::Duration;

use http::Method;
use kubarium::apimachinery::options::{DeleteOptions, PatchType};
use kubarium::apis::batch::job::JOBS;
use kubarium::apis::coordination::lease::LEASES;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::cluster::{Access, Components, Listen};
use kubarium::flow::{Step, Trace, TracedObject, WriteOperation};
use kubarium::{Clock, Cluster, Config};
use serde_json::json;

use crate::support::PATIENCE;
use crate::support::webhook::{Asked, Reply, Webhook};
use crate::support::wire::{JSON, Target, Wire};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An apiserver on a port of its own; nobody else is at work.
async fn listening() -> (Cluster, Access) {
    let listen = Listen::loopback();
    let config = Config::new().nodes(0).components(Components::NONE).listen(listen);
    let cluster = Cluster::start(config).await.unwrap();
    let access = cluster.access().unwrap();
    (cluster, access)
}

fn target(access: &Access, identity: Option<[Vec<u8>; 2]>) -> Target {
    Target::new(&access.server, access.authority_pem.as_ref().unwrap().as_bytes(), identity)
}

async fn admin(access: &Access) -> Wire {
    let identity = access.identity.as_ref().unwrap();
    let identity = [identity.certificate_pem.as_str().into(), identity.key_pem.as_str().into()];
    target(access, Some(identity)).http1().await.unwrap()
}

/// Sends a request, which is answered with `code`.
async fn send(wire: &mut Wire, method: Method, path: &str, headers: &[(&str, &str)], body: &str, code: u16) {
    let body = Some((JSON, body.to_owned().into()));
    let answer = wire.open_with(method, path, headers, body).await.unwrap();
    assert_eq!(answer.status(), code, "{path}");
    // Without its body the connection is not free for the next request.
    http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
}

fn map(name: &str) -> String {
    json!({"metadata": {"name": name}}).to_string()
}

fn of(cluster: &Cluster, resource: &str, name: &str) -> Trace {
    cluster.flow().trace(resource, "default", name)
}

#[tokio::test]
async fn a_refused_create_is_told_of_its_name() {
    let (cluster, access) = listening().await;
    let (mut wire, mut stranger) = (admin(&access).await, target(&access, None).http1().await.unwrap());
    let wrong = [("authorization", "Bearer wr0ng")];
    send(&mut stranger, Method::POST, MAPS, &wrong, &map("stranger"), 401).await;
    send(&mut stranger, Method::POST, MAPS, &[], &map("nobody"), 403).await;
    send(&mut wire, Method::POST, MAPS, &[("impersonate-user", "jane")], &map("acted"), 403).await;
    let strict = format!("{MAPS}?fieldValidation=Strict");
    let odd = json!({"metadata": {"name": "strict"}, "dataz": {}}).to_string();
    send(&mut wire, Method::POST, &strict, &[], &odd, 400).await;
    let invalid = json!({"metadata": {"name": "invalid", "labels": {"a": "-"}}}).to_string();
    send(&mut wire, Method::POST, MAPS, &[], &invalid, 422).await;
    send(&mut wire, Method::POST, &format!("{MAPS}?dryRun=All"), &[], &map("dry"), 201).await;
    for (name, words) in [
        ("stranger", ["not authenticated (X509: no opinion;", "refused with 401: Unauthorized"]),
        ("nobody", ["not authorized (Node: no opinion; RBAC: no opinion)", "refused with 403"]),
        ("acted", ["kubernetes-admin acts as jane", "not authorized (Node: no opinion; RBAC"]),
        ("strict", ["authenticated as kubernetes-admin", "unknown field \"dataz\""]),
        ("invalid", ["refused with 422", "a valid label must be"]),
        ("dry", ["validated", "answered 201 to a dry run: configmaps default/dry is not stored"]),
    ] {
        let trace = of(&cluster, "configmaps", name);
        let text = trace.render();
        for words in words.into_iter().chain(["create default/configmaps"]) {
            assert!(text.contains(words), "{name}: {words:?} is not in\n{text}");
        }
        assert_eq!(trace.uid, None, "there is no object");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn an_attempt_without_a_name_is_told_of_its_resource() {
    let (cluster, access) = listening().await;
    let (mut wire, mut stranger) = (admin(&access).await, target(&access, None).http2().await.unwrap());
    let generated = json!({"metadata": {"generateName": "a-"}}).to_string();
    send(&mut stranger, Method::POST, MAPS, &[], &generated, 403).await;
    send(&mut wire, Method::POST, MAPS, &[], "{\"metadata\":", 400).await;
    send(&mut stranger, Method::GET, MAPS, &[], "", 403).await;
    send(&mut stranger, Method::GET, "/api/v1/configmaps?watch=1", &[], "", 403).await;
    send(&mut stranger, Method::GET, &format!("{MAPS}/one"), &[], "", 403).await;
    send(&mut wire, Method::GET, MAPS, &[], "", 200).await;
    let trace = of(&cluster, "configmaps", "");
    let verbs: Vec<&str> = trace.steps.iter().filter_map(|step| verb(&step.step)).collect();
    assert_eq!(verbs, ["create", "create", "list", "watch"]);
    let text = of(&cluster, "configmaps", "one").render();
    for words in [
        "get default/configmaps/one",
        "authenticated as system:anonymous by Anonymous",
        "refused with 403: configmaps \"one\" is forbidden",
        "refused requests that name no object: 4 (trace configmaps tells them)",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    cluster.stop().await;
}

fn verb(step: &Step) -> Option<&str> {
    match step {
        Step::RequestReceived { verb, .. } => Some(verb),
        _ => None,
    }
}

#[tokio::test]
async fn a_refusal_names_the_plugin_and_the_webhook() {
    let (cluster, access) = listening().await;
    let mut wire = admin(&access).await;
    let webhook = Webhook::start(judge).await;
    let rules =
        json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]);
    let entry = |name: &str| {
        let client = json!({"url": webhook.url(&format!("/{name}")), "caBundle": webhook.ca_bundle()});
        let selector = json!({"matchLabels": {"hook": name}});
        json!({"name": format!("{name}.example.com"), "clientConfig": client, "rules": rules,
            "objectSelector": selector, "sideEffects": "None", "admissionReviewVersions": ["v1"]})
    };
    let hooks =
        json!({"metadata": {"name": "hooks"}, "webhooks": [entry("deny"), entry("broken")]}).to_string();
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    send(&mut wire, Method::POST, path, &[], &hooks, 201).await;
    let forbids = "forbids that kubernetes-admin creates configmaps default/deny (not today): ";
    for (name, code, words, stands_by) in [
        ("deny", 400, "admission webhook \"deny.example.com\" denied the request: not today", forbids),
        (
            "broken",
            500,
            "failed calling webhook \"broken.example.com\"",
            "gives no valid answer (failed to call",
        ),
    ] {
        let body = json!({"metadata": {"name": name, "labels": {"hook": name}}}).to_string();
        send(&mut wire, Method::POST, MAPS, &[], &body, code).await;
        let trace = of(&cluster, "configmaps", name);
        let text = trace.render();
        let called = format!("webhook {name}.example.com: {words}");
        for words in ["ValidatingAdmissionWebhook said no", words, &called] {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
        let stands = trace.story().standing;
        let gate =
            format!("the webhook {name}.example.com of ValidatingWebhookConfiguration hooks {stands_by}");
        assert!(stands.len() == 1 && stands[0].starts_with(&gate), "{stands:?}");
    }
    cluster.stop().await;
}

fn judge(asked: &Asked) -> Reply {
    if asked.path.starts_with("/broken") {
        return Reply::Raw(500, "boom".into());
    }
    let uid = asked.body["request"]["uid"].clone();
    let response = json!({"uid": uid, "allowed": false, "status": {"message": "not today"}});
    Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

#[tokio::test]
async fn objects_of_one_name_have_stories_of_their_own() {
    let config = Config::new().nodes(0).components(Components::NONE);
    let cluster = Cluster::start(config).await.unwrap();
    let client = cluster.client();
    let object = json!({"metadata": {"name": "a"}});
    let first = client.create(&CONFIG_MAPS, "default", object.clone()).await.unwrap();
    client.delete(&CONFIG_MAPS, "default", "a", &DeleteOptions::default()).await.unwrap();
    let second = client.create(&CONFIG_MAPS, "default", object).await.unwrap();
    let (first, second) = (&first.metadata.uid, &second.metadata.uid);
    let writes = |uid| {
        let subject = TracedObject { resource: "configmaps", namespace: "default", name: "a", uid };
        let trace = cluster.flow().trace_of(&subject);
        let written = trace.steps.iter().filter_map(|step| match &step.step {
            Step::Stored { operation, uid, .. } => Some((*operation, uid.unwrap().to_string())),
            _ => None,
        });
        (written.collect::<Vec<_>>(), trace)
    };
    let (written, newest) = writes("");
    assert_eq!(written, [(WriteOperation::Create, second.clone())]);
    let text = newest.render();
    assert!(text.contains(&format!("another object of that name: --uid {first}")), "{text}");
    let (written, _) = writes(&first[..13]);
    assert_eq!(written, [(WriteOperation::Create, first.clone()), (WriteOperation::Delete, first.clone())]);
    cluster.stop().await;
}

#[tokio::test]
async fn leases_that_are_renewed_do_not_fill_the_record() {
    let config = Config::new().nodes(0).components(Components::NONE);
    let cluster = Cluster::start(config).await.unwrap();
    let client = cluster.client();
    let lease = json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a"}});
    client.create(&LEASES, "default", lease).await.unwrap();
    let before = cluster.flow().record(None, Step::VALIDATED);
    for holder in ["b", "c", "d"] {
        let patch = json!({"spec": {"holderIdentity": holder}});
        client.patch(&LEASES, "default", "leader", PatchType::Merge, &patch).await.unwrap();
    }
    let after = cluster.flow().record(None, Step::VALIDATED);
    assert_eq!(after.0, before.0 + 1, "{}", of(&cluster, "leases.coordination.k8s.io", "leader").render());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_tells_of_sandboxes_and_of_containers_that_end() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let pod = json!({"metadata": {"name": "once"}, "spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 3"]}
    ]}});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    let trace = until(&cluster, "pods", "once", |step| matches!(step, Step::SandboxStopped { .. })).await;
    let of_kubelet = |step: &Step| match step {
        Step::SandboxCreated { address, .. } => Some(format!("sandbox {}", !address.is_empty())),
        Step::ContainerStarted { container, .. } => Some(format!("started {container}")),
        Step::ContainerExited { container, exit_code, .. } => Some(format!("{container} exited {exit_code}")),
        Step::SandboxStopped { .. } => Some("stopped".into()),
        _ => None,
    };
    let told: Vec<String> = trace.steps.iter().filter_map(|step| of_kubelet(&step.step)).collect();
    assert_eq!(told, ["sandbox true", "started main", "main exited 3", "stopped"], "{}", trace.render());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_a_node_wakes_names_the_nodes_change_as_cause() {
    let cluster = Cluster::start(Config::new().nodes(1)).await.unwrap();
    let client = cluster.client();
    let pod = json!({"metadata": {"name": "picky"}, "spec": {"nodeSelector": {"disk": "ssd"}, "containers": [
        {"name": "main", "image": "nginx"}
    ]}});
    client.create(&PODS, "default", pod).await.unwrap();
    // The scheduler has said so, and knows that it has: else that would be what wakes it.
    until(&cluster, "pods", "picky", |step| {
        matches!(step, Step::Stored { operation: WriteOperation::Update, .. })
    })
    .await;
    let label = json!({"metadata": {"labels": {"disk": "ssd"}}});
    client.patch(&NODES, "", "node-1", PatchType::Merge, &label).await.unwrap();
    let trace = until(&cluster, "pods", "picky", |step| matches!(step, Step::Bound { .. })).await;
    let is_attempt = |step: &Step| matches!(step, Step::SchedulingAttempt { .. });
    let attempt = trace.steps.iter().rfind(|step| is_attempt(&step.step)).unwrap();
    let cause = trace.steps.iter().find(|step| Some(step.id) == attempt.cause).unwrap();
    let Step::InformerUpdated { resource, key, .. } = &cause.step else { panic!("{cause:?}") };
    assert_eq!((&**resource, &**key), ("nodes", "node-1"), "{}", trace.render());
    let text = trace.render();
    assert!(text.contains("updated nodes node-1 at"), "the change itself is told: {text}");
    let of_node = cluster.flow().trace("nodes", "", "node-1");
    assert!(of_node.steps.iter().any(|step| step.id == attempt.id), "the node's story leads to the pod");
    cluster.stop().await;
}

#[tokio::test]
async fn the_second_try_of_a_job_is_part_of_its_story() {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::start(Config::new().nodes(1).clock(clock)).await.unwrap();
    let container = json!({"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 9"]});
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let job = json!({"metadata": {"name": "fails"}, "spec": {"backoffLimit": 1, "template": template}});
    cluster.client().create(&JOBS, "default", job).await.unwrap();
    cluster.pass(Duration::from_secs(60)).await.unwrap();
    cluster.settled().await.unwrap();
    let trace = of(&cluster, "jobs.batch", "fails");
    let is_made = |step: &Step| {
        let Step::Stored { resource, operation, .. } = step else { return false };
        &**resource == "pods" && *operation == WriteOperation::Create
    };
    assert_eq!(trace.steps.iter().filter(|step| is_made(&step.step)).count(), 2, "{}", trace.render());
    let story = trace.story();
    let mut made = story.stages.iter().filter(|stage| stage.words.contains("job-controller creates pods"));
    assert!(made.all(|stage| stage.cause.is_some()), "{:?}", story.stages);
    cluster.stop().await;
}

/// The story of an object, as soon as it has such a step.
async fn until(cluster: &Cluster, resource: &str, name: &str, wanted: impl Fn(&Step) -> bool) -> Trace {
    let start = std::time::Instant::now();
    loop {
        let trace = of(cluster, resource, name);
        if trace.steps.iter().any(|step| wanted(&step.step)) {
            return trace;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain; so far:\n{}", trace.render());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
