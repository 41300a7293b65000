//! Webhook conversion: a webhook on a port of this machine that splits `hostPort` into `host` and `port` and joins
//! them again, as in the documentation.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use http_body_util::BodyExt;
use kubarium::apimachinery::wire::{ApiRequest, ApiResponse, ApiService};
use kubarium::apiserver::server::{Server as Listening, Tls, bind};
use kubarium::pki::Authority;
use serde_json::{Value, json};

use super::{DEFINITIONS, definition, established};
use crate::apiserver::Server;
use crate::apiserver::watches::Watching;

/// A webhook that counts its calls.
struct Webhook {
    listening: Listening,
    authority: Authority,
    calls: Arc<AtomicU64>,
}

impl Webhook {
    async fn start() -> Webhook {
        let (calls, now) = (Arc::new(AtomicU64::new(0)), kubarium::clock::Clock::real().now());
        let authority = Authority::generate(now).unwrap();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let identity = authority.server(&["localhost"], &[address], now).unwrap();
        let counted = calls.clone();
        let service = ApiService::new(tower::service_fn(move |request: ApiRequest| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { Ok(answer(request).await) }
        }));
        let tls = Tls { identity, client_authorities: vec![], demands_client_certificates: false };
        let listener = bind((address, 0).into()).await.unwrap();
        let listening = Listening::start(listener, Some(&tls), service).unwrap();
        Webhook { listening, authority, calls }
    }

    fn client_config(&self) -> Value {
        let pem = self.authority.certificate_pem();
        let bundle = base64::engine::general_purpose::STANDARD.encode(pem);
        // As tools write it that put a path behind a slash; Go's servers know only the clean one.
        json!({"url": format!("https://{}//convert", self.listening.address()), "caBundle": bundle})
    }
}

async fn answer(request: ApiRequest) -> ApiResponse {
    assert_eq!(request.uri().path(), "/convert");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review = converted(serde_json::from_slice(&body).unwrap());
    let mut response = ApiResponse::new(review.to_string().into());
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

/// The answer to a review: what holds `refused` is not converted.
pub(super) fn converted(mut review: Value) -> Value {
    let request = review.as_object_mut().unwrap().remove("request").unwrap();
    let wanted = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let converted: Vec<Value> = objects.iter().map(|object| convert(object, wanted)).collect();
    let refuses = objects.iter().any(|object| object["hostPort"] == "refused");
    let mut managed =
        objects.iter().filter_map(|object| object["metadata"]["managedFields"].as_array()).flatten();
    let is_odd = managed.any(|entry| !entry["fieldsV1"].is_object());
    let result = match refuses {
        true => json!({"status": "Failure", "message": "not this one"}),
        false if is_odd => json!({"status": "Failure", "message": "fieldsV1 is no object"}),
        false => json!({"status": "Success"}),
    };
    review["response"] = json!({"uid": request["uid"], "convertedObjects": converted, "result": result});
    review
}

fn convert(object: &Value, wanted: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(wanted);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if wanted.ends_with("/v2") {
        let joined = text(&object["hostPort"]);
        let (host, port) = joined.split_once(':').unwrap_or((&joined, ""));
        (object["host"], object["port"]) = (json!(host), json!(port));
        object.as_object_mut().unwrap().remove("hostPort");
    } else {
        object["hostPort"] = json!(format!("{}:{}", text(&object["host"]), text(&object["port"])));
        ["host", "port"].iter().for_each(|field| drop(object.as_object_mut().unwrap().remove(*field)));
    }
    object
}

fn versions(storage: &str) -> Value {
    let of = |name: &str, fields: Value| {
        json!({"name": name, "served": true, "storage": name == storage,
            "selectableFields": fields.as_object().unwrap().keys()
                .map(|field| json!({"jsonPath": format!(".{field}")})).collect::<Vec<_>>(),
            "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}})
    };
    let text = json!({"type": "string"});
    json!([of("v1", json!({"hostPort": text})), of("v2", json!({"host": text, "port": text}))])
}

/// A server with a kind whose versions the webhook turns into one another.
async fn with_webhook(storage: &str) -> (Server, Webhook) {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config()}});
    let spec = json!({"versions": versions(storage), "conversion": conversion});
    server.create(DEFINITIONS, definition("converted.example.com", &json!({ "spec": spec }))).await;
    established(&server, "foos.converted.example.com").await;
    (server, webhook)
}

fn path(version: &str) -> String {
    format!("/apis/converted.example.com/{version}/namespaces/default/foos")
}

