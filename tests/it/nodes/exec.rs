//! Commands in containers, over a WebSocket: what kubectl 1.31 and later and upstream's own suites speak.

use axum::body::Body;
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use kubarium::apimachinery::wire::{ApiService, Upgrade};
use kubarium::{Cluster, Config};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tower::ServiceExt;

use crate::support::script::{Runner, Step};
use crate::support::{Kubectl, Up, kubectls};

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
  "volumes": [{"name": "c", "configMap": {"name": "config"}}, {"name": "e", "emptyDir": {}}],
  "containers": [
    {"name": "a", "image": "nginx", "env": [{"name": "A", "value": "b"}],
     "volumeMounts": [{"name": "c", "mountPath": "/etc/config"}, {"name": "e", "mountPath": "/shared"}]},
    {"name": "b", "image": "busybox",
     "command": ["sh", "-c", "until [ -f /shared/go ]; do sleep 1; done; echo went; sleep 600"],
     "volumeMounts": [{"name": "e", "mountPath": "/shared"}]}]}}"#;

/// What comes of a request for a WebSocket: the protocol, and all frames as channel and bytes.
async fn stream(service: &ApiService, path: &str, protocols: &str) -> (String, Vec<(u8, String)>) {
    let request = http::Request::get(path)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(SEC_WEBSOCKET_PROTOCOL, protocols)
        .body(Body::empty())
        .unwrap();
    let mut answer = service.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 101);
    let protocol = answer.headers()[SEC_WEBSOCKET_PROTOCOL].to_str().unwrap().to_owned();
    let follows = answer.extensions_mut().remove::<Upgrade>().unwrap().take().unwrap();
    let (mut here, there) = tokio::io::duplex(1 << 16);
    tokio::spawn(follows(Box::new(there)));
    let mut frames = vec![];
    loop {
        let head = [here.read_u8().await.unwrap(), here.read_u8().await.unwrap()];
        let length = if head[1] == 126 { here.read_u16().await.unwrap() } else { head[1].into() };
        let mut payload = vec![0; length.into()];
        here.read_exact(&mut payload).await.unwrap();
        if head[0] == 0x88 {
            return (protocol, frames);
        }
        frames.push((payload[0], String::from_utf8_lossy(&payload[1..]).into_owned()));
    }
}

async fn run(runner: &mut Runner, step: &str) {
    let step: Step = serde_yaml::from_str(step).unwrap();
    runner.run(&step).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_played_in_containers() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let service = cluster.service();
    let mut runner = Runner::new(service.clone(), &[]);
    run(&mut runner, "{do: POST /api/v1/namespaces/default/configmaps, body: {metadata: {name: config}, data: {key: value-1}}}").await;
    run(&mut runner, &format!("{{do: POST /api/v1/namespaces/default/pods, body: {POD}}}")).await;
    run(
        &mut runner,
        "{do: GET /api/v1/namespaces/default/pods/p, eventually: true, answer: {status: {phase: Running}}}",
    )
    .await;
    let pod = "/api/v1/namespaces/default/pods/p";
    let exec = |container: &str, words: &[&str]| {
        let words: String = words
            .iter()
            .map(|word| format!("&command={}", utf8_percent_encode(word, NON_ALPHANUMERIC)))
            .collect();
        format!("{pod}/exec?container={container}&stdout=true&stderr=true{words}")
    };
    let success = json!({"metadata": {}, "status": "Success"}).to_string();
    let newest = "v5.channel.k8s.io,v4.channel.k8s.io";
    let (protocol, frames) = stream(&service, &exec("a", &["cat", "/etc/config/key"]), newest).await;
    assert_eq!(protocol, "v5.channel.k8s.io");
    assert_eq!(frames, [(1, "value-1".to_owned()), (3, success.clone())]);
    let (_, frames) =
        stream(&service, &exec("a", &["sh", "-c", "echo $A; echo no >&2; exit 3"]), newest).await;
    assert_eq!(frames[..2], [(1, "b\n".to_owned()), (2, "no\n".to_owned())]);
    assert!(frames[2].1.contains(r#"{"message":"3","reason":"ExitCode"}"#), "{}", frames[2].1);
    // What is written stays, in the container and in its volumes; who waits for it goes on.
    let write = exec("a", &["sh", "-c", "echo x > /tmp/file; touch /shared/go"]);
    assert_eq!(stream(&service, &write, newest).await.1, [(3, success.clone())]);
    let (protocol, frames) = stream(&service, &exec("a", &["cat", "/tmp/file"]), "channel.k8s.io").await;
    assert_eq!((protocol.as_str(), frames), ("channel.k8s.io", vec![(1, "x\n".to_owned())]));
    let logs =
        "{do: GET /api/v1/namespaces/default/pods/p/log?container=b, eventually: true, answer: \"went\\n\"}";
    run(&mut runner, logs).await;
    let (_, frames) = stream(&service, &format!("{pod}/log?container=b"), "binary.k8s.io").await;
    assert_eq!(frames, [(b'w', "ent\n".to_owned())]);
    let (_, frames) = stream(&service, &exec("a", &["nonsense"]), newest).await;
    assert!(frames[0].1.contains("executable file not found in $PATH"), "{}", frames[0].1);
    cluster.stop().await;
}

#[test]
fn kubectl_runs_commands_in_containers() {
    let up = Up::start();
    let program = kubectls().pop().unwrap();
    let kubectl = Kubectl::new(&program, &up);
    kubectl.ok("create configmap config --from-literal=key=value-1");
    kubectl.ok(&format!("create -f {}", up.file("pod.json", POD)));
    kubectl.ok("wait --for=condition=Ready pod/p --timeout=30s");
    let version: serde_json::Value = serde_json::from_str(&kubectl.ok("version --client -o json")).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap().trim_end_matches('+');
    if minor.parse::<u32>().unwrap() < 31 {
        // Older ones speak SPDY, and are told that nobody does.
        assert!(kubectl.fails("exec p -c a -- true").contains("simulated"));
        return;
    }
    assert_eq!(kubectl.ok("exec p -c a -- cat /etc/config/key"), "value-1");
    let output = kubectl.run("exec p -c a -- sh -c 'echo no >&2; exit 3'");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.starts_with("no\n"), "{errors}");
    assert!(kubectl.fails("exec p -c a -- nonsense").contains("executable file not found in $PATH"));
}
