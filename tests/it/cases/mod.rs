//! The table-driven suite: each file of `tests/cases` is a topic, a list of requests with the answers that
//! they must get. YAML in, YAML out: nothing here knows how the server is built.
//!
//! What a case may say is documented at [`Case`]. A topic has a cluster of its own and its cases follow each
//! other. `KUBARIUM_CASES=lists` runs that topic alone.

mod matching;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::Body;
use http_body_util::BodyExt;
use kubarium::apimachinery::wire::ApiService;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::apiserver::request;
use crate::support::PATIENCE;

/// A topic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    /// What it is about, in a sentence.
    topic: String,
    /// Whether controllers, scheduler and a node are at work; else the apiserver is alone.
    #[serde(default)]
    components: bool,
    cases: Vec<Case>,
}

/// A request and its answer. Texts may hold `${NAME}`: what an earlier case saved.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What is shown, in a sentence.
    name: String,
    /// As `GET /api/v1/nodes?limit=1`. The user is an administrator; `impersonate-user` among the headers
    /// makes it another.
    #[serde(rename = "do")]
    request: String,
    /// Request headers beside the content type, which is JSON, or YAML for a text.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body as a tree, sent as JSON.
    #[serde(default)]
    body: Value,
    /// The body as it is.
    #[serde(default)]
    text: Option<String>,
    /// The HTTP status.
    code: u16,
    /// What the answer must hold (see [`matching`]).
    #[serde(default)]
    answer: Value,
    /// What the headers of the answer must hold: each value is matched with all headers of that name.
    #[serde(default)]
    header: BTreeMap<String, Value>,
    /// The first events of a watch, in order; then it is closed.
    #[serde(default)]
    events: Vec<Value>,
    /// Names for values of the answer: `rv: metadata.resourceVersion`.
    #[serde(default)]
    save: BTreeMap<String, String>,
    /// Asks again until the answer is right.
    #[serde(default)]
    eventually: bool,
}

struct Runner {
    service: ApiService,
    saved: BTreeMap<String, String>,
    /// `${NAME}`
    placeholder: Regex,
}

