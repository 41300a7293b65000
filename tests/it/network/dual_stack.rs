//! Two IP families in one cluster, and IPv6 alone.

use std::net::{IpAddr, SocketAddr};

use futures::FutureExt;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use kubarium::apis::networking::network_policy::NETWORK_POLICIES;
use kubarium::apis::networking::service_ranges::ServiceRanges;
use kubarium::network::resolver::ResolvConf;
use kubarium::{Cluster, Config, ListOptions, PatchType};
use serde_json::{Value, json};

use super::Net;

const V4_AND_V6: &str = "10.96.0.0/16,fd00:10:96::/112";

async fn start(ranges: &str) -> Net {
    let mut config = Config::new().nodes(2);
    config.apiserver.services.service_cluster_ip_range = ServiceRanges::parse(ranges).unwrap();
    let cluster = Cluster::start(config).await.unwrap();
    let client = cluster.client();
    Net { cluster, client }
}

fn addresses(list: &Value) -> Vec<IpAddr> {
    let text = |one: &Value| one["ip"].as_str().or(one.as_str()).unwrap_or_default().to_owned();
    list.as_array().unwrap().iter().map(|one| text(one).parse().unwrap()).collect()
}

impl Net {
    async fn pod_ips(&self, name: &str) -> Vec<IpAddr> {
        addresses(&self.client.get(&PODS, "default", name).await.unwrap().to_value()["status"]["podIPs"])
    }

    /// A Service of the pods `web`, and its addresses.
    async fn web(&self, policy: &str) -> Vec<IpAddr> {
        let spec = json!({"type": "NodePort", "selector": {"app": "web"}, "ipFamilyPolicy": policy,
            "ports": [{"port": 80, "nodePort": 30080}]});
        let service = self.create(&SERVICES, json!({"metadata": {"name": "web"}, "spec": spec})).await;
        addresses(&service["spec"]["clusterIPs"])
    }

    /// By address type, the addresses in the slices of `web`.
    async fn endpoints(&self) -> Vec<(String, Vec<IpAddr>)> {
        let list = self.client.list(&ENDPOINT_SLICES, "default", &ListOptions::default()).await.unwrap();
        let slices = list.items.iter().map(|slice| slice.to_value());
        let own = slices.filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web");
        let mut found: Vec<(String, Vec<IpAddr>)> = own
            .map(|slice| {
                let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
                let all = endpoints.iter().flat_map(|one| addresses(&one["addresses"])).collect();
                (slice["addressType"].as_str().unwrap().to_owned(), all)
            })
            .collect();
        found.sort();
        found
    }

    async fn endpoints_are(&self, wanted: &[(&str, IpAddr)]) {
        self.until(|| {
            async move {
                let found = self.endpoints().await;
                let is = |((kind, found), wanted): (&(String, Vec<IpAddr>), &(&str, IpAddr))| {
                    kind == wanted.0 && *found == [wanted.1]
                };
                (found.len() == wanted.len() && found.iter().zip(wanted).all(is)).then_some(())
            }
            .boxed()
        })
        .await;
    }

