//! An apiserver of one kind, for the tests of this room: enough of lists, watches, writes and their failures.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sync::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tower::util::BoxCloneSyncService;

use super::client::Client;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::watch::{Bookmark, WatchEvent};
use apimachinery::wire::{
    ApiRequest, ApiResponse, ApiService, DecodedBody, ListAnswer, ObjectAnswer, StatusAnswer, WatchAnswer,
};
use apis::kind::Kind;
use clock::Clock;
use flow::Flow;

/// Holds the objects of one kind.
pub(super) struct FakeApi {
    kind: Arc<Kind>,
    /// Answers as a socket would: JSON in the body.
    in_bytes: bool,
    state: Mutex<FakeApiState>,
}

#[derive(Default)]
struct FakeApiState {
    revision: u64,
    compacted: u64,
    objects: BTreeMap<String, Arc<Object>>,
    history: Vec<(u64, WatchEvent)>,
    watchers: Vec<mpsc::Sender<WatchEvent>>,
    requests: Vec<String>,
    failures: Vec<Status>,
}

impl FakeApi {
    pub(super) fn new(kind: &Arc<Kind>, in_bytes: bool) -> Arc<FakeApi> {
        Arc::new(FakeApi { kind: kind.clone(), in_bytes, state: Mutex::default() })
    }

    pub(super) fn client(self: &Arc<FakeApi>, clock: &Clock, flow: &Flow) -> Client {
        let identity = Arc::new(UserInfo::authenticated("test", &[]));
        Client::new(self.service(), identity, clock.clone(), flow.clone())
    }

    fn service(self: &Arc<FakeApi>) -> ApiService {
        let api = self.clone();
        BoxCloneSyncService::new(tower::service_fn(move |request: ApiRequest| {
            let api = api.clone();
            async move { Ok(api.answer(request)) }
        }))
    }

    /// Creates or replaces an object; returns its revision.
    pub(super) fn put(&self, namespace: &str, name: &str, labels: Value) -> u64 {
        let tree = json!({ "metadata": { "namespace": namespace, "name": name, "labels": labels } });
        self.lock().put(&self.kind, tree).metadata.resource_version
    }

    pub(super) fn delete(&self, key: &str) {
        let mut state = self.lock();
        state.revision += 1;
        let revision = state.revision;
        if let Some(object) = state.objects.remove(key) {
            state.tell(WatchEvent::Deleted(Arc::new(object.at_revision(revision))));
        }
    }

    /// Ends every watch.
    pub(super) fn cut_watches(&self) {
        self.lock().watchers.clear();
    }

    /// Watches from before now are too old.
    pub(super) fn compact(&self) {
        let mut state = self.lock();
        state.compacted = state.revision;
        state.history.clear();
    }

    /// Tells every watch how far it is.
    pub(super) fn bookmark(&self) {
        let state = self.lock();
        let bookmark = Bookmark { resource_version: state.revision, initial_events_end: false };
        state.watchers.iter().for_each(|watcher| watcher.try_send(WatchEvent::Bookmark(bookmark)).unwrap());
    }

    /// The next requests fail, the last of these first.
    pub(super) fn fail_with(&self, failures: Vec<Status>) {
        self.lock().failures = failures;
    }

    /// Method, path and query of every request.
    pub(super) fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    pub(super) fn objects(&self) -> Vec<Arc<Object>> {
        self.lock().objects.values().cloned().collect()
    }

    fn answer(&self, request: ApiRequest) -> ApiResponse {
        let mut state = self.lock();
        let target = request.uri().to_string();
        state.requests.push(format!("{} {target}", request.method()));
        if let Some(status) = state.failures.pop() {
            return self.status(status);
        }
        let body = request.extensions().get().map(|DecodedBody(body)| (**body).clone()).unwrap_or_default();
        let path = request.uri().path().trim_start_matches("/api/v1/").trim_start_matches("namespaces/");
        let key = path.replace(&*self.kind.plural, "").replace("//", "/");
        let query = request.uri().query().unwrap_or_default();
        match *request.method() {
            Method::GET if query.contains("watch=true") => self.watch(&mut state, query),
            Method::GET if path.ends_with(&*self.kind.plural) => self.list(&state),
            Method::GET => self.found(state.objects.get(&key).cloned(), &key),
            Method::POST | Method::PUT => self.object(state.put(&self.kind, body)),
            Method::PATCH => {
                let patched = state.patch(&self.kind, &key, &body);
                self.found(patched, &key)
            }
            _ => self.found(state.objects.remove(&key), &key),
        }
    }

