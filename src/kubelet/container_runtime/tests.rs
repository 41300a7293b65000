//! The simulated runtime, through its seam alone.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body_util::BodyExt;

use super::given::{Given, running, runtime};
use super::own_listeners::{OwnHandler, OwnListener, OwnListeners, PodTarget};
use super::services::{
    ContainerConfig, Datagram, ExecCommand, ExecSyncForecast, Exit, Image, PendingQuestion, PodSandboxConfig,
    PodSandboxStatus, RunningContainer, RuntimeService,
};
use apimachinery::labels::Selector;
use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::Pod;
use clock::Clock;
use machine::file_system::Tree;
use machine::questions::{Answered, NetworkReply};
use machine::surroundings::Surroundings;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const NOW: Time = Time::UNIX_EPOCH;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn pod(spec: Value, annotations: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"annotations": annotations}, "spec": spec})).unwrap()
}

fn metadata(uid: &str) -> ObjectMeta {
    ObjectMeta { uid: uid.into(), ..ObjectMeta::default() }
}

#[test]
fn sandboxes_have_addresses_until_they_are_stopped() {
    let runtime = runtime();
    let pod = pod(json!({"containers": [{"name": "a", "image": "nginx"}]}), json!({}));
    let run = |uid: &str, attempt| {
        let metadata = metadata(uid);
        runtime.run_pod_sandbox(&PodSandboxConfig { pod: &pod, metadata: &metadata, attempt }, NOW)
    };
    for (uid, ip) in [("1", "10.244.1.2"), ("2", "10.244.1.3"), ("3", "10.244.1.4"), ("4", "10.244.1.5")] {
        let call = run(uid, 0);
        assert_eq!(
            (call.returns_at, call.result),
            (Some(NOW), Ok(PodSandboxStatus::of([ip.to_owned()]).unwrap()))
        );
    }
    assert!(run("5", 0).result.is_ok());
    let refused = run("6", 0).result.unwrap_err();
    assert!(refused.message.ends_with("no IP addresses available in range"), "{refused:?}");
    assert_eq!(runtime.pod_sandbox_status("6"), None);
    runtime.stop_pod_sandbox("2");
    runtime.stop_pod_sandbox("2");
    assert_eq!(runtime.pod_sandbox_status("2"), None);
    assert_eq!(run("6", 1).result.unwrap().ip, "10.244.1.3");
}

#[test]
fn an_image_is_there_when_its_pull_has_returned() {
    let runtime = runtime();
    let pod = pod(
        json!({"containers": [{"name": "a", "image": "nginx"}]}),
        json!({"kubarium.dev/stage": "slow-start"}),
    );
    let metadata = metadata("1");
    let container = &pod.spec.containers[0];
    let config = ContainerConfig { pod: &pod, metadata: &metadata, container, attempt: 0 };
    let call = runtime.pull_image(&config, NOW);
    let at = call.returns_at.unwrap();
    assert!(at > NOW);
    assert_eq!((runtime.image_status("nginx", NOW), runtime.list_images(9, NOW).1), (None, 0));
    let call = call.returned(NOW).unwrap_err();
    let image: Image = call.returned(at).unwrap().unwrap();
    assert_eq!(runtime.image_status("nginx", at), Some(image));
}

#[test]
fn a_container_is_known_from_its_start_to_its_removal() {
    let script = "echo hello; sleep 10; exit 3";
    let given = running(json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script]}));
    let (runtime, config, id) = (&given.runtime, given.config(), &given.id);
    assert_eq!(runtime.list_containers(), std::slice::from_ref(id));
    let status = runtime.container_status(id).unwrap();
    let end = (NOW + seconds(10), Exit { code: 3, ..Exit::default() });
    assert_eq!((status.ready_at, status.ends.clone()), (Some(NOW), Some(end.clone())));
    let said = runtime.container_log(&config, id, NOW, NOW + seconds(1));
    assert_eq!(said[0].text, "hello");
    let exited = runtime.exited_container(&config, id, &end.1, end.0);
    assert!(exited.is_known && exited.fault.is_none() && exited.message.is_empty());
    runtime.remove_container(id);
    assert!(runtime.container_status(id).is_none() && runtime.list_containers().is_empty());
}

