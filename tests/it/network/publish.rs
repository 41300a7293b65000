//! Ports of Services that are opened on the host.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use futures::FutureExt;
use kubarium::apimachinery::options::{DeleteOptions, ListOptions};
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::service::SERVICES;
use kubarium::cluster::Publish;
use kubarium::controllers::load_balancer_ranges::LoadBalancerRanges;
use kubarium::{Cluster, Config};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Net;
use crate::support::programs::free_port;

async fn start(wishes: &[&str], load_balancers: Option<&str>) -> Net {
    let config = wishes.iter().fold(Config::new().nodes(2), |config, wish| {
        config.publish(wish.parse::<Publish>().expect("it can be read"))
    });
    let mut config = config;
    config.controller_manager.load_balancer_range =
        load_balancers.map(|range| LoadBalancerRanges::parse(range).unwrap());
    let cluster = Cluster::start(config).await.unwrap();
    let client = cluster.client();
    Net { cluster, client }
}

fn service(name: &str, kind: &str, port: u16, node_port: u16) -> Value {
    let ports = json!([{"port": port, "targetPort": 80, "nodePort": node_port}]);
    json!({"metadata": {"name": name}, "spec": {"type": kind, "selector": {"app": "web"}, "ports": ports}})
}

/// What a browser is answered; nothing where it is hung up on, or nobody listens.
async fn browse(at: SocketAddr) -> Option<String> {
    let mut io = TcpStream::connect(at).await.ok()?;
    io.write_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").await.ok()?;
    let mut said = String::new();
    let reading = tokio::time::timeout(Duration::from_secs(5), io.read_to_string(&mut said));
    reading.await.ok()?.ok()?;
    Some(said).filter(|said| !said.is_empty())
}

/// Waits until a browser is answered, or is not any more.
async fn browsed(net: &Net, at: SocketAddr, wanted: bool) {
    let look = || browse(at).map(move |said| (said.is_some() == wanted).then_some(said)).boxed();
    if let Some(said) = net.until(look).await {
        assert!(said.contains("Welcome to nginx!"), "{said}");
    }
}

async fn event(net: &Net, reason: &str) -> Value {
    net.until(|| {
        async move {
            let events = net.client.list(&EVENTS, "default", &ListOptions::default()).await.ok()?;
            let events = events.items.iter().map(|event| event.to_value());
            events.into_iter().find(|event| event["reason"] == *reason)
        }
        .boxed()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_sees_a_pod_by_a_node_port_and_by_a_load_balancer() {
    let wishes = ["0:30080", "0:30080@node-2", "0:81@loadbalancer", "0:30081"];
    let net = start(&wishes, Some("192.0.2.0/24")).await;
    let open = net.cluster.published().to_vec();
    assert_eq!(
        open.iter().map(|(_, target)| target.as_str()).collect::<Vec<_>>(),
        ["30080", "30080@node-2", "81@loadbalancer", "30081"]
    );
    assert!(open.iter().all(|(at, _)| at.ip().is_loopback()));
    // Nobody is behind it yet: it is hung up.
    assert_eq!(browse(open[0].0).await, None);
    net.pod("web", json!({"image": "nginx"})).await;
    net.create(&SERVICES, service("web", "NodePort", 80, 30080)).await;
    let mut balanced = service("balanced", "LoadBalancer", 81, 30090);
    // A load balancer finds the node that has the pod.
    balanced["spec"]["externalTrafficPolicy"] = "Local".into();
    net.create(&SERVICES, balanced).await;
    for (at, _) in &open[..3] {
        browsed(&net, *at, true).await;
    }
    assert_eq!(browse(open[3].0).await, None);
    let fork = net.cluster.fork().await.unwrap();
    assert!(fork.published().is_empty(), "a fork leaves its parent's ports alone");
    fork.stop().await;
    net.cluster.stop().await;
    assert_eq!(TcpStream::connect(open[0].0).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// A connection that is answered, and stays open.
async fn held(at: SocketAddr) -> Option<TcpStream> {
    let mut io = TcpStream::connect(at).await.ok()?;
    io.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.ok()?;
    (io.read_u8().await.ok()? == b'H').then_some(io)
}

/// `MAX_PUBLISHED_CONNECTIONS`, which read nothing of what they are told.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_are_open_at_once_and_one_more_is_hung_up_on() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let net = start(&["0:30080"], None).await;
    let at = net.cluster.published()[0].0;
    net.pod("web", json!({"image": "nginx"})).await;
    net.create(&SERVICES, service("web", "NodePort", 80, 30080)).await;
    browsed(&net, at, true).await;
    let mut open = vec![];
    while open.len() < 1_000 {
        // The place of who looked before may not be free yet.
        open.extend(held(at).await);
    }
    assert!(held(at).await.is_none(), "one too many");
    drop(open.pop());
    browsed(&net, at, true).await;
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_ports_are_opened_and_closed_as_services_come_and_go() {
    let net = start(&["nodeports", "[::1]:loadbalancers"], None).await;
    let mut taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // One that Services may have.
    for port in 32_000..32_767 {
        if let Ok(found) = TcpListener::bind(("127.0.0.1", port)).await {
            taken = found;
            break;
        }
    }
    net.pod("web", json!({"image": "nginx"})).await;
    let taken_port = taken.local_addr().unwrap().port();
    let failing = net.create(&SERVICES, service("failing", "NodePort", 80, taken_port)).await;
    let warning = event(&net, "PublishFailed").await;
    assert_eq!(warning["involvedObject"]["uid"], failing["metadata"]["uid"]);
    let why = warning["message"].as_str().unwrap();
    assert!(why.starts_with(&format!("Cannot open 127.0.0.1:{taken_port}: Address already in use")), "{why}");
    drop(taken);
    // It is tried again when something changes.
    let balancer_port = free_port();
    let balanced = net.create(&SERVICES, service("balanced", "LoadBalancer", balancer_port, 0)).await;
    let node_port = balanced["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    let at = [
        format!("127.0.0.1:{taken_port}").parse().unwrap(),
        format!("127.0.0.1:{node_port}").parse().unwrap(),
        format!("[::1]:{balancer_port}").parse().unwrap(),
    ];
    for at in at {
        browsed(&net, at, true).await;
    }
    event(&net, "Published").await;
    let mut held = TcpStream::connect(at[1]).await.unwrap();
    for name in ["failing", "balanced"] {
        net.client.delete(&SERVICES, "default", name, &DeleteOptions::default()).await.unwrap();
    }
    for at in at {
        browsed(&net, at, false).await;
    }
    // Who is connected is hung up on, too.
    let _ = held.write_all(b"GET / HTTP/1.0\r\n\r\n").await;
    let mut said = vec![];
    let _ = held.read_to_end(&mut said).await;
    assert_eq!(String::from_utf8_lossy(&said), "");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_keeps_a_cluster_from_starting() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wish = format!("{}:30080", taken.local_addr().unwrap().port());
    let refused = Cluster::start(Config::new().publish(wish.parse().unwrap())).await;
    let why = refused.err().expect("it is taken").to_string();
    assert!(why.starts_with(&format!("cannot publish 127.0.0.1:{wish}: ")), "{why}");
    assert!(why.contains("choose another port before the colon"), "{why}");
}
