//! To wait until nothing moves, by all three faces; and what is said when something keeps moving.

use std::time::Duration;

use kubarium::apimachinery::options::PatchType;
use kubarium::cluster::Settle;
use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS};
use kubarium::{Client, Cluster, Config, Fault};
use serde_json::{Value, json};

use super::{ask, bare};
use crate::support::Up;

pub(crate) fn web(replicas: u32) -> Value {
    let labels = json!({"app": "web"});
    let container = json!({"name": "c", "image": "nginx"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
    json!({"metadata": {"name": "web"}, "spec": spec})
}

async fn available(cluster: &Cluster) -> u64 {
    let deployment = cluster.client().get(&DEPLOYMENTS, "default", "web").await.unwrap();
    deployment.to_value()["status"]["availableReplicas"].as_u64().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_cluster_has_settled_everything_has_happened() {
    let cluster = Cluster::start(Config::new().nodes(2)).await.unwrap();
    cluster.client().create(&DEPLOYMENTS, "default", web(20)).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(available(&cluster).await, 20);
    let patch = json!({"spec": {"replicas": 3}});
    let client = cluster.client();
    let scaled = client.patch(&DEPLOYMENTS, "default", "web", PatchType::Merge, &patch);
    scaled.await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(available(&cluster).await, 3);
    cluster.stop().await;
}

async fn write(client: &Client, text: &str) {
    let patch = json!({"data": {"owner": text}});
    let written = client.patch(&CONFIG_MAPS, "default", "fought", PatchType::Merge, &patch);
    written.await.unwrap();
}

#[tokio::test]
async fn who_fights_whom_is_said_when_it_does_not_settle() {
    let cluster = Cluster::start(bare()).await.unwrap();
    let client = cluster.client();
    client.create(&CONFIG_MAPS, "default", json!({"metadata": {"name": "fought"}})).await.unwrap();
    let fight = async {
        loop {
            for user in ["jane", "joe"] {
                let acting = kubarium::apimachinery::user::UserInfo::authenticated(user, &["system:masters"]);
                write(&client.acting_as(acting), user).await;
                // What is answered at once leaves nobody else a turn.
                tokio::task::yield_now().await;
            }
        }
    };
    let settle = Settle::new().quiet(Duration::from_secs(60)).within(Duration::from_millis(300));
    let unsettled = tokio::select! {
        () = fight => unreachable!(),
        settled = cluster.settle(settle) => settled.unwrap_err(),
    };
    let fought = unsettled.written.first().unwrap();
    assert_eq!(fought.subject, "configmaps default/fought");
    assert_eq!(fought.writers.len(), 2);
    let said = unsettled.to_string();
    assert!(said.contains("did not settle within 300ms; configmaps default/fought is written "), "{said}");
    assert!(
        said.contains("by jane") && said.contains("by joe, in turn") || said.contains("by jane, in turn")
    );
    cluster.stop().await;
}

/// Nobody steps the machine's clock, so that what a fault holds up is under way until it comes.
#[tokio::test]
async fn what_a_fault_holds_up_has_not_settled() {
    let cluster = Cluster::start(bare()).await.unwrap();
    cluster.settled().await.unwrap();
    cluster.faults().add(Fault::latency(Duration::from_secs(3600)).named("late")).unwrap();
    let client = cluster.client();
    let asking = tokio::spawn(async move { client.get(&CONFIG_MAPS, "default", "x").await });
    while cluster.faults().get("late").unwrap().hits == 0 {
        tokio::task::yield_now().await;
    }
    cluster.settle(Settle::new().within(Duration::from_millis(50))).await.unwrap_err();
    asking.abort();
    cluster.settled().await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn who_is_ignored_may_ask_on() {
    let cluster = Cluster::start(bare()).await.unwrap();
    let poll = async {
        loop {
            ask(&cluster, "poller", "GET", "/version", Value::Null).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = poll => unreachable!(),
        () = async {
            // However slow the machine is, they ask more often than that.
            let long = Settle::new().quiet(Duration::from_secs(3600)).within(Duration::from_millis(200));
            let noticed = cluster.settle(long).await.unwrap_err();
            assert!(noticed.to_string().contains("poller"), "{noticed}");
            let ignoring = Settle::new().quiet(Duration::from_millis(50)).ignore("poller");
            cluster.settle(ignoring).await.unwrap();
        } => {}
    }
    cluster.stop().await;
}

/// Who runs with leader election renews a lease every two seconds, or looks at that of another. Whoever wants to
/// know of all of them is at work.
#[tokio::test]
async fn leader_election_of_others_is_no_unrest() {
    let cluster = Cluster::start(bare()).await.unwrap();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = format!("{leases}/x");
    let last_asked = async || {
        let settle = Settle::new().quiet(Duration::from_secs(3600)).within(Duration::from_millis(1));
        cluster.settle(settle).await.unwrap_err().to_string()
    };
    let object = json!({"metadata": {"name": "x"}, "spec": {"leaseTransitions": 1}});
    assert_eq!(ask(&cluster, "", "POST", leases, object).await.0, 201);
    let (_, mut held) = ask(&cluster, "", "GET", &lease, Value::Null).await;
    held["spec"]["leaseTransitions"] = 2.into();
    assert_eq!(ask(&cluster, "", "PUT", &lease, held).await.0, 200);
    let told = last_asked().await;
    assert!(told.ends_with(&format!("for POST {leases}")), "neither the look nor the renewal: {told}");
    assert_eq!(ask(&cluster, "", "GET", leases, Value::Null).await.0, 200);
    let told = last_asked().await;
    assert!(told.ends_with(&format!("for GET {leases}")), "{told}");
    cluster.stop().await;
}

#[test]
fn the_command_waits_until_pods_run_and_says_what_is_wrong() {
    let up = Up::start();
    let manifest = up.file("web.json", &{
        let mut web = web(5);
        (web["apiVersion"], web["kind"]) = ("apps/v1".into(), "Deployment".into());
        web.to_string()
    });
    assert!(up.kubectl(&["apply", "-f", &manifest]).status.success());
    let settled = up.kubarium(&["settle", "--quiet", "100ms"]);
    assert!(settled.status.success(), "{}", String::from_utf8_lossy(&settled.stderr));
    let shown = up.kubectl(&["get", "deploy", "web", "-o", "jsonpath={.status.availableReplicas}"]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "5");
    let wrong = up.kubarium(&["settle", "--quiet", "long"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("invalid duration"), "{said}");
    let passed = up.kubarium(&["time", "pass", "1h"]);
    let said = String::from_utf8_lossy(&passed.stderr).into_owned();
    assert!(!passed.status.success() && said.contains("--clock stepped"), "{said}");
}

#[tokio::test]
async fn over_http_it_is_waited_for_too() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    let (code, _) = ask(&cluster, "", "POST", "/apis/apps/v1/namespaces/default/deployments", web(4)).await;
    assert_eq!(code, 201);
    let (code, said) = ask(&cluster, "", "POST", "/kubarium/v1/settle", Value::Null).await;
    assert_eq!((code, &said["stepped"]), (200, &false.into()), "{said}");
    assert_eq!(available(&cluster).await, 4);
    for (body, why) in [(json!({"quiet": "x"}), "quiet: "), (json!({"nothing": 1}), "unknown field")] {
        let (code, status) = ask(&cluster, "", "POST", "/kubarium/v1/settle", body).await;
        assert_eq!(code, 400);
        assert!(status["message"].as_str().unwrap().contains(why), "{status}");
    }
    let late = json!({"quiet": "1h", "within": "1ms"});
    let (code, status) = ask(&cluster, "", "POST", "/kubarium/v1/settle", late).await;
    assert_eq!((code, status["reason"].as_str().unwrap()), (504, "Timeout"));
    cluster.stop().await;
}
