//! Requests and the answers that they must get, as data: what `tests/cases` and `tests/conformance` are made of.
//!
//! YAML in, YAML out: nothing here knows how the server is built. What a step may say is documented at
//! [`Step`].

pub(crate) mod matching;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use kubarium::Clock;
use kubarium::apimachinery::wire::ApiService;
use regex::{Captures, Regex};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::PATIENCE;

/// A request and its answer. Texts may hold `${NAME}`: what an earlier step saved.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// What is shown, in a sentence.
    #[serde(default)]
    pub name: String,
    /// As `GET /api/v1/nodes?limit=1`. The user is an administrator; `impersonate-user` among the headers
    /// makes it another.
    #[serde(rename = "do")]
    pub request: String,
    /// Request headers beside the content type, which is JSON, or YAML for a text.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body as a tree, sent as JSON.
    #[serde(default)]
    body: Value,
    /// The body as it is.
    #[serde(default)]
    text: Option<String>,
    /// The content type of a patch, in short: `merge`, `strategic`, `json` or `apply`.
    #[serde(default)]
    patch: Option<String>,
    /// As a client changes an object: reads it, lays this over it as a merge patch, and replaces it; again
    /// after a conflict. The request is the PUT.
    #[serde(default)]
    update: Value,
    /// So often, for bodies with a `generateName`.
    #[serde(default = "once")]
    times: u32,
    /// The HTTP status; without, 201 of a POST and 200 of anything else.
    #[serde(default)]
    code: Option<u16>,
    /// What the answer must hold (see [`matching`]).
    #[serde(default)]
    answer: Value,
    /// What the headers of the answer must hold: each value is matched with all headers of that name.
    #[serde(default)]
    header: BTreeMap<String, Value>,
    /// The first events of a watch, in order; then it is closed.
    #[serde(default)]
    events: Vec<Value>,
    /// Events that a watch must bring one after the other, with any others between them.
    #[serde(default)]
    until: Vec<Value>,
    /// Names for values of the answer: `rv: metadata.resourceVersion`. Of a watch the answer is the last
    /// event.
    #[serde(default)]
    save: BTreeMap<String, String>,
    /// Asks again until the answer is right.
    #[serde(default)]
    eventually: bool,
    /// Asks for a while, and the answer is right each time.
    #[serde(default)]
    steadily: bool,
}

fn once() -> u32 {
    1
}

/// Runs steps, one after the other.
pub(crate) struct Runner {
    service: ApiService,
    saved: BTreeMap<String, String>,
    /// `${NAME}`
    placeholder: Regex,
    /// By which it is waited.
    clock: Clock,
    /// Every answer, if that is asked for.
    transcript: Option<Vec<String>>,
}

struct Answer {
    code: u16,
    headers: http::HeaderMap,
    body: Value,
    events: Vec<Value>,
}

/// Reads a YAML file, anchors and merge keys included.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let read = || {
        let mut tree: serde_yaml::Value = serde_yaml::from_slice(&fs::read(path).unwrap())?;
        tree.apply_merge()?;
        serde_yaml::from_value(tree)
    };
    read().map_err(|error: serde_yaml::Error| format!("{}: {error}", path.display()))
}

impl Runner {
    /// Asks this service; steps may name what is saved from the start.
    pub(crate) fn new(service: ApiService, saved: &[(&str, &str)]) -> Runner {
        let saved = saved.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let placeholder = Regex::new(r"\$\{(\w+)\}").expect("a constant");
        Runner { service, saved, placeholder, clock: Clock::real(), transcript: None }
    }

    /// Waits by a cluster's clock, and writes down every answer.
    pub(crate) fn telling(self, clock: &Clock) -> Runner {
        Runner { clock: clock.clone(), transcript: Some(vec![]), ..self }
    }

    /// What was written down.
    pub(crate) fn transcript(self) -> Vec<String> {
        self.transcript.unwrap_or_default()
    }

    /// Runs a step.
    ///
    /// # Errors
    /// What of the answer is not as it should be.
    pub(crate) async fn run(&mut self, step: &Step) -> Result<(), String> {
        for _ in 0..step.times {
            self.hold(step).await?;
        }
        Ok(())
    }

