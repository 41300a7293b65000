//! Probes and hooks that ask the network, from a pod's own node.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use kubarium::apimachinery::options::{DeleteOptions, ListOptions};
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::pod::PODS;
use kubarium::clock::Clock;
use kubarium::entropy::Entropy;
use kubarium::kubelet::exec::ExecCommand;
use kubarium::network::weather::Disturbance;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};

/// A cluster of one node whose time a test lets pass.
struct Probed(Cluster);

impl Probed {
    async fn start() -> Probed {
        let clock = Clock::stepped("2030-01-01T00:00:30Z".parse().unwrap());
        Probed(Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap())
    }

    async fn run(&self, name: &str, annotations: Value, container: Value) {
        let mut container = container;
        container["name"] = "main".into();
        let metadata = json!({"name": name, "labels": {"app": name}, "annotations": annotations});
        let pod = json!({"metadata": metadata, "spec": {"containers": [container]}});
        self.0.client().create(&PODS, "default", pod).await.unwrap();
        self.pass(5).await;
    }

    async fn pass(&self, seconds: u64) {
        self.0.pass(Duration::from_secs(seconds)).await.unwrap();
    }

    async fn pod(&self, name: &str) -> Value {
        self.0.client().get(&PODS, "default", name).await.unwrap().to_value()
    }

    async fn is_ready(&self, name: &str) -> bool {
        self.pod(name).await["status"]["containerStatuses"][0]["ready"] == true
    }

    async fn restarts(&self, name: &str) -> Value {
        self.pod(name).await["status"]["containerStatuses"][0]["restartCount"].clone()
    }

    async fn ip(&self, name: &str) -> String {
        self.pod(name).await["status"]["podIP"].as_str().unwrap().to_owned()
    }

    /// Runs a command in a pod, as `kubectl exec` does.
    async fn exec(&self, name: &str, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let command = ExecCommand { container: "main".into(), words, ..ExecCommand::default() };
        let ran = self.0.kubelet("node-1").unwrap().exec("default", name, &command).await.unwrap();
        assert_eq!(ran.end, Some((Duration::ZERO, 0)), "{ran:?}");
    }

    /// What was told of a pod with a reason.
    async fn told(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self.0.client().list(&EVENTS, "default", &ListOptions::default()).await.unwrap();
        let events = events.items.iter().map(|event| event.to_value());
        let of = events.filter(|event| event["involvedObject"]["name"] == name && event["reason"] == reason);
        of.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

fn readiness(probe: Value) -> Value {
    let mut probe = probe;
    probe["periodSeconds"] = 5.into();
    probe["failureThreshold"] = 1.into();
    json!({"image": "nginx", "readinessProbe": probe})
}

#[tokio::test]
async fn what_is_wrong_on_the_way_fails_a_probe_until_it_is_well_again() {
    let probed = Probed::start().await;
    let web = || json!({"httpGet": {"port": 80}});
    probed.run("web", json!({}), readiness(web())).await;
    // Nobody knows what that serves: it is assumed to be well for whom it is reached by.
    let mut unknown = readiness(json!({"tcpSocket": {"port": 9000}}));
    unknown["image"] = "example.com/unknown".into();
    probed.run("unknown", json!({}), unknown).await;
    assert!(probed.is_ready("web").await && probed.is_ready("unknown").await);
    let parted = Disturbance { is_partition: true, ..Disturbance::default() };
    probed.0.network().disturb(vec![parted]).unwrap();
    probed.pass(8).await;
    assert!(!probed.is_ready("web").await && !probed.is_ready("unknown").await);
    let (web, unknown) = (probed.ip("web").await, probed.ip("unknown").await);
    let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    let why = format!("Readiness probe failed: Get \"http://{web}:80/\": {late}");
    assert_eq!(probed.told("web", "Unhealthy").await, [why]);
    let why = format!("Readiness probe failed: dial tcp {unknown}:9000: i/o timeout");
    assert_eq!(probed.told("unknown", "Unhealthy").await, [why]);
    let slow = Disturbance { latency: Duration::from_millis(300), ..Disturbance::default() };
    probed.0.network().disturb(vec![slow]).unwrap();
    probed.pass(8).await;
    assert!(probed.is_ready("unknown").await, "there and back takes less than a second");
    assert!(!probed.is_ready("web").await, "with the request and its answer it takes more");
    probed.0.network().disturb(vec![]).unwrap();
    probed.pass(8).await;
    assert!(probed.is_ready("web").await && probed.is_ready("unknown").await);
    probed.0.stop().await;
}

#[tokio::test]
async fn listeners_that_count_or_are_given_are_asked_each_time() {
    let probed = Probed::start().await;
    let routes = json!({"kubarium.dev/http.80": "[{after: 2, every: 2, status: 503}, {body: ok}]"});
    probed.run("counted", routes, readiness(json!({"httpGet": {"port": 80}}))).await;
    assert!(probed.is_ready("counted").await);
    probed.pass(12).await;
    let failed = "Readiness probe failed: HTTP probe failed with statuscode: 503".to_owned();
    assert_eq!(probed.told("counted", "Unhealthy").await, [failed]);
    let headers = json!([{"name": "X-Probe", "value": "yes"}, {"name": "Host", "value": "own"}]);
    let get = json!({"path": "/well?x=y", "port": "web", "httpHeaders": headers});
    let mut given = readiness(json!({"httpGet": get}));
    given["ports"] = json!([{"name": "web", "containerPort": 80}]);
    probed.run("given", json!({}), given).await;
    // It answers otherwise than nginx from now on.
    let code = Arc::new(AtomicU16::new(500));
    let answered = code.clone();
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
        let asked = [&*request.uri().to_string(), &header("host"), &header("user-agent"), &header("x-probe")];
        assert_eq!(asked, ["/well?x=y", "own", "kube-probe/1.36", "yes"]);
        let answer = Response::builder().status(answered.load(Ordering::SeqCst)).body(Bytes::new());
        std::future::ready(Ok::<_, Infallible>(answer.unwrap()))
    });
    probed.0.listen_at("default", "given", 80, service).unwrap();
    probed.pass(6).await;
    assert!(!probed.is_ready("given").await);
    code.store(204, Ordering::SeqCst);
    probed.pass(6).await;
    assert!(probed.is_ready("given").await);
    probed.0.stop().await;
}

