//! Connections that nobody uses cost nothing.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::core::pod::PODS;
use kubarium::clock::Clock;
use kubarium::entropy::Entropy;
use kubarium::{Cluster, Config};
use serde_json::json;
use tokio::io::AsyncReadExt;

/// So many clients hold a connection.
const CLIENTS: usize = 1000;

#[tokio::test]
async fn a_thousand_idle_connections_wake_nobody_and_end_with_their_pod() {
    let clock = Clock::stepped("2030-01-01T00:00:30Z".parse().unwrap());
    let cluster = Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
    let container = json!({"name": "main", "image": "nginx"});
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [container]}});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    let minute = Duration::from_secs(60);
    cluster.pass(minute).await.unwrap();
    let web = cluster.client().get(&PODS, "default", "web").await.unwrap().to_value();
    let web: IpAddr = web["status"]["podIP"].as_str().unwrap().parse().unwrap();
    let wakes = cluster.pass(minute).await.unwrap();
    let mut open = vec![];
    for _ in 0..CLIENTS {
        open.push(cluster.network().connect(web, SocketAddr::new(web, 80)).await.unwrap());
    }
    let busy = cluster.pass(minute).await.unwrap();
    // Each of them would wake twice a second.
    assert!(busy < wakes + CLIENTS, "{busy} wakes instead of {wakes}");
    let gone = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    cluster.client().delete(&PODS, "default", "web", &gone).await.unwrap();
    cluster.pass(Duration::from_secs(1)).await.unwrap();
    for mut connection in open {
        let mut said = Vec::new();
        // Its end, in whatever form.
        let _ = connection.read_to_end(&mut said).await;
        assert_eq!(said, b"");
    }
    cluster.stop().await;
}