    /// What containers wrote that ended with another code than 0, of all pods of a namespace: whoever reads
    /// that a pod failed asks for that next.
    pub(crate) async fn logs_of_failed_containers(&self, namespace: &str) -> String {
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let list = self.read(&pods).await;
        let mut told = String::new();
        for pod in list["items"].as_array().into_iter().flatten() {
            let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
            for status in pod["status"]["containerStatuses"].as_array().into_iter().flatten() {
                let name = status["name"].as_str().unwrap_or_default();
                let code = status["state"]["terminated"]["exitCode"].as_i64().unwrap_or_default();
                if code != 0 {
                    let log = self.read(&format!("{pods}/{pod_name}/log?container={name}")).await;
                    told += &format!("  {pod_name}/{name} ended with {code} and wrote {log}\n");
                }
            }
        }
        told
    }

    /// Null where it cannot be read.
    async fn read(&self, path: &str) -> Value {
        let step: Step = serde_json::from_value(json!({"do": format!("GET {path}")})).expect("a step");
        self.ask(&step).await.map_or(Value::Null, |answer| answer.body)
    }

    async fn hold(&mut self, step: &Step) -> Result<(), String> {
        let start = self.clock.elapsed();
        let enough = if step.steadily { Duration::from_millis(600) } else { PATIENCE };
        loop {
            let outcome = self.ask(step).await.and_then(|answer| {
                self.write_down(step, &answer);
                self.check(step, &answer)
            });
            let go_on = (step.eventually && outcome.is_err()) || (step.steadily && outcome.is_ok());
            if !go_on || self.clock.elapsed().saturating_sub(start) > enough {
                return outcome;
            }
            self.clock.sleep(Duration::from_millis(20)).await;
        }
    }

    fn write_down(&mut self, step: &Step, answer: &Answer) {
        let Some(transcript) = &mut self.transcript else { return };
        let Answer { code, headers, body, events } = answer;
        transcript.push(format!("{} {}: {code} {headers:?} {body} {events:?}", step.name, step.request));
    }

    async fn ask(&self, step: &Step) -> Result<Answer, String> {
        let path = self.filled(&step.request);
        if !step.update.is_null() {
            return self.update(step, &path).await;
        }
        let body = match (&step.text, &step.body) {
            (Some(text), _) => text.clone(),
            (None, Value::Null) => String::new(),
            (None, body) => body.to_string(),
        };
        self.send(step, &path, self.filled(&body)).await
    }

    async fn update(&self, step: &Step, line: &str) -> Result<Answer, String> {
        let changes = self.filled_tree(&step.update);
        for _ in 0..20 {
            let path = line.trim_start_matches("PUT ").split('?').next().unwrap_or_default();
            // The one subresource that can be written and not read.
            let path = path.trim_end_matches("/finalize");
            let mut object = self.send(step, &format!("GET {path}"), String::new()).await?.body;
            json_patch::merge(&mut object, &changes);
            let answer = self.send(step, line, object.to_string()).await?;
            if answer.code != 409 || step.code == Some(409) {
                return Ok(answer);
            }
        }
        Err("conflict after conflict".into())
    }

    async fn send(&self, step: &Step, line: &str, body: String) -> Result<Answer, String> {
        let request = step.to_request(line, body, |text| self.filled(text))?;
        let response = self.service.clone().oneshot(request).await.expect("answers are infallible");
        let (head, body) = response.into_parts();
        let (code, headers) = (head.status.as_u16(), head.headers);
        let mut answer = Answer { code, headers, body: Value::Null, events: vec![] };
        if code == 200 && step.is_watch() {
            answer.events = events(&self.clock, body, |events| self.is_enough(step, events)).await;
            answer.body = answer.events.last().cloned().unwrap_or_default();
        } else {
            let bytes = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
            answer.body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        }
        Ok(answer)
    }

    fn is_enough(&self, step: &Step, events: &[Value]) -> bool {
        match step.until.is_empty() {
            true => events.len() >= step.events.len(),
            false => self.in_order(step, events).is_ok(),
        }
    }

