//! Time that passes from wake to wake, by all three faces.

use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apimachinery::options::ListOptions;
use kubarium::apis::apiregistration::api_service::API_SERVICES;
use kubarium::apis::batch::cron_job::CRON_JOBS;
use kubarium::apis::batch::job::JOBS;
use kubarium::apis::coordination::lease::LEASES;
use kubarium::cluster::{Settle, TimeError, WaitFor};
use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS, NODES, PODS};
use kubarium::{Clock, Cluster, Config, Entropy, Fault};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::ask;
use super::settle::web;
use crate::support::Up;

const HOUR: Duration = Duration::from_secs(3600);

async fn stepped() -> Cluster {
    let clock = Clock::stepped("2030-01-01T00:00:30Z".parse().unwrap());
    Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap()
}

fn hourly() -> Value {
    let container = json!({"name": "c", "image": "busybox", "command": ["sh", "-c", "sleep 20; echo done"]});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let job = json!({"spec": {"template": pod}});
    let spec = json!({"schedule": "0 * * * *", "successfulJobsHistoryLimit": 5, "jobTemplate": job});
    json!({"metadata": {"name": "report"}, "spec": spec})
}

#[tokio::test]
async fn hours_pass_and_no_node_is_lost() {
    let cluster = stepped().await;
    let client = cluster.client();
    client.create(&CRON_JOBS, "default", hourly()).await.unwrap();
    let begun = cluster.clock().now();
    let wakes = cluster.pass(HOUR * 3).await.unwrap();
    assert!(wakes > 3, "{wakes}");
    assert_eq!((cluster.clock().now() - begun).num_seconds(), 3 * 3600);
    let jobs = client.list(&JOBS, "default", &ListOptions::default()).await.unwrap();
    assert_eq!(jobs.items.len(), 3);
    assert!(jobs.items.iter().all(|job| job.to_value()["status"]["succeeded"] == 1));
    let node = client.get(&NODES, "", "node-1").await.unwrap().to_value();
    let ready = condition(&node, "Ready");
    assert_eq!(ready["status"], "True", "a step of the clock as a whole would have lost it: {ready}");
    let next = cluster.clock().next_waker().unwrap();
    assert!(!next.who.is_empty(), "{next:?}");
    cluster.stop().await;
}

/// What says each ten seconds that a node is there is not written eight thousand times, and yet is fresh.
#[tokio::test]
async fn a_quiet_day_has_few_wakes_and_leaves_what_is_always_there() {
    let cluster = stepped().await;
    cluster.pass(HOUR).await.unwrap();
    let wakes = cluster.pass(HOUR * 24).await.unwrap();
    assert!(wakes < 24, "{wakes}");
    let now = cluster.clock().now();
    let client = cluster.client();
    let age =
        |time: &Value| now - chrono::DateTime::parse_from_rfc3339(time.as_str().unwrap()).unwrap().to_utc();
    let lease = client.get(&LEASES, "kube-node-lease", "node-1").await.unwrap().to_value();
    assert!(age(&lease["spec"]["renewTime"]).num_seconds() <= 10, "{lease}");
    let node = client.get(&NODES, "", "node-1").await.unwrap().to_value();
    let ready = condition(&node, "Ready");
    assert_eq!(ready["status"], "True");
    assert!(age(&ready["lastHeartbeatTime"]).num_seconds() <= 310, "{ready}");
    cluster.stop().await;
}

/// Servers of aggregated APIs are asked every 30 s whether they are there, but for those of this process.
#[tokio::test]
async fn metrics_that_are_served_in_this_process_stop_no_clock() {
    let clock = Clock::stepped("2030-01-01T00:00:30Z".parse().unwrap());
    let config = Config::new().clock(clock).entropy(Entropy::seeded(7)).metrics_server(true);
    let cluster = Cluster::start(config).await.unwrap();
    let registered = cluster.client().get(&API_SERVICES, "", "v1beta1.metrics.k8s.io").await.unwrap();
    assert!(registered.to_value()["spec"]["service"].is_object());
    cluster.pass(HOUR).await.unwrap();
    let wakes = cluster.pass(HOUR * 24).await.unwrap();
    assert!(wakes < 24, "{wakes}");
    cluster.stop().await;
}

