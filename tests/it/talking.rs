//! Pods that ask the network, and listeners that pods and programs declare.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use kubarium::apimachinery::options::ListOptions;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::cluster::{Cluster, Config};
use kubarium::kubelet::container_runtime::declared::forward::PodForwarding;
use kubarium::kubelet::container_runtime::own_listeners::OwnListeners;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::PATIENCE;

/// A pod with one container, which ends once.
fn pod(name: &str, annotations: Value, image: &str, script: Option<&str>) -> Value {
    let command = script.map(|script| json!(["sh", "-c", script]));
    let container = json!({"name": "main", "image": image, "command": command});
    let metadata = json!({"name": name, "labels": {"app": name}, "annotations": annotations});
    json!({"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}})
}

async fn create(cluster: &Cluster, pod: Value) {
    cluster.client().create(&PODS, "default", pod).await.unwrap();
}

/// Asks until there is an answer.
async fn until<T>(cluster: &Cluster, what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let begun = cluster.clock().elapsed();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(cluster.clock().elapsed() - begun < PATIENCE, "{what} never happened");
        cluster.clock().sleep(Duration::from_millis(5)).await;
    }
}

async fn address(cluster: &Cluster, name: &str) -> String {
    let found = async || {
        let pod = cluster.client().get(&PODS, "default", name).await.ok()?.to_value();
        let is_running = pod["status"]["phase"] == "Running";
        is_running.then(|| pod["status"]["podIP"].as_str().unwrap_or_default().to_owned())
    };
    until(cluster, &format!("that {name} runs"), found).await
}

/// What a path of the apiserver says, as a text.
async fn raw(cluster: &Cluster, path: &str) -> (u16, String) {
    let request = Request::get(format!("/api/v1/namespaces/default/{path}")).body(Body::empty()).unwrap();
    let response = cluster.client().raw(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

/// The log of a pod that ends, and whether it ended well.
async fn said(cluster: &Cluster, name: &str) -> (bool, String) {
    let phase = async || {
        let pod = cluster.client().get(&PODS, "default", name).await.ok()?.to_value();
        let phase = pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
        ["Succeeded", "Failed"].contains(&&*phase).then_some(phase)
    };
    let phase = until(cluster, &format!("the end of {name}"), phase).await;
    (phase == "Succeeded", raw(cluster, &format!("pods/{name}/log")).await.1)
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_ask_pods_and_services_and_go_on_with_the_answers() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    create(&cluster, pod("web", json!({}), "nginx", None)).await;
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 8080, "targetPort": 80}]});
    let service = json!({"metadata": {"name": "web"}, "spec": spec});
    let service = cluster.client().create(&SERVICES, "default", service).await.unwrap().to_value();
    let service = service["spec"]["clusterIP"].as_str().unwrap();
    // The Service has no endpoints at first.
    let script = format!(
        "until wget -qO /tmp/page http://{service}:8080/; do sleep 0.05; done; grep -o Welcome /tmp/page"
    );
    create(&cluster, pod("asker", json!({}), "busybox", Some(&script))).await;
    let (is_well, log) = said(&cluster, "asker").await;
    assert!(is_well && log.contains("Welcome"), "{log}");
    let requests = raw(&cluster, "pods/web/log").await.1;
    assert!(requests.contains("\"GET / HTTP/1.1\" 200"), "{requests}");
    let web = address(&cluster, "web").await;
    create(&cluster, pod("refused", json!({}), "curlimages/curl", Some(&format!("curl -sS {web}:81")))).await;
    let (is_well, log) = said(&cluster, "refused").await;
    assert!(!is_well && log.starts_with(&format!("curl: (7) Failed to connect to {web} port 81")), "{log}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_apiserver_answers_pods_by_their_tokens() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    let ask = |more: &str| {
        format!(
            "curl -sS {more} -H \"Authorization: Bearer $(cat {folder}/token)\" \
             https://$KUBERNETES_SERVICE_HOST/api/v1/namespaces/default/secrets"
        )
    };
    create(
        &cluster,
        pod("trusts", json!({}), "curlimages/curl", Some(&ask(&format!("--cacert {folder}/ca.crt")))),
    )
    .await;
    create(&cluster, pod("distrusts", json!({}), "curlimages/curl", Some(&ask("")))).await;
    let (is_well, log) = said(&cluster, "trusts").await;
    assert!(
        is_well && log.contains("system:serviceaccount:default:default\\\" cannot list resource"),
        "{log}"
    );
    let (is_well, log) = said(&cluster, "distrusts").await;
    assert!(!is_well && log.starts_with("curl: (60) SSL certificate problem"), "{log}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_runs_the_cluster_says_what_listens() {
    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    let real = listening.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listening.accept().unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nreal").unwrap();
    });
    let config = Config::default().listeners(OwnListeners::new(PodForwarding::Loopback));
    let cluster = Cluster::start(config).await.unwrap();
    let annotations = json!({
        "kubarium.dev/http.8080": "[{path: /teapot, status: 418, body: short and stout}]",
        "kubarium.dev/http.8081": "nonsense",
        "kubarium.dev/forward.3000": real.to_string(),
        "kubarium.dev/logs": "as it was told",
    });
    create(&cluster, pod("mine", annotations, "example.com/mine", None)).await;
    address(&cluster, "mine").await;
    let answer = |request: Request<Bytes>| async move {
        Ok::<_, Infallible>(Response::new(Bytes::from(format!("in Rust: {}", request.uri().path()))))
    };
    cluster.listen_at("default", "app=mine", 80, tower::service_fn(answer)).unwrap();
    assert_eq!(raw(&cluster, "pods/mine:80/proxy/a").await, (200, "in Rust: /a".into()));
    assert_eq!(raw(&cluster, "pods/mine:8080/proxy/teapot").await, (418, "short and stout".into()));
    assert_eq!(raw(&cluster, "pods/mine:3000/proxy/").await, (200, "real".into()));
    serving.join().unwrap();
    assert_eq!(raw(&cluster, "pods/mine/log").await.1, "as it was told\n");
    let told = async || {
        let events = cluster.client().list(&EVENTS, "default", &ListOptions::default()).await.ok()?;
        let events: Vec<Value> = events.items.iter().map(|event| event.to_value()).collect();
        events.into_iter().find(|event| event["reason"] == "InvalidListener")
    };
    let event = until(&cluster, "the Event", told).await;
    let message = event["message"].as_str().unwrap();
    assert!(message.starts_with("annotation kubarium.dev/http.8081 is no list of routes"), "{message}");
    assert!(cluster.listen_at("default", "a in (", 80, tower::service_fn(answer)).is_err());
    cluster.stop().await;
}

