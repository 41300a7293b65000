//! What nobody owns goes; owners wait for their dependents, or let them go.

use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::apps::replica_set::REPLICA_SETS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, deployment};

async fn with_deployment(fixture: &Fixture) {
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 2, "nginx", json!({}))).await;
    fixture.rolled_out("web").await;
}

async fn count(fixture: &Fixture) -> [usize; 3] {
    [
        fixture.list(&DEPLOYMENTS, "").await.len(),
        fixture.list(&REPLICA_SETS, "").await.len(),
        fixture.list(&PODS, "").await.len(),
    ]
}

async fn all_gone(fixture: &Fixture) {
    fixture
        .eventually("everything is gone", || async {
            fixture.run_pods("").await;
            (count(fixture).await == [0, 0, 0]).then_some(())
        })
        .await;
}

fn owned_by(name: &str, owner: &Value, more: &[&Value]) -> Value {
    let reference = |owner: &&Value| {
        let metadata = &owner["metadata"];
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]})
    };
    let owners: Vec<Value> = [owner].iter().chain(more).map(reference).collect();
    json!({"metadata": {"name": name, "ownerReferences": owners}})
}

#[tokio::test]
async fn in_the_background_the_owner_goes_first() {
    let fixture = Fixture::start().await;
    with_deployment(&fixture).await;
    fixture.delete(&DEPLOYMENTS, "web", "Background").await;
    assert!(fixture.get(&DEPLOYMENTS, "web").await.is_none());
    all_gone(&fixture).await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_goes_last() {
    let fixture = Fixture::start().await;
    with_deployment(&fixture).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/wait"]}});
    let held = fixture.pods("").await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    fixture.patch(&PODS, &held, hold).await;
    fixture.delete(&DEPLOYMENTS, "web", "Foreground").await;
    let waits = || async {
        fixture.run_pods("").await;
        (count(&fixture).await == [1, 1, 1]).then_some(())
    };
    fixture.eventually("they wait for the last pod", waits).await;
    fixture.settle(50).await;
    assert_eq!(count(&fixture).await, [1, 1, 1]);
    fixture.patch(&PODS, &held, json!({"metadata": {"finalizers": null}})).await;
    all_gone(&fixture).await;
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let fixture = Fixture::start().await;
    with_deployment(&fixture).await;
    fixture.delete(&DEPLOYMENTS, "web", "Orphan").await;
    fixture.gone(&DEPLOYMENTS, "web").await;
    fixture.settle(50).await;
    assert_eq!(count(&fixture).await, [0, 1, 2]);
    let set = &fixture.list(&REPLICA_SETS, "").await[0];
    assert!(set["metadata"]["ownerReferences"].is_null());
    // The next deployment of that selector takes them over.
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 2, "nginx", json!({}))).await;
    fixture.rolled_out("web").await;
    assert_eq!(count(&fixture).await, [1, 1, 2]);
}

#[tokio::test]
async fn any_owner_that_is_left_keeps_an_object() {
    let fixture = Fixture::start().await;
    let owner = |name: &str| json!({"metadata": {"name": name}});
    let a = fixture.create(&CONFIG_MAPS, NAMESPACE, owner("a")).await.to_value();
    let b = fixture.create(&CONFIG_MAPS, NAMESPACE, owner("b")).await.to_value();
    fixture.create(&CONFIG_MAPS, NAMESPACE, owned_by("child", &a, &[&b])).await;
    fixture.delete(&CONFIG_MAPS, "a", "Background").await;
    let only_b = || async {
        let child = fixture.get(&CONFIG_MAPS, "child").await?;
        let owners = child["metadata"]["ownerReferences"].as_array()?.clone();
        (owners.len() == 1 && owners[0]["name"] == "b").then_some(())
    };
    fixture.eventually("the reference to a is gone", only_b).await;
    fixture.delete(&CONFIG_MAPS, "b", "Background").await;
    fixture.gone(&CONFIG_MAPS, "child").await;
}

#[tokio::test]
async fn an_owner_that_never_was_or_has_another_uid_is_absent() {
    let fixture = Fixture::start().await;
    let named = fixture.create(&CONFIG_MAPS, NAMESPACE, json!({"metadata": {"name": "named"}})).await;
    let never = json!({"metadata": {"name": "never", "uid": "00000000-0000-4000-8000-000000000000"}});
    let other = json!({"metadata": {"name": "named", "uid": "00000000-0000-4000-8000-000000000001"}});
    fixture.create(&CONFIG_MAPS, NAMESPACE, owned_by("x", &never, &[])).await;
    fixture.create(&CONFIG_MAPS, NAMESPACE, owned_by("y", &other, &[])).await;
    fixture.create(&CONFIG_MAPS, NAMESPACE, owned_by("z", &named.to_value(), &[])).await;
    fixture.gone(&CONFIG_MAPS, "x").await;
    fixture.gone(&CONFIG_MAPS, "y").await;
    fixture.settle(50).await;
    assert!(fixture.get(&CONFIG_MAPS, "z").await.is_some());
}

/// On one thread. The apiserver answers the collector at once, so only where the collector gives way does
/// somebody else's request come between two of its own.
#[tokio::test]
async fn many_owners_that_are_not_there_let_other_requests_through() {
    const OWNERS: usize = 500;
    let fixture = Fixture::start().await;
    let owner = |at: usize| json!({"metadata": {"name": format!("none-{at}"), "uid": format!("none-{at}")}});
    let owners: Vec<Value> = (0..OWNERS).map(owner).collect();
    let owned = owned_by("owned", &owners[0], &owners[1..].iter().collect::<Vec<_>>());
    fixture.create(&CONFIG_MAPS, NAMESPACE, owned).await;
    let mut answers = 0;
    while fixture.get(&CONFIG_MAPS, "owned").await.is_some() {
        answers += 1;
        tokio::task::yield_now().await;
    }
    assert!(answers >= OWNERS, "only {answers} requests were answered until the object was gone");
}
