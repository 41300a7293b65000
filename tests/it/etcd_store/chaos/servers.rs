//! The servers, each with a way of its own to each member of the etcd.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::select_all;
use sync::Mutex;

use super::super::way::Way;
use super::watchers::{SeenState, seen_states};
use super::*;
use crate::support::wire::{Answer, Error, JSON, Target};

pub(super) const COUNT: usize = 3;
/// How long an answer is waited for; then nobody knows.
const ANSWER_WITHIN: Duration = Duration::from_secs(6);
/// Of the components it is told what was written: with its revision.
pub(in crate::etcd_store) const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [
    {level: RequestResponse, verbs: [create, update, patch], userGroups: ['system:serviceaccounts:kube-system']},
    {level: RequestResponse, verbs: [create, update, patch],
        users: ['system:kube-controller-manager', 'system:kube-scheduler']},
    {level: Metadata, verbs: [create, update, patch, delete]}]}";

/// Where each server is; none while it is away.
pub(super) type Targets = Arc<Mutex<Vec<Option<Target>>>>;

pub(super) struct Servers {
    /// What is not there has been killed.
    ups: Vec<Option<Up>>,
    ways: Vec<Vec<Way>>,
    targets: Targets,
    keys: TempDir,
    /// The audit logs: one for each time that a server was started.
    logs: Vec<PathBuf>,
}

impl Servers {
    pub(super) async fn start(members: &[SocketAddr]) -> Servers {
        let mut ways = Vec::new();
        for _ in 0..COUNT {
            let mut of_server = Vec::new();
            for member in members {
                of_server.push(Way::to(*member).await);
            }
            ways.push(of_server);
        }
        let keys = tempfile::tempdir().unwrap();
        std::fs::write(keys.path().join("policy"), POLICY).unwrap();
        let targets = Arc::new(Mutex::new(vec![None; COUNT]));
        let mut servers = Servers { ups: Vec::new(), ways, targets, keys, logs: Vec::new() };
        for at in 0..COUNT {
            servers.ups.push(None);
            servers.start_again(at).await;
        }
        servers
    }

    /// A whole cluster, the first with a node.
    pub(super) async fn start_again(&mut self, at: usize) {
        let urls: Vec<String> = self.ways[at].iter().map(|way| format!("http://{}", way.address)).collect();
        let log = self.keys.path().join(format!("audit-{}", self.logs.len()));
        self.logs.push(log.clone());
        let keys = self.keys.path().to_str().unwrap();
        let nodes = if at == 0 { "1" } else { "0" };
        let flags = [
            "--etcd-servers",
            &urls.join(","),
            "--data-dir",
            keys,
            "--nodes",
            nodes,
            // Compaction is the test's.
            "--etcd-compaction-interval=0",
            "--leader-elect-lease-duration=5s",
            "--leader-elect-renew-deadline=4s",
            "--leader-elect-retry-period=500ms",
            "--audit-policy-file",
            &format!("{keys}/policy"),
            "--audit-log-path",
            log.to_str().unwrap(),
        ];
        let up = tokio::task::block_in_place(|| Up::start_with(&flags));
        self.targets.lock()[at] = Some(Target::of_kubeconfig(&up.folder().join("kubeconfig")));
        self.ups[at] = Some(up);
    }

    /// As a power cut would.
    pub(super) fn kill(&mut self, at: usize) {
        self.targets.lock()[at] = None;
        if let Some(mut up) = self.ups[at].take() {
            up.kill();
        }
    }

    pub(super) fn set_way(&self, at: usize, passage: Passage) {
        self.ways[at].iter().for_each(|way| way.set(passage));
    }

    pub(super) fn targets(&self) -> Targets {
        self.targets.clone()
    }

    pub(super) fn logs(&self) -> &[PathBuf] {
        &self.logs
    }

    /// Each acknowledges a write of its own.
    pub(super) async fn wait_until_all_write(&self, name: &str) {
        for at in 0..COUNT {
            let body = json!({"metadata": {"name": format!("{name}-{at}")}});
            let path = format!("{NAMESPACE}/configmaps");
            self.ask_one_until(at, Method::POST, &path, Some(&body), |made| made.is_some()).await;
        }
    }

    /// What a server lists, as a quorum has it.
    pub(super) async fn list(&self, at: usize) -> SeenState {
        let path = format!("{NAMESPACE}/configmaps");
        let list = self.ask_one_until(at, Method::GET, &path, None, |list| list.is_some()).await;
        seen_states(&list).0
    }

    /// Asks all until an answer is as wanted; a failure is none.
    pub(super) async fn ask_until(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Value {
        self.ask_others_until(None, method, path, body, is_wanted).await
    }

    /// The same of all but one.
    pub(super) async fn ask_others_until(
        &self,
        one: Option<usize>,
        method: Method,
        path: &str,
        body: Option<&Value>,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Value {
        let others = (0..COUNT).filter(|at| one != Some(*at));
        self.ask_some_until(others, method, path, body, is_wanted).await
    }

    pub(super) async fn ask_one_until(
        &self,
        at: usize,
        method: Method,
        path: &str,
        body: Option<&Value>,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Value {
        self.ask_some_until(at..at + 1, method, path, body, is_wanted).await
    }

    /// Each by itself, so that one that gives no answer holds up nobody: the first answer that is as wanted.
    async fn ask_some_until(
        &self,
        some: impl Iterator<Item = usize>,
        method: Method,
        path: &str,
        body: Option<&Value>,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Value {
        let last = Mutex::new(String::new());
        let asking = some.map(|at| {
            let (method, is_wanted, last) = (&method, &is_wanted, &last);
            Box::pin(async move {
                loop {
                    let target = self.targets.lock()[at].clone();
                    let answer = match target {
                        Some(target) => ask(&target, method.clone(), path, body).await,
                        None => Err("it is away".into()),
                    };
                    *last.lock() = format!("{at}: {answer:?}");
                    let value =
                        answer.ok().filter(|answer| is_done(method, answer)).map(|answer| answer.json());
                    if is_wanted(value.as_ref()) {
                        return value.unwrap_or_default();
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            })
        });
        let in_time = tokio::time::timeout(PATIENCE, select_all(asking)).await;
        let (value, ..) = in_time
            .unwrap_or_else(|_| panic!("{method} {path} was never answered as wanted: {}", last.lock()));
        value
    }
}

/// What is there already, or is gone, may be what a request did whose answer was lost.
fn is_done(method: &Method, answer: &Answer) -> bool {
    matches!(answer.code, 200 | 201 | 202 | 409) || (*method == Method::DELETE && answer.code == 404)
}

/// Over a connection of its own.
pub(super) async fn ask(
    target: &Target,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer, Error> {
    let asking = async {
        let body = body.map(|body| (JSON, body.to_string().into()));
        target.http1().await?.ask(method, path, body).await
    };
    tokio::time::timeout(ANSWER_WITHIN, asking).await?
}