/// A listener that says a gibibyte: what asks keeps what it may, hangs up, and the cluster goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_says_a_gibibyte_is_hung_up_on() {
    const GIBIBYTE: usize = 1 << 30;
    let cluster = Cluster::start(Config::new()).await.unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    cluster
        .serve_at("default", "huge", 80, move |mut io, _| {
            let sent = counted.clone();
            Box::pin(async move {
                let mut asked = [0; 4096];
                let _ = io.read(&mut asked).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {GIBIBYTE}\r\n\r\n");
                let mut left = GIBIBYTE;
                let mut is_open = io.write_all(head.as_bytes()).await.is_ok();
                while is_open && left > 0 {
                    is_open = io.write_all(&[b'x'; 16 << 10]).await.is_ok();
                    left -= 16 << 10;
                    sent.fetch_add(16 << 10, Ordering::Relaxed);
                }
            })
        })
        .unwrap();
    create(&cluster, pod("huge", json!({}), "nginx", None)).await;
    let address = address(&cluster, "huge").await;
    let script = format!("wget -T 5 -qO- http://{address}/ | wc -c; nc -w 5 {address} 80 </dev/null | wc -c");
    create(&cluster, pod("client", json!({}), "busybox", Some(&script))).await;
    let ended = async || {
        let pod = cluster.client().get(&PODS, "default", "client").await.ok()?.to_value();
        matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")).then_some(())
    };
    until(&cluster, "that the client ends", ended).await;
    assert!(sent.load(Ordering::Relaxed) < 16 << 20, "{sent:?}");
    assert_eq!(raw(&cluster, "pods/client").await.0, 200);
    cluster.stop().await;
}
