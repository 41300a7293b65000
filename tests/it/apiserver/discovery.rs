//! Discovery, versions, health, metrics, OpenAPI.

use super::*;

#[tokio::test]
async fn kinds_are_discovered() {
    let server = Server::start().await;
    assert_eq!(server.get("/api").await["versions"], json!(["v1"]));
    let groups = server.get("/apis").await;
    assert_eq!((&groups["kind"], &groups["groups"][1]["name"]), (&json!("APIGroupList"), &json!("apps")));
    let apps = server.get("/apis/apps/v1").await;
    let names: Vec<&str> = apps["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"deployments") && names.contains(&"deployments/scale"));
    assert_eq!(server.get("/apis/apps").await["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(server.call("GET /apis/nothing.io/v1", &Value::Null).await.text, "404 page not found\n");
}

#[tokio::test]
async fn discovery_is_aggregated_on_request() {
    let server = Server::start().await;
    let form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let answer = server.get_as("/apis", &format!("{form},application/json")).await;
    assert_eq!((answer.code, answer.headers["content-type"].to_str().unwrap()), (200, form));
    let list = answer.json();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    let resources = list["items"][1]["versions"][0]["resources"].as_array().unwrap().clone();
    let deployments = resources.iter().find(|resource| resource["resource"] == "deployments").unwrap();
    assert_eq!(deployments["scope"], "Namespaced");
    assert_eq!(deployments["subresources"][0]["subresource"], "scale");
    let etag = answer.headers["etag"].to_str().unwrap();
    let again = server.call_with("GET /apis", &[("accept", form), ("if-none-match", etag)], "").await;
    assert_eq!((again.code, again.text.as_str()), (304, ""));
}

#[tokio::test]
async fn discovery_has_its_fields_in_the_order_of_gos_types() {
    let server = Server::start().await;
    let text = async |path: &str| server.call(&format!("GET {path}"), &Value::Null).await.text;
    assert!(
        text("/api/v1").await.starts_with(r#"{"kind":"APIResourceList","groupVersion":"v1","resources":["#)
    );
    let configmaps = r#"{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="}"#;
    assert!(text("/api/v1").await.contains(configmaps));
    let apps = r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}"#;
    assert_eq!(text("/apis/apps").await.trim_end(), apps);
    let form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let aggregated = server.get_as("/api", form).await.text;
    let start = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"bindings","responseKind":{"group":"","version":"","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]},"#;
    assert!(aggregated.starts_with(start), "{aggregated}");
    let version = text("/version").await;
    let fields = ["major", "minor", "emulationMajor", "minCompatibilityMinor", "gitVersion", "platform"];
    let places: Vec<_> = fields.iter().map(|field| version.find(&format!("\"{field}\""))).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{version}");
}

#[tokio::test]
async fn the_server_says_who_and_how_it_is() {
    let server = Server::start().await;
    let version = server.get("/version").await;
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.36.2+kubarium-"));
    let slis = server.call("GET /metrics/slis", &Value::Null).await.text;
    assert!(slis.contains("kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1\n"), "{slis}");
    for path in ["/livez", "/readyz/ping"] {
        assert_eq!(server.call(&format!("GET {path}"), &Value::Null).await.text, "ok", "{path}");
    }
    assert_eq!(server.call("GET /readyz", &Value::Null).await.text, "ok");
    let lines = server.call("GET /readyz?verbose", &Value::Null).await.text;
    let first = "[+]ping ok\n[+]log ok\n[+]informer-sync ok\n[+]poststarthook/start-apiserver-admission-initializer ok\n";
    assert!(lines.starts_with(first), "{lines}");
    assert!(lines.contains("\n[+]poststarthook/rbac/bootstrap-roles ok\n"), "{lines}");
    assert!(lines.ends_with("\n[+]shutdown ok\nreadyz check passed\n"), "{lines}");
    let lines = server.call("GET /livez?verbose", &Value::Null).await.text;
    assert!(!lines.contains("]informer-sync ") && !lines.contains("shutdown"), "{lines}");
    assert!(lines.ends_with("\nlivez check passed\n"), "{lines}");
    let paths = server.get("/").await["paths"].as_array().unwrap().clone();
    assert!(paths.contains(&json!("/apis/apps/v1")) && paths.contains(&json!("/readyz/ping")));
    let metrics = server.call("GET /metrics", &Value::Null).await.text;
    assert!(
        metrics.contains("apiserver_request_total{code=\"201\",")
            && metrics.contains("process_resident_memory_bytes")
    );
    assert!(metrics.contains("apiserver_storage_objects{resource=\"namespaces\"} 1"), "{metrics}");
}

#[tokio::test]
async fn openapi_is_published_and_may_be_kept() {
    let server = Server::start().await;
    let index = server.get("/openapi/v3").await;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let kept = server.call(&format!("GET {url}"), &Value::Null).await;
    assert_eq!(kept.headers["cache-control"].to_str().unwrap(), "public, immutable");
    assert!(kept.json()["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"].is_object());
    let moved = server.call("GET /openapi/v3/apis/apps/v1?hash=ABC", &Value::Null).await;
    assert_eq!((moved.code, moved.headers["location"].to_str().unwrap()), (301, url.as_str()));
    let v2 = server.get("/openapi/v2").await;
    assert!(v2["definitions"]["io.k8s.api.core.v1.Pod"].is_object());
    let protobuf =
        server.get_as("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf").await;
    let media_type = protobuf.headers["content-type"].to_str().unwrap();
    assert_eq!(media_type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
}

/// Every line of the published documents, in both forms of discovery; and nothing else in their groups.
#[tokio::test]
async fn each_list_is_the_real_one() {
    let server = Server::start().await;
    let wanted = include_str!("../../fixtures/discovery.tsv");
    let mut versions: Vec<&str> = Vec::new();
    for line in wanted.lines().filter(|line| !line.starts_with('#')) {
        let version = line.split('\t').next().unwrap();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    for version in versions {
        let path = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
        let list = server.get(&path).await;
        let found: Vec<String> = list["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| described(version, resource))
            .collect();
        let of_version = |line: &&str| line.split('\t').next() == Some(version);
        let wanted: Vec<&str> = wanted.lines().filter(of_version).collect();
        assert_eq!(found, wanted);
    }
}

/// A resource of a legacy list as a line of the fixture.
fn described(version: &str, resource: &Value) -> String {
    let text = |field: &str| resource[field].as_str().unwrap_or_default().to_owned();
    let list = |field: &str| -> String {
        let items = resource[field].as_array().cloned().unwrap_or_default();
        items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    };
    let kind = match text("version").as_str() {
        "" => text("kind"),
        version => format!("{}/{version}/{}", text("group"), text("kind")),
    };
    let scope = if resource["namespaced"] == true { "ns" } else { "cluster" };
    let verbs = match list("verbs").as_str() {
        "create,delete,deletecollection,get,list,patch,update,watch" => "all".to_owned(),
        verbs => verbs.to_owned(),
    };
    let hash = resource["storageVersionHash"].as_str().unwrap_or("-").to_owned();
    let columns = [
        version.to_owned(),
        text("name"),
        kind,
        scope.to_owned(),
        text("singularName"),
        list("shortNames"),
        list("categories"),
        verbs,
        hash,
    ];
    columns.join("\t")
}
