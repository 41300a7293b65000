//! The ports of kubelets, as pods reach them: what upstream's `test/e2e/auth/node_authn.go` and
//! `test/e2e/node/kubelet_authz.go` ask, and what else is behind them.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use http_body_util::BodyExt;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use kubarium::apis::rbac::role::CLUSTER_ROLES;
use kubarium::apis::rbac::role_binding::CLUSTER_ROLE_BINDINGS;
use kubarium::clock::Clock;
use kubarium::cluster::Listen;
use kubarium::network::http_client;
use kubarium::network::tls::{self, PeerTrust, TlsFailure};
use kubarium::{Cluster, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Net;

/// What all scripts here begin with.
const BEGIN: &str = "url=https://$NODE_IP:10250; own=/var/run/secrets/kubernetes.io/serviceaccount; \
    ask() { curl -sk --header \"Authorization: Bearer `cat $own/token`\" \"$@\"; echo; }; \
    code() { curl -k -o /dev/null -w '%{http_code}\\n' \"$@\"; }; ";

/// A command in a container, over a websocket.
const EXEC: &str = "GET /exec/default/box/main?command=echo&command=hi&output=1&error=1 HTTP/1.1\r\nHost: test\r\n\
    Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n";

impl Net {
    /// What a pod says that knows the address of its node, by an account of the name of the pod.
    async fn asks_kubelet(&self, name: &str, is_host: bool, script: &str) -> String {
        let account = json!({"metadata": {"name": name}});
        self.create(&SERVICE_ACCOUNTS, account).await;
        let address = json!({"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}});
        let container = json!({"name": "main", "image": "alpine/k8s:1.36.2", "env": [address],
            "command": ["sh", "-c", format!("{BEGIN}{script}")]});
        let spec = json!({"restartPolicy": "Never", "serviceAccountName": name, "hostNetwork": is_host,
            "nodeName": "node-1", "containers": [container]});
        self.create(&PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
        assert_eq!(self.ended(name).await, 0);
        self.log(name).await
    }

    /// The account of this name may get these subresources of nodes, and create them.
    async fn lets(&self, name: &str, subresources: &[&str]) {
        let resources: Vec<String> = subresources.iter().map(|one| format!("nodes/{one}")).collect();
        let rule = json!({"apiGroups": [""], "resources": resources, "verbs": ["get", "create"]});
        let role = json!({"metadata": {"name": name}, "rules": [rule]});
        self.client.create(&CLUSTER_ROLES, "", role).await.unwrap();
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": "default"});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
        let binding = json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": role});
        self.client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
    }

    async fn node_address(&self, name: &str) -> IpAddr {
        let node = self.client.get(&NODES, "", name).await.unwrap().to_value();
        let is_internal = |address: &&Value| address["type"] == "InternalIP";
        let found = node["status"]["addresses"].as_array().unwrap().iter().find(is_internal).unwrap();
        found["address"].as_str().unwrap().parse().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_answers_at_its_port_whom_the_apiserver_lets() {
    let net = Net::start().await;
    let far = net.node_address("node-2").await;
    let stranger = format!(
        "code -sI $url/metrics; code -sI --header \"Authorization: Bearer `cat $own/token`\" $url/metrics; \
         code -s https://{far}:10250/healthz; curl -sk $url/pods; echo; \
         curl -sk -H 'Authorization: Bearer x' $url/pods; echo; ask $url/pods; ask -X DELETE $url/metrics; \
         curl -s --cacert $own/ca.crt $url/metrics; echo; curl -s $url/metrics; echo $?"
    );
    let who = "user=system:serviceaccount:default:stranger";
    assert_eq!(
        net.asks_kubelet("stranger", false, &stranger).await,
        format!(
            "401\n403\n401\nUnauthorized\nUnauthorized\n\
             Forbidden ({who}, verb=get, resource=nodes, subresource(s)=[pods proxy])\n\
             Forbidden ({who}, verb=delete, resource=nodes, subresource(s)=[metrics])\nUnauthorized\n60\n"
        )
    );
    net.lets("reader", &["healthz", "metrics"]).await;
    let reader = "ask -XGET -I -o /dev/null -w '%{http_code}' $url/healthz; ask $url/healthz; \
        ask -I -o /dev/null -w '%{http_code}' $url/metrics; ask $url/metrics | grep -c ^kubelet_node_name; \
        ask $url/configz";
    let who = "user=system:serviceaccount:default:reader";
    assert_eq!(
        net.asks_kubelet("reader", false, reader).await,
        format!(
            "200\nok\n403\n1\nForbidden ({who}, verb=get, resource=nodes, subresource(s)=[configz proxy])\n"
        )
    );
    net.lets("proxy", &["proxy"]).await;
    let proxy = "ask $url/healthz; ask $url/pods | grep -c '\"name\":\"proxy\"'; ask -X POST \
        \"$url/run/default/proxy/main?cmd=hostname\"; echo said >&2; ask $url/containerLogs/default/proxy/main | tail -2; \
        ask -w '%{http_code}' $url/exec/default/proxy/main; ask $url/nothing";
    assert_eq!(
        net.asks_kubelet("proxy", false, proxy).await,
        "ok\n1\nproxy\n\nsaid\nsaid\n\nUpgrade request required\n400\n404 page not found\n\n"
    );
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_knows_clients_by_their_certificates_and_is_known_by_its_own() {
    let cluster = Cluster::start(Config::new().nodes(1).listen(Listen::loopback())).await.unwrap();
    let client = cluster.client();
    let net = Net { cluster, client };
    let access = net.cluster.access().unwrap();
    let (identity, authorities) = (access.identity.unwrap(), access.authority_pem.unwrap());
    let address = net.node_address("node-1").await;
    let own = identity.certificate_pem + &identity.key_pem;
    let trust = PeerTrust { authorities, own, ..PeerTrust::default() };
    let connect = async |name: &str, trust: &PeerTrust| {
        let io = net.cluster.network().connect(address, SocketAddr::new(address, 10250)).await.unwrap();
        tls::connect(io, name, trust).await
    };
    for name in ["node-1", &address.to_string()] {
        let io = connect(name, &trust).await.unwrap();
        let request = http::Request::get("/runningpods/").header("host", "test").body(Bytes::new()).unwrap();
        let answer = http_client::ask(&Clock::real(), io, request).await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("\"PodList\""), "{body:?}");
    }
    assert_eq!(connect("node-2", &trust).await.err(), Some(TlsFailure::Untrusted));
    net.pod("box", json!({"image": "busybox", "command": ["sleep", "1000"]})).await;
    let mut io = connect("node-1", &trust).await.unwrap();
    io.write_all(EXEC.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    // A message begins with the number of its stream, which is 1 of the standard output.
    while !said.windows(4).any(|part| part == b"\x01hi\n") {
        assert_ne!(io.read_buf(&mut said).await.unwrap(), 0, "{}", String::from_utf8_lossy(&said));
    }
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{said}");
    assert!(said.to_lowercase().contains("sec-websocket-protocol: v5.channel.k8s.io\r\n"), "{said}");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_says_to_its_own_node_alone_whether_it_is_well() {
    let net = Net::start().await;
    let health = "http://127.0.0.1:10248";
    let host = format!(
        "curl -s {health}/healthz; echo; curl -s {health}/pods; code -s https://127.0.0.1:10250/healthz"
    );
    assert_eq!(net.asks_kubelet("host", true, &host).await, "ok\n404 page not found\n401\n");
    let pod = format!("curl -s {health}/healthz; echo $?; curl -s http://$NODE_IP:10248/healthz; echo $?");
    assert_eq!(net.asks_kubelet("pod", false, &pod).await, "7\n7\n");
    net.cluster.stop().await;
}