#[test]
fn what_a_command_writes_is_there_for_the_next() {
    let given = running(json!({"name": "a", "image": "busybox", "command": ["sleep", "600"]}));
    let (runtime, config, id) = (&given.runtime, given.config(), &given.id);
    let run = |script: &str| {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let command = ExecCommand { words, ..ExecCommand::default() };
        let response = runtime.exec(&config, id, &command, &|| Some(Surroundings::default()), NOW).unwrap();
        response.executed.unwrap()
    };
    assert_eq!(run("echo 1 > /tmp/x").end, Some((Duration::ZERO, 0)));
    // The second time nothing is shown that is new.
    assert!(runtime.update_container(&config, id, &|_| Tree::new(), NOW));
    assert!(!runtime.update_container(&config, id, &|_| Tree::new(), NOW));
    assert_eq!(run("cat /tmp/x").out, "1\n");
    // A hook's command leaves nothing.
    let sync = |script: &str| runtime.exec_sync(&config, id, &["sh", "-c", script].map(str::to_owned));
    let ran = ExecSyncForecast::Ends { took: seconds(2), exit_code: 0 };
    assert_eq!(sync("sleep 2; echo 2 > /tmp/x"), ran);
    let endless = ExecSyncForecast::Ends { took: Duration::MAX, exit_code: 0 };
    assert_eq!(sync("while true; do echo on; sleep 1; done"), endless);
    assert_eq!(sync("wget -qO- 10.0.0.9"), ExecSyncForecast::Asks);
    assert_eq!(run("cat /tmp/x").out, "1\n");
}

#[test]
fn a_process_ends_within_its_timeout() {
    let lingers = "trap 'sleep 5; exit 4' TERM; while true; do sleep 1; done";
    let given = running(json!({"name": "a", "image": "busybox", "command": ["sh", "-c", lingers]}));
    let stop = |timeout| given.runtime.stop_container(&given.config(), &given.id, timeout, NOW + seconds(9));
    let ended = |call: super::services::Call<Exit>| (call.returns_at, call.result.unwrap().code);
    assert_eq!(ended(stop(seconds(30))), (Some(NOW + seconds(15)), 4));
    assert_eq!(ended(stop(seconds(2))), (Some(NOW + seconds(11)), 137));
}

#[test]
fn an_answer_to_another_question_is_lost() {
    let script = "for port in 81 82; do nc -z 10.0.0.1 $port || echo no $port; done";
    let given = running(json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script]}));
    let (runtime, config, id) = (&given.runtime, given.config(), &given.id);
    let refused = || Answered { reply: NetworkReply::Refused, took: Duration::ZERO };
    let first = runtime.question(id).unwrap();
    runtime.hear(&config, id, &first, refused());
    let second = runtime.question(id).unwrap();
    assert_eq!((first.answers, second.answers), (0, 1));
    // The same answer once more, and one to a question that it has not come to.
    runtime.hear(&config, id, &first, refused());
    runtime.hear(&config, id, &PendingQuestion { answers: 2, ..second.clone() }, refused());
    assert_eq!(runtime.question(id), Some(second.clone()));
    runtime.hear(&config, id, &second, refused());
    assert_eq!(runtime.question(id), None);
    assert!(runtime.container_status(id).unwrap().ends.is_some());
}

