//! The test image of Kubernetes' own suite: its servers that ask others, and its clients.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::rbac::role_binding::ROLE_BINDINGS;
use serde_json::{Value, json};

use super::Net;
use crate::support::PATIENCE;

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.53";

fn agnhost(args: &[&str]) -> Value {
    json!({"image": AGNHOST, "args": args})
}

impl Net {
    /// What a pod says to `GET path` at a port, through the apiserver.
    async fn proxied(&self, pod: &str, path: &str) -> String {
        let uri = format!("/api/v1/namespaces/default/pods/{pod}/proxy{path}");
        let response = self.client.raw(Request::get(uri).body(Body::empty()).unwrap()).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8_lossy(&body).into_owned()
    }

    async fn service(&self, name: &str, ports: Value) -> Value {
        let spec = json!({"selector": {"app": name.trim_start_matches("agnhost-")}, "ports": ports});
        self.create(&SERVICES, json!({"metadata": {"name": name}, "spec": spec})).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn netexec_dials_runs_a_shell_and_ends_when_told() {
    let net = Net::start().await;
    let web = net.pod("web-0", agnhost(&["netexec"])).await;
    net.pod("client-0", agnhost(&["netexec", "--http-port=8080"])).await;
    let http = format!("/dial?host={web}&port=8080&protocol=http&request=hostname&tries=2");
    assert_eq!(net.proxied("client-0:8080", &http).await, r#"{"responses":["web-0","web-0"]}"#);
    let udp = format!("/dial?host={web}&port=8081&protocol=udp&request=echo%20hi&tries=1");
    assert_eq!(net.proxied("client-0:8080", &udp).await, r#"{"responses":["hi"]}"#);
    let nobody = format!("/dial?host={web}&port=9&request=hostname");
    let refused =
        format!("Get \\\"http://{web}:9/hostname\\\": dial tcp {web}:9: connect: connection refused");
    assert_eq!(net.proxied("client-0:8080", &nobody).await, format!("{{\"errors\":[\"{refused}\"]}}"));
    assert!(net.proxied("client-0:8080", "/dial?host=a").await.contains("request parameter not specified"));
    let shell = format!("/shell?cmd=curl%20-s%20{web}:8080/hostname");
    assert_eq!(net.proxied("client-0:8080", &shell).await, r#"{"output":"web-0"}"#);
    assert_eq!(
        net.proxied("client-0:8080", "/shell?shellCommand=exit%203").await,
        r#"{"error":"exit status 3"}"#
    );
    let container = json!({"name": "main", "image": AGNHOST, "args": ["netexec"]});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    net.create(&PODS, json!({"metadata": {"name": "ends-0"}, "spec": spec})).await;
    let ends = SocketAddr::new(net.address("ends-0").await, 8080);
    assert_eq!(
        net.get(web, ends, "/exit?code=x").await.unwrap().split(',').next().unwrap(),
        "argument 'code' must be an integer [0-127] or empty"
    );
    assert_eq!(net.get(web, ends, "/exit?code=7").await, None);
    assert_eq!(net.ended("ends-0").await, 7);
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_asks_a_pod_over_http_and_udp() {
    let net = Net::start().await;
    let web = net.pod("web-0", agnhost(&["netexec"])).await;
    let pod = net.client.get(&PODS, "default", "web-0").await.unwrap().to_value();
    let node = pod["status"]["hostIP"].as_str().unwrap().parse().unwrap();
    let over_http = net.get(node, SocketAddr::new(web, 8080), "/hostname").await;
    assert_eq!(over_http.as_deref(), Some("web-0"));
    let over_udp = net.cluster.network().ask(node, SocketAddr::new(web, 8081), "hostname".into()).await;
    assert_eq!(over_udp.unwrap().as_deref(), Some(&b"web-0"[..]));
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_uploaded() {
    let net = Net::start().await;
    let web = SocketAddr::new(net.pod("web-0", agnhost(&["netexec"])).await, 8080);
    let io = net.cluster.network().connect(web.ip(), web).await.unwrap();
    let form =
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nhello\r\n--b--\r\n";
    let request = Request::post("/upload").header("host", "web");
    let request =
        request.header("content-type", "multipart/form-data; boundary=b").body(Bytes::from(form)).unwrap();
    let clock = kubarium::clock::Clock::real();
    let response = kubarium::network::http_client::ask(&clock, io, request).await.unwrap();
    assert_eq!(response.status(), 201);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"output":"/uploads/upload1"}"#);
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guestbook_keeps_what_its_front_end_is_told() {
    let net = Net::start().await;
    let book = |more: &[&str]| {
        let mut args = vec!["guestbook", "--backend-port", "6379"];
        args.extend(more);
        agnhost(&args)
    };
    let ports = || json!([{"port": 6379}]);
    net.service("agnhost-primary", ports()).await;
    net.service("agnhost-replica", ports()).await;
    net.pod("primary-0", book(&["--http-port", "6379"])).await;
    net.pod("replica-0", book(&["--replicaof", "agnhost-primary", "--http-port", "6379"])).await;
    net.pod("front-0", book(&["--http-port", "80"])).await;
    let says = async |path: &str, wanted: &str| {
        let waiting = async {
            while net.proxied("front-0:80", path).await != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect(path);
    };
    says("/guestbook?cmd=get", r#"{"data":{}}"#).await;
    says("/guestbook?cmd=set&key=messages&value=TestEntry", r#"{"message":"Updated"}"#).await;
    says("/guestbook?cmd=get&key=messages", r#"{"data":"TestEntry"}"#).await;
    assert!(net.proxied("front-0:80", "/guestbook?cmd=sing").await.contains("unsupported cmd: 'sing'"));
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn porter_serves_what_its_variables_say() {
    let net = Net::start().await;
    let env = json!([{"name": "SERVE_PORT_80", "value": "eighty"}, {"name": "SERVE_TCP_PORT_81", "value": "one"},
        {"name": "SERVE_UDP_PORT_82", "value": "two"}]);
    let mut porter = agnhost(&["porter"]);
    porter["env"] = env;
    let porter = net.pod("porter-0", porter).await;
    let get = async |port| net.get(porter, SocketAddr::new(porter, port), "/any").await;
    assert_eq!((get(80).await, get(81).await), (Some("eighty".into()), Some("one".into())));
    assert_eq!(get(83).await, None);
    let answer = net.cluster.network().ask(porter, SocketAddr::new(porter, 82), Bytes::from("x")).await;
    assert_eq!(answer.unwrap().unwrap(), "two");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_say_whether_they_reached_anybody() {
    let net = Net::start().await;
    let web = net.pod("web-0", agnhost(&["netexec"])).await;
    for (name, target, flags, code, said) in [
        ("well", format!("{web}:8080"), "--timeout=3s", 0, ""),
        ("refused", format!("{web}:9"), "--timeout=3s", 1, "REFUSED"),
        ("udp", format!("{web}:8081"), "--protocol=udp", 0, ""),
        (
            "name",
            "none.example.com:80".to_owned(),
            "--timeout=3s",
            1,
            "DNS: lookup none.example.com: no such host",
        ),
        (
            "wrong",
            "nothing".to_owned(),
            "--timeout=3s",
            1,
            "UNKNOWN: address nothing: missing port in address",
        ),
    ] {
        let container = json!({"name": "main", "image": AGNHOST, "args": ["connect", target, flags]});
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        net.create(&PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
        assert_eq!(net.ended(name).await, code, "{name}");
        assert_eq!(net.log(name).await.trim(), said, "{name}");
    }
    net.pod("poll-0", agnhost(&["inclusterclient", "--poll-interval=1"])).await;
    let on = &net;
    let polled = on.until(|| {
        async {
            let log = on.log("poll-0").await;
            log.contains("authz_header=").then_some(log)
        }
        .boxed()
    });
    let polled = polled.await;
    assert!(!polled.contains("status=failed"), "{polled}");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_say_whether_others_see_them_by_their_own_address() {
    let net = Net::start().await;
    let from = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let mut tester = agnhost(&["no-snat-test", "--port=8080"]);
    tester["env"] = json!([from("POD_IP", "status.podIP"), from("NODE_IP", "status.hostIP")]);
    let first = net.pod("first-0", tester.clone()).await;
    let other = net.pod("other-0", tester.clone()).await;
    net.pod("proxy-0", agnhost(&["no-snat-test-proxy"])).await;
    assert_eq!(net.proxied("first-0:8080", &format!("/checknosnat?ips={other}:8080,{first}:8080")).await, "");
    let refused = format!("dial tcp {other}:9: connect: connection refused");
    let refused = format!("Get \"http://{other}:9/whoami\": {refused}");
    assert_eq!(net.proxied("first-0:8080", &format!("/checknosnat?ips={other}:9")).await, refused);
    let both = format!("/checknosnat?ips={other}:8080,{other}:9");
    assert_eq!(net.proxied("first-0:8080", &both).await, refused, "each is asked");
    // Who sees another address is told of.
    let page = net.pod("page-0", json!({"image": "hashicorp/http-echo", "args": ["-text=10.0.0.1:5"]})).await;
    let said = net.proxied("first-0:8080", &format!("/checknosnat?ips={page}:5678")).await;
    assert!(
        said.starts_with(&format!("Returned ip \"10.0.0.1\" != my Pod ip \"{first}\" or my Node ip")),
        "{said}"
    );
    let through = |ips: String| format!("/checknosnat?target={first}:8080&ips={ips}");
    assert_eq!(net.proxied("proxy-0:31235", &through(format!("{other}:8080"))).await, "");
    assert_eq!(net.proxied("proxy-0:31235", &through(format!("{other}:9"))).await, refused);
    let nobody = net.proxied("proxy-0:31235", &format!("/checknosnat?target={other}:9&ips=a")).await;
    assert!(
        nobody.starts_with(&format!("error querying \"http://{other}:9/checknosnat?ips=a\", err: Get ")),
        "{nobody}"
    );
    tester["env"] = json!([]);
    tester["name"] = "main".into();
    let spec = json!({"restartPolicy": "Never", "containers": [tester]});
    net.create(&PODS, json!({"metadata": {"name": "lost"}, "spec": spec})).await;
    assert_eq!(net.ended("lost").await, 1);
    assert_eq!(net.log("lost").await.trim(), "POD_IP env var was not present in the environment");
}

#[tokio::test(flavor = "multi_thread")]
async fn nettest_finds_its_peers_through_the_api_and_hears_of_hooks() {
    let net = Net::start().await;
    let subject = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let binding = json!({"metadata": {"name": "view"}, "roleRef": role, "subjects": [subject]});
    net.create(&ROLE_BINDINGS, binding).await;
    net.service("agnhost-nettest", json!([{"port": 8080}])).await;
    let peer = agnhost(&["nettest", "--peers=1", "--service=agnhost-nettest"]);
    let address = net.pod("nettest-0", peer).await;
    let on = &net;
    let passed =
        || async move { (on.proxied("nettest-0:8080", "/status").await == "pass").then_some(()) }.boxed();
    net.until(passed).await;
    let read: Value = serde_json::from_str(&net.proxied("nettest-0:8080", "/read").await).unwrap();
    assert_eq!((&read["Hostname"], &read["Sent"]["nettest-0"]), (&json!("nettest-0"), &json!(1)), "{read}");
    assert!(net.log("nettest-0").await.contains("Server version: "));
    // As upstream's test of hooks has it.
    let told = format!("wget -O- --post-data='{{\"Source\": \"prestop\"}}' http://{address}:8080/write");
    let said = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", told]});
    net.create(
        &PODS,
        json!({"metadata": {"name": "tells"}, "spec": {"restartPolicy": "Never", "containers": [said]}}),
    )
    .await;
    assert_eq!(net.ended("tells").await, 0);
    let read: Value = serde_json::from_str(&net.proxied("nettest-0:8080", "/read").await).unwrap();
    assert_eq!(read["Received"]["prestop"], 1, "{read}");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_the_image_are_there_without_a_volume() {
    let net = Net::start().await;
    let mut porter = agnhost(&["porter"]);
    porter["env"] = json!([{"name": "SERVE_TLS_PORT_443", "value": "safe"}]);
    let porter = net.pod("porter-0", porter).await;
    let metrics = net.pod("metrics-0", agnhost(&["external-metrics"])).await;
    let pages =
        [("safe", format!("https://{porter}:443/")), ("ok", format!("https://{metrics}:6443/readyz"))];
    for (word, url) in pages {
        let asks = json!({"name": "main", "image": "curlimages/curl", "command": ["curl", "-sk", url]});
        let spec = json!({"restartPolicy": "Never", "containers": [asks]});
        net.create(&PODS, json!({"metadata": {"name": word}, "spec": spec})).await;
        assert_eq!(net.ended(word).await, 0, "{word}");
        assert_eq!(net.log(word).await.trim(), word);
    }
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_served_over_tcp_and_udp_and_files_of_volumes_over_http() {
    let net = Net::start().await;
    let named = net.pod("named-0", agnhost(&["serve-hostname", "--http=false", "--tcp", "--udp"])).await;
    let to = SocketAddr::new(named, 9376);
    let answer = net.cluster.network().ask(named, to, Bytes::from("x")).await;
    assert_eq!(answer.unwrap().unwrap(), "named-0");
    let mut heard = String::new();
    let mut io = net.cluster.network().connect(named, to).await.unwrap();
    tokio::io::AsyncReadExt::read_to_string(&mut io, &mut heard).await.unwrap();
    assert_eq!(heard, "named-0");
    let reset = net.pod("reset-0", agnhost(&["tcp-reset"])).await;
    assert_eq!(net.get(named, SocketAddr::new(reset, 8080), "/").await, None);
    net.create(&CONFIG_MAPS, json!({"metadata": {"name": "files"}, "data": {"found": "OK\n"}})).await;
    let mount = json!([{"name": "files", "mountPath": "/files"}]);
    let serves =
        json!({"name": "serves", "image": AGNHOST, "args": ["test-webserver"], "volumeMounts": mount});
    let volume = json!({"name": "files", "configMap": {"name": "files"}});
    let spec = json!({"containers": [serves], "volumes": [volume]});
    net.create(&PODS, json!({"metadata": {"name": "files-0"}, "spec": spec})).await;
    net.address("files-0").await;
    assert_eq!(net.proxied("files-0:80", "/files/found").await, "OK\n");
    assert_ne!(net.proxied("files-0:80", "/files/none").await, "OK\n");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_somebody_asks_for_has_one_client_and_is_gone() {
    let net = Net::start().await;
    let server = net.pod("net-0", agnhost(&["net", "--serve", ":8889"])).await;
    let to = SocketAddr::new(server, 9999);
    let run = async || {
        let options = r#"{"LocalAddr": "0.0.0.0:9999", "PostFinTimeoutSeconds": 1}"#;
        let uri = "/api/v1/namespaces/default/pods/net-0:8889/proxy/run/nat-closewait-server";
        let response = net.client.raw(Request::post(uri).body(Body::from(options)).unwrap()).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8_lossy(&body).into_owned())
    };
    let connect = async || net.cluster.network().connect(server, to).await.ok();
    assert!(connect().await.is_none());
    let client = async || {
        let mut io = net.until(|| connect().boxed()).await;
        let mut heard = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut io, &mut heard).await.unwrap();
        (heard, run().await)
    };
    let ((code, said), (heard, (again, refused))) = tokio::join!(run(), client());
    assert_eq!((code, heard.as_str()), (200, ""), "{said}");
    assert!(said.starts_with("ok\noutput:\n\n# closewait.go:92: Run &{0.0.0.0:9999 1}\n"), "{said}");
    assert!(said.ends_with("waiting 1 seconds\n# closewait.go:128: Done\n"), "{said}");
    // While it stays with its client, nobody else has the port.
    assert_eq!(again, 500, "{refused}");
    assert!(refused.contains("bind: address already in use"), "{refused}");
    assert!(connect().await.is_none());
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_password_pulls_from_the_registry() {
    let net = Net::start().await;
    let registry =
        SocketAddr::new(net.pod("registry-0", agnhost(&["fake-registry-server", "--private"])).await, 5000);
    assert_eq!(net.get(registry.ip(), registry, "/v2/").await.unwrap(), "Unauthorized\n");
    let script =
        format!("curl -sL -u user:password http://{registry}/v2/pause/manifests/testing | grep -c linux");
    let pulls = json!({"name": "main", "image": "curlimages/curl", "command": ["sh", "-c", script]});
    net.create(
        &PODS,
        json!({"metadata": {"name": "pulls"}, "spec": {"restartPolicy": "Never", "containers": [pulls]}}),
    )
    .await;
    assert_eq!(net.ended("pulls").await, 0);
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_checked_by_what_its_issuer_publishes() {
    let net = Net::start().await;
    let token =
        json!({"serviceAccountToken": {"path": "sa-token", "expirationSeconds": 600, "audience": "checked"}});
    let volume = json!({"name": "token", "projected": {"sources": [token]}});
    let mount = json!([{"name": "token", "mountPath": "/var/run/secrets/tokens"}]);
    for (name, audience, code, word) in [
        ("right", "checked", 0, "OK: Got valid claims from token!"),
        ("wrong", "other", 1, "oidc: expected audience \"other\" got [\"checked\"]"),
    ] {
        let path = "--token-path=/var/run/secrets/tokens/sa-token";
        let args = ["test-service-account-issuer-discovery", path, "--audience", audience];
        let container = json!({"name": "main", "image": AGNHOST, "args": args, "volumeMounts": mount});
        let spec = json!({"restartPolicy": "Never", "containers": [container], "volumes": [volume]});
        net.create(&PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
        let (ended, log) = (net.ended(name).await, net.log(name).await);
        assert!(ended == code && log.contains(word), "{name}: {ended} {log}");
    }
    net.cluster.stop().await;
}