#[tokio::test]
async fn commands_that_ask_the_network_are_asked() {
    let probed = Probed::start().await;
    let routes = json!({"kubarium.dev/http.80": "[{path: /ok}, {path: /late, delay: 4s}]"});
    probed.run("web", routes, json!({"image": "nginx"})).await;
    let web = probed.ip("web").await;
    for (name, path) in [("well", "ok"), ("ill", "none"), ("late", "late")] {
        let command = json!(["wget", "-qO-", format!("http://{web}/{path}")]);
        let probe = json!({"exec": {"command": command}, "periodSeconds": 5, "failureThreshold": 1});
        let container = json!({"image": "busybox", "command": ["sleep", "10000"], "readinessProbe": probe});
        probed.run(name, json!({}), container).await;
    }
    assert!(probed.is_ready("well").await && !probed.is_ready("ill").await && !probed.is_ready("late").await);
    let told = probed.told("ill", "Unhealthy").await;
    assert!(told[0].contains("404"), "{told:?}");
    let line = format!("\"wget -qO- http://{web}/late\"");
    let why = format!("Readiness probe failed: command timed out: {line} timed out after 1s");
    assert_eq!(probed.told("late", "Unhealthy").await, [why]);
    // They hear that the server is gone.
    let gone = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    probed.0.client().delete(&PODS, "default", "web", &gone).await.unwrap();
    probed.pass(10).await;
    assert!(!probed.is_ready("well").await);
    probed.0.stop().await;
}