    fn watch(&self, state: &mut FakeApiState, query: &str) -> ApiResponse {
        let parameter = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
        let from: u64 = parameter.and_then(|text| text.parse().ok()).unwrap_or(0);
        if from < state.compacted {
            return self.status(Status::expired("too old resource version"));
        }
        let (sender, receiver) = mpsc::channel(4096);
        let missed = state.history.iter().filter(|(revision, _)| *revision > from);
        missed.for_each(|(_, event)| sender.try_send(event.clone()).unwrap());
        if self.in_bytes {
            let lines: Vec<String> = state.history.iter().map(|(_, event)| line(&self.kind, event)).collect();
            return Response::new(Body::from(lines.concat()));
        }
        state.watchers.push(sender);
        extended(200, WatchAnswer::new(receiver))
    }

    fn list(&self, state: &FakeApiState) -> ApiResponse {
        let items: Vec<_> = state.objects.values().cloned().collect();
        if !self.in_bytes {
            let answer: ListAnswer = List::complete(items, state.revision);
            return extended(200, answer);
        }
        let items: Vec<Value> = items.iter().map(|object| object.to_value()).collect();
        self.bytes(
            200,
            json!({ "metadata": { "resourceVersion": state.revision.to_string() }, "items": items }),
        )
    }

    fn found(&self, object: Option<Arc<Object>>, key: &str) -> ApiResponse {
        let missing = || self.status(Status::not_found(&self.kind.group_resource(), key));
        object.map_or_else(missing, |object| self.object(object))
    }

    fn object(&self, object: Arc<Object>) -> ApiResponse {
        if self.in_bytes { self.bytes(200, object.to_value()) } else { extended(200, ObjectAnswer(object)) }
    }

    fn status(&self, status: Status) -> ApiResponse {
        if self.in_bytes {
            self.bytes(status.code, status.to_value())
        } else {
            extended(status.code, StatusAnswer(status))
        }
    }

    fn bytes(&self, code: u16, tree: Value) -> ApiResponse {
        let body = Body::from(tree.to_string());
        Response::builder().status(code).body(body).unwrap()
    }

    fn lock(&self) -> MutexGuard<'_, FakeApiState> {
        self.state.lock()
    }
}

impl FakeApiState {
    fn put(&mut self, kind: &Kind, mut tree: Value) -> Arc<Object> {
        self.revision += 1;
        tree["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let object = Arc::new(Object::from_value(&tree, vec![String::new(); kind.selectable.len()]).unwrap());
        let event = match self.objects.insert(object.key(), object.clone()) {
            None => WatchEvent::Added(object.clone()),
            Some(_) => WatchEvent::Modified(object.clone()),
        };
        self.tell(event);
        object
    }

    /// A merge of the outermost level.
    fn patch(&mut self, kind: &Kind, key: &str, patch: &Value) -> Option<Arc<Object>> {
        let mut tree = self.objects.get(key)?.to_value();
        for (name, value) in patch.as_object()? {
            tree[name] = value.clone();
        }
        Some(self.put(kind, tree))
    }

    fn tell(&mut self, event: WatchEvent) {
        self.watchers.retain(|watcher| watcher.try_send(event.clone()).is_ok());
        self.history.push((self.revision, event));
    }
}

fn extended(code: u16, answer: impl Clone + Send + Sync + 'static) -> ApiResponse {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.extensions_mut().insert(answer);
    response
}

fn line(kind: &Kind, event: &WatchEvent) -> String {
    let mut object = event.object().unwrap().to_value();
    object["kind"] = (*kind.kind).into();
    format!("{}\n", json!({ "type": event.type_name(), "object": object }))
}