struct Answer {
    code: u16,
    headers: http::HeaderMap,
    body: Value,
    events: Vec<Value>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_gets_the_answer_that_its_topic_states() {
    let only = std::env::var("KUBARIUM_CASES").ok();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut topics = JoinSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_none_or(|only| *only == name) {
            topics.spawn(async move { run(&name, &path).await });
        }
    }
    let (mut count, mut wrong) = (0, vec![]);
    while let Some(outcome) = topics.join_next().await {
        let (cases, failures) = outcome.unwrap();
        count += cases;
        wrong.extend(failures);
    }
    wrong.sort();
    assert!(count > 0, "no topic of that name");
    assert!(wrong.is_empty(), "{} of {count} cases:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// How many cases the topic has, and those that went wrong.
async fn run(name: &str, path: &Path) -> (usize, Vec<String>) {
    let topic: Topic = match serde_yaml::from_slice(&fs::read(path).unwrap()) {
        Ok(topic) => topic,
        Err(error) => return (1, vec![format!("{name}: {error}")]),
    };
    let components = if topic.components { Components::ALL } else { Components::NONE };
    let cluster = Cluster::start(Config { components, ..Config::default() }).await.unwrap();
    let placeholder = Regex::new(r"\$\{(\w+)\}").expect("a constant");
    let mut runner = Runner { service: cluster.service(), saved: BTreeMap::new(), placeholder };
    if !topic.components {
        runner.add_default_service_account().await;
    }
    let mut wrong = vec![];
    for case in &topic.cases {
        if let Err(why) = runner.hold(case).await {
            wrong.push(format!("{name} ({}): {}\n  {}\n  {why}", topic.topic, case.name, case.request));
        }
    }
    cluster.stop().await;
    (topic.cases.len(), wrong)
}

impl Runner {
    /// Pods need one, and no controller makes it.
    async fn add_default_service_account(&mut self) {
        let accounts = "POST /api/v1/namespaces/default/serviceaccounts";
        let body = r#"{"metadata": {"name": "default"}}"#.to_owned();
        self.service.clone().oneshot(request(accounts, &[], body)).await.unwrap();
    }

    async fn hold(&mut self, case: &Case) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let failure = match self.ask(case).await.and_then(|answer| self.check(case, &answer)) {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            if !case.eventually || start.elapsed() > PATIENCE {
                return Err(failure);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn ask(&self, case: &Case) -> Result<Answer, String> {
        let (media_type, body) = match (&case.text, &case.body) {
            (Some(text), _) => ("application/yaml", text.clone()),
            (None, Value::Null) => ("application/json", String::new()),
            (None, body) => ("application/json", body.to_string()),
        };
        let (line, body) = (self.filled(&case.request), self.filled(&body));
        let mut headers: Vec<(&str, &str)> =
            case.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if !body.is_empty() && !case.headers.contains_key("content-type") {
            headers.push(("content-type", media_type));
        }
        let request = request(&line, &headers, body);
        let response = self.service.clone().oneshot(request).await.expect("answers are infallible");
        let (head, body) = response.into_parts();
        let mut answer =
            Answer { code: head.status.as_u16(), headers: head.headers, body: Value::Null, events: vec![] };
        if case.events.is_empty() || answer.code != 200 {
            let bytes = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
            answer.body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        } else {
            answer.events = events(body, case.events.len()).await;
        }
        Ok(answer)
    }

    fn check(&mut self, case: &Case, answer: &Answer) -> Result<(), String> {
        let shown = || serde_json::to_string(&answer.body).expect("a tree is JSON");
        if answer.code != case.code {
            return Err(format!("code {} instead of {}: {}", answer.code, case.code, shown()));
        }
        matching::holds(&self.filled_tree(&case.answer), &answer.body, "")
            .map_err(|why| format!("{why}\n  in {}", shown()))?;
        for (name, wanted) in &case.header {
            let values = answer.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
            let values = Value::from(values.collect::<Vec<_>>());
            let wanted = if wanted.is_string() { Value::from(vec![wanted.clone()]) } else { wanted.clone() };
            matching::holds(&self.filled_tree(&wanted), &values, &format!("header {name}"))?;
        }
        let events = Value::from(answer.events.clone());
        if !case.events.is_empty() {
            matching::holds(&self.filled_tree(&case.events.clone().into()), &events, "events")
                .map_err(|why| format!("{why}\n  in {events}"))?;
        }
        for (name, path) in &case.save {
            let found =
                matching::at(&answer.body, path).ok_or_else(|| format!("no {path} in {}", shown()))?;
            let text = found.as_str().map_or_else(|| found.to_string(), String::from);
            self.saved.insert(name.clone(), text);
        }
        Ok(())
    }

    fn filled(&self, text: &str) -> String {
        let saved = |found: &Captures| {
            self.saved.get(&found[1]).unwrap_or_else(|| panic!("nothing is saved as {}", &found[1])).clone()
        };
        self.placeholder.replace_all(text, saved).into_owned()
    }

    fn filled_tree(&self, tree: &Value) -> Value {
        serde_json::from_str(&self.filled(&tree.to_string())).expect("what is saved needs no escapes")
    }
}

/// The first events of a watch; fewer when it ends or nothing more comes.
async fn events(mut body: Body, count: usize) -> Vec<Value> {
    let (mut events, mut pending) = (vec![], Vec::new());
    while events.len() < count {
        let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE / 12, body.frame()).await else { break };
        pending.extend_from_slice(&frame.into_data().unwrap_or_default());
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            events.push(serde_json::from_slice(&line).unwrap_or_default());
        }
    }
    events.truncate(count);
    events
}