#[tokio::test]
async fn hooks_over_http_are_heard_or_fail() {
    let probed = Probed::start().await;
    let routes = json!({"kubarium.dev/http.80": "[{path: /late, delay: 3s}, {status: 500}]"});
    probed.run("web", routes, json!({"image": "nginx"})).await;
    let web = probed.ip("web").await;
    let get =
        |host: &str, port: u16, path: &str| json!({"httpGet": {"host": host, "port": port, "path": path}});
    let sleeps = json!(["sleep", "10000"]);
    let with = |start: Value, stop: Value| {
        let lifecycle = json!({"postStart": start, "preStop": stop});
        json!({"image": "busybox", "command": sleeps, "lifecycle": lifecycle})
    };
    // Whoever answers has heard it, whatever he says.
    probed.run("heard", json!({}), with(get(&web, 80, "/start"), get(&web, 80, "/late"))).await;
    assert!(probed.is_ready("heard").await);
    probed.0.client().delete(&PODS, "default", "heard", &DeleteOptions::default()).await.unwrap();
    probed.pass(2).await;
    assert!(probed.pod("heard").await["metadata"]["deletionTimestamp"].is_string());
    probed.pass(2).await;
    assert!(probed.0.client().get(&PODS, "default", "heard").await.is_err(), "its hook is over");
    assert_eq!(probed.told("heard", "FailedPreStopHook").await, [""; 0]);
    probed.run("refused", json!({}), with(get(&web, 81, "/"), json!({"sleep": {"seconds": 0}}))).await;
    assert_eq!(probed.told("refused", "FailedPostStartHook").await, ["PostStartHook failed"]);
    assert!(probed.restarts("refused").await.as_i64() > Some(0));
    let nobody = json!({"exec": {"command": ["wget", "-qO-", format!("http://{web}:81/")]}});
    probed.run("mourned", json!({}), with(json!({"sleep": {"seconds": 0}}), nobody)).await;
    probed.0.client().delete(&PODS, "default", "mourned", &DeleteOptions::default()).await.unwrap();
    probed.pass(1).await;
    assert_eq!(probed.told("mourned", "FailedPreStopHook").await, ["PreStopHook failed"]);
    probed.0.stop().await;
}

#[tokio::test]
async fn a_pod_may_say_that_nobody_listens_but_whom_it_declares() {
    let probed = Probed::start().await;
    let container = || {
        let probe = json!({"httpGet": {"port": 8080}, "periodSeconds": 5, "failureThreshold": 1});
        json!({"image": "example.com/mine", "livenessProbe": probe})
    };
    probed.run("assumed", json!({}), container()).await;
    probed.run("said", json!({"kubarium.dev/listens": "declared"}), container()).await;
    probed.pass(10).await;
    assert_eq!(probed.restarts("assumed").await, 0);
    assert!(probed.restarts("said").await.as_i64() > Some(0));
    let ip = probed.ip("said").await;
    let refused = format!("dial tcp {ip}:8080: connect: connection refused");
    let why = format!("Liveness probe failed: Get \"http://{ip}:8080/\": {refused}");
    assert!(probed.told("said", "Unhealthy").await.contains(&why));
    probed.0.stop().await;
}

#[tokio::test]
async fn a_server_that_is_told_that_it_is_ill_fails_its_grpc_probe() {
    let probed = Probed::start().await;
    let probe = json!({"grpc": {"port": 5000}, "periodSeconds": 5, "failureThreshold": 1});
    let image = "registry.k8s.io/e2e-test-images/agnhost:2.53";
    let container = json!({"image": image, "args": ["grpc-health-checking"], "livenessProbe": probe});
    probed.run("health", json!({}), container).await;
    probed.pass(30).await;
    assert_eq!(probed.restarts("health").await, 0);
    let ip = probed.ip("health").await.parse().unwrap();
    let io = probed.0.network().connect(ip, SocketAddr::new(ip, 8080)).await.unwrap();
    let request = Request::get("/make-not-serving").header("host", "health").body(Bytes::new()).unwrap();
    let told = kubarium::network::http_client::ask(probed.0.clock(), io, request).await.unwrap();
    assert_eq!(told.status(), 200);
    probed.pass(6).await;
    let why = "Liveness probe failed: service unhealthy (responded with \"NOT_SERVING\")";
    assert_eq!(probed.told("health", "Unhealthy").await, [why]);
    assert_eq!(probed.restarts("health").await, 1);
    // What it was told it has forgotten.
    probed.pass(30).await;
    assert_eq!(probed.restarts("health").await, 1);
    probed.0.stop().await;
}

#[tokio::test]
async fn how_long_probes_take_is_counted() {
    let probed = Probed::start().await;
    let container = readiness(json!({"tcpSocket": {"port": 80}, "timeoutSeconds": 4}));
    probed.run("web", json!({}), container).await;
    assert!(probed.is_ready("web").await);
    let slow = Disturbance { latency: Duration::from_millis(300), ..Disturbance::default() };
    probed.0.network().disturb(vec![slow]).unwrap();
    probed.pass(16).await;
    let request = Request::get("/api/v1/nodes/node-1/proxy/metrics/probes").body(Default::default()).unwrap();
    let body = probed.0.client().raw(request).await.into_body();
    let text = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    let name = "prober_probe_duration_seconds";
    let help =
        format!("# HELP {name} [ALPHA] Duration in seconds for a probe response.\n# TYPE {name} histogram\n");
    assert!(text.starts_with(&help), "{text}");
    let labels = "container=\"main\",namespace=\"default\",pod=\"web\",probe_type=\"Readiness\"";
    let count = |bound: &str| -> u64 {
        let start = format!("{name}_bucket{{{labels},le=\"{bound}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{start}: {text}")).parse().unwrap()
    };
    // There and back takes six tenths of a second, and before that nothing.
    assert!(
        count("0.005") >= 1 && count("0.5") == count("0.005") && count("1") >= count("0.5") + 2,
        "{text}"
    );
    assert_eq!((count("10"), count("+Inf")), (count("1"), count("1")));
    let total = format!("{name}_count{{{labels}}} {}\n", count("+Inf"));
    assert!(text.contains(&total) && text.contains(&format!("{name}_sum{{{labels}}} ")), "{text}");
    probed.0.stop().await;
}

