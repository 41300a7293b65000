//! `#[kubarium::test]`: what a test may ask for, and that its cluster ends with it.

use std::sync::{Arc, Mutex};

use kubarium::kinds::{CONFIG_MAPS, NODES, PODS};
use kubarium::testing::run;
use kubarium::{Client, Clock, Cluster, Components, Config, Status};
use serde_json::json;

#[kubarium::test(nodes = 2)]
async fn a_client_and_two_nodes(client: Client) -> Result<(), Status> {
    let nodes = client.list(&NODES, "", &Default::default()).await?;
    assert_eq!(nodes.items.len(), 2);
    client.create(&CONFIG_MAPS, "default", json!({"metadata": {"name": "own"}})).await?;
    Ok(())
}

/// The same name in the same namespace: it is another cluster.
#[kubarium::test(apiserver_only)]
async fn a_cluster_of_its_own(cluster: &Cluster, client: Client) -> Result<(), Status> {
    assert!(cluster.address().is_none(), "no port");
    client.create(&CONFIG_MAPS, "default", json!({"metadata": {"name": "own"}})).await?;
    let pods = client.list(&PODS, "", &Default::default()).await?;
    assert!(pods.items.is_empty());
    Ok(())
}

#[kubarium::test(stepped, seed = 7)]
async fn time_that_stands_still(clock: Clock) {
    assert!(clock.is_stepped());
}

#[kubarium::test(config = Config::new().components(Components::NONE))]
async fn a_stock_client(client: kube::Client, cluster: Arc<Cluster>) {
    use k8s_openapi::api::core::v1::Namespace;
    let found = kube::Api::<Namespace>::all(client).get("default").await.unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("default"));
    assert!(!cluster.clock().is_stepped());
}

#[kubarium::test(apiserver_only)]
#[should_panic(expected = "as it should")]
async fn a_test_that_fails(_: Client) {
    panic!("as it should");
}

#[test]
fn the_cluster_of_a_test_that_panics_ends() {
    let kept = Mutex::new(None);
    let config = Config::new().components(Components::NONE);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(config, |cluster| {
            *kept.lock().unwrap() = Some(Arc::downgrade(&cluster));
            async move {
                let _held = cluster;
                panic!("in the test");
            }
        })
    }));
    assert!(outcome.is_err());
    assert!(kept.lock().unwrap().take().unwrap().upgrade().is_none(), "it lives on");
}