fn foo(version: &str, name: &str, fields: Value) -> Value {
    let mut tree = json!({"apiVersion": format!("converted.example.com/{version}"), "kind": "Foo",
        "metadata": {"name": name}});
    tree.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    tree
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

async fn told(watching: &mut Watching) -> [String; 3] {
    let event = watching.next().await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let object = &event["object"];
    [text(&event["type"]), text(&object["metadata"]["name"]), text(&object["hostPort"])]
}

/// Objects are stored as `host` and `port`; one who asks for `hostPort` selects by it, as in its own version.
#[tokio::test(flavor = "multi_thread")]
async fn fields_are_selected_in_the_version_that_is_asked_for() {
    let (server, webhook) = with_webhook("v2").await;
    for (name, port) in [("a", "1"), ("b", "2"), ("c", "1"), ("d", "2"), ("e", "1")] {
        server.create(&path("v2"), foo("v2", name, json!({"host": "h", "port": port}))).await;
    }
    let selected = |fields: &str| format!("{}?fieldSelector={fields}", path("v1"));
    let list = server.get(&selected("hostPort=h:1")).await;
    assert_eq!(names(&list), ["a", "c", "e"]);
    assert_eq!(list["items"][0]["hostPort"], "h:1");
    assert_eq!(names(&server.get(&selected("hostPort!=h:1,metadata.name=b")).await), ["b"]);
    let page = server.get(&format!("{}&limit=2", selected("hostPort=h:1"))).await;
    assert_eq!(names(&page), ["a", "c"]);
    let next = page["metadata"]["continue"].as_str().unwrap();
    let page = server.get(&format!("{}&limit=2&continue={next}", selected("hostPort=h:1"))).await;
    assert_eq!((names(&page), &page["metadata"]["continue"]), (vec!["e"], &json!("")));

    // From a state, and from a revision before the changes: what was in view leaves it, and the other way
    // about.
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let merge = |name: &'static str, port: &'static str| {
        let patch = json!({"port": port}).to_string();
        let path = format!("{}/{name}", path("v2"));
        let server = &server;
        async move { assert_eq!(server.patch(&path, "application/merge-patch+json", &patch).await.code, 200) }
    };
    let json = "application/json";
    let watch = format!("{}&watch=1", selected("hostPort=h:1"));
    let mut from_state = Watching::start(&server, &watch, json).await;
    for name in ["a", "c", "e"] {
        assert_eq!(told(&mut from_state).await, ["ADDED", name, "h:1"]);
    }
    let now = format!("{watch}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut from_now = Watching::start(&server, &now, json).await;
    merge("a", "2").await;
    merge("b", "1").await;
    let answer = server.call(&format!("DELETE {}/c", path("v1")), &Value::Null).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    merge("d", "3").await;
    merge("e", "1x").await;
    let changes = [("DELETED", "a"), ("ADDED", "b"), ("DELETED", "c"), ("DELETED", "e")];
    let mut from_revision =
        Watching::start(&server, &format!("{watch}&resourceVersion={revision}"), json).await;
    for watching in [&mut from_state, &mut from_now, &mut from_revision] {
        for (event, name) in changes {
            assert_eq!(told(watching).await, [event, name, "h:1"]);
        }
    }
    webhook.listening.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_converts_objects_lists_and_what_was_stored_before() {
    let (server, webhook) = with_webhook("v1").await;
    server.create(&path("v1"), foo("v1", "a", json!({"hostPort": "h:1"}))).await;
    assert_eq!(webhook.calls.load(Ordering::Relaxed), 0, "the stored version needs nobody");
    let a = server.get(&format!("{}/a", path("v2"))).await;
    assert_eq!((&a["host"], &a["port"], &a["hostPort"]), (&json!("h"), &json!("1"), &Value::Null));
    let b = server.create(&path("v2"), foo("v2", "b", json!({"host": "g", "port": "2"}))).await;
    assert_eq!((&b["host"], &b["apiVersion"]), (&json!("g"), &json!("converted.example.com/v2")));
    assert_eq!(server.get(&format!("{}/b", path("v1"))).await["hostPort"], "g:2");

    // What is stored stays as it was; what comes is stored in the new version.
    let patch = json!({"spec": {"versions": versions("v2")}}).to_string();
    let crd = format!("{DEFINITIONS}/foos.converted.example.com");
    let answer = server.patch(&crd, "application/merge-patch+json", &patch).await;
    assert_eq!(answer.json()["status"]["storedVersions"], json!(["v1", "v2"]), "{}", answer.text);
    server.create(&path("v2"), foo("v2", "c", json!({"host": "f", "port": "3"}))).await;
    let before = webhook.calls.load(Ordering::Relaxed);
    let list = server.get(&path("v2")).await;
    let hosts: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["host"]).collect();
    assert_eq!(hosts, ["h", "g", "f"]);
    assert!(webhook.calls.load(Ordering::Relaxed) <= before + 1, "one question for a whole list");
    let list = server.get(&path("v1")).await;
    let joined: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|item| &item["hostPort"]).collect();
    assert_eq!(joined, ["h:1", "g:2", "f:3"]);

    let answer = server
        .patch(&format!("{}/a", path("v1")), "application/merge-patch+json", r#"{"hostPort": "h:9"}"#)
        .await;
    assert_eq!((answer.code, &answer.json()["hostPort"]), (200, &json!("h:9")), "{}", answer.text);
    assert_eq!(server.get(&format!("{}/a", path("v2"))).await["port"], "9");
    let answer = server.call(&format!("DELETE {}/a", path("v1")), &Value::Null).await;
    assert_eq!(answer.code, 200, "{}", answer.text);

    let refused = foo("v1", "d", json!({"hostPort": "refused"}));
    let answer = server.call(&format!("POST {}", path("v1")), &refused).await;
    let wanted = "conversion webhook for converted.example.com/v1, Kind=Foo failed: not this one";
    assert_eq!((answer.code, answer.status().2.as_str()), (500, wanted));
    webhook.listening.stop().await;
}