#[tokio::test]
async fn a_command_finds_what_somebody_has_written_into_the_container() {
    let probed = Probed::start().await;
    let sleeps = json!(["sleep", "10000"]);
    let exec = |command: &[&str]| json!({"exec": {"command": command}, "periodSeconds": 1});
    let ready = exec(&["cat", "/tmp/ready"]);
    probed
        .run("ready", json!({}), json!({"image": "busybox", "command": sleeps, "readinessProbe": ready}))
        .await;
    let mut alive = exec(&["sh", "-c", "test -f /tmp/alive"]);
    alive["initialDelaySeconds"] = 20.into();
    probed
        .run("alive", json!({}), json!({"image": "busybox", "command": sleeps, "livenessProbe": alive}))
        .await;
    assert!(!probed.is_ready("ready").await);
    probed.exec("ready", &["touch", "/tmp/ready"]).await;
    probed.exec("alive", &["touch", "/tmp/alive"]).await;
    probed.pass(3).await;
    assert!(probed.is_ready("ready").await);
    probed.exec("ready", &["rm", "/tmp/ready"]).await;
    probed.pass(5).await;
    assert!(!probed.is_ready("ready").await);
    probed.pass(60).await;
    assert_eq!(probed.restarts("alive").await, 0);
    probed.exec("alive", &["rm", "/tmp/alive"]).await;
    // Before the next container is asked, which has no such file either.
    probed.pass(15).await;
    assert_eq!(probed.restarts("alive").await, 1);
    probed.0.stop().await;
}

#[tokio::test]
async fn known_commands_are_run_in_containers_of_any_image() {
    let probed = Probed::start().await;
    let probe = |command: &[&str]| readiness(json!({"exec": {"command": command}}));
    probed.run("lacks", json!({}), probe(&["ls", "/var/ready"])).await;
    probed.run("has", json!({}), probe(&["sh", "-c", "test -d /etc"])).await;
    probed.run("own", json!({}), probe(&["my-check"])).await;
    probed.pass(5).await;
    assert!(!probed.is_ready("lacks").await);
    let told = probed.told("lacks", "Unhealthy").await;
    assert!(
        told[0].starts_with("Readiness probe failed: ls: ") && told[0].contains("/var/ready"),
        "{told:?}"
    );
    assert!(probed.is_ready("has").await && probed.is_ready("own").await);
    probed.exec("lacks", &["touch", "/var/ready"]).await;
    probed.pass(6).await;
    assert!(probed.is_ready("lacks").await);
    let hook = |command: &[&str]| {
        let lifecycle = json!({"postStart": {"exec": {"command": command}}});
        json!({"image": "nginx", "lifecycle": lifecycle})
    };
    probed.run("fails", json!({}), hook(&["cat", "/nope"])).await;
    assert_eq!(probed.told("fails", "FailedPostStartHook").await[0], "PostStartHook failed");
    probed.run("does", json!({}), hook(&["cat", "/etc/hosts"])).await;
    assert!(probed.is_ready("does").await);
    probed.0.stop().await;
}

