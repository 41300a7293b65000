//! `Client`: requests to the apiserver in a component's own name (client-go's `rest.RESTClient` and the
//! clientsets).
//!
//! In process a request carries its body as a tree and takes its answer as shared objects, so that nobody
//! pays for JSON, while every filter still runs. Answers in plain bytes are understood too. As client-go
//! does, it waits and asks again, at most ten times, when the answer is 429 or 5xx and says how long to wait
//! (`Retry-After`).

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tower::ServiceExt;

use super::metrics::RestMetrics;
use super::request::{RepeatableRequest, object_path, query};
use super::response;
use super::stream_watcher;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions, PatchType};
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::watch::WatchEvent;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, CausedBy, InProcessUser};
use apis::kind::{Kind, Subresource};
use clock::Clock;
use flow::{Flow, StepId};

/// How often a request is repeated when the server says when to come again.
const RETRIES: usize = 10;
/// The longest wait between two attempts that a server can ask for; a longer one is an answer for the caller.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(120);

/// The apiserver, as one component sees it. Cloning shares it.
///
/// A `namespace` is empty for cluster-scoped kinds, and in lists and watches for all namespaces. Trees that
/// are sent need no `apiVersion` and `kind`; objects that are returned have none.
#[derive(Clone)]
pub struct Client {
    shared: Arc<ClientShared>,
    cause: StepId,
}

struct ClientShared {
    service: ApiService,
    identity: Arc<UserInfo>,
    clock: Clock,
    flow: Flow,
    /// None where nobody counts.
    metrics: Option<Arc<RestMetrics>>,
}

impl Client {
    /// Asks `service` in the name of `identity`.
    pub fn new(service: ApiService, identity: Arc<UserInfo>, clock: Clock, flow: Flow) -> Client {
        let shared = ClientShared { service, identity, clock, flow, metrics: None };
        Client { shared: Arc::new(shared), cause: StepId::NONE }
    }

    /// A client of this identity, of which the requests are counted.
    pub fn counted(&self, metrics: Arc<RestMetrics>) -> Client {
        let identity = self.shared.identity.clone();
        self.with(identity, Some(metrics))
    }

    /// A client that asks in the name of `identity`.
    pub fn acting_as(&self, identity: UserInfo) -> Client {
        self.with(Arc::new(identity), self.shared.metrics.clone())
    }

    fn with(&self, identity: Arc<UserInfo>, metrics: Option<Arc<RestMetrics>>) -> Client {
        let ClientShared { service, clock, flow, .. } = &*self.shared;
        let (service, clock, flow) = (service.clone(), clock.clone(), flow.clone());
        let shared = ClientShared { service, identity, clock, flow, metrics };
        Client { shared: Arc::new(shared), cause: self.cause }
    }

    /// A client of this identity, whose requests are caused by `cause` in the flow record.
    pub fn caused_by(&self, cause: StepId) -> Client {
        Client { shared: self.shared.clone(), cause }
    }

    /// Who asks.
    pub fn identity(&self) -> &Arc<UserInfo> {
        &self.shared.identity
    }

    /// The cluster's causal record.
    pub fn flow(&self) -> &Flow {
        &self.shared.flow
    }

    /// One object.
    pub async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Arc<Object>, Status> {
        let call = RepeatableRequest::new(Method::GET, object_path(kind, namespace, name));
        response::object(kind, self.send(call).await?).await
    }

