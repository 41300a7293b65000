//! Ports of nodes that lead to pods, and the policies that judge who comes that way: what kind's `portmap` and
//! kindnet do.

use std::net::{IpAddr, SocketAddr};

use futures::FutureExt;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::networking::network_policy::NETWORK_POLICIES;
use serde_json::{Value, json};

use super::Net;

impl Net {
    /// A pod on a node; its address when it is ready.
    async fn pod_on(&self, node: &str, name: &str, more: Value, container: Value) -> IpAddr {
        let mut container = container;
        container["name"] = "main".into();
        let mut spec = json!({"nodeName": node, "containers": [container]});
        more.as_object().unwrap().iter().for_each(|(key, value)| spec[key] = value.clone());
        let labels = json!({"app": name.split('-').next()});
        self.create(&PODS, json!({"metadata": {"name": name, "labels": labels}, "spec": spec})).await;
        self.address(name).await
    }

    async fn host_of(&self, pod: &str) -> IpAddr {
        let pod = self.client.get(&PODS, "default", pod).await.unwrap().to_value();
        pod["status"]["hostIP"].as_str().unwrap().parse().unwrap()
    }

    async fn policy(&self, name: &str, spec: Value) {
        self.create(&NETWORK_POLICIES, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// Waits until somebody is answered there, or is not.
    async fn reaches(&self, from: IpAddr, to: SocketAddr, wanted: bool) {
        self.until(|| {
            self.get(from, to, "/clientip").map(move |got| (got.is_some() == wanted).then_some(())).boxed()
        })
        .await
    }

    /// As whom a server sees somebody.
    async fn seen(&self, from: IpAddr, to: SocketAddr) -> String {
        let seen = self.get(from, to, "/clientip").await.expect("it answers");
        seen.rsplit_once(':').unwrap().0.to_owned()
    }
}

fn netexec(port: &str) -> Value {
    json!({"image": "registry.k8s.io/e2e-test-images/agnhost:2.63", "args": ["netexec", port]})
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_judge_who_comes_to_a_pod_through_a_port_of_its_node() {
    let net = Net::start().await;
    let mut server = netexec("--http-port=8080");
    server["ports"] = json!([{"containerPort": 8080, "hostPort": 9000}]);
    net.pod_on("node-1", "web-0", json!({}), server).await;
    let sleeper = || json!({"image": "busybox", "command": ["sleep", "1000"]});
    let near = net.pod_on("node-1", "client-near", json!({}), sleeper()).await;
    let far = net.pod_on("node-2", "client-far", json!({}), sleeper()).await;
    let (here, there) = (net.host_of("client-near").await, net.host_of("client-far").await);
    let to = SocketAddr::new(here, 9000);
    // On its own node a pod stays who it is; whoever leaves one for a node does so in the name of its own.
    assert_eq!(net.seen(near, to).await, near.to_string());
    assert_eq!(net.seen(far, to).await, there.to_string());
    assert_eq!(net.seen(there, to).await, there.to_string());
    assert!(net.get(near, SocketAddr::new(here, 8080), "/").await.is_none(), "that port is the pod's own");
    assert!(net.get(near, SocketAddr::new(there, 9000), "/").await.is_none(), "that node has no such pod");
    net.policy("deny", json!({"podSelector": {"matchLabels": {"app": "web"}}})).await;
    for from in [near, far, there] {
        net.reaches(from, to, false).await;
    }
    // A node reaches its own pods.
    net.reaches(here, to, true).await;
    let rule =
        json!({"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": 8080}]});
    net.policy("pods", json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [rule]})).await;
    net.reaches(near, to, true).await;
    // It comes in the name of its node, which is no pod.
    net.reaches(far, to, false).await;
    let rule = json!({"from": [{"ipBlock": {"cidr": format!("{there}/32")}}]});
    net.policy("nodes", json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [rule]})).await;
    net.reaches(far, to, true).await;
    // What leaves a pod is judged by where it arrives: at the pod.
    let web = json!([{"to": [{"podSelector": {"matchLabels": {"app": "web"}}}], "ports": [{"port": 8080}]}]);
    let spec =
        json!({"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"], "egress": web});
    net.policy("egress", spec).await;
    net.reaches(near, SocketAddr::new(there, 10250), false).await;
    net.reaches(near, to, true).await;
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_their_nodes_network_are_their_nodes() {
    let net = Net::start().await;
    let of_host = json!({"hostNetwork": true});
    let own = net.pod_on("node-1", "host-0", of_host.clone(), netexec("--http-port=9001")).await;
    assert_eq!(own, net.host_of("host-0").await);
    let mut server = netexec("--http-port=8080");
    server["ports"] = json!([{"containerPort": 8080, "hostPort": 9000}]);
    let web = net.pod_on("node-1", "web-0", json!({}), server).await;
    let client = net
        .pod_on("node-2", "client-0", json!({}), json!({"image": "busybox", "command": ["sleep", "1000"]}))
        .await;
    let other = net.pod_on("node-2", "host-1", of_host, netexec("--http-port=9002")).await;
    net.policy("deny", json!({"podSelector": {}})).await;
    let (port, host) = (SocketAddr::new(own, 9000), SocketAddr::new(own, 9001));
    net.reaches(client, port, false).await;
    // Nobody selects those of their node's network.
    net.reaches(client, host, true).await;
    // They reach the pods of their own node, as that does, also through its ports; of others' they do not.
    net.reaches(own, SocketAddr::new(web, 8080), true).await;
    net.reaches(own, port, true).await;
    net.reaches(other, SocketAddr::new(web, 8080), false).await;
    net.reaches(other, port, false).await;
    net.cluster.stop().await;
}

