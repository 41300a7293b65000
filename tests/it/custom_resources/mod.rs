//! CustomResourceDefinitions and their objects as a client meets them: definitions and what they are answered
//! with, and stories of requests, both as data.

mod conversion;
mod equivalents;
mod kube_rs;
mod publishing;

use serde_json::{Value, json};

use crate::apiserver::{Answer, Server};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition as small as can be, with `more` laid over it (RFC 7386).
pub(crate) fn definition(group: &str, more: &Value) -> Value {
    let mut base = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("foos.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    merge(&mut base, more);
    base
}

/// RFC 7386.
fn merge(tree: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else { return };
    for (name, value) in patch {
        match value {
            Value::Null => drop(tree.as_object_mut().unwrap().remove(name)),
            Value::Object(_) if tree[name].is_object() => merge(&mut tree[name], value),
            other => tree[name] = other.clone(),
        }
    }
}

/// Waits until a definition says that it is served.
pub(crate) async fn established(server: &Server, name: &str) -> Value {
    loop {
        let found = server.get(&format!("{DEFINITIONS}/{name}")).await;
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        if conditions.iter().any(is) {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

/// The answer to a step of a story, as the story says it.
fn check(story: &str, step: &Value, answer: &Answer) {
    let shown = format!("{story}: {}\n{}", step["do"], answer.text);
    let codes = step["code"].as_u64().unwrap_or(200);
    assert_eq!(u64::from(answer.code), codes, "{shown}");
    for text in step["contains"].as_array().into_iter().flatten() {
        assert!(answer.text.contains(&text.as_str().unwrap().replace('"', "\\\"")), "lacks {text}\n{shown}");
    }
    for text in step["warnings"].as_array().into_iter().flatten() {
        let text = text.as_str().unwrap().replace('"', "\\\"");
        assert!(answer.warnings().iter().any(|warning| warning.contains(&text)), "no {text}\n{shown}");
    }
    for (pointer, wanted) in step["is"].as_object().into_iter().flatten() {
        let found = answer.json().pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(found, *wanted, "{pointer}\n{shown}");
    }
}

async fn take(server: &Server, story: &str, step: &Value) {
    let line = step["do"].as_str().unwrap_or_default();
    let media_type = step["as"].as_str().unwrap_or("application/json");
    let body = match &step["body"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        tree => tree.to_string(),
    };
    let accept = step["accept"].as_str().unwrap_or("application/json");
    let headers = [("content-type", media_type), ("accept", accept)];
    // What follows from a change of the definition follows at once, but not within the same answer.
    let mut left = if step["eventually"] == true { 100_000 } else { 0 };
    loop {
        let answer = server.call_with(line, &headers, body.clone()).await;
        if left == 0 || u64::from(answer.code) == step["code"].as_u64().unwrap_or(200) {
            return check(story, step, &answer);
        }
        left -= 1;
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_answered_as_upstream_answers_them() {
    let server = Server::start().await;
    let cases: Vec<Value> = serde_yaml::from_str(include_str!("definitions.yaml")).unwrap();
    for (at, case) in cases.iter().enumerate() {
        let group = format!("g{at}.example.com");
        let mut body = definition(&group, &case["definition"]);
        if !case["schema"].is_null() {
            body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = case["schema"].clone();
        }
        if !case["version"].is_null() {
            merge(&mut body["spec"]["versions"][0], &case["version"]);
        }
        let answer = server.call(&format!("POST {DEFINITIONS}"), &body).await;
        let name = format!("definition {at}");
        let code = if case["refused"].is_null() { 201 } else { 422 };
        let step = json!({"do": case, "code": code, "contains": case["refused"], "is": case["is"]});
        check(&name, &step, &answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_objects_are_answered_as_upstream_answers_them() {
    let server = Server::start().await;
    let stories: Vec<Value> = serde_yaml::from_str(include_str!("stories.yaml")).unwrap();
    for story in &stories {
        let name = story["story"].as_str().unwrap();
        let group = story["group"].as_str().unwrap();
        server.create(DEFINITIONS, definition(group, &story["definition"])).await;
        established(&server, &format!("foos.{group}")).await;
        for step in story["steps"].as_array().unwrap() {
            take(&server, name, step).await;
        }
    }
}