/// Endpoints go on serving while they end (`prober.Manager`, KEP-1672).
#[tokio::test]
async fn who_is_stopped_is_ready_as_long_as_it_runs_unless_a_probe_says_otherwise() {
    let probed = Probed::start().await;
    let lingers = |name: &str| {
        let script = format!(
            "end() {{\nrm -f /tmp/{name}; sleep 25\n}}\ntrap end TERM\ntouch /tmp/{name}\n\
             while true; do sleep 1; done"
        );
        json!({"image": "busybox", "command": ["sh", "-c", script]})
    };
    let asked = |name: &str| {
        let mut container = lingers(name);
        container["readinessProbe"] = json!({"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 5,
            "failureThreshold": 1});
        container
    };
    probed.run("unasked", json!({}), lingers("ready")).await;
    probed.run("asked", json!({}), asked("ready")).await;
    for name in ["unasked", "asked"] {
        assert!(probed.is_ready(name).await, "{name}");
        let client = probed.0.client();
        client.delete(&PODS, "default", name, &DeleteOptions::default()).await.unwrap();
    }
    probed.pass(1).await;
    assert!(probed.is_ready("unasked").await && probed.is_ready("asked").await);
    probed.pass(8).await;
    assert!(probed.is_ready("unasked").await);
    assert!(!probed.is_ready("asked").await, "its handler has removed what the probe looks at");
    assert_eq!(probed.told("asked", "Unhealthy").await.len(), 1);
    probed.pass(30).await;
    for name in ["unasked", "asked"] {
        assert!(probed.0.client().get(&PODS, "default", name).await.is_err(), "{name} is gone");
    }
}

/// Its startup probe says when a sidecar has started; when it starts again nobody waits for it.
#[tokio::test]
async fn others_wait_until_a_sidecar_has_started() {
    let probed = Probed::start().await;
    let script = "touch /tmp/ready; sleep 20; touch /tmp/startup; sleep 60; exit 1";
    let probe = |file: &str, seconds: i64| json!({"exec": {"command": ["cat", file]}, "periodSeconds": seconds, "failureThreshold": 60});
    let sidecar = json!({"name": "side", "image": "busybox", "restartPolicy": "Always",
        "command": ["sh", "-c", script], "startupProbe": probe("/tmp/startup", 2),
        "readinessProbe": probe("/tmp/ready", 30)});
    let spec = json!({"initContainers": [sidecar, {"name": "once", "image": "busybox", "command": ["true"]}],
        "containers": [{"name": "main", "image": "nginx"}]});
    let pod = json!({"metadata": {"name": "web"}, "spec": spec});
    probed.0.client().create(&PODS, "default", pod).await.unwrap();
    let state = async || {
        let status = probed.pod("web").await["status"].clone();
        let main = &status["containerStatuses"][0]["state"];
        let side = &status["initContainerStatuses"][0];
        (main["waiting"]["reason"] == "PodInitializing", side["started"] == true, side["ready"] == true)
    };
    probed.pass(15).await;
    assert_eq!(state().await, (true, false, false));
    // It is asked whether it is ready as soon as it has started.
    probed.pass(10).await;
    assert_eq!(state().await, (false, true, true));
    probed.pass(60).await;
    assert_eq!(state().await, (false, false, false), "it has started again");
    assert!(probed.is_ready("web").await);
}

/// Whoever takes away what a process has made takes it away, until the process makes it again.
#[tokio::test]
async fn a_file_of_the_process_that_somebody_removes_is_gone() {
    let probed = Probed::start().await;
    let script = "touch /tmp/ready; sleep 60; touch /tmp/ready; while true; do sleep 1; done";
    let mut container = readiness(json!({"exec": {"command": ["cat", "/tmp/ready"]}}));
    container["image"] = "busybox".into();
    container["command"] = json!(["sh", "-c", script]);
    probed.run("web", json!({}), container).await;
    assert!(probed.is_ready("web").await);
    probed.exec("web", &["rm", "/tmp/ready"]).await;
    probed.pass(6).await;
    assert!(!probed.is_ready("web").await);
    assert_eq!(probed.restarts("web").await, 0);
    probed.pass(60).await;
    assert!(probed.is_ready("web").await);
}

/// A hook before the end has as long as its pod, and nobody is told that it did not get ready.
#[tokio::test]
async fn a_hook_that_never_ends_is_waited_for_as_long_as_the_grace_lasts() {
    let probed = Probed::start().await;
    let command = json!(["sh", "-c", "while true; do echo on; sleep 1; done"]);
    let container = json!({"image": "nginx", "lifecycle": {"preStop": {"exec": {"command": command}}}});
    probed.run("web", json!({}), container).await;
    probed.0.client().delete(&PODS, "default", "web", &DeleteOptions::default()).await.unwrap();
    probed.pass(25).await;
    assert!(probed.is_ready("web").await);
    probed.pass(10).await;
    assert!(probed.0.client().get(&PODS, "default", "web").await.is_err());
    assert!(probed.told("web", "FailedPreStopHook").await.is_empty());
}
