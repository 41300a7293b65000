//! Services lead to their pods.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use futures::FutureExt;
use kubarium::apimachinery::options::{DeleteOptions, PatchType};
use kubarium::apis::core::service::SERVICES;
use kubarium::network::Obstacle;
use serde_json::{Value, json};

use super::Net;

fn whoami() -> Value {
    json!({"image": "traefik/whoami"})
}

fn web(more: Value) -> Value {
    let mut spec = json!({"selector": {"app": "web"}, "ports": [{"port": 8080, "targetPort": 80}]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": "web"}, "spec": spec})
}

/// Who answers: what `whoami` calls itself.
async fn host_name(net: &Net, from: IpAddr, to: SocketAddr) -> Option<String> {
    let said = net.get(from, to, "/").await?;
    said.lines().find_map(|line| line.strip_prefix("Hostname: ").map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_leads_to_all_its_pods_by_each_of_its_addresses() {
    let net = Net::start().await;
    let client = net.pod("client", json!({"image": "busybox", "command": ["sleep", "1000"]})).await;
    let first = net.pod("web-1", whoami()).await;
    net.pod("web-2", whoami()).await;
    let service = net.create(&SERVICES, web(json!({"type": "NodePort", "externalIPs": ["192.0.2.7"]}))).await;
    let spec = &service["spec"];
    let node_port = spec["ports"][0]["nodePort"].as_u64().unwrap();
    let targets = [
        format!("{}:8080", spec["clusterIP"].as_str().unwrap()),
        "192.0.2.7:8080".to_owned(),
        format!("172.18.0.2:{node_port}"),
        format!("172.18.0.3:{node_port}"),
    ];
    for target in targets {
        let (net, to) = (&net, target.parse().unwrap());
        // The proxy hears of endpoints a moment later than who made them.
        net.until(|| {
            async move {
                let mut seen = BTreeSet::new();
                for _ in 0..16 {
                    seen.insert(host_name(net, client, to).await?);
                }
                (seen.len() == 2).then_some(())
            }
            .boxed()
        })
        .await;
    }
    let said = net.get(client, SocketAddr::new(first, 80), "/").await.unwrap();
    assert!(said.contains(&format!("RemoteAddr: {client}:")), "{said}");
    net.cluster.stop().await;
}

/// What upstream's `test/e2e/network/networking.go` asks from a pod of its node's network: the port of a
/// Service at the node itself, until the Service is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_reaches_services_at_its_own_ports() {
    let net = Net::start().await;
    net.pod("web-1", whoami()).await;
    let service = net.create(&SERVICES, web(json!({"type": "NodePort"}))).await;
    let port = u16::try_from(service["spec"]["ports"][0]["nodePort"].as_u64().unwrap()).unwrap();
    let node: IpAddr = "172.18.0.2".parse().unwrap();
    let ports = [node, "127.0.0.1".parse().unwrap()].map(|address| SocketAddr::new(address, port));
    let asked = &net;
    for to in ports {
        let answered = asked.until(|| host_name(asked, node, to).boxed()).await;
        assert_eq!(answered, "web-1", "{to}");
    }
    net.client.delete(&SERVICES, "default", "web", &DeleteOptions::default()).await.unwrap();
    for to in ports {
        let look = || async move { asked.cluster.network().connect(node, to).await.err() }.boxed();
        assert_eq!(asked.until(look).await.obstacle, Obstacle::Refused, "{to}");
    }
    net.cluster.stop().await;
}

/// Who answers 16 times, one after the other; nothing while somebody does not.
async fn answering(net: &Net, from: IpAddr, to: SocketAddr) -> Option<usize> {
    let mut seen = BTreeSet::new();
    for _ in 0..16 {
        seen.insert(host_name(net, from, to).await?);
    }
    Some(seen.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_came_once_is_sent_to_the_same_pod_again() {
    let net = Net::start().await;
    let client = net.pod("client", json!({"image": "busybox", "command": ["sleep", "1000"]})).await;
    for name in ["web-1", "web-2"] {
        net.pod(name, whoami()).await;
    }
    let service = net.create(&SERVICES, web(json!({"type": "NodePort"}))).await;
    let address = format!("{}:8080", service["spec"]["clusterIP"].as_str().unwrap()).parse().unwrap();
    let node_port = format!("172.18.0.2:{}", service["spec"]["ports"][0]["nodePort"]).parse().unwrap();
    let asked = &net;
    // The proxy hears a moment later of what somebody has said.
    let settles = async |to: SocketAddr, wanted: usize| {
        let look = || async move { (answering(asked, client, to).await? == wanted).then_some(()) }.boxed();
        asked.until(look).await;
    };
    for (affinity, wanted) in [("None", 2), ("ClientIP", 1), ("None", 2)] {
        let patch = json!({"spec": {"sessionAffinity": affinity}});
        net.client.patch(&SERVICES, "default", "web", PatchType::Merge, &patch).await.unwrap();
        settles(address, wanted).await;
        settles(node_port, wanted).await;
    }
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_listen_refuses_and_a_service_without_pods_does() {
    let net = Net::start().await;
    let pod = net.pod("nginx", json!({"image": "nginx"})).await;
    let service = net.create(&SERVICES, web(json!({}))).await;
    let address: IpAddr = service["spec"]["clusterIP"].as_str().unwrap().parse().unwrap();
    let network = net.cluster.network();
    for to in [SocketAddr::new(pod, 81), SocketAddr::new(address, 8080)] {
        let refused = network.connect(pod, to).await.unwrap_err();
        assert_eq!(refused.obstacle, Obstacle::Refused, "{to}");
    }
    // Himself, by loopback.
    let said = net.get(pod, "127.0.0.1:80".parse().unwrap(), "/").await.unwrap();
    assert!(said.contains("Welcome to nginx!"), "{said}");
    assert!(network.ping(pod, "172.18.0.2".parse().unwrap()).await.is_ok());
    let nobody = network.ping(pod, "10.244.1.250".parse().unwrap()).await;
    assert_eq!(nobody.unwrap_err(), Obstacle::Unreachable);
    net.cluster.stop().await;
}
