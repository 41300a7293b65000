//! The Leases of a control plane that has its store to itself: nobody competes for them, and tools look there.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kubarium::apis::coordination::lease::LEASES;
use kubarium::apis::core::event::EVENTS;
use kubarium::cluster::WaitFor;
use kubarium::kinds::PODS;
use kubarium::{Clock, Cluster, Config, Entropy, Fault, ListOptions, Listen};
use serde_json::{Value, json};

use super::bare;

const MANAGER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";
const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

async fn start(config: Config) -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::start(config.clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
    cluster.settled().await.unwrap();
    cluster
}

/// What the Leases of kube-system say, by their names.
async fn leases(cluster: &Cluster) -> BTreeMap<String, Value> {
    let list = cluster.client().list(&LEASES, "kube-system", &ListOptions::default()).await.unwrap();
    let spec =
        |lease: &Value| (lease["metadata"]["name"].as_str().unwrap().to_owned(), lease["spec"].clone());
    list.items.iter().map(|lease| spec(&lease.to_value())).collect()
}

/// How long ago it was renewed, in seconds.
fn age(cluster: &Cluster, lease: &Value) -> i64 {
    let renewed: DateTime<Utc> = lease["renewTime"].as_str().unwrap().parse().unwrap();
    (cluster.clock().now() - renewed).num_seconds()
}

#[tokio::test]
async fn they_say_who_runs_and_are_fresh_whenever_time_stands() {
    let cluster = start(Config::new().listen(Listen::loopback())).await;
    let begun = leases(&cluster).await;
    let names: Vec<&str> = begun.keys().map(String::as_str).collect();
    assert!(names[0].starts_with("apiserver-") && names[1..] == [MANAGER, SCHEDULER], "{names:?}");
    let server = &begun[names[0]];
    assert!(server["holderIdentity"].as_str().unwrap().starts_with(&format!("{}_", names[0])), "{server}");
    assert_eq!(server["leaseDurationSeconds"], 3600);
    let labelled = cluster.client().get(&LEASES, "kube-system", names[0]).await.unwrap().to_value();
    assert_eq!(labelled["metadata"]["labels"]["apiserver.kubernetes.io/identity"], "kube-apiserver");
    let events = cluster.client().list(&EVENTS, "kube-system", &ListOptions::default()).await.unwrap();
    for name in [MANAGER, SCHEDULER] {
        let lease = &begun[name];
        assert_eq!((&lease["leaseDurationSeconds"], &lease["leaseTransitions"]), (&json!(15), &json!(0)));
        let told = format!("{} became leader", lease["holderIdentity"].as_str().unwrap());
        let is_it = |event: &Value| {
            event["reason"] == "LeaderElection"
                && event["involvedObject"]["name"] == name
                && event["message"] == *told
        };
        assert!(events.items.iter().any(|event| is_it(&event.to_value())), "{told}");
    }
    cluster.pass(HOUR).await.unwrap();
    let told = || cluster.flow().trace("leases.coordination.k8s.io", "kube-system", SCHEDULER).steps.len();
    let before = told();
    cluster.pass(HOUR * 24).await.unwrap();
    assert!(told() < before + 10, "{before}");
    for (name, lease) in leases(&cluster).await {
        let period = if name.starts_with("apiserver-") { 10 } else { 2 };
        assert!(age(&cluster, &lease) <= period, "{name}: {lease}");
        let of_before =
            ["holderIdentity", "acquireTime", "leaseTransitions"].map(|field| &begun[&name][field]);
        assert_eq!(
            ["holderIdentity", "acquireTime", "leaseTransitions"].map(|field| &lease[field]),
            of_before
        );
    }
    cluster.stop().await;
}

