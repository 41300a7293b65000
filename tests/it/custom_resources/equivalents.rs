//! `matchPolicy: Equivalent`: who asks about one version of a resource is asked about the others too, and sees
//! the objects in the version that it named.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{DEFINITIONS, conversion, definition, established};
use crate::apiserver::Server;
use crate::support::webhook::{Asked, Reply, Webhook};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const FOOS: &str = "/apis/same.example.com/v1/namespaces/default/foos";

/// Converts, and makes every port of version two a nine.
fn answer(asked: &Asked) -> Reply {
    if asked.path.starts_with("/convert") {
        return Reply::Json(conversion::converted(asked.body.clone()));
    }
    let request = &asked.body["request"];
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if request["object"]["port"].is_string() {
        let patch = json!([{"op": "replace", "path": "/port", "value": "9"}]).to_string();
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(patch));
    }
    Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

async fn define(server: &Server, webhook: &Webhook) {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let version = |name: &str, mut fields: Value| {
        fields["spec"] = spec.clone();
        json!({"name": name, "served": true, "storage": name == "v1",
            "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}})
    };
    let versions =
        [version("v1", json!({"hostPort": text})), version("v2", json!({"host": text, "port": text}))];
    let config = json!({"url": webhook.url("/convert"), "caBundle": webhook.ca_bundle()});
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": config}});
    let spec = json!({"spec": {"versions": versions, "conversion": conversion}});
    server.create(DEFINITIONS, definition("same.example.com", &spec)).await;
    established(server, "foos.same.example.com").await;
}

/// Those about version two.
fn rules() -> Value {
    json!([{"operations": ["*"], "apiGroups": ["same.example.com"], "apiVersions": ["v2"],
        "resources": ["foos", "foos/*"]}])
}

async fn configure(server: &Server, webhook: &Webhook, name: &str, policy: &str) {
    let config = json!({"url": webhook.url("/admit"), "caBundle": webhook.ca_bundle()});
    let hook = json!({"name": format!("{name}.example.com"), "clientConfig": config, "rules": rules(),
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "matchPolicy": policy});
    let path = format!("{ADMISSION}/mutatingwebhookconfigurations");
    server.create(&path, json!({"metadata": {"name": name}, "webhooks": [hook]})).await;
}

/// The last admission review's request.
fn reviewed(webhook: &Webhook) -> Value {
    let asked = webhook.asked();
    let last = asked.iter().rev().find(|asked| asked.path.starts_with("/admit"));
    last.map(|asked| asked.body["request"].clone()).unwrap_or_default()
}

fn foo(name: &str, host_port: &str) -> Value {
    json!({"apiVersion": "same.example.com/v1", "kind": "Foo", "metadata": {"name": name},
        "hostPort": host_port, "spec": {"replicas": 1}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_sees_the_version_that_it_named() {
    let (server, webhook) = (Server::start().await, Webhook::start(answer).await);
    define(&server, &webhook).await;
    configure(&server, &webhook, "exact", "Exact").await;
    let created = server.create(FOOS, foo("before", "h:1")).await;
    assert_eq!((&created["hostPort"], reviewed(&webhook)), (&json!("h:1"), Value::Null));

    configure(&server, &webhook, "same", "Equivalent").await;
    let created = server.create(FOOS, foo("a", "h:1")).await;
    assert_eq!(created["hostPort"], "h:9");
    let request = reviewed(&webhook);
    let kind = |version: &str| json!({"group": "same.example.com", "version": version, "kind": "Foo"});
    let resource =
        |version: &str| json!({"group": "same.example.com", "version": version, "resource": "foos"});
    assert_eq!((&request["kind"], &request["requestKind"]), (&kind("v2"), &kind("v1")));
    assert_eq!((&request["resource"], &request["requestResource"]), (&resource("v2"), &resource("v1")));
    let object = &request["object"];
    assert_eq!(object["apiVersion"], "same.example.com/v2");
    assert_eq!(
        [&object["host"], &object["port"], &object["hostPort"]],
        [&json!("h"), &json!("1"), &Value::Null]
    );

    let scale = json!({"spec": {"replicas": 3}}).to_string();
    let answer = server.patch(&format!("{FOOS}/a/scale"), "application/merge-patch+json", &scale).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let request = reviewed(&webhook);
    let wanted = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    assert_eq!((&request["kind"], &request["requestKind"]), (&wanted, &wanted));
    assert_eq!((&request["resource"], &request["requestResource"]), (&resource("v2"), &resource("v1")));
    assert_eq!(
        (&request["subResource"], &request["object"]["spec"]["replicas"]),
        (&json!("scale"), &json!(3))
    );

    assert_eq!(server.call(&format!("DELETE {FOOS}/a"), &Value::Null).await.code, 200);
    let request = reviewed(&webhook);
    assert_eq!((&request["oldObject"]["port"], &request["object"]), (&json!("9"), &Value::Null));

    let answer = server.call(&format!("POST {FOOS}"), &foo("d", "refused")).await;
    let twice = "Internal error occurred: Internal error occurred: ";
    let why = "conversion webhook for same.example.com/v1, Kind=Foo failed: not this one";
    assert_eq!((answer.code, answer.status().2), (500, format!("{twice}{why}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_see_the_version_that_they_named() {
    let (server, webhook) = (Server::start().await, Webhook::start(answer).await);
    define(&server, &webhook).await;
    let constraints = json!({"resourceRules": rules()});
    let judge = json!({"metadata": {"name": "judge"}, "spec": {"matchConstraints": constraints,
        "validations": [{"expression": "object.host != 'bad'", "message": "bad host"}]}});
    let binding = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"policyName": name,
        "validationActions": ["Deny"]}})
    };
    server.create(&format!("{ADMISSION}/validatingadmissionpolicies"), judge).await;
    server.create(&format!("{ADMISSION}/validatingadmissionpolicybindings"), binding("judge")).await;
    let change = json!({"metadata": {"name": "change"}, "spec": {"matchConstraints": constraints,
    "reinvocationPolicy": "Never",
    "mutations": [
        {"patchType": "JSONPatch", "jsonPatch": {"expression":
            "object.host == 'old' ? [JSONPatch{op: 'replace', path: '/host', value: 'new'}] : []"}},
        {"patchType": "JSONPatch", "jsonPatch": {"expression":
            "object.host == 'new' ? [JSONPatch{op: 'replace', path: '/port', value: '2'}] : []"}},
    ]}});
    let mut bound = binding("change");
    bound["spec"].as_object_mut().unwrap().remove("validationActions");
    server.create(&format!("{ADMISSION}/mutatingadmissionpolicies"), change).await;
    server.create(&format!("{ADMISSION}/mutatingadmissionpolicybindings"), bound).await;

    assert_eq!(server.create(FOOS, foo("a", "old:1")).await["hostPort"], "new:2");
    let answer = server.call(&format!("POST {FOOS}"), &foo("b", "bad:1")).await;
    let wanted = "foos.same.example.com \"b\" is forbidden: ValidatingAdmissionPolicy 'judge' with binding \
                  'judge' denied request: bad host";
    assert_eq!((answer.code, answer.status().2.as_str()), (422, wanted));
    let answer = server.call(&format!("POST {FOOS}"), &foo("c", "refused")).await;
    let wanted = "policy 'change' denied request: failed to configure policy: conversion webhook for \
                  same.example.com/v1, Kind=Foo failed: not this one";
    assert_eq!((answer.code, answer.status().2.as_str()), (403, wanted));
}
