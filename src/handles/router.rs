//! `Handles`: the operations, and the service that they make.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::{MethodFilter, any, on};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use serde::Serialize;
use serde_json::{Value, json};

use super::call::HandleCall;
use super::document::document;
use super::handle::{ClusterHandle, ROOT};
use apimachinery::status::Status;
use apimachinery::wire::{ApiService, status_response};

/// All operations of one cluster.
#[derive(Default)]
pub struct Handles {
    router: Router,
    operations: Vec<ClusterHandle>,
}

impl Handles {
    /// Adds an operation and what does it. The answer is a value ([`answer`]), or any response.
    ///
    /// # Panics
    /// If the path has this method already.
    #[must_use]
    pub fn with<F, Fut>(mut self, operation: ClusterHandle, act: F) -> Handles
    where
        F: Fn(HandleCall) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Response, Status>> + Send + 'static,
    {
        let path = format!("{ROOT}{}", operation.path);
        let filter = method_filter(&operation.method);
        let handle = move |call: HandleCall| {
            let answered = act(call);
            async move { answered.await.unwrap_or_else(|status| status_response(status, false)) }
        };
        self.router = self.router.route(&path, on(filter, handle));
        self.operations.push(operation);
        self
    }

    /// Routes among the operations; `GET` of the root lists them, and `openapi.json` describes them.
    pub fn service(self) -> ApiService {
        let this = self.with_itself();
        let router = this.router.fallback(any(nothing)).method_not_allowed_fallback(any(other_method));
        ApiService::new(tower::service_fn(move |request: http::Request<Body>| {
            let asked = tower::ServiceExt::oneshot(router.clone(), request);
            async move { Ok::<_, Infallible>(asked.await.unwrap_or_else(|never| match never {})) }
        }))
    }

    fn with_itself(self) -> Handles {
        let describe = ClusterHandle::get("/openapi.json", "What all handles take and answer, as OpenAPI.");
        let index = ClusterHandle::get("/", "Lists all handles.");
        let own = [describe.clone(), index.clone()];
        let operations: Arc<[ClusterHandle]> = self.operations.iter().cloned().chain(own).collect();
        // Made when somebody asks: a cluster whose handles nobody describes keeps no description of them.
        let answering = |describe: fn(&[ClusterHandle]) -> Value| {
            let operations = operations.clone();
            move |_: HandleCall| std::future::ready(answer(&describe(&operations)))
        };
        let with_root = answering(list);
        let mut this = self.with(describe, answering(document)).with(index, answering(list));
        let without_slash = move |call: HandleCall| async move {
            with_root(call).await.unwrap_or_else(|status| status_response(status, false))
        };
        this.router = this.router.route(ROOT, on(MethodFilter::GET, without_slash));
        this
    }
}

/// A value as the answer.
///
/// # Errors
/// 500 for what is no JSON.
pub fn answer(value: &impl Serialize) -> Result<Response, Status> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| Status::internal(error.to_string()))?;
    bytes.push(b'\n');
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn method_filter(method: &Method) -> MethodFilter {
    match *method {
        Method::GET => MethodFilter::GET,
        Method::DELETE => MethodFilter::DELETE,
        _ => MethodFilter::POST,
    }
}

fn list(operations: &[ClusterHandle]) -> Value {
    let line = |operation: &ClusterHandle| {
        let path = format!("{ROOT}{}", operation.path);
        json!({"method": operation.method.as_str(), "path": path, "summary": operation.summary})
    };
    json!({"handles": operations.iter().map(line).collect::<Vec<Value>>()})
}

async fn nothing(request: http::Request<Body>) -> Response {
    let text = format!("there is no handle at {}; GET {ROOT}/ lists them", request.uri().path());
    status_response(Status::failure(404, "NotFound", text), false)
}

async fn other_method(request: http::Request<Body>) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let text = format!("{path} does not take {method}; GET {ROOT}/ lists what there is");
    status_response(Status::failure(405, "MethodNotAllowed", text), false)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    fn greeting() -> ApiService {
        let greet = ClusterHandle::post("/greetings/{name}", "Greets.").query("how", "In which words.");
        let handles =
            Handles::default().with(greet.body(json!({"type": "object"})), |call: HandleCall| async move {
                let name = call.path("name").to_owned();
                let how = call.query("how").unwrap_or("hello").to_owned();
                let body: Value = call.json().await?;
                answer(&json!({"said": format!("{how} {name}{}", body["end"].as_str().unwrap_or_default())}))
            });
        handles.service()
    }

    async fn asked(method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = http::Request::builder().method(method).uri(format!("{ROOT}{path}"));
        let response = greeting().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn an_operation_reads_path_query_and_body() {
        let (code, said) = asked("POST", "/greetings/you%20all?how=good+day", "{\"end\": \"!\"}").await;
        assert_eq!((code, said["said"].as_str().unwrap()), (200, "good day you all!"));
        assert_eq!(asked("POST", "/greetings/you", "").await.1["said"], "hello you");
    }

    #[tokio::test]
    async fn what_there_is_is_listed_and_described() {
        for path in ["", "/"] {
            let (code, list) = asked("GET", path, "").await;
            assert_eq!(code, 200);
            assert_eq!(list["handles"][0]["path"], "/kubarium/v1/greetings/{name}");
        }
        let (_, document) = asked("GET", "/openapi.json", "").await;
        let greet = &document["paths"]["/kubarium/v1/greetings/{name}"]["post"];
        assert_eq!(greet["parameters"][0]["in"], "path");
        assert_eq!(greet["parameters"][1]["name"], "how");
        assert_eq!(greet["operationId"], "postGreetingsName");
    }

    #[tokio::test]
    async fn what_goes_wrong_is_a_status() {
        let long = "x".repeat(super::super::MAX_BODY_BYTES + 1);
        for (method, path, body, code, reason) in [
            ("GET", "/nothing", "", 404, "NotFound"),
            ("GET", "/greetings/you", "", 405, "MethodNotAllowed"),
            ("POST", "/greetings/you", "{", 400, "BadRequest"),
            ("POST", "/greetings/you", &long, 413, "RequestEntityTooLarge"),
        ] {
            let (answered, status) = asked(method, path, body).await;
            assert_eq!(
                (answered, &status["reason"], &status["kind"]),
                (code, &reason.into(), &"Status".into())
            );
        }
    }
}
