//! Network policies on connections between pods.

use std::net::{IpAddr, SocketAddr};

use futures::FutureExt;
use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::networking::network_policy::NETWORK_POLICIES;
use kubarium::network::resolver::ResolvConf;
use serde_json::{Value, json};

use super::Net;

fn policy(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn node_of(net: &Net, pod: &str) -> IpAddr {
    let pod = net.client.get(&PODS, "default", pod).await.unwrap().to_value();
    pod["status"]["hostIP"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_isolated_is_reached_as_policies_allow() {
    let net = Net::start().await;
    let web = SocketAddr::new(net.pod("web-0", json!({"image": "nginx"})).await, 80);
    let sleeper = || json!({"image": "busybox", "command": ["sleep", "1000"]});
    let client = net.pod("client-0", sleeper()).await;
    let stranger = net.pod("stranger-0", sleeper()).await;
    assert!(net.get(client, web, "/").await.is_some());
    net.create(&NETWORK_POLICIES, policy("deny", json!({"podSelector": {}}))).await;
    let net = &net;
    let gets = |from, wanted: bool| {
        net.until(move || {
            net.get(from, web, "/").map(move |got| (got.is_some() == wanted).then_some(())).boxed()
        })
    };
    gets(client, false).await;
    let rule =
        json!({"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": 80}]});
    let selector = json!({"matchLabels": {"app": "web"}});
    net.create(&NETWORK_POLICIES, policy("allow", json!({"podSelector": selector, "ingress": [rule]}))).await;
    gets(client, true).await;
    gets(stranger, false).await;
    // A node reaches its own pods.
    gets(node_of(net, "web-0").await, true).await;
    let egress = json!({"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"]});
    net.create(&NETWORK_POLICIES, policy("silence", egress)).await;
    gets(client, false).await;
    // Nor is the name server reached, until that is allowed as with kubeadm's.
    let conf = ResolvConf::parse("nameserver 10.96.0.10\noptions timeout:1 attempts:1\n");
    let (network, name) = (net.cluster.network(), "kubernetes.default.svc.cluster.local.");
    assert!(network.resolve(client, &conf, name).await.is_err());
    assert!(network.resolve(stranger, &conf, name).await.is_ok());
    let dns = json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{
        "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}],
        "ports": [{"port": 53, "protocol": "UDP"}]}]});
    net.create(&NETWORK_POLICIES, policy("dns", dns)).await;
    let (network, conf) = (&network, &conf);
    net.until(|| network.resolve(client, conf, name).map(|found| found.ok()).boxed()).await;
    for name in ["deny", "allow", "silence", "dns"] {
        net.client.delete(&NETWORK_POLICIES, "default", name, &DeleteOptions::default()).await.unwrap();
    }
    gets(stranger, true).await;
}
