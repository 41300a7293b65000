//! What etcd answers to plain HTTP (`etcdhttp.HandleHealth`, `HandleVersion`, `HandleMetrics`).

use axum::body::Body;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use serde_json::json;

use crate::alarms;
use crate::exposition;
use crate::server::{CLUSTER_VERSION, EtcdServer, VERSION};

/// The form that Prometheus asks for.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn answer(server: &EtcdServer, method: &Method, uri: &Uri) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return refused;
    }
    let broken = || server.kv().and_then(|kv| Ok(kv.writable()?)).err();
    match uri.path() {
        "/health" => match alarm(server, uri).or_else(|| Some(broken()?.message)) {
            None => json_of(StatusCode::OK, &json!({"health": "true", "reason": ""})),
            Some(reason) => {
                json_of(StatusCode::SERVICE_UNAVAILABLE, &json!({"health": "false", "reason": reason}))
            }
        },
        // That there is no room is nothing that a restart would mend.
        "/livez" | "/readyz" => match broken() {
            None => text(StatusCode::OK, "ok\n"),
            Some(status) => text(StatusCode::SERVICE_UNAVAILABLE, status.message),
        },
        "/version" => {
            json_of(StatusCode::OK, &json!({"etcdserver": VERSION, "etcdcluster": CLUSTER_VERSION}))
        }
        "/metrics" => {
            let mut response = text(StatusCode::OK, exposition::render(server));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS));
            response
        }
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// One that is raised and that nobody asked to leave out (`?exclude=NOSPACE`).
fn alarm(server: &EtcdServer, uri: &Uri) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    let excluded: Vec<&str> = query.split('&').filter_map(|pair| pair.strip_prefix("exclude=")).collect();
    let raised = server.alarms().list(0).into_iter().map(|raised| alarms::name(raised.alarm));
    raised.filter(|name| !excluded.contains(name)).map(|name| format!("ALARM {name}")).next()
}

fn text(status: StatusCode, words: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(words.into());
    *response.status_mut() = status;
    response
}

fn json_of(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    let mut response = text(status, value.to_string());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