fn condition<'a>(node: &'a Value, name: &str) -> &'a Value {
    let all = node["status"]["conditions"].as_array().unwrap();
    all.iter().find(|condition| condition["type"] == name).unwrap()
}

#[tokio::test]
async fn a_node_whose_kubelet_stands_still_is_lost_in_time_however_much_passes() {
    let cluster = stepped().await;
    cluster.pass(HOUR).await.unwrap();
    cluster.stop_component("kubelet/node-1").unwrap();
    let stopped = cluster.clock().now();
    cluster.pass(HOUR * 24).await.unwrap();
    let node = cluster.client().get(&NODES, "", "node-1").await.unwrap().to_value();
    let ready = condition(&node, "Ready");
    assert_eq!(ready["status"], "Unknown");
    let lost = chrono::DateTime::parse_from_rfc3339(ready["lastTransitionTime"].as_str().unwrap()).unwrap();
    let after = (lost.to_utc() - stopped).num_seconds();
    // The grace period, from the last renewal that was seen to the look behind its end.
    assert!((40..=56).contains(&after), "{after}");
    cluster.stop().await;
}

#[tokio::test]
async fn where_there_is_a_fault_every_request_is_made_that_it_could_hit() {
    let cluster = stepped().await;
    let rule = Fault::lost_leases("system:node:*").nth(1_000).named("seldom");
    cluster.faults().add(rule).unwrap();
    cluster.pass(HOUR / 6).await.unwrap();
    let matched = cluster.faults().get("seldom").unwrap().matched;
    assert!((58..=63).contains(&matched), "{matched}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_condition_is_waited_for_and_time_passes_meanwhile() {
    let cluster = stepped().await;
    let client = cluster.client();
    client.create(&DEPLOYMENTS, "default", web(2)).await.unwrap();
    let available = WaitFor::parse("deploy/web", "", "Available").unwrap();
    cluster.until(&available, HOUR).await.unwrap();
    let container = json!({"name": "c", "image": "busybox", "command": ["sleep", "600"]});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    client.create(&PODS, "default", json!({"metadata": {"name": "slow"}, "spec": spec})).await.unwrap();
    let done = WaitFor::parse("pod/slow", "default", "jsonpath={.status.phase}=Succeeded").unwrap();
    let begun = cluster.clock().now();
    let late = cluster.until(&done, Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(late, TimeError::TooLate { .. }));
    let said = late.to_string();
    assert!(said.contains(".status.phase=Succeeded of pod/slow did not come true within 60s"), "{said}");
    assert!(said.contains(": .status.phase is Running; next, "), "{said}");
    let nowhere = WaitFor::parse("pod/other", "", "Ready").unwrap();
    let said = cluster.until(&nowhere, Duration::from_secs(1)).await.unwrap_err().to_string();
    assert!(said.contains(": there is no pod other in namespace default"), "{said}");
    let nowhere = WaitFor::parse("pod/other", "nowhere", "Ready").unwrap();
    let said = cluster.until(&nowhere, Duration::from_secs(1)).await.unwrap_err().to_string();
    assert!(said.contains(": there is no namespace nowhere"), "{said}");
    cluster.until(&done, HOUR).await.unwrap();
    let took = (cluster.clock().now() - begun).num_seconds();
    assert!((600..700).contains(&took), "{took}");
    let gone = WaitFor::parse("pod/slow", "default", "delete").unwrap();
    client.delete(&PODS, "default", "slow", &Default::default()).await.unwrap();
    cluster.until(&gone, HOUR).await.unwrap();
    for object in ["thing/slow", "pod/Slow_1"] {
        let unknown = WaitFor::parse(object, "", "delete").unwrap();
        assert!(matches!(cluster.until(&unknown, HOUR).await, Err(TimeError::Condition(_))), "{object}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn on_the_machines_clock_it_does_not_pass_but_conditions_come() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    assert!(matches!(cluster.pass(HOUR).await, Err(TimeError::RealClock)));
    let available = WaitFor::parse("deploy/web", "", "Available").unwrap();
    let created = async {
        cluster.client().create(&DEPLOYMENTS, "default", web(2)).await.unwrap();
    };
    let (until, ()) = tokio::join!(cluster.until(&available, HOUR), created);
    until.unwrap();
    let (code, status) = ask(
        &cluster,
        "",
        "POST",
        "/kubarium/v1/time/pass",
        json!({"duration": "1h", "quiet": "1ms", "ignore": ["x"]}),
    )
    .await;
    assert_eq!(code, 400);
    assert!(status["message"].as_str().unwrap().contains("--clock stepped"), "{status}");
    cluster.stop().await;
}

#[tokio::test]
async fn no_time_is_after_the_last_that_a_timestamp_says() {
    let cluster = stepped().await;
    let before = cluster.clock().now();
    let far = cluster.pass(Duration::from_secs(u64::MAX)).await.unwrap_err();
    assert!(
        matches!(far, TimeError::TooFar { .. }) && far.to_string().contains("after the year 9999"),
        "{far}"
    );
    let there = WaitFor::parse("pod/none", "default", "Ready").unwrap();
    assert!(matches!(cluster.until(&there, Duration::MAX).await, Err(TimeError::TooFar { .. })));
    let body = json!({"duration": "4000000000d"});
    let (code, status) = ask(&cluster, "", "POST", "/kubarium/v1/time/pass", body).await;
    assert_eq!(code, 400, "{status}");
    assert_eq!(cluster.clock().now(), before);
    cluster.stop().await;
}

#[tokio::test]
async fn a_future_runs_while_time_passes() {
    let cluster = stepped().await;
    let begun = cluster.clock().elapsed();
    let clock = cluster.clock().clone();
    cluster.while_time_passes(async move { clock.sleep(HOUR).await }).await;
    assert_eq!(cluster.clock().elapsed() - begun, HOUR);
    cluster.stop().await;
}

/// Makes a ConfigMap for each Job, in real time and over the wire, as an operator in another process does.
async fn follow_jobs(cluster: &Cluster) {
    let watch = http::Request::get("/apis/batch/v1/jobs?watch=1&timeoutSeconds=86400")
        .body(axum::body::Body::empty())
        .unwrap();
    let mut events = cluster.service().oneshot(watch).await.unwrap().into_body();
    while let Some(Ok(frame)) = events.frame().await {
        let bytes = frame.into_data().unwrap_or_default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Value = serde_json::from_slice(line).unwrap();
            if event["type"] == "ADDED" {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let map = json!({"metadata": {"name": event["object"]["metadata"]["name"]}});
                ask(cluster, "", "POST", "/api/v1/namespaces/default/configmaps", map).await;
            }
        }
    }
}

#[tokio::test]
async fn time_waits_for_clients_outside_that_are_given_a_while() {
    let cluster = stepped().await;
    let client = cluster.client();
    client.create(&CRON_JOBS, "default", hourly()).await.unwrap();
    let settle = Settle::new().quiet(Duration::from_millis(200));
    tokio::select! {
        () = follow_jobs(&cluster) => unreachable!("the watch goes on"),
        wakes = cluster.pass_with(HOUR, &settle) => assert!(wakes.unwrap() > 1),
    }
    let jobs = client.list(&JOBS, "default", &ListOptions::default()).await.unwrap().items;
    let map = client.get(&CONFIG_MAPS, "default", &jobs[0].metadata.name).await.unwrap();
    assert_eq!(map.to_value()["metadata"]["creationTimestamp"], "2030-01-01T01:00:00Z");
    cluster.stop().await;
}

#[tokio::test]
async fn over_http_time_passes_too() {
    let cluster = stepped().await;
    let (_, before) = ask(&cluster, "", "GET", "/kubarium/v1/time", Value::Null).await;
    assert_eq!((&before["now"], &before["stepped"]), (&"2030-01-01T00:00:30.000000Z".into(), &true.into()));
    assert!(!before["next"]["who"].as_array().unwrap().is_empty(), "{before}");
    let (code, after) = ask(&cluster, "", "POST", "/kubarium/v1/time/pass", json!({"duration": "1h"})).await;
    assert_eq!((code, &after["now"]), (200, &"2030-01-01T01:00:30.000000Z".into()), "{after}");
    ask(&cluster, "", "POST", "/apis/apps/v1/namespaces/default/deployments", web(1)).await;
    let until = json!({"object": "deploy/web", "for": "Available"});
    let (code, said) = ask(&cluster, "", "POST", "/kubarium/v1/time/until", until).await;
    assert_eq!(code, 200, "{said}");
    // A word that is misspelt is not waited for for ever, by whoever says no bound.
    let never = json!({"object": "deploy/web", "for": "Availble"});
    let (code, status) = ask(&cluster, "", "POST", "/kubarium/v1/time/until", never).await;
    let why = status["message"].as_str().unwrap();
    assert!(code == 504 && why.contains("within 3600s") && why.contains("--timeout"), "{status}");
    for body in [json!({"object": "web", "for": "Available"}), json!({"object": "x/web", "for": "delete"})] {
        let (code, status) = ask(&cluster, "", "POST", "/kubarium/v1/time/until", body).await;
        assert_eq!((code, &status["reason"]), (400, &"BadRequest".into()), "{status}");
    }
    cluster.stop().await;
}

/// Certificates are looked at by the machine's clock and by the cluster's, however far these are apart.
#[test]
fn nobody_is_locked_out_by_time_that_has_passed_or_by_a_wrong_clock() {
    let asked = |up: &Up, arguments: &[&str]| {
        let output = up.kubectl(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let ahead = Up::start_with(&["--clock=+240h", "--nodes", "0"]);
    asked(&ahead, &["get", "namespaces"]);
    let up = Up::start_with(&["--clock", "stepped", "--nodes", "0"]);
    let said = |arguments: &[&str]| {
        let output = up.kubarium(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    said(&["time", "pass", "366d"]);
    asked(&up, &["create", "configmap", "late"]);
    let fork = up.folder().join("fork").to_str().unwrap().to_owned();
    said(&["fork", "later", "--kubeconfig", &fork]);
    asked(&up, &["--kubeconfig", &fork, "get", "configmap", "late"]);
    // What begins with its past goes on from its time.
    let saved = up.folder().join("saved").to_str().unwrap().to_owned();
    said(&["snapshot", "save", &saved]);
    let again = Up::start_with(&["--clock", "stepped", "--snapshot", &saved]);
    let age = asked(&again, &["get", "configmap", "late", "-o", "jsonpath={.metadata.creationTimestamp}"]);
    let now: Value = serde_json::from_str(&asked(&again, &["get", "--raw", "/kubarium/v1/time"])).unwrap();
    assert!(now["now"].as_str().unwrap() >= &age[..19], "{now} is before {age}");
}

#[test]
fn the_commands_let_time_pass() {
    let up = Up::start_with(&["--clock", "stepped", "--nodes", "1"]);
    let said = |arguments: &[&str]| {
        let output = up.kubarium(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let before = said(&["time", "now"]);
    let cron_job = {
        let mut object = hourly();
        (object["apiVersion"], object["kind"]) = ("batch/v1".into(), "CronJob".into());
        up.file("report.json", &object.to_string())
    };
    assert!(up.kubectl(&["apply", "-f", &cron_job]).status.success());
    let passed = said(&["time", "pass", "3h", "--quiet", "1ms", "--ignore", "kubernetes-admin"]);
    assert!(passed.contains("3h") && passed != before, "{passed}");
    let jobs = up.kubectl(&["get", "jobs", "-o", "name"]);
    assert_eq!(String::from_utf8_lossy(&jobs.stdout).lines().count(), 3);
    said(&["time", "until", "node/node-1", "Ready"]);
    let late = up.kubarium(&["time", "until", "cronjob/report", "delete", "--within", "2m"]);
    let why = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(!late.status.success() && why.contains("did not come true within 120s"), "{why}");
    assert!(!why.contains("--timeout"), "{why}");
    let late = up.kubarium(&["time", "until", "cronjob/report", "delete", "--timeout", "2m"]);
    assert!(String::from_utf8_lossy(&late.stderr).contains("did not come true within 120s"));
}