/// What upstream's `test/e2e/network/hostport.go` asks from the node.
#[tokio::test(flavor = "multi_thread")]
async fn one_port_of_a_node_leads_to_other_pods_at_its_loopback_and_at_its_address() {
    let net = Net::start().await;
    let sleeper = json!({"image": "busybox", "command": ["sleep", "1000"]});
    net.pod_on("node-1", "client-0", json!({}), sleeper).await;
    let own = net.host_of("client-0").await.to_string();
    let pods = [("pod1", "127.0.0.1", "TCP"), ("pod2", &*own, "TCP"), ("pod3", &*own, "UDP")];
    for (name, host_ip, protocol) in pods {
        let mut server = netexec("--http-port=8080");
        server["args"] = json!(["netexec", "--http-port=8080", "--udp-port=8080"]);
        server["ports"] =
            json!([{"containerPort": 8080, "hostPort": 54323, "protocol": protocol, "hostIP": host_ip}]);
        net.pod_on("node-1", name, json!({}), server).await;
    }
    let script = format!(
        "curl -sg --connect-timeout 5 --interface {own} http://127.0.0.1:54323/hostname; echo; \
         curl -sg --connect-timeout 5 --interface eth0 http://{own}:54323/hostname; echo; \
         nc -vuz -w 1 {own} 54323 2> /dev/null; echo $?; curl -s --interface 10.9.8.7 http://{own}:54323/; echo $?"
    );
    let asks = json!({"name": "main", "image": "alpine/k8s:1.36.2", "command": ["sh", "-c", script]});
    let spec =
        json!({"nodeName": "node-1", "hostNetwork": true, "restartPolicy": "Never", "containers": [asks]});
    net.create(&PODS, json!({"metadata": {"name": "asks"}, "spec": spec})).await;
    assert_eq!(net.ended("asks").await, 0);
    let log = net.log("asks").await;
    let lines: Vec<&str> =
        log.lines().filter(|line| !line.contains('%') && !line.contains("--:--")).collect();
    assert_eq!(lines, ["pod1", "pod2", "0", "45"], "{log}");
    net.cluster.stop().await;
}
