//! Answers: objects, lists, tables and discovery as JSON.

use axum::body::Body;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use apimachinery::wire::ApiResponse;

pub(super) fn json_answer(value: &Value) -> ApiResponse {
    let mut response = http::Response::new(Body::from(value.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// `metav1.APIResourceList`
pub(super) fn resource_list(group_version: &str, resources: Value) -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources})
}

/// A list of a kind.
pub(super) fn list(kind: &str, api_version: &str, items: Vec<Value>) -> Value {
    json!({"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items})
}
