//! Faults of the network between pods that selectors name.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kubarium::faults::NetworkFault;
use kubarium::kinds::PODS;
use kubarium::network::Obstacle;
use kubarium::{Clock, Cluster, Config, Entropy, Fault};
use serde_json::json;

struct Connected(Cluster);

impl Connected {
    async fn start() -> Connected {
        let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
        Connected(Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap())
    }

    async fn run(&self, name: &str, app: &str) -> IpAddr {
        let spec = json!({"containers": [{"name": "c", "image": "nginx"}]});
        let pod = json!({"metadata": {"name": name, "labels": {"app": app}}, "spec": spec});
        self.0.client().create(&PODS, "default", pod).await.unwrap();
        self.pass(5).await;
        let pod = self.0.client().get(&PODS, "default", name).await.unwrap().to_value();
        pod["status"]["podIP"].as_str().unwrap().parse().unwrap()
    }

    async fn pass(&self, seconds: u64) {
        self.0.pass(Duration::from_secs(seconds)).await.unwrap();
    }

    fn is_fair(&self, one: IpAddr, other: IpAddr) -> bool {
        self.0.network().is_fair(one, other)
    }
}

fn refused(between: &str, and: &str) -> NetworkFault {
    NetworkFault { between: between.into(), and: and.into(), refuse: true, ..NetworkFault::default() }
}

#[tokio::test]
async fn what_is_between_selectors_follows_their_pods() {
    let cluster = Connected::start().await;
    let web = cluster.run("web", "web").await;
    let db = cluster.run("db", "db").await;
    cluster.0.faults().add(Fault::network(refused("app=web", "default/app=db")).named("cut")).unwrap();
    cluster.pass(1).await;
    let refusal = cluster.0.network().connect(web, SocketAddr::new(db, 80)).await.unwrap_err();
    assert_eq!(refusal.obstacle, Obstacle::Refused);
    let other = cluster.run("other", "other").await;
    let second = cluster.run("second", "web").await;
    assert!(cluster.is_fair(web, other) && cluster.is_fair(other, db) && cluster.is_fair(web, second));
    assert!(!cluster.is_fair(second, db), "a pod that comes later is on its side, too");
    let client = cluster.0.client();
    let patch = json!({"metadata": {"labels": {"app": "other"}}});
    let merge = kubarium::apimachinery::options::PatchType::Merge;
    client.patch(&PODS, "default", "second", merge, &patch).await.unwrap();
    cluster.pass(1).await;
    assert!(cluster.is_fair(second, db), "labels decide");
    cluster.0.faults().remove("cut").unwrap();
    cluster.pass(1).await;
    assert!(cluster.0.network().connect(web, SocketAddr::new(db, 80)).await.is_ok());
    cluster.0.stop().await;
}

#[tokio::test]
async fn a_fault_of_the_network_has_its_time_and_nobody_is_not_everybody() {
    let cluster = Connected::start().await;
    let web = cluster.run("web", "web").await;
    let db = cluster.run("db", "db").await;
    let nobody = Fault::network(refused("app=none", "")).named("nobody");
    cluster.0.faults().add(nobody).unwrap();
    let minute = Duration::from_secs(60);
    let partition = NetworkFault { between: format!("{web}"), partition: true, ..NetworkFault::default() };
    cluster.0.faults().add(Fault::network(partition).after(minute).lasting(minute)).unwrap();
    cluster.pass(30).await;
    assert!(cluster.is_fair(web, db));
    cluster.pass(31).await;
    assert!(!cluster.is_fair(web, db));
    cluster.pass(60).await;
    assert!(cluster.is_fair(web, db));
    for (fault, words) in [
        (Fault::network(NetworkFault::default()), "network says nothing"),
        (Fault::network(refused("app in", "")), "is no side"),
        (Fault::network(refused("app=a", "")).user("me"), "network is about pods"),
        (Fault { stop: Some("kube-scheduler".into()), ..Fault::network(refused("a=b", "")) }, "contradict"),
    ] {
        let why = cluster.0.faults().add(fault).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
    // What somebody has made wrong in Rust stays beside it.
    let own = kubarium::network::weather::Disturbance { is_refused: true, ..Default::default() };
    cluster.0.network().disturb(vec![own]).unwrap();
    cluster.0.faults().clear();
    cluster.pass(1).await;
    assert!(!cluster.is_fair(web, db));
    cluster.0.stop().await;
}
