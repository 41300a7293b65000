//! The scheduler's events, as `events.k8s.io/v1` has them.

use std::time::Duration;

use kubarium::apis::events::event::EVENTS as EVENTS_OF_GROUP;
use kubarium::kinds::{EVENTS, NODES, PODS};
use kubarium::{Clock, Cluster, Config, Entropy, ListOptions, PatchType};
use serde_json::{Value, json};

#[tokio::test]
async fn the_scheduler_tells_events_with_actions_and_series() {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster =
        Cluster::start(Config::new().nodes(1).clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
    let client = cluster.client();
    let spec = json!({"nodeSelector": {"disk": "fast"}, "containers": [{"name": "c", "image": "nginx"}]});
    client.create(&PODS, "default", json!({"metadata": {"name": "waits"}, "spec": spec})).await.unwrap();
    cluster.settled().await.unwrap();
    // The newest of so many.
    let newest = async |of_group: bool, reason: &str, count: usize| -> Value {
        let kind = if of_group { &EVENTS_OF_GROUP } else { &EVENTS };
        let events = client.list(kind, "default", &ListOptions::default()).await.unwrap();
        let mut found = events.items.iter().map(|event| event.to_value());
        let mut found = found.by_ref().filter(|event| event["reason"] == reason).collect::<Vec<_>>();
        assert_eq!(found.len(), count, "{found:?}");
        found.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
        found.pop().unwrap()
    };
    let first = newest(true, "FailedScheduling", 1).await;
    assert_eq!(
        (&first["action"], &first["reportingController"]),
        (&json!("Scheduling"), &json!("default-scheduler"))
    );
    assert_eq!(first["reportingInstance"], "default-scheduler-kubarium");
    assert_eq!((&first["regarding"]["name"], &first["series"]), (&json!("waits"), &Value::Null));
    assert!(first["note"].as_str().unwrap().starts_with("0/1 nodes are available"), "{first}");
    // As kubectl sees it.
    let seen = newest(false, "FailedScheduling", 1).await;
    assert_eq!((&seen["reportingComponent"], &seen["count"]), (&json!("default-scheduler"), &Value::Null));
    assert_eq!(
        (&seen["message"], &seen["eventTime"]),
        (&first["note"], &json!("2026-01-01T00:00:00.000000Z"))
    );
    // It is tried again after five minutes. The first time it is told of another state of the pod, in which the
    // condition is; then as a series, of which further ones are counted.
    cluster.pass(Duration::from_secs(690)).await.unwrap();
    assert_eq!(newest(true, "FailedScheduling", 2).await["series"]["count"], 2);
    // The count is written after half an hour.
    cluster.pass(Duration::from_secs(2400)).await.unwrap();
    let count = newest(true, "FailedScheduling", 2).await["series"]["count"].as_u64().unwrap();
    assert!(count >= 3, "{count}");
    let labels = json!({"metadata": {"labels": {"disk": "fast"}}});
    client.patch(&NODES, "", "node-1", PatchType::Merge, &labels).await.unwrap();
    cluster.pass(Duration::from_secs(20)).await.unwrap();
    let bound = newest(true, "Scheduled", 1).await;
    assert_eq!(
        (&bound["action"], &bound["note"]),
        (&json!("Binding"), &json!("Successfully assigned default/waits to node-1"))
    );
    cluster.stop().await;
}
