//! What one request may cost: how large an object may become, and who waits while it is worked on.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::{CONFIG_MAPS, Server, config_map};
use crate::custom_resources::{DEFINITIONS, definition, established};

const APPLY: &str = "application/apply-patch+yaml";
const TOO_LARGE: &str = "etcdserver: request is too large";

/// A server with a custom kind of this schema.
async fn serving(group: &str, schema: Value) -> (Server, String) {
    let server = Server::start().await;
    let mut custom = definition(group, &json!({}));
    custom["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
    server.create(DEFINITIONS, custom).await;
    established(&server, &format!("foos.{group}")).await;
    (server, format!("/apis/{group}/v1/namespaces/default/foos"))
}

fn foo(group: &str, name: &str, members: Value) -> Value {
    let mut body = json!({"apiVersion": format!("{group}/v1"), "kind": "Foo", "metadata": {"name": name}});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_make_no_object_that_etcd_would_not_take() {
    const GROUP: &str = "defaulted.example.com";
    let text = json!({"type": "string", "default": "x".repeat(500_000)});
    let items = json!({"type": "object", "properties": {"text": text}});
    let list = json!({"type": "array", "items": items});
    let (server, foos) = serving(GROUP, json!({"type": "object", "properties": {"list": list}})).await;
    let many = foo(GROUP, "many", json!({"list": vec![json!({}); 10_000]}));
    let refused = server.call(&format!("POST {foos}"), &many).await;
    assert_eq!(refused.status(), (500, String::new(), TOO_LARGE.into()));
    let path = format!("{foos}/many?fieldManager=me");
    let refused = server.patch(&path, APPLY, &many.to_string()).await;
    assert_eq!(refused.status(), (500, String::new(), TOO_LARGE.into()));
    let few = foo(GROUP, "few", json!({"list": [{}, {}]}));
    let stored = server.create(&foos, few).await;
    assert_eq!(stored["list"][1]["text"].as_str().unwrap().len(), 500_000);
    // A merge patch makes room for more defaults.
    let more = json!({"list": vec![json!({}); 1_000]}).to_string();
    let refused = server.patch(&format!("{foos}/few"), "application/merge-patch+json", &more).await;
    assert_eq!(refused.status(), (500, String::new(), TOO_LARGE.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_as_large_as_etcd_takes_it_and_goes_without_its_owners_first() {
    const GROUP: &str = "large.example.com";
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let (server, foos) = serving(GROUP, schema).await;
    let long = |bytes: usize| foo(GROUP, "long", json!({"text": "x".repeat(bytes)}));
    let refused = server.call(&format!("POST {foos}"), &long(1_600_000)).await;
    assert_eq!(refused.status(), (500, String::new(), TOO_LARGE.into()));
    let refused = server.call(&format!("POST {foos}"), &long(2_200_000)).await;
    let (code, reason, message) = refused.status();
    assert_eq!((code, &*reason), (500, ""));
    let words = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (";
    assert!(message.starts_with(words) && message.ends_with(" vs. 2097152)"), "{message}");
    server.create(&foos, long(1_500_000)).await;
    let wide: Map<String, Value> = (0..6_000).map(|at| (format!("{at:0>130}"), json!("v"))).collect();
    let wide = foo(GROUP, "wide", json!({"spec": wide}));
    let stored = server.create(&foos, wide.clone()).await;
    assert_eq!((&stored["metadata"]["managedFields"], &stored["spec"]), (&Value::Null, &wide["spec"]));
    let mut applied = wide;
    applied["metadata"]["name"] = "applied".into();
    let path = format!("{foos}/applied?fieldManager=me");
    let refused = server.patch(&path, APPLY, &applied.to_string()).await;
    assert_eq!(refused.status(), (500, String::new(), TOO_LARGE.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_patch_that_doubles_and_doubles_is_refused() {
    let server = Server::start().await;
    server.create(CONFIG_MAPS, config_map("seed")).await;
    let annotations = "/metadata/annotations";
    let add = json!({"op": "add", "path": annotations, "value": {"a": "x".repeat(1000)}});
    let copies =
        (0..34).map(|at| json!({"op": "copy", "from": annotations, "path": format!("{annotations}/m{at}")}));
    let patch: Vec<Value> = [add].into_iter().chain(copies).collect();
    let patch = Value::from(patch).to_string();
    let refused = server.patch(&format!("{CONFIG_MAPS}/seed"), "application/json-patch+json", &patch).await;
    let text = "the server rejected our request due to an error in our request";
    assert_eq!(refused.status(), (422, "Invalid".into(), text.into()));
}

/// The runtime's one thread is asked last, and answers first: else it would work off the others before.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn livez_is_answered_while_long_requests_are_worked_on() {
    let server = Arc::new(Server::start().await);
    // From here on nothing waits for a cache.
    server.get(CONFIG_MAPS).await;
    let owner =
        |at: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": at.to_string()});
    let mut owned = config_map("owned");
    owned["metadata"]["ownerReferences"] = (0..10_000).map(owner).collect();
    let long = format!("POST {CONFIG_MAPS}?dryRun=All");
    let mut requests = vec![(long, owned.to_string()); 6];
    requests.push(("GET /livez".into(), String::new()));
    let order = Arc::new(Mutex::new(Vec::new()));
    let answered = order.clone();
    let ask = move |(line, body): (String, String)| {
        let (server, answered) = (server.clone(), answered.clone());
        tokio::spawn(async move {
            let answer = server.call_with(&line, &[("content-type", "application/json")], body).await;
            answered.lock().unwrap().push((line, answer.code));
        })
    };
    // From the runtime's own thread, which goes to all of them before it hears of any that is done: how fast they
    // are asked is no part of it. The newest task would be the first, and is none of them.
    tokio::spawn(async move {
        let asked: Vec<_> = requests.into_iter().map(ask).collect();
        tokio::spawn(async {});
        for asked in asked {
            asked.await.unwrap();
        }
    })
    .await
    .unwrap();
    let order = order.lock().unwrap();
    assert_eq!(order[0], ("GET /livez".into(), 200));
    assert!(order[1..].iter().all(|(_, code)| *code == 201), "{order:?}");
}
