//! Network policies on connections between pods.

use std::net::{IpAddr, SocketAddr};

use futures::FutureExt;
use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::authorization::SUBJECT_ACCESS_REVIEWS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::networking::network_policy::NETWORK_POLICIES;
use kubarium::apis::rbac::role_binding::CLUSTER_ROLE_BINDINGS;
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

#[tokio::test(flavor = "multi_thread")]
async fn probes_of_the_own_node_are_let_in_whatever_policies_say() {
    let net = Net::start().await;
    net.create(&NETWORK_POLICIES, policy("deny", json!({"podSelector": {}}))).await;
    let stranger = net.pod("stranger-0", json!({"image": "busybox", "command": ["sleep", "1000"]})).await;
    // One that counts is asked each time, and over the network.
    let listener = "[{every: 1000, status: 503}, {body: ok}]";
    let probe = json!({"httpGet": {"port": 8080}, "periodSeconds": 1});
    let container = json!({"name": "main", "image": "my-server", "readinessProbe": probe});
    let metadata = json!({"name": "web-0", "annotations": {"kubarium.dev/http.8080": listener}});
    net.create(&PODS, json!({"metadata": metadata, "spec": {"containers": [container]}})).await;
    let web = SocketAddr::new(net.address("web-0").await, 8080);
    let refused = || net.get(stranger, web, "/").map(|got| got.is_none().then_some(())).boxed();
    net.until(refused).await;
    assert!(net.get(node_of(&net, "web-0").await, web, "/").await.is_some());
}

/// What a trace of an object tells of traffic.
fn told(net: &Net, resource: &str, name: &str) -> Vec<String> {
    let trace = net.cluster.flow().trace(resource, "default", name);
    let shown = trace.render();
    trace.traffic.iter().for_each(|traffic| assert!(shown.contains(&traffic.to_string()), "{shown}"));
    let last = |line: &String| line.split(", ").next().unwrap_or_default().to_owned();
    trace.traffic.iter().map(ToString::to_string).map(|line| last(&line)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_says_which_policy_let_a_connection_in_or_kept_it_out() {
    let net = Net::start().await;
    let web = SocketAddr::new(net.pod("web-0", json!({"image": "nginx"})).await, 80);
    let client = net.pod("client-0", json!({"image": "busybox", "command": ["sleep", "1000"]})).await;
    assert!(net.get(client, web, "/").await.is_some());
    assert_eq!(told(&net, "pods", "web-0"), Vec::<String>::new(), "without policies nobody takes notes");
    net.create(&NETWORK_POLICIES, policy("deny", json!({"podSelector": {"matchLabels": {"app": "web"}}})))
        .await;
    let net = &net;
    let gets = |wanted: bool| {
        net.until(move || {
            net.get(client, web, "/").map(move |got| (got.is_some() == wanted).then_some(())).boxed()
        })
    };
    gets(false).await;
    let kept_out = "traffic: default/client-0 to default/web-0 at 80/TCP kept out by default/deny";
    assert_eq!(told(net, "pods", "web-0"), [kept_out]);
    let ports = json!([{"port": 80}]);
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}});
    net.create(&SERVICES, service).await;
    let why = async |kind: &str, name: &str| net.cluster.why(kind, "default", name).await.unwrap().render();
    let by = "kept out by NetworkPolicy default/deny";
    let from_client = format!("default/client-0 could not reach it at 80/TCP: {by}");
    assert!(why("pod", "web-0").await.contains(&from_client));
    assert!(
        why("pod", "client-0").await.contains(&format!("it could not reach default/web-0 at 80/TCP: {by}"))
    );
    let of_service = why("service", "web").await;
    assert!(of_service.contains("its pod web-0") && of_service.contains(&from_client), "{of_service}");
    let rule = json!({"from": [{"podSelector": {}}]});
    let selector = json!({"matchLabels": {"app": "web"}});
    net.create(&NETWORK_POLICIES, policy("allow", json!({"podSelector": selector, "ingress": [rule]}))).await;
    gets(true).await;
    let let_in = "traffic: default/client-0 to default/web-0 at 80/TCP let in by default/allow";
    assert_eq!(told(net, "pods", "client-0"), [kept_out, let_in]);
    assert_eq!(told(net, "networkpolicies.networking.k8s.io", "allow"), [let_in]);
    assert_eq!(told(net, "networkpolicies.networking.k8s.io", "deny"), [kept_out]);
    for (kind, name) in [("pod", "web-0"), ("pod", "client-0"), ("service", "web")] {
        let told = why(kind, name).await;
        assert!(!told.contains("kept out"), "what has got through since then is no trouble: {told}");
    }
}

/// What watches the cluster for the network asks in the names that upstream's own programs have, with no more
/// rights than those.
#[tokio::test(flavor = "multi_thread")]
async fn the_network_asks_in_the_names_of_its_parts() {
    let net = Net::start().await;
    let client = net.pod("client-0", json!({"image": "nginx"})).await;
    net.create(&NETWORK_POLICIES, policy("open", json!({"podSelector": {}, "ingress": [{}]}))).await;
    let conf = ResolvConf::parse("nameserver 10.96.0.10\noptions timeout:1 attempts:1\n");
    let (network, name) = (net.cluster.network(), "kubernetes.default.svc.cluster.local.");
    assert!(network.resolve(client, &conf, name).await.is_ok());
    let record = net.cluster.flow().all();
    let refused: Vec<&str> = record.lines().filter(|line| line.contains("NotAuthorized")).collect();
    assert_eq!(refused, Vec::<&str>::new());
    for (user, kind) in [
        ("system:kube-proxy", "endpointslices.discovery.k8s.io"),
        ("system:serviceaccount:kube-system:coredns", "namespaces"),
        ("system:serviceaccount:kube-system:kindnet", "networkpolicies.networking.k8s.io"),
    ] {
        let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
        let attributes = json!({"verb": "watch", "resource": resource, "group": group});
        let secrets = json!({"verb": "get", "resource": "secrets", "namespace": "kube-system"});
        for (attributes, wanted) in [(attributes, true), (secrets, false)] {
            let review = json!({"spec": {"user": user, "resourceAttributes": attributes}});
            let review = net.client.create(&SUBJECT_ACCESS_REVIEWS, "", review).await.unwrap().to_value();
            assert_eq!(review["status"]["allowed"], wanted, "{user} {kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_role_the_name_server_knows_nothing() {
    let net = Net::start().await;
    let client = net.pod("client-0", json!({"image": "nginx"})).await;
    let options = DeleteOptions::default();
    net.client.delete(&CLUSTER_ROLE_BINDINGS, "", "system:coredns", &options).await.unwrap();
    let conf = ResolvConf::parse("nameserver 10.96.0.10\noptions timeout:1 attempts:1\n");
    let (network, name) = (net.cluster.network(), "kubernetes.default.svc.cluster.local.");
    assert!(network.resolve(client, &conf, name).await.is_err());
    let who = "system:serviceaccount:kube-system:coredns";
    let record = net.cluster.flow().all();
    let refused = record.lines().find(|line| line.contains("\"Refused\"") && line.contains(who));
    assert!(refused.is_some_and(|line| line.contains("cannot list resource")), "{refused:?}");
}