    /// # Errors
    /// The first event that the watch never brought.
    fn in_order(&self, step: &Step, events: &[Value]) -> Result<(), String> {
        let mut events = events.iter();
        for wanted in &step.until {
            let wanted = self.filled_tree(wanted);
            if !events.any(|event| matching::holds(&wanted, event, "").is_ok()) {
                return Err(format!("no event holds {wanted}"));
            }
        }
        Ok(())
    }

    fn check(&mut self, step: &Step, answer: &Answer) -> Result<(), String> {
        let shown = || serde_json::to_string(&answer.body).expect("a tree is JSON");
        let code = step.code.unwrap_or(if step.request.starts_with("POST ") { 201 } else { 200 });
        if answer.code != code {
            return Err(format!("code {} instead of {code}: {}", answer.code, shown()));
        }
        for (name, path) in &step.save {
            let found =
                matching::at(&answer.body, path).ok_or_else(|| format!("no {path} in {}", shown()))?;
            let text = found.as_str().map_or_else(|| found.to_string(), String::from);
            self.saved.insert(name.clone(), text);
        }
        matching::holds(&self.filled_tree(&step.answer), &answer.body, "")
            .map_err(|why| format!("{why}\n  in {}", shown()))?;
        for (name, wanted) in &step.header {
            let values = answer.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
            let values = Value::from(values.collect::<Vec<_>>());
            let wanted = if wanted.is_string() { Value::from(vec![wanted.clone()]) } else { wanted.clone() };
            matching::holds(&self.filled_tree(&wanted), &values, &format!("header {name}"))?;
        }
        let events = Value::from(answer.events.clone());
        if !step.events.is_empty() {
            matching::holds(&self.filled_tree(&step.events.clone().into()), &events, "events")
                .map_err(|why| format!("{why}\n  in {events}"))?;
        }
        self.in_order(step, &answer.events).map_err(|why| format!("{why}\n  in {events}"))?;
        Ok(())
    }

    fn filled(&self, text: &str) -> String {
        // What an earlier step could not save is left as it stands: this one fails, and the others are asked, too.
        let saved =
            |found: &Captures| self.saved.get(&found[1]).cloned().unwrap_or_else(|| found[0].to_owned());
        self.placeholder.replace_all(text, saved).into_owned()
    }

    fn filled_tree(&self, tree: &Value) -> Value {
        serde_json::from_str(&self.filled(&tree.to_string())).expect("what is saved needs no escapes")
    }
}

impl Step {
    fn is_watch(&self) -> bool {
        !self.events.is_empty() || !self.until.is_empty()
    }

    fn media_type(&self) -> &'static str {
        match self.patch.as_deref() {
            Some("merge") => "application/merge-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("json") => "application/json-patch+json",
            Some("apply") => "application/apply-patch+yaml",
            Some(other) => panic!("no patch is called {other}"),
            None if self.text.is_some() => "application/yaml",
            None => "application/json",
        }
    }

    fn to_request(
        &self,
        line: &str,
        body: String,
        filled: impl Fn(&str) -> String,
    ) -> Result<http::Request<Body>, String> {
        let (method, path) = line.split_once(' ').ok_or("`do` is METHOD PATH")?;
        let mut builder = http::Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            builder = builder.header(name, filled(value));
        }
        if !body.is_empty() && !self.headers.contains_key("content-type") {
            builder = builder.header("content-type", self.media_type());
        }
        builder.body(Body::from(body)).map_err(|error| error.to_string())
    }
}

/// The first events of a watch, until they are enough; fewer when it ends or nothing more comes.
async fn events(clock: &Clock, mut body: Body, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let (mut events, mut pending) = (vec![], Vec::new());
    while !is_enough(&events) {
        let Ok(Some(Ok(frame))) = clock.timeout(PATIENCE / 2, body.frame()).await else { break };
        pending.extend_from_slice(&frame.into_data().unwrap_or_default());
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            if !is_enough(&events) {
                events.push(serde_json::from_slice(&line).unwrap_or_default());
            }
        }
    }
    events
}