#[tokio::test]
async fn who_is_stopped_renews_none_and_whoever_comes_next_takes_over_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let config = || Config::new().nodes(0).data_dir(folder.path()).unsafe_no_fsync(true);
    let cluster = start(config().listen(Listen::loopback())).await;
    let first = leases(&cluster).await;
    cluster.stop_component(SCHEDULER).unwrap();
    cluster.pass(MINUTE).await.unwrap();
    let later = leases(&cluster).await;
    assert_eq!(later[SCHEDULER], first[SCHEDULER]);
    assert!(age(&cluster, &later[MANAGER]) <= 2, "{later:?}");
    cluster.start_component(SCHEDULER).unwrap();
    cluster.settled().await.unwrap();
    let second = leases(&cluster).await;
    let lease = &second[SCHEDULER];
    assert_eq!((&lease["leaseTransitions"], age(&cluster, lease)), (&json!(1), 0));
    assert_ne!(lease["holderIdentity"], first[SCHEDULER]["holderIdentity"]);
    assert_eq!(second[MANAGER]["leaseTransitions"], 0);
    cluster.stop().await;
    // Under the seed of its first life, and at its first time.
    let cluster = start(config().listen(Listen::loopback())).await;
    let third = leases(&cluster).await;
    let transitions = [MANAGER, SCHEDULER].map(|name| third[name]["leaseTransitions"].clone());
    assert_eq!(transitions, [json!(1), json!(2)]);
    assert!(third.keys().eq(first.keys()), "the server's is its own still: {third:?}");
    assert!(third.values().all(|lease| age(&cluster, lease) == 0), "{third:?}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_fork_leads_under_a_name_of_its_own() {
    let parent = start(Config::new().nodes(0)).await;
    let fork = parent.fork().await.unwrap();
    fork.settled().await.unwrap();
    let (before, forked) = (leases(&parent).await, leases(&fork).await);
    assert_eq!(forked.len(), 2, "who does not listen has no Lease of a server: {forked:?}");
    for (name, lease) in &forked {
        assert_ne!(lease["holderIdentity"], before[name]["holderIdentity"]);
        assert_eq!((&lease["leaseTransitions"], &before[name]["leaseTransitions"]), (&json!(1), &json!(0)));
    }
    fork.stop().await;
    parent.stop().await;
}

#[tokio::test]
async fn where_nothing_leads_or_election_is_switched_off_there_are_none() {
    let server = start(bare().listen(Listen::loopback())).await;
    let there = leases(&server).await;
    assert!(there.len() == 1 && there.keys().all(|name| name.starts_with("apiserver-")), "{there:?}");
    server.stop().await;
    let mut off = Config::new().nodes(0);
    off.leader_election = None;
    for config in [bare(), off] {
        let cluster = start(config).await;
        cluster.pass(MINUTE).await.unwrap();
        assert_eq!(leases(&cluster).await, BTreeMap::new());
        cluster.stop().await;
    }
}

/// Nobody else would take it, so nothing is lost with it.
#[tokio::test]
async fn who_cannot_renew_its_lease_works_on() {
    let cluster = start(Config::new()).await;
    let begun = leases(&cluster).await;
    cluster.faults().add(Fault::lost_leases("system:kube-scheduler")).unwrap();
    cluster.pass(MINUTE).await.unwrap();
    assert_eq!(leases(&cluster).await[SCHEDULER], begun[SCHEDULER]);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    cluster.until(&WaitFor::parse("pod/a", "default", "Ready").unwrap(), HOUR).await.unwrap();
    cluster.faults().clear();
    cluster.pass(MINUTE).await.unwrap();
    let lease = &leases(&cluster).await[SCHEDULER];
    assert!(age(&cluster, lease) <= 2 && lease["leaseTransitions"] == 0, "{lease}");
    cluster.stop().await;
}

/// Whoever steps a cluster from its start steps what they do, and not what every cluster begins with.
#[tokio::test]
async fn who_steps_from_the_start_has_none_to_let_go() {
    let cluster = start(Config::new().listen(Listen::loopback()).step(true)).await;
    let held = cluster.flow().stepping().unwrap().held();
    assert!(held.is_empty(), "{held:?}");
    assert_eq!(leases(&cluster).await.len(), 3);
    cluster.stop().await;
}