/// What is answered to a `GET` over one connection; the error where nobody takes it.
async fn get(given: &Given, port: u16, path: &str) -> Result<(u16, String), String> {
    let (config, container) = (given.config(), &given.pod.spec.containers[0]);
    let config = PodSandboxConfig { pod: config.pod, metadata: config.metadata, attempt: 0 };
    let running = [RunningContainer { container, id: &given.id, started_at: NOW }];
    let listener = given.runtime.port_forward(&config, &running, port).map_err(|error| error.message)?;
    let (client, server) = network::connection();
    tokio::spawn((listener.serve)(server, "10.0.0.9:4000".into(), Clock::stepped(NOW)));
    let request = Request::get(path).header("host", "web").body(Bytes::new()).unwrap();
    let response = network::http_client::ask(&Clock::stepped(NOW), client, request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Ok((code, String::from_utf8(body.to_vec()).unwrap()))
}

#[tokio::test]
async fn what_a_pod_declares_comes_before_its_image() {
    let pod = |annotations: Value| {
        let mut given = running(json!({"name": "a", "image": "nginx"}));
        let container = json!({"name": "a", "image": "nginx"});
        given.pod = Arc::new(pod(json!({"containers": [container]}), annotations));
        given
    };
    let given = pod(json!({"kubarium.dev/http.80": "[{every: 2, status: 503}, {body: mine}]"}));
    assert_eq!(get(&given, 80, "/").await, Ok((200, "mine".into())));
    // Routes count over connections.
    assert_eq!(get(&given, 80, "/").await.unwrap().0, 503);
    assert!(get(&given, 81, "/").await.unwrap_err().contains("connection refused"));
    let wrong = pod(json!({"kubarium.dev/http.80": "nonsense"}));
    let why = get(&wrong, 80, "/").await.unwrap_err();
    assert!(why.starts_with("annotation kubarium.dev/http.80 is no list of routes"), "{why}");
    assert_eq!(wrong.runtime.listener_problems(&wrong.pod), [why]);
}

#[tokio::test]
async fn what_is_given_in_rust_comes_first() {
    let mut given = running(json!({"name": "a", "image": "nginx"}));
    let own = OwnListeners::default();
    given.runtime = given.runtime.with_listeners(own.clone());
    let handler: OwnHandler = Arc::new(|io, from| {
        let answer = move |_: Request<Bytes>| std::future::ready(Response::new(Bytes::from(from.clone())));
        async move { network::http_server::serve(io, answer).await }.boxed()
    });
    let labels = PodTarget::Labels(Selector::parse("app=web").unwrap());
    for (pods, port) in [(PodTarget::Name("web".into()), 80), (labels, 8080)] {
        own.add(OwnListener { namespace: "default".into(), pods, port, handler: handler.clone() });
    }
    (given.metadata.namespace, given.metadata.name) = ("default".into(), "web".into());
    assert_eq!(get(&given, 80, "/").await, Ok((200, "10.0.0.9:4000".into())));
    assert!(get(&given, 8080, "/").await.is_err());
    given.metadata.labels.insert("app".into(), "web".into());
    assert_eq!(get(&given, 8080, "/").await, Ok((200, "10.0.0.9:4000".into())));
}

#[tokio::test]
async fn requests_are_in_the_log_of_who_was_asked() {
    let given = running(json!({"name": "a", "image": "nginx"}));
    get(&given, 80, "/none").await.unwrap();
    let log = given.runtime.container_log(&given.config(), &given.id, NOW, NOW);
    let last = log.last().unwrap().text.clone();
    assert!(
        last.starts_with("10.0.0.9 - - [01/Jan/1970:00:00:00 +0000] \"GET /none HTTP/1.1\" 404 "),
        "{last}"
    );
    given.runtime.remove_container(&given.id);
    let log = given.runtime.container_log(&given.config(), &given.id, NOW, NOW);
    assert!(!log.iter().any(|line| line.text.contains("GET")));
}

#[test]
fn datagrams_are_answered_by_who_listens() {
    let ask = |args: Value, annotations: Value, port: u16, bytes: &[u8]| {
        let container = json!({"name": "a", "image": "e2e/agnhost:2", "args": args});
        let pod = pod(json!({"containers": [container], "hostname": "web"}), annotations);
        let metadata = metadata("1");
        let config = PodSandboxConfig { pod: &pod, metadata: &metadata, attempt: 0 };
        let id = "containerd://1".into();
        let running = [RunningContainer { container: &pod.spec.containers[0], id: &id, started_at: NOW }];
        let answer = runtime().datagram(&config, &running, &Datagram { port, from: "10.0.0.9:4000", bytes });
        answer
            .map(|answer| answer.map(|bytes| String::from_utf8(bytes).unwrap()))
            .map_err(|error| error.message)
    };
    let said = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(ask(json!(["netexec"]), json!({}), 8081, b"hostname\n"), said("web"));
    assert_eq!(ask(json!(["netexec"]), json!({}), 8081, b"echo a b"), said("a b"));
    assert_eq!(ask(json!(["netexec"]), json!({}), 8081, b"clientip"), said("10.0.0.9:4000"));
    assert_eq!(ask(json!(["netexec"]), json!({}), 8081, b"what"), Ok(None));
    assert_eq!(ask(json!(["serve-hostname", "--udp"]), json!({}), 9376, b"x"), said("web"));
    assert_eq!(ask(json!(["pause"]), json!({"kubarium.dev/udp.53": "echo"}), 53, b"x"), said("x"));
    let nobody = ask(json!(["pause"]), json!({}), 53, b"x").unwrap_err();
    assert_eq!(nobody, "dial udp4 127.0.0.1:53: connect: connection refused");
}

/// A script that waits for a database of whatever image goes on.
#[test]
fn a_database_listens_at_the_port_that_its_container_declares() {
    let open = |image: &str, ports: Value, annotations: Value, port: u16| {
        let container = json!({"name": "a", "image": image, "ports": ports});
        let pod = pod(json!({"containers": [container]}), annotations);
        let metadata = metadata("1");
        let config = PodSandboxConfig { pod: &pod, metadata: &metadata, attempt: 0 };
        let id = "containerd://1".into();
        let running = [RunningContainer { container: &pod.spec.containers[0], id: &id, started_at: NOW }];
        runtime().port_forward(&config, &running, port).is_ok()
    };
    let port = |port: u16| json!([{"containerPort": port}]);
    let declared = json!({"kubarium.dev/listens": "declared"});
    for (image, ports, annotations, asked, wanted) in [
        ("example.com/my-postgres", port(5432), json!({}), 5432, true),
        ("example.com/my-postgres", port(5432), json!({}), 3306, false),
        ("example.com/my-postgres", json!([]), json!({}), 5432, false),
        ("example.com/my-postgres", port(5432), declared, 5432, false),
        ("example.com/web", port(8080), json!({}), 8080, false),
        ("nginx", port(6379), json!({}), 6379, false),
        ("bitnami/postgresql:16", json!([]), json!({}), 5432, true),
    ] {
        assert_eq!(open(image, ports, annotations, asked), wanted, "{image} {asked}");
    }
}

#[tokio::test]
async fn a_tester_of_port_forwards_takes_one_connection_and_ends() {
    let env = json!([{"name": "BIND_PORT", "value": "80"}, {"name": "CHUNKS", "value": "1"},
        {"name": "CHUNK_SIZE", "value": "3"}, {"name": "CHUNK_INTERVAL", "value": "0"}]);
    let image = "registry.k8s.io/e2e-test-images/agnhost:2.53";
    let given = running(json!({"name": "a", "image": image, "args": ["port-forward-tester"], "env": env}));
    let config = PodSandboxConfig { pod: &given.pod, metadata: &given.metadata, attempt: 0 };
    let container = &given.pod.spec.containers[0];
    let running = [RunningContainer { container, id: &given.id, started_at: NOW }];
    let listener = given.runtime.port_forward(&config, &running, 80).unwrap();
    assert!(given.runtime.port_forward(&config, &running, 81).is_err());
    let connect = || {
        let (client, server) = network::connection();
        let clock = Clock::stepped(NOW);
        (client, tokio::spawn((listener.serve)(server, "10.0.0.9:4000".into(), clock.clone())), clock)
    };
    let (mut first, serving, clock) = connect();
    let mut heard = String::new();
    first.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "xxx");
    let (_second, waiting, _) = connect();
    let code = loop {
        tokio::select! {
            biased;
            code = listener.exit.asked() => break code,
            () = tokio::task::yield_now() => {
                clock.next_wake().into_iter().for_each(|wake| clock.advance(wake));
            }
        }
    };
    assert!(code == 0 && !waiting.is_finished());
    serving.abort();
    waiting.abort();
}
