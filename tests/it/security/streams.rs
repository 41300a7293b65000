//! Commands in containers, over websockets: what kubectl 1.31 and later and upstream's own suites speak.

use kubarium::cluster::Listen;
use kubarium::{Cluster, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::upgrades::{next_frame, upgraded};
use super::wire::admin;
use super::*;
use crate::support::script::{Runner, Step};
use crate::support::wire::Target;
use crate::support::{Kubectl, Up, kubectls};

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
  "volumes": [{"name": "c", "configMap": {"name": "config"}}, {"name": "e", "emptyDir": {}}],
  "containers": [
    {"name": "a", "image": "nginx", "env": [{"name": "A", "value": "b"}],
     "volumeMounts": [{"name": "c", "mountPath": "/etc/config"}, {"name": "e", "mountPath": "/shared"}]},
    {"name": "b", "image": "busybox",
     "command": ["sh", "-c", "until [ -f /shared/go ]; do sleep 1; done; echo went; sleep 600"],
     "volumeMounts": [{"name": "e", "mountPath": "/shared"}]},
    {"name": "d", "image": "busybox", "args": ["sleep", "infinity"]}]}}"#;
const POD_PATH: &str = "/api/v1/namespaces/default/pods/p";
const NEWEST: &str = "v5.channel.k8s.io, v4.channel.k8s.io";

