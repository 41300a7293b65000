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
            "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}})
    };
    let text = json!({"type": "string"});
    json!([of("v1", json!({"hostPort": text})), of("v2", json!({"host": text, "port": text}))])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_converts_objects_lists_and_what_was_stored_before() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config()}});
    let spec = json!({"versions": versions("v1"), "conversion": conversion});
    server.create(DEFINITIONS, definition("converted.example.com", &json!({ "spec": spec }))).await;
    established(&server, "foos.converted.example.com").await;
    let path = |version: &str| format!("/apis/converted.example.com/{version}/namespaces/default/foos");
    let foo = |version: &str, name: &str, fields: Value| {
        let mut tree = json!({"apiVersion": format!("converted.example.com/{version}"), "kind": "Foo",
            "metadata": {"name": name}});
        tree.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        tree
    };
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