    /// Waits until whoever is asked answers, or until he does not.
    async fn answers(&self, from: IpAddr, to: IpAddr, port: u16, wanted: bool) {
        let to = SocketAddr::new(to, port);
        let look =
            || self.get(from, to, "/").map(move |said| (said.is_some() == wanted).then_some(())).boxed();
        self.until(look).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_nodes_and_services_have_addresses_of_both_families() {
    let net = start(V4_AND_V6).await;
    net.pod("web-0", json!({"image": "nginx"})).await;
    let client = net.pod("client", json!({"image": "nginx"})).await;
    let (web, clients) = (net.pod_ips("web-0").await, net.pod_ips("client").await);
    let families = |ips: &[IpAddr]| ips.iter().map(IpAddr::is_ipv4).collect::<Vec<_>>();
    assert_eq!((families(&web), families(&clients)), (vec![true, false], vec![true, false]));
    let node = net.client.get(&NODES, "", "node-1").await.unwrap().to_value();
    assert_eq!(node["spec"]["podCIDRs"], json!(["10.244.1.0/24", "fd00:10:244:1::/64"]));
    let services = net.web("RequireDualStack").await;
    net.endpoints_are(&[("IPv4", web[0]), ("IPv6", web[1])]).await;
    // Whoever asks does so in his address of that family.
    for to in [services[0], services[1], web[0], web[1]] {
        net.answers(client, to, 80, true).await;
    }
    let nodes = node["status"]["addresses"].as_array().unwrap();
    let own = nodes.iter().filter(|own| own["type"] == "InternalIP");
    let own: Vec<IpAddr> = own.map(|own| own["address"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(families(&own), [true, false]);
    for to in own {
        net.answers(client, to, 30080, true).await;
    }
    let conf = ResolvConf::parse("nameserver 10.96.0.10\n");
    let found = net.cluster.network().resolve(client, &conf, "web.default.svc.cluster.local").await;
    assert_eq!(found, Ok(services.clone()));
    // What names IPv6 lets nobody in over IPv4.
    let from = json!([{"ipBlock": {"cidr": "fd00:10:244::/48"}}]);
    let spec = json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": from}]});
    net.create(&NETWORK_POLICIES, json!({"metadata": {"name": "of-six"}, "spec": spec})).await;
    net.answers(client, services[0], 80, false).await;
    net.answers(client, services[1], 80, true).await;
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_in_pods_ask_over_either_family() {
    let net = start(V4_AND_V6).await;
    net.pod("web-0", json!({"image": "nginx"})).await;
    let services = net.web("PreferDualStack").await;
    let script = format!(
        "until curl -sf -m 1 http://web > /dev/null; do sleep 0.1; done; echo $IPS; cat /etc/hosts | grep -c sixes; \
         nslookup web | grep ^Address; curl -sg -6 http://web/ | grep -o '<title>.*</title>'; \
         curl -s 'http://[{six}]/' | grep -o '<title>.*</title>'; curl -s -6 http://{four}/; echo $?; nc -z -6 web 80; echo $?",
        four = services[0],
        six = services[1]
    );
    let ips = json!({"name": "IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}});
    let container = json!({"name": "main", "image": "nicolaka/netshoot", "command": ["bash", "-c", script], "env": [ips]});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    net.create(&PODS, json!({"metadata": {"name": "sixes"}, "spec": spec})).await;
    assert_eq!(net.ended("sixes").await, 0);
    let own = net.pod_ips("sixes").await;
    let said = net.log("sixes").await;
    let wanted = [
        format!("{},{}", own[0], own[1]),
        "2".into(),
        "Address:\t10.96.0.10:53".into(),
        format!("Address: {}", services[0]),
        format!("Address: {}", services[1]),
        "<title>Welcome to nginx!</title>".into(),
        "<title>Welcome to nginx!</title>".into(),
        // An address of the other family is no host.
        "6".into(),
        "0".into(),
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), wanted);
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_gives_its_second_address_up_and_takes_it_again() {
    let net = start(V4_AND_V6).await;
    net.pod("web-0", json!({"image": "nginx"})).await;
    let (web, before) = (net.pod_ips("web-0").await, net.web("PreferDualStack").await);
    net.endpoints_are(&[("IPv4", web[0]), ("IPv6", web[1])]).await;
    let policy = |policy: &'static str| {
        let patch = json!({"spec": {"ipFamilyPolicy": policy}});
        let client = &net.client;
        async move {
            let service = client.patch(&SERVICES, "default", "web", PatchType::Merge, &patch).await.unwrap();
            addresses(&service.to_value()["spec"]["clusterIPs"])
        }
    };
    assert_eq!(policy("SingleStack").await, before[..1]);
    net.endpoints_are(&[("IPv4", web[0])]).await;
    net.answers(web[0], before[1], 80, false).await;
    let after = policy("RequireDualStack").await;
    assert!(after.len() == 2 && after[0] == before[0], "{after:?}");
    net.endpoints_are(&[("IPv4", web[0]), ("IPv6", web[1])]).await;
    net.answers(web[0], after[1], 80, true).await;
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_may_have_ipv6_alone() {
    let net = start("fd00:10:96::/112").await;
    let probe = json!({"httpGet": {"path": "/", "port": 80}});
    net.pod("web-0", json!({"image": "nginx", "readinessProbe": probe})).await;
    let (web, service) = (net.pod_ips("web-0").await, net.web("SingleStack").await);
    assert!(web.len() == 1 && web[0].is_ipv6() && service[0].is_ipv6(), "{web:?} {service:?}");
    net.endpoints_are(&[("IPv6", web[0])]).await;
    let script = "until curl -sf -m 1 http://web/ > /dev/null; do sleep 0.1; done; echo here";
    let container = json!({"name": "main", "image": "curlimages/curl", "command": ["sh", "-c", script]});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    net.create(&PODS, json!({"metadata": {"name": "asker"}, "spec": spec})).await;
    assert_eq!((net.ended("asker").await, net.log("asker").await.as_str()), (0, "here\n"));
    // The apiserver's way to pods.
    for proxied in ["services/web:80", "pods/web-0:80"] {
        let uri = format!("/api/v1/namespaces/default/{proxied}/proxy/");
        let asked = http::Request::get(uri).body(axum::body::Body::empty()).unwrap();
        assert_eq!(net.client.raw(asked).await.status(), 200, "{proxied}");
    }
    net.cluster.stop().await;
}

/// Addresses are merged by their type, of which a node of two families has two alike.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_two_families_comes_back_with_its_addresses() {
    let net = start(V4_AND_V6).await;
    let node = || async { net.client.get(&NODES, "", "node-1").await.unwrap().to_value() };
    let addresses = node().await["status"]["addresses"].take();
    net.cluster.stop_component("kubelet/node-1").unwrap();
    let silent = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let patched = net.client.patch_status(&NODES, "", "node-1", PatchType::StrategicMerge, &silent);
    patched.await.unwrap();
    net.cluster.start_component("kubelet/node-1").unwrap();
    let is_back = || {
        async {
            let node = node().await;
            let conditions = node["status"]["conditions"].as_array().unwrap();
            let is_ready = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
            (conditions.iter().any(is_ready) && node["status"]["addresses"] == addresses).then_some(())
        }
        .boxed()
    };
    net.until(is_back).await;
    net.cluster.stop().await;
}
