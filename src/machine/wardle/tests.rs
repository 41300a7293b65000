//! What the sample apiserver answers, request by request.

use std::time::Duration;

use serde_json::{Value, json};

use super::{WardleStore, answer};
use crate::requests::{WebAnswer, WebRequest};

const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";

fn asked(store: &mut WardleStore, method: &str, target: &str, body: &Value) -> (u16, Value) {
    let answer = whole(store, method, target, body);
    (answer.code, serde_json::from_str(&answer.body).unwrap_or(Value::Null))
}

fn whole(store: &mut WardleStore, method: &str, target: &str, body: &Value) -> WebAnswer {
    let body = if body.is_null() { vec![] } else { body.to_string().into_bytes() };
    let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let headers = vec![("x-remote-user", "admin"), ("content-type", media_type)];
    let request = WebRequest {
        method,
        target,
        headers,
        body: &body,
        now: "2026-01-01T00:00:00Z",
        ..WebRequest::default()
    };
    answer(&request, store)
}

fn flunder(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"name": name, "labels": {"sample-label": "true"}}, "spec": spec})
}

#[test]
fn objects_are_made_found_changed_and_deleted() {
    let store = &mut WardleStore::default();
    let (code, made) = asked(store, "POST", FLUNDERS, &flunder("a", json!({"reference": "b"})));
    assert_eq!((code, &made["spec"]), (201, &json!({"reference": "b", "referenceType": "Flunder"})));
    assert_eq!(made["metadata"]["namespace"], "default");
    let (code, again) = asked(store, "POST", FLUNDERS, &flunder("a", json!({})));
    assert_eq!((code, &again["reason"]), (409, &json!("AlreadyExists")));
    let newer = FLUNDERS.replace("v1alpha1", "v1beta1");
    let (_, read) = asked(store, "GET", &format!("{newer}/a"), &Value::Null);
    assert_eq!(read["spec"], json!({"flunderReference": "b", "referenceType": "Flunder"}));
    assert_eq!(read["metadata"]["uid"], made["metadata"]["uid"]);
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"referenceType": "Fischer"}});
    let (code, patched) = asked(store, "PATCH", &format!("{FLUNDERS}/a"), &patch);
    assert_eq!((code, &patched["metadata"]["labels"]["x"]), (200, &json!("y")));
    let mut stale = made.clone();
    stale["metadata"]["labels"] = json!({});
    assert_eq!(asked(store, "PUT", &format!("{FLUNDERS}/a"), &stale).0, 409);
    stale["metadata"]["resourceVersion"] = patched["metadata"]["resourceVersion"].clone();
    assert_eq!(asked(store, "PUT", &format!("{FLUNDERS}/a"), &stale).0, 200);
    let listed = |store: &mut WardleStore, query: &str| {
        let (_, list) = asked(store, "GET", &format!("{FLUNDERS}{query}"), &Value::Null);
        list["items"].as_array().map(Vec::len)
    };
    asked(store, "POST", FLUNDERS, &flunder("b", json!({})));
    assert_eq!(listed(store, ""), Some(2));
    assert_eq!(listed(store, "?labelSelector=sample-label%3Dtrue"), Some(1));
    assert_eq!(listed(store, "?fieldSelector=metadata.name%3Da"), Some(1));
    assert_eq!(asked(store, "DELETE", &format!("{FLUNDERS}/a"), &Value::Null).1["status"], "Success");
    assert_eq!(asked(store, "DELETE", &format!("{FLUNDERS}/a"), &Value::Null).0, 404);
    asked(store, "DELETE", FLUNDERS, &Value::Null);
    assert_eq!(listed(store, ""), Some(0));
}

#[test]
fn what_may_not_be_is_refused() {
    let store = &mut WardleStore::default();
    let fischers = "/apis/wardle.example.com/v1alpha1/fischers";
    let fischer = json!({"metadata": {"name": "f"}, "disallowedFlunders": ["bad"]});
    assert_eq!(asked(store, "POST", fischers, &fischer).0, 201);
    let (code, banned) = asked(store, "POST", FLUNDERS, &flunder("bad", json!({})));
    let why = "flunders.wardle.example.com \"bad\" is forbidden: this name may not be used, please change the \
               resource name";
    assert_eq!((code, &banned["message"]), (403, &json!(why)));
    let newer = FLUNDERS.replace("v1alpha1", "v1beta1");
    let both = json!({"metadata": {"name": "x"}, "spec": {"flunderReference": "a", "fischerReference": "b"}});
    assert_eq!(asked(store, "POST", &newer, &both).0, 422);
    assert_eq!(asked(store, "POST", FLUNDERS, &both["nothing"]).0, 400);
    assert_eq!(asked(store, "POST", FLUNDERS, &json!({"kind": "Pod"})).0, 400);
    assert_eq!(asked(store, "GET", "/apis/wardle.example.com/v1beta1/fischers", &Value::Null).0, 404);
    let healthy = WebRequest { method: "GET", target: "/readyz", ..WebRequest::default() };
    assert_eq!(answer(&healthy, store).body, "ok");
}

#[test]
fn it_says_what_it_serves_and_what_happens() {
    let store = &mut WardleStore::default();
    let (_, group) = asked(store, "GET", "/apis/wardle.example.com", &Value::Null);
    assert_eq!(group["preferredVersion"]["version"], "v1beta1");
    let names = |store: &mut WardleStore, version: &str| {
        let (_, list) = asked(store, "GET", &format!("/apis/wardle.example.com/{version}"), &Value::Null);
        list["resources"].as_array().map(|all| all.iter().map(|one| one["name"].clone()).collect::<Vec<_>>())
    };
    assert_eq!(names(store, "v1alpha1").unwrap(), ["fischers", "flunders"]);
    assert_eq!(names(store, "v1beta1").unwrap(), ["flunders"]);
    let watch = |since: &str| format!("{FLUNDERS}?watch=true&resourceVersion={since}");
    let quiet = whole(store, "GET", &watch("1"), &Value::Null);
    assert!(quiet.body.is_empty() && quiet.delay > Duration::ZERO);
    asked(store, "POST", FLUNDERS, &flunder("a", json!({})));
    asked(store, "DELETE", &format!("{FLUNDERS}/a"), &Value::Null);
    let told = whole(store, "GET", &watch("1"), &Value::Null).body;
    let kinds: Vec<Value> =
        told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["ADDED", "DELETED"]);
    let headers =
        vec![("x-remote-user", "a"), ("accept", "application/json;as=PartialObjectMetadataList;v=v1")];
    let request = WebRequest { method: "GET", target: FLUNDERS, headers, ..WebRequest::default() };
    assert!(answer(&request, store).body.contains("\"kind\":\"PartialObjectMetadataList\""));
}