/// What comes of a request for a stream: the head of the answer, and all messages as channel and text.
async fn stream(target: &Target, path: &str, headers: &str) -> (String, Vec<(u8, String)>) {
    let headers = format!(
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    let (head, mut stream) = upgraded(target, path, &headers).await;
    let mut messages = vec![];
    if !head.starts_with("HTTP/1.1 101 ") {
        let mut rest = vec![0; 4096];
        let length = stream.read(&mut rest).await.unwrap();
        return (head + &String::from_utf8_lossy(&rest[..length]), messages);
    }
    loop {
        match next_frame(&mut stream).await {
            (8, code) => {
                assert_eq!(code, NORMAL, "how it is closed");
                return (head.to_lowercase(), messages);
            }
            (_, payload) => {
                messages.push((payload[0], String::from_utf8_lossy(&payload[1..]).into_owned()));
            }
        }
    }
}

/// The code of a close that is none of an error, as upstream's library sends it.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();

/// Without the empty message that opens it.
async fn speaking(target: &Target, path: &str, protocols: &str) -> (String, Vec<(u8, String)>) {
    let (head, mut messages) =
        stream(target, path, &format!("Sec-WebSocket-Protocol: {protocols}\r\n")).await;
    if path.contains("/exec?") {
        assert!(matches!(messages.remove(0), (1 | b'1', empty) if empty.is_empty()));
    }
    (head, messages)
}

fn exec(container: &str, words: &[&str]) -> String {
    let words: String = words.iter().map(|word| format!("&command={}", escaped(word))).collect();
    format!("{POD_PATH}/exec?container={container}&stdout=true&stderr=true{words}")
}

fn escaped(word: &str) -> String {
    word.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn run(runner: &mut Runner, step: Value) {
    let step: Step = serde_json::from_value(step).unwrap();
    runner.run(&step).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_played_in_containers() {
    let listen = Listen::loopback();
    let cluster = Cluster::start(Config::new().listen(listen)).await.unwrap();
    let access = cluster.access().unwrap();
    let (target, mut runner) = (admin(&access), Runner::new(cluster.service(), &[]));
    let config = json!({"metadata": {"name": "config"}, "data": {"key": "value-1"}});
    run(&mut runner, json!({"do": "POST /api/v1/namespaces/default/configmaps", "body": config})).await;
    let account = "GET /api/v1/namespaces/default/serviceaccounts/default";
    run(&mut runner, json!({"do": account, "eventually": true})).await;
    let pod: Value = serde_json::from_str(POD).unwrap();
    run(&mut runner, json!({"do": "POST /api/v1/namespaces/default/pods", "body": pod})).await;
    let running = json!({"status": {"phase": "Running"}});
    run(&mut runner, json!({"do": format!("GET {POD_PATH}"), "eventually": true, "answer": running})).await;
    let success = (3, json!({"metadata": {}, "status": "Success"}).to_string());

    let (head, messages) = speaking(&target, &exec("a", &["cat", "/etc/config/key"]), NEWEST).await;
    assert!(head.contains("sec-websocket-protocol: v5.channel.k8s.io\r\n"), "{head}");
    assert_eq!(messages, [(1, "value-1".to_owned()), success.clone()]);
    let script = "echo $A; echo no >&2; exit 3";
    let (_, messages) = speaking(&target, &exec("a", &["sh", "-c", script]), NEWEST).await;
    assert_eq!(messages[..2], [(1, "b\n".to_owned()), (2, "no\n".to_owned())]);
    assert!(messages[2].1.contains(r#"{"message":"3","reason":"ExitCode"}"#), "{}", messages[2].1);
    // What is written stays, in the container and in its volumes; who waits for it goes on.
    let write = exec("a", &["sh", "-c", "echo x > /tmp/file; touch /shared/go"]);
    assert_eq!(speaking(&target, &write, NEWEST).await.1, [success]);
    let (head, messages) = speaking(&target, &exec("a", &["cat", "/tmp/file"]), "channel.k8s.io").await;
    assert!(head.contains("sec-websocket-protocol: channel.k8s.io\r\n"), "{head}");
    assert_eq!(messages, [(1, "x\n".to_owned())]);
    let log = format!("{POD_PATH}/log?container=b");
    run(&mut runner, json!({"do": format!("GET {log}"), "eventually": true, "answer": "went\n"})).await;
    let (_, messages) = speaking(&target, &log, "binary.k8s.io").await;
    assert_eq!(messages, [(b'w', "ent\n".to_owned())]);
    let (_, messages) = speaking(&target, &exec("a", &["nonsense"]), NEWEST).await;
    assert!(messages[0].1.contains("executable file not found in $PATH"), "{}", messages[0].1);
    // Each protocol by itself: the older ones say nothing of how it ended.
    let failing = exec("a", &["sh", "-c", "echo x; exit 3"]);
    let (head, messages) = speaking(&target, &failing, "v4.channel.k8s.io").await;
    assert!(head.contains("sec-websocket-protocol: v4.channel.k8s.io\r\n"), "{head}");
    assert_eq!(messages.iter().map(|message| message.0).collect::<Vec<_>>(), [1, 3]);
    assert!(messages[1].1.contains(r#"{"message":"3","reason":"ExitCode"}"#), "{}", messages[1].1);
    let (head, messages) = speaking(&target, &exec("a", &["echo", "x"]), "base64.channel.k8s.io").await;
    assert!(head.contains("sec-websocket-protocol: base64.channel.k8s.io\r\n"), "{head}");
    assert_eq!(messages, [(b'1', "eAo=".to_owned())]);
    // Who looks into a container that has looked at nothing finds all the same what every container has.
    let (_, messages) = speaking(&target, &exec("d", &["printenv", "KUBERNETES_SERVICE_HOST"]), NEWEST).await;
    assert_eq!(messages[0], (1, "10.96.0.1\n".to_owned()));
    let ports =
        exec("d", &["sh", "-c", "netstat -tln | tail -1 | cut -c21-30; ps | grep -c 'sleep infinity'"]);
    assert_eq!(speaking(&target, &ports, NEWEST).await.1[0].1, "0.0.0.0:80\n1\n");
    for (words, flags, turns) in TALKS {
        talk(&target, &(exec("a", words) + flags), turns).await;
    }
    who_may_only_get_may_not(&target, &mut runner).await;
    cluster.stop().await;
}

/// What is sent, and the channel and the beginning of what comes back, when anything does.
type Turn = (&'static [u8], Option<(u8, &'static str)>);
type Talk = (&'static [&'static str], &'static str, &'static [Turn]);

const OPENS: Turn = (b"", Some((1, "")));
const SUCCEEDS: Option<(u8, &str)> = Some((3, r#"{"metadata":{},"status":"Success"}"#));
const TALKS: &[Talk] = &[
    // A shell answers each line, remembers, and waits for what goes on in the next one.
    (
        &["sh"],
        "&stdin=true",
        &[
            OPENS,
            (b"\0echo $A\n", Some((1, "b\n"))),
            (b"\0cd /shared\nX=1\npw", None),
            (b"\0d\n", Some((1, "/shared\n"))),
            (b"\0if true; then\n", None),
            (b"\0echo $X; fi\n", Some((1, "1\n"))),
            (b"\0nonsense\n", Some((2, "sh: nonsense: not found\n"))),
            (b"\0exit 3\n", Some((3, r#"{"details":{"causes":[{"message":"3","reason":"ExitCode"}]}"#))),
        ],
    ),
    (
        &["sh"],
        "&stdin=true",
        &[
            OPENS,
            (b"\0if true", None),
            (b"\xff\0", Some((2, "sh: syntax error: unexpected end of file\n"))),
            (b"", Some((3, r#"{"details":{"causes":[{"message":"2","reason":"ExitCode"}]}"#))),
        ],
    ),
    (
        &["sh"],
        "&stdin=true&tty=true",
        &[
            OPENS,
            (b"", Some((1, "/ # "))),
            (b"\0\r", Some((1, "\r\n/ # "))),
            (b"\0ech", Some((1, "ech"))),
            (b"\0o hi\r", Some((1, "o hi\r\nhi\r\n/ # "))),
            (b"\0\x1b[A", Some((1, "echo hi\x1b[K"))),
            (b"\0\x03", Some((1, "^C\r\n/ # "))),
            (b"\0sleep 100\r", Some((1, "sleep 100\r\n"))),
            (b"\0\x03", Some((1, "^C\r\n/ # "))),
            (b"\0cat >f\r", Some((1, "cat >f\r\n"))),
            (b"\0$?\r", Some((1, "$?\r\n"))),
            (b"\0\x04", Some((1, "/ # "))),
            (b"\0cat f; x=$(cat f); cd /tmp\r", Some((1, "cat f; x=$(cat f); cd /tmp\r\n$?\r\n/tmp # "))),
            (b"\0exit 4$\x7f\r", Some((1, "exit 4$\x08 \x08\r\n"))),
            (b"", Some((3, r#"{"details":{"causes":[{"message":"4","reason":"ExitCode"}]}"#))),
        ],
    ),
    (
        &["sleep", "100"],
        "&stdin=true&tty=true",
        &[
            OPENS,
            (b"\0\x03", Some((1, "^C"))),
            (b"", Some((3, r#"{"details":{"causes":[{"message":"130","reason":"ExitCode"}]}"#))),
        ],
    ),
    (
        &["cat"],
        "&stdin=true&tty=true",
        &[OPENS, (b"\0ab\r", Some((1, "ab\r\nab\r\n"))), (b"\0\x04", SUCCEEDS)],
    ),
    (
        &["nosuch"],
        "&stdin=true&tty=true",
        &[OPENS, (b"", Some((3, r#"{"code":500,"details":{"causes":[{"message":"OCI runtime exec failed"#)))],
    ),
    (&["sh", "-c", "cat"], "&stdin=true", &[OPENS, (b"\0ab\n", Some((1, "ab\n"))), (b"\xff\0", SUCCEEDS)]),
    // Who reads gets all of it, who does not waits for nothing.
    (
        &["wc", "-c"],
        "&stdin=true",
        &[OPENS, (b"\0abc", None), (b"\xff\0", Some((1, "3\n"))), (b"", SUCCEEDS)],
    ),
    (&["echo", "x"], "&stdin=true", &[OPENS, (b"", Some((1, "x\n"))), (b"", SUCCEEDS)]),
    (
        &["date", "foo"],
        "",
        &[OPENS, (b"", Some((2, "date: invalid date 'foo'\n"))), (b"", Some((3, r#"{"details""#)))],
    ),
];

async fn talk(target: &Target, path: &str, turns: &[Turn]) {
    let headers = format!(
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {NEWEST}\r\n"
    );
    let (head, mut stream) = upgraded(target, path, &headers).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    for (sent, answer) in turns {
        if !sent.is_empty() {
            let frame = [&[0x82, 0x80 | u8::try_from(sent.len()).unwrap(), 0, 0, 0, 0], *sent].concat();
            stream.write_all(&frame).await.unwrap();
        }
        if let Some((channel, text)) = answer {
            let (_, payload) = next_frame(&mut stream).await;
            let said = String::from_utf8_lossy(&payload[1..]);
            assert_eq!(payload[0], *channel, "{path} {said}");
            assert!(said.starts_with(text) && said.is_empty() == text.is_empty(), "{path} {said}");
        }
    }
    assert_eq!(next_frame(&mut stream).await.0, 8, "{path}");
}

/// A websocket begins as a GET; to open one is to create all the same.
async fn who_may_only_get_may_not(target: &Target, runner: &mut Runner) {
    let rbac = "POST /apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/exec"]}]);
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    run(runner, json!({"do": format!("{rbac}/roles"), "body": role})).await;
    let binding = json!({"metadata": {"name": "r"}, "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}});
    run(runner, json!({"do": format!("{rbac}/rolebindings"), "body": binding})).await;
    let (answer, _) = stream(target, &exec("a", &["true"]), "Impersonate-User: jane\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains(r#"cannot create resource \"pods/exec\""#), "{answer}");
}

#[test]
fn kubectl_runs_commands_in_containers() {
    let up = Up::start();
    let kubectl = Kubectl::new(&kubectls().pop().unwrap(), &up);
    kubectl.ok("create configmap config --from-literal=key=value-1");
    kubectl.ok(&format!("create -f {}", up.file("pod.json", POD)));
    kubectl.ok("wait --for=condition=Ready pod/p --timeout=30s");
    let version: Value = serde_json::from_str(&kubectl.ok("version --client -o json")).unwrap();
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
