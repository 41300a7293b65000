//! What is served is published: discovery, OpenAPI v2 and v3, and gone when it is no longer served; after a
//! restart it is there again.

use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};

use super::{DEFINITIONS, definition, established};
use crate::apiserver::Server;

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "description": "What is wanted.",
        "required": ["bars"],
        "properties": {
            "bars": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "maybe": {"type": "string", "nullable": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }}})
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_published_and_withdrawn() {
    let server = Server::start().await;
    let before = server.get("/openapi/v3").await;
    let versions: Vec<Value> = ["v1", "v2"]
        .iter()
        .map(|name| {
            let schema = json!({ "openAPIV3Schema": schema() });
            json!({"name": name, "served": true, "storage": *name == "v1", "schema": schema})
        })
        .collect();
    let body = definition("published.example.com", &json!({"spec": {"versions": versions}}));
    server.create(DEFINITIONS, body).await;
    let made = established(&server, "foos.published.example.com").await;
    assert_eq!(made["status"]["acceptedNames"]["listKind"], "FooList");

    let index = server.get("/openapi/v3").await;
    let path = "apis/published.example.com/v2";
    assert!(before["paths"][path].is_null());
    let url = index["paths"][path]["serverRelativeURL"].as_str().unwrap();
    let document = server.get(url).await;
    let name = "com.example.published.v2.Foo";
    let foo = &document["components"]["schemas"][name];
    assert_eq!(foo["properties"]["spec"]["description"], "What is wanted.");
    assert_eq!(foo["properties"]["spec"]["properties"]["maybe"]["nullable"], true);
    assert_eq!(foo["x-kubernetes-group-version-kind"][0]["kind"], "Foo");
    let create = &document["paths"]["/apis/published.example.com/v2/namespaces/{namespace}/foos"]["post"];
    assert_eq!(create["x-kubernetes-group-version-kind"]["kind"], "Foo");
    assert!(!document["components"]["schemas"]["com.example.published.v2.FooList"].is_null());

    let v2 = server.get("/openapi/v2").await;
    let foo = &v2["definitions"][name];
    assert_eq!(foo["properties"]["spec"]["required"], json!(["bars"]));
    assert_eq!(foo["properties"]["spec"]["properties"]["maybe"], json!({}));
    assert_eq!(
        foo["properties"]["metadata"]["$ref"],
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );

    let groups = server.get("/apis").await;
    let listed = |groups: &Value| groups.to_string().contains("published.example.com/v2");
    assert!(listed(&groups));
    let patch = r#"[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]"#;
    let path_of = format!("{DEFINITIONS}/foos.published.example.com");
    assert_eq!(server.patch(&path_of, "application/json-patch+json", patch).await.code, 200);
    while listed(&server.get("/apis").await) {
        tokio::task::yield_now().await;
    }
    assert!(server.get("/openapi/v2").await["definitions"][name].is_null());
    assert!(server.get("/openapi/v3").await["paths"][path].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_hold_anything_is_published_without_fields_in_the_old_form_alone() {
    const FREE: &str = "x-kubernetes-preserve-unknown-fields";
    let server = Server::start().await;
    let size = json!({"type": "integer", "default": 3});
    let closed = json!({"type": "object", "properties": {"size": size}});
    let mut open = closed.clone();
    open[FREE] = true.into();
    let version = |name: &str, schema: Value| {
        let schema = json!({"openAPIV3Schema": schema});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": schema})
    };
    let versions = [version("v1", open), version("v2", closed)];
    server
        .create(DEFINITIONS, definition("open.example.com", &json!({"spec": {"versions": versions}})))
        .await;
    established(&server, "foos.open.example.com").await;
    let v2 = server.get("/openapi/v2").await;
    let kind = json!([{"group": "open.example.com", "kind": "Foo", "version": "v1"}]);
    assert_eq!(
        v2["definitions"]["com.example.open.v1.Foo"],
        json!({"type": "object", "x-kubernetes-group-version-kind": kind})
    );
    let fields = &v2["definitions"]["com.example.open.v2.Foo"]["properties"];
    assert_eq!(fields["size"], json!({"type": "integer"}), "without its default");
    assert!(fields["kind"].is_object() && fields["metadata"].is_object());
    let v3 = server.get("/openapi/v3/apis/open.example.com/v1").await;
    let schema = &v3["components"]["schemas"]["com.example.open.v1.Foo"];
    assert_eq!((&schema[FREE], &schema["properties"]["size"]["default"]), (&json!(true), &json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_definitions_cannot_share_a_kind_and_the_second_waits() {
    let server = Server::start().await;
    let group = "shared.example.com";
    server.create(DEFINITIONS, definition(group, &json!({}))).await;
    established(&server, "foos.shared.example.com").await;
    let second = json!({"metadata": {"name": "others.shared.example.com"},
        "spec": {"names": {"plural": "others", "singular": "other", "kind": "Foo", "listKind": "OtherList"}}});
    server.create(DEFINITIONS, definition(group, &second)).await;
    let path = format!("{DEFINITIONS}/others.shared.example.com");
    loop {
        let found = server.get(&path).await;
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if let Some(names) = conditions.iter().find(|condition| condition["type"] == "NamesAccepted") {
            assert_eq!(
                (&names["reason"], &names["message"]),
                (&json!("KindConflict"), &json!("\"Foo\" is already in use"))
            );
            break;
        }
        tokio::task::yield_now().await;
    }
    let answer = server.call(&format!("DELETE {DEFINITIONS}/foos.{group}"), &Value::Null).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    established(&server, "others.shared.example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_kinds_outlive_a_restart_and_go_with_their_namespace_and_owner() {
    let folder = tempfile::tempdir().unwrap();
    let config = || Config::new().data_dir(folder.path());
    let foo =
        |name: &str| json!({"apiVersion": "kept.example.com/v1", "kind": "Foo", "metadata": {"name": name}});
    let cluster = Cluster::start(config()).await.unwrap();
    let server = Server::of(&cluster);
    server.create(DEFINITIONS, definition("kept.example.com", &json!({}))).await;
    established(&server, "foos.kept.example.com").await;
    server.create("/apis/kept.example.com/v1/namespaces/default/foos", foo("a")).await;
    cluster.stop().await;

    let cluster = Cluster::start(config()).await.unwrap();
    let server = Server::of(&cluster);
    let owner = server.get("/apis/kept.example.com/v1/namespaces/default/foos/a").await;
    let mut owned = crate::apiserver::config_map("owned");
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "kept.example.com/v1", "kind": "Foo",
        "name": "a", "uid": owner["metadata"]["uid"]}]);
    server.create(crate::apiserver::CONFIG_MAPS, owned).await;
    server.call("DELETE /apis/kept.example.com/v1/namespaces/default/foos/a", &Value::Null).await;
    let gone = |path: String| {
        let server = &server;
        async move {
            while server.call(&format!("GET {path}"), &Value::Null).await.code != 404 {
                cluster_tick().await;
            }
        }
    };
    gone(format!("{}/owned", crate::apiserver::CONFIG_MAPS)).await;
    assert!(cluster.client().get(&CONFIG_MAPS, "default", "owned").await.is_err());

    server.create("/api/v1/namespaces", json!({"metadata": {"name": "short"}})).await;
    server.create("/apis/kept.example.com/v1/namespaces/short/foos", foo("b")).await;
    server.call("DELETE /api/v1/namespaces/short", &Value::Null).await;
    gone("/api/v1/namespaces/short".into()).await;
    cluster.stop().await;
}

/// Lets the cluster work before it is asked again.
async fn cluster_tick() {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
}
