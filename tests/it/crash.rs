//! kubarium is killed while clients write over TLS: after a restart on the same data dir, every write that was
//! acknowledged is there, as it was acknowledged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::wire::{Answer, JSON, Target, Wire};
use crate::support::{Up, command, texts};

const WRITERS: usize = 4;
const KILLS: usize = 5;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// A ConfigMap as an answer showed it: uid, resourceVersion, data; none when it is not there.
type Seen = Option<(String, u64, Value)>;

/// What a client knows of one name: the last that was acknowledged, and what may have happened since, because the
/// answer never came.
#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: Seen,
    pending: Option<Pending>,
}

/// A write without an answer: the data that it would leave, none if it would delete.
#[derive(Clone, Debug)]
struct Pending(Option<Value>);

impl Known {
    /// Whether the server may hold this.
    fn allows(&self, found: &Seen) -> bool {
        let data = |seen: &Seen| seen.as_ref().map(|(.., data)| data.clone());
        let by_pending = self.pending.as_ref().is_some_and(|Pending(wanted)| *wanted == data(found));
        let replaced =
            self.acknowledged.as_ref().zip(found.as_ref()).is_some_and(|(old, new)| old.0 != new.0);
        *found == self.acknowledged || (by_pending && !replaced)
    }
}

/// One client with names of its own.
struct Writer {
    random: fastrand::Rng,
    number: usize,
    known: BTreeMap<String, Known>,
}

impl Writer {
    /// Writes until the server is gone.
    async fn run(mut self, target: Target, acknowledged: Arc<AtomicUsize>, progress: Arc<Notify>) -> Writer {
        let Ok(mut wire) = target.http1().await else { return self };
        loop {
            let name = format!("w{}-{}", self.number, self.random.usize(..8));
            let known = self.known.entry(name.clone()).or_default();
            let exists = known.acknowledged.is_some();
            let data = json!({"value": self.random.u64(..).to_string(), "padding": "x".repeat(self.random.usize(..4000))});
            let object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
            let body = Some((JSON, object.to_string().into()));
            let (method, path, body, wanted) = match self.random.usize(..4) {
                _ if !exists => (Method::POST, PATH.to_owned(), body, Some(data)),
                0 => (Method::DELETE, format!("{PATH}/{name}"), None, None),
                _ => (Method::PUT, format!("{PATH}/{name}"), body, Some(data)),
            };
            known.pending = Some(Pending(wanted.clone()));
            let Ok(answer) = wire.ask(method, &path, body).await else { return self };
            assert!(answer.code < 300, "{}", answer.json());
            known.pending = None;
            known.acknowledged = wanted.map(|_| seen(&answer.json()));
            acknowledged.fetch_add(1, Ordering::SeqCst);
            progress.notify_one();
        }
    }
}

fn seen(object: &Value) -> (String, u64, Value) {
    let metadata = &object["metadata"];
    let revision = metadata["resourceVersion"].as_str().unwrap().parse().unwrap();
    (metadata["uid"].as_str().unwrap().to_owned(), revision, object["data"].clone())
}

/// What the server holds, and the revision of the whole.
async fn stored(wire: &mut Wire) -> (BTreeMap<String, (String, u64, Value)>, u64) {
    let list = wire.get(PATH).await.unwrap().json();
    let items = list["items"].as_array().unwrap();
    let ours = items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), seen(item)));
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    (ours.filter(|(name, _)| name.starts_with('w')).collect(), revision)
}

fn up(data_dir: &Path) -> (Up, Target) {
    let up = Up::start_with(&["--nodes", "1", "--data-dir", data_dir.to_str().unwrap()]);
    let target = Target::of_kubeconfig(&up.folder().join("kubeconfig"));
    (up, target)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_kill() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let data_dir = tempfile::tempdir().unwrap();
    let new_writer = |number| Writer { random: random.fork(), number, known: BTreeMap::new() };
    let mut writers: Vec<Writer> = (0..WRITERS).map(new_writer).collect();
    let mut newest = 0;
    for kill in 0..=KILLS {
        let (mut up, target) = up(data_dir.path());
        let mut wire = target.http1().await.unwrap();
        let (found, revision) = stored(&mut wire).await;
        assert!(revision >= newest, "kill {kill}: the revision went back from {newest} to {revision}");
        for writer in &mut writers {
            for (name, known) in &mut writer.known {
                let found = found.get(name).cloned();
                assert!(known.allows(&found), "kill {kill}, {name}: {known:?}, but found {found:?}");
                *known = Known { acknowledged: found, pending: None };
            }
        }
        let (acknowledged, progress) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let mut running = JoinSet::new();
        for writer in std::mem::take(&mut writers) {
            running.spawn(writer.run(target.clone(), acknowledged.clone(), progress.clone()));
        }
        let enough = random.usize(1..300);
        while acknowledged.load(Ordering::SeqCst) < enough {
            tokio::select! {
                () = progress.notified() => {}
                ended = running.join_next() => panic!("a client ended before the kill: {:?}", ended.map(|ended| ended.err())),
            }
        }
        up.signal("-KILL");
        writers = running.join_all().await;
        up.wait();
        let known = writers.iter().flat_map(|writer| writer.known.values());
        let revisions =
            known.filter_map(|known| known.acknowledged.as_ref().map(|(_, revision, _)| *revision));
        let before = newest;
        newest = revisions.max().unwrap_or(0).max(revision);
        assert!(newest > before, "a new revision is higher than all before");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_data_dir_is_refused_in_one_line() {
    let data_dir = tempfile::tempdir().unwrap();
    let (up, target) = up(data_dir.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let second = command(elsewhere.path())
        .args(["up", "--name", "second", "--data-dir", data_dir.path().to_str().unwrap()])
        .output()
        .unwrap();
    let (_, error) = texts(&second);
    assert_eq!(second.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(data_dir.path().to_str().unwrap()), "it says which: {error}");
    let answer = target.http1().await.unwrap().get("/readyz").await.unwrap();
    assert_eq!(answer.code, 200, "the first goes on");
    drop(up);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_clean_stop_the_same_pods_run_on_the_same_nodes() {
    let data_dir = tempfile::tempdir().unwrap();
    let (mut first, target) = up(data_dir.path());
    let mut wire = target.http1().await.unwrap();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
        }},
    });
    let created =
        wire.send(Method::POST, "/apis/apps/v1/namespaces/default/deployments", &deployment).await.unwrap();
    assert_eq!(created.code, 201, "{}", created.json());
    let before = running_pods(&mut wire, 3).await;
    first.signal("-TERM");
    assert!(first.wait().success());
    let (_second, target) = up(data_dir.path());
    let mut wire = target.http1().await.unwrap();
    assert_eq!(running_pods(&mut wire, 3).await, before);
    let nodes = wire.get("/api/v1/nodes").await.unwrap().json();
    let names: Vec<&Value> =
        nodes["items"].as_array().unwrap().iter().map(|node| &node["metadata"]["name"]).collect();
    assert_eq!(names, ["node-1"]);
}