    /// One object, if it is there.
    pub async fn find(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Object>>, Status> {
        match self.get(kind, namespace, name).await {
            Err(status) if status.is_not_found() => Ok(None),
            found => found.map(Some),
        }
    }

    /// The objects of a namespace, or of all.
    pub async fn list(&self, kind: &Kind, namespace: &str, options: &ListOptions) -> Result<List, Status> {
        let target = format!("{}{}", kind.collection_path(namespace), query(options, false));
        response::list(kind, self.send(RepeatableRequest::new(Method::GET, target)).await?).await
    }

    /// What happens to the objects of a namespace, or of all. Dropping the receiver ends the watch.
    pub async fn watch(
        &self,
        kind: &Kind,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<mpsc::Receiver<WatchEvent>, Status> {
        let target = format!("{}{}", kind.collection_path(namespace), query(options, true));
        let response = self.send(RepeatableRequest::new(Method::GET, target)).await?;
        stream_watcher::watch(kind, response, &self.shared.clock).await
    }

    /// Creates an object; `metadata.generateName` makes the server choose the name.
    pub async fn create(&self, kind: &Kind, namespace: &str, object: Value) -> Result<Arc<Object>, Status> {
        let call =
            RepeatableRequest::new(Method::POST, kind.collection_path(namespace)).with(typed(kind, object));
        response::object(kind, self.send(call).await?).await
    }

    /// Creates an object of somebody's text: it is read as bytes of a socket are, and refused for fields that
    /// its kind does not have (`fieldValidation=Strict`).
    pub async fn create_strictly(
        &self,
        kind: &Kind,
        namespace: &str,
        object: &Value,
        manager: &str,
    ) -> Result<Arc<Object>, Status> {
        let call = RepeatableRequest::new(Method::POST, strictly(kind.collection_path(namespace), manager));
        let call = call.with(object.clone()).in_text();
        response::object(kind, self.send(call).await?).await
    }

    /// Replaces an object; with `metadata.resourceVersion` only in the state that the caller saw.
    pub async fn update(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Object>, Status> {
        let call =
            RepeatableRequest::new(Method::PUT, object_path(kind, namespace, name)).with(typed(kind, object));
        response::object(kind, self.send(call).await?).await
    }

    /// Replaces the status of an object, and nothing else of it.
    pub async fn update_status(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Object>, Status> {
        let path = format!("{}/status", object_path(kind, namespace, name));
        let call = RepeatableRequest::new(Method::PUT, path).with(typed(kind, object));
        response::object(kind, self.send(call).await?).await
    }

    /// Changes an object by a patch.
    pub async fn patch(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        patch_type: PatchType,
        patch: &Value,
    ) -> Result<Arc<Object>, Status> {
        self.send_patch(kind, object_path(kind, namespace, name), patch_type, patch).await
    }

    /// Changes an object by a patch of somebody's text, as [`Client::create_strictly`] creates.
    pub async fn patch_strictly(
        &self,
        kind: &Kind,
        [namespace, name]: [&str; 2],
        patch_type: PatchType,
        patch: &Value,
        manager: &str,
    ) -> Result<Arc<Object>, Status> {
        let call =
            RepeatableRequest::new(Method::PATCH, strictly(object_path(kind, namespace, name), manager));
        let call = call.with(patch.clone()).in_text().of_type(patch_type.media_type());
        response::object(kind, self.send(call).await?).await
    }

    /// Changes the status of an object by a patch, and nothing else of it.
    pub async fn patch_status(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        patch_type: PatchType,
        patch: &Value,
    ) -> Result<Arc<Object>, Status> {
        let path = format!("{}/status", object_path(kind, namespace, name));
        self.send_patch(kind, path, patch_type, patch).await
    }

    /// Changes an object, or (if its name is not empty) a subresource, by a patch whose fields `manager`
    /// owns; of server-side apply conflicts are won. Returns what the server answers, as a tree.
    pub async fn patch_as(
        &self,
        kind: &Kind,
        [namespace, name, subresource]: [&str; 3],
        patch_type: PatchType,
        patch: &Value,
        manager: &str,
    ) -> Result<Value, Status> {
        let slash = if subresource.is_empty() { "" } else { "/" };
        let force = if patch_type == PatchType::Apply { "&force=true" } else { "" };
        let path = object_path(kind, namespace, name);
        let path = format!("{path}{slash}{subresource}?fieldManager={manager}{force}");
        let call =
            RepeatableRequest::new(Method::PATCH, path).with(patch.clone()).of_type(patch_type.media_type());
        response::value(self.send(call).await?).await
    }

    /// Deletes an object, or begins to: with finalizers or grace it lives on with a deletionTimestamp.
    pub async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), Status> {
        let call =
            RepeatableRequest::new(Method::DELETE, object_path(kind, namespace, name)).with_options(options);
        response::done(self.send(call).await?).await
    }

    /// Deletes what a list would return.
    pub async fn delete_collection(
        &self,
        kind: &Kind,
        namespace: &str,
        options: &DeleteOptions,
        selection: &ListOptions,
    ) -> Result<(), Status> {
        let target = format!("{}{}", kind.collection_path(namespace), query(selection, false));
        let call = RepeatableRequest::new(Method::DELETE, target).with_options(options);
        response::done(self.send(call).await?).await
    }

    /// Posts to a subresource: `binding`, `eviction`, `token`. Returns what the server answers, as a tree.
    pub async fn create_subresource(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: Value,
    ) -> Result<Value, Status> {
        self.send_subresource(Method::POST, kind, [namespace, name, subresource], body).await
    }

    /// Replaces a subresource: `scale`, `finalize`, `approval`. Returns what the server answers, as a tree.
    pub async fn update_subresource(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: Value,
    ) -> Result<Value, Status> {
        self.send_subresource(Method::PUT, kind, [namespace, name, subresource], body).await
    }

    /// A subresource: `scale`. Returns what the server answers, as a tree.
    pub async fn get_subresource(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
    ) -> Result<Value, Status> {
        self.get_path(&format!("{}/{subresource}", object_path(kind, namespace, name))).await
    }

    /// Asks a question whose answer nobody keeps: a `SubjectAccessReview`, a `TokenReview`. Returns it as a
    /// tree.
    pub async fn review(&self, kind: &Kind, review: Value) -> Result<Value, Status> {
        let call = RepeatableRequest::new(Method::POST, kind.collection_path("")).with(typed(kind, review));
        response::value(self.send(call).await?).await
    }

    /// What is at a path, as a tree: for what has no kind here.
    pub async fn get_path(&self, path: &str) -> Result<Value, Status> {
        response::value(self.send(RepeatableRequest::new(Method::GET, path.to_owned())).await?).await
    }

    /// Deletes what is at a path, be it a collection: of what has no kind here.
    pub async fn delete_path(&self, path: &str) -> Result<(), Status> {
        response::done(self.send(RepeatableRequest::new(Method::DELETE, path.to_owned())).await?).await
    }

    /// Any request, in this client's name; the answer is as a socket would get it.
    pub async fn raw(&self, mut request: ApiRequest) -> ApiResponse {
        let extensions = request.extensions_mut();
        extensions.insert(InProcessUser(self.shared.identity.clone()));
        if self.cause != StepId::NONE {
            extensions.insert(CausedBy(self.cause.0));
        }
        let counted = self
            .shared
            .metrics
            .as_ref()
            .map(|metrics| (metrics, request.method().clone(), self.shared.clock.elapsed()));
        let response = match self.shared.service.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if let Some((metrics, method, begun)) = counted {
            let duration = self.shared.clock.elapsed().saturating_sub(begun);
            metrics.record(method.as_str(), response.status().as_u16(), duration);
        }
        response
    }

    /// A request as it stands, in nobody's name: who asks is what its headers say, as over a socket.
    pub async fn as_it_is(&self, request: http::Request<Vec<u8>>) -> ApiResponse {
        match self.shared.service.clone().oneshot(request.map(Into::into)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn send_patch(
        &self,
        kind: &Kind,
        path: String,
        patch_type: PatchType,
        patch: &Value,
    ) -> Result<Arc<Object>, Status> {
        let call =
            RepeatableRequest::new(Method::PATCH, path).with(patch.clone()).of_type(patch_type.media_type());
        response::object(kind, self.send(call).await?).await
    }

    async fn send_subresource(
        &self,
        method: Method,
        kind: &Kind,
        [namespace, name, subresource]: [&str; 3],
        body: Value,
    ) -> Result<Value, Status> {
        let path = format!("{}/{subresource}", object_path(kind, namespace, name));
        let call = RepeatableRequest::new(method, path).with(typed_as_subresource(kind, subresource, body));
        response::value(self.send(call).await?).await
    }

    /// Asks until the answer does not say when to ask again.
    async fn send(&self, call: RepeatableRequest) -> Result<ApiResponse, Status> {
        for _ in 0..RETRIES {
            let answer = self.raw(call.request()?).await;
            match response::retry_after(&answer).filter(|pause| *pause <= LONGEST_RETRY_AFTER) {
                Some(pause) => self.shared.clock.sleep(pause).await,
                None => return Ok(answer),
            }
        }
        Ok(self.raw(call.request()?).await)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.shared.identity.name)
    }
}

/// A write that is refused for unknown fields.
fn strictly(path: String, manager: &str) -> String {
    format!("{path}?fieldManager={manager}&fieldValidation=Strict")
}

/// With the `apiVersion` and `kind` that every body needs.
fn typed(kind: &Kind, object: Value) -> Value {
    with_type(object, &kind.api_version(), &kind.kind)
}

fn typed_as_subresource(kind: &Kind, subresource: &str, body: Value) -> Value {
    let named = |candidate: &&Subresource| candidate.name() == subresource;
    match kind.subresources.iter().find(named).and_then(|found| found.kind()) {
        Some(("", version, body_kind)) => with_type(body, version, body_kind),
        Some((group, version, body_kind)) => with_type(body, &format!("{group}/{version}"), body_kind),
        None => typed(kind, body),
    }
}

fn with_type(mut body: Value, api_version: &str, kind: &str) -> Value {
    if let Value::Object(members) = &mut body {
        set_default(members, "apiVersion", api_version);
        set_default(members, "kind", kind);
    }
    body
}

fn set_default(members: &mut Map<String, Value>, name: &str, value: &str) {
    if !members.contains_key(name) {
        members.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeApi;
    use apis::core::config_map::CONFIG_MAPS;
    use serde_json::json;

    #[tokio::test]
    async fn objects_and_bytes_read_alike() {
        for in_bytes in [false, true] {
            let api = FakeApi::new(&CONFIG_MAPS, in_bytes);
            let client = api.client(&Clock::real(), &Flow::off());
            let tree = json!({ "metadata": { "name": "a", "namespace": "ns" }, "data": { "k": "v" } });
            let created = client.create(&CONFIG_MAPS, "ns", tree).await.unwrap();
            let read = client.get(&CONFIG_MAPS, "ns", "a").await.unwrap();
            assert_eq!((created.stored(), read.metadata.resource_version), (read.stored(), 1));
            let patch = json!({ "data": { "k": "w" } });
            client.patch(&CONFIG_MAPS, "ns", "a", PatchType::Merge, &patch).await.unwrap();
            let list = client.list(&CONFIG_MAPS, "", &ListOptions::default()).await.unwrap();
            assert_eq!((list.resource_version, list.items.len()), (2, 1));
            assert_eq!(list.items[0].to_value()["data"]["k"], "w");
            let mut events = client.watch(&CONFIG_MAPS, "", &ListOptions::default()).await.unwrap();
            assert!(matches!(events.recv().await, Some(WatchEvent::Added(object)) if object.key() == "ns/a"));
            assert!(matches!(events.recv().await, Some(WatchEvent::Modified(_))));
            let missing = client.get(&CONFIG_MAPS, "ns", "b").await.unwrap_err();
            assert!(missing.is_not_found(), "{missing:?}");
            client.delete(&CONFIG_MAPS, "ns", "a", &DeleteOptions::default()).await.unwrap();
            assert!(client.delete(&CONFIG_MAPS, "ns", "a", &DeleteOptions::default()).await.is_err());
        }
    }

    #[tokio::test]
    async fn it_comes_again_when_the_server_says_when() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let api = FakeApi::new(&CONFIG_MAPS, false);
        api.put("ns", "a", json!({}));
        api.fail_with(vec![Status::too_many_requests("busy", 1), Status::too_many_requests("busy", 3)]);
        let client = api.client(&clock, &Flow::off());
        let asking =
            tokio::spawn(async move { client.get(&CONFIG_MAPS, "ns", "a").await.map(|object| object.key()) });
        for seconds in [3, 1] {
            while clock.next_wake().is_none() {
                tokio::task::yield_now().await;
            }
            assert_eq!(clock.next_wake(), Some(Duration::from_secs(seconds)));
            clock.advance(Duration::from_secs(seconds));
        }
        assert_eq!(asking.await.unwrap().unwrap(), "ns/a");
        assert_eq!(api.requests().len(), 3);
    }

    #[tokio::test]
    async fn a_server_that_never_says_when_is_asked_once_and_one_that_always_does_eleven_times() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let api = FakeApi::new(&CONFIG_MAPS, false);
        let client = api.client(&clock, &Flow::off());
        api.fail_with(vec![Status::internal("down")]);
        assert_eq!(client.get(&CONFIG_MAPS, "ns", "a").await.unwrap_err().code, 500);
        assert_eq!(api.requests().len(), 1);
        api.fail_with(vec![Status::too_many_requests("busy", 1); 20]);
        let asking = tokio::spawn(async move { client.get(&CONFIG_MAPS, "ns", "a").await.map(|_| ()) });
        while !asking.is_finished() {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        assert_eq!(asking.await.unwrap().unwrap_err().code, 429);
        assert_eq!(api.requests().len(), 1 + 11);
    }
}