/// A pod whose container is started again and again.
fn restarting(name: &str, container: &Value) -> Value {
    let mut container = container.clone();
    container["name"] = "main".into();
    container["image"] = "busybox".into();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})
}

/// Each of these once stopped the process, or everybody in it, and kept it from ever starting again.
fn bombs() -> Vec<Value> {
    let deep = |open: &str, close: &str| format!("{}echo hi{}", open.repeat(5000), close.repeat(5000));
    let scripts = [
        deep("(", ")"),
        deep("{ ", "; }"),
        deep("echo $(", ")"),
        deep("if true; then ", "; fi"),
        "x=aaaaaaaaaaaaaaaa; for i in $(seq 1 34); do x=$x$x; done".to_owned(),
        format!("case {} in {}b) ;; esac; exit 1", "a".repeat(60), "*a".repeat(40)),
        "while [ 1 = 1 ]; do :; done".to_owned(),
    ];
    let command = |script: &String| json!(["sh", "-c", script]);
    let in_command = scripts.iter().map(|script| json!({"command": command(script)}));
    let in_probe = scripts.iter().map(|script| {
        let probe = json!({"exec": {"command": command(script)}, "failureThreshold": 1, "periodSeconds": 1});
        json!({"command": ["sleep", "600"], "livenessProbe": probe})
    });
    let in_hook = scripts.iter().map(|script| {
        json!({"command": ["sleep", "600"], "lifecycle": {"postStart": {"exec": {"command": command(script)}}}})
    });
    let all = in_command.chain(in_probe).chain(in_hook).enumerate();
    all.map(|(at, container)| restarting(&format!("bomb-{at}"), &container)).collect()
}

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Until all pods whose names begin so have been restarted, or run, while the process says that it lives.
async fn until_restarted(wire: &mut Wire, wanted: usize) {
    for _ in 0..3000 {
        assert_eq!(wire.get("/livez").await.unwrap().code, 200);
        let list = wire.get(PODS).await.unwrap().json();
        let restarts =
            |pod: &&Value| pod["status"]["containerStatuses"][0]["restartCount"].as_u64() > Some(0);
        if list["items"].as_array().unwrap().iter().filter(restarts).count() == wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("there were never {wanted} restarted pods: {}", wire.get(PODS).await.unwrap().json());
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_go_too_far_stop_nobody_and_no_start() {
    let data_dir = tempfile::tempdir().unwrap();
    let (mut first, target) = up(data_dir.path());
    let mut wire = target.http1().await.unwrap();
    let bombs = bombs();
    for bomb in &bombs {
        let created = wire.send(Method::POST, PODS, bomb).await.unwrap();
        assert_eq!(created.code, 201, "{}", created.json());
    }
    until_restarted(&mut wire, bombs.len()).await;
    first.signal("-KILL");
    first.wait();
    let (_second, target) = up(data_dir.path());
    let mut wire = target.http1().await.unwrap();
    until_restarted(&mut wire, bombs.len()).await;
    let plain = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"},
        "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}});
    assert_eq!(wire.send(Method::POST, PODS, &plain).await.unwrap().code, 201);
    for _ in 0..3000 {
        if is_ready(&wire.get(&format!("{PODS}/plain")).await.unwrap().json()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("another pod never ran");
}

/// Waits until so many pods are ready; their names, uids, nodes and addresses.
async fn running_pods(wire: &mut Wire, wanted: usize) -> Vec<[Value; 4]> {
    for _ in 0..3000 {
        let list: Answer = wire.get("/api/v1/namespaces/default/pods").await.unwrap();
        let list = list.json();
        let pods: Vec<&Value> =
            list["items"].as_array().unwrap().iter().filter(|pod| is_ready(pod)).collect();
        if pods.len() == wanted {
            let facts = |pod: &&Value| {
                let (metadata, status) = (&pod["metadata"], &pod["status"]);
                let node = &pod["spec"]["nodeName"];
                [&metadata["name"], &metadata["uid"], node, &status["podIP"]].map(Value::clone)
            };
            return pods.iter().map(facts).collect();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("there were never {wanted} ready pods");
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
