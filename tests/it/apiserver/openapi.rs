//! OpenAPI as clients ask for it: forms, what they have already, and what other servers publish.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::StatusCode;

use super::*;
use kubarium::apiserver::server;
use kubarium::pki::Authority;

const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

#[tokio::test]
async fn each_client_gets_the_form_that_it_reads() {
    let server = Server::start().await;
    for line in include_str!("openapi.tsv").lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [path, header, code, media_type, vary] = columns[..] else { panic!("{line}") };
        let headers: Vec<(&str, &str)> = header.split_once(": ").into_iter().collect();
        let answer = server.call_with(&format!("GET {path}"), &headers, "").await;
        let said = |name: &str| -> Vec<&str> {
            answer.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
        };
        let found = (answer.code.to_string(), said("content-type").join(","), said("vary").join(","));
        assert_eq!(found, (code.to_owned(), media_type.to_owned(), vary.to_owned()), "{line}");
        assert_eq!(answer.bytes.is_empty(), code != "200" || header.ends_with("nothing"), "{line}");
    }
}

#[tokio::test]
async fn what_a_client_has_is_not_sent_again() {
    let server = Server::start().await;
    let forms = [("/openapi/v2", ""), ("/openapi/v3/apis/apps/v1", ""), ("/openapi/v3/api/v1", V3_PROTOBUF)];
    for (path, accept) in forms {
        let first = server.get_as(path, accept).await;
        let etag = first.headers["etag"].to_str().unwrap().to_owned();
        let line = format!("GET {path}");
        let tags = format!("W/\"A\", W/{etag}");
        let again = server.call_with(&line, &[("accept", accept), ("if-none-match", &tags)], "").await;
        assert_eq!((again.code, again.headers["etag"].to_str().unwrap()), (304, etag.as_str()));
        let post = server.call_with(&format!("POST {path}"), &[("if-none-match", &etag)], "").await;
        assert_eq!(post.code, 412, "{path}");
        let zipped = server.call_with(&line, &[("accept-encoding", "br, gzip;q=0.5")], "").await;
        let is_zipped = zipped.headers.get("content-encoding").is_some_and(|coding| coding == "gzip");
        assert_eq!(is_zipped, path == "/openapi/v2", "only the old form is compressed");
        let refused = server.call_with(&line, &[("accept-encoding", "gzip;q=0")], "").await;
        assert!(!refused.headers.contains_key("content-encoding"));
    }
    let url = server.get("/openapi/v3").await["paths"]["api/v1"]["serverRelativeURL"].clone();
    let kept = server.get_as(url.as_str().unwrap(), V3_PROTOBUF).await;
    assert_eq!(kept.headers["cache-control"], "public, immutable");
    assert!(kept.headers["expires"].to_str().unwrap().ends_with(" UTC"), "{:?}", kept.headers);
}

#[tokio::test]
async fn fields_with_few_values_name_them() {
    let server = Server::start().await;
    let actions = json!(["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
    let effects = json!(["NoExecute", "NoSchedule", "None"]);
    let (policies, modes) = (json!(["Fail", "Ignore"]), json!(["All", "ExactCount"]));
    let scopes = json!(["*", "Cluster", "Namespaced"]);
    let patches = json!(["ApplyConfiguration", "JSONPatch"]);
    let families = json!(["", "IPv4", "IPv6"]);
    for (group, definition, field, member, values) in [
        ("admissionregistration.k8s.io", "MutatingWebhook", "failurePolicy", "", &policies),
        ("admissionregistration.k8s.io", "RuleWithOperations", "scope", "", &scopes),
        ("admissionregistration.k8s.io", "NamedRuleWithOperations", "operations", "items", &actions),
        ("admissionregistration.k8s.io", "Mutation", "patchType", "", &patches),
        ("resource.k8s.io", "ExactDeviceRequest", "allocationMode", "", &modes),
        ("resource.k8s.io", "DeviceTaint", "effect", "", &effects),
        ("", "ServiceSpec", "ipFamilies", "items", &families),
    ] {
        let path = if group.is_empty() { "api/v1".to_owned() } else { format!("apis/{group}/v1") };
        let package = group.split('.').next().filter(|name| !name.is_empty()).unwrap_or("core");
        let document = server.get(&format!("/openapi/v3/{path}")).await;
        let definition = format!("io.k8s.api.{package}.v1.{definition}");
        let field = &document["components"]["schemas"][&definition]["properties"][field];
        let described = field["description"].as_str().unwrap().contains("\n\nPossible enum values:\n - `\"");
        match member {
            "" => assert!(described && field["enum"] == *values, "{definition}: {field}"),
            member => assert!(!described && field[member]["enum"] == *values, "{definition}: {field}"),
        }
    }
    let definitions = server.get("/openapi/v2").await["definitions"].take();
    let core = |kind: &str| &definitions[format!("io.k8s.api.core.v1.{kind}")]["properties"];
    assert_eq!(core("Lifecycle")["stopSignal"]["enum"].as_array().map(Vec::len), Some(65));
    let statuses = &core("PersistentVolumeClaimStatus")["allocatedResourceStatuses"];
    assert_eq!(statuses["additionalProperties"]["enum"].as_array().map(Vec::len), Some(5));
    let rule = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule";
    assert_eq!(definitions[rule]["properties"]["reason"]["enum"][0], "FieldValueDuplicate");
}

#[tokio::test]
async fn parameters_say_what_they_do() {
    let server = Server::start().await;
    let document = server.get("/openapi/v2").await;
    let parameters = document["parameters"].as_object().unwrap();
    let about = |name: &str| -> String {
        let own = parameters.values().filter(|parameter| parameter["name"] == name);
        own.map(|parameter| parameter["description"].as_str().unwrap_or_default()).collect()
    };
    for (name, facts) in [
        ("allowWatchBookmarks", &["\"BOOKMARK\"", "Ignored when this is no watch"][..]),
        ("continue", &["410 ResourceExpired", "five to fifteen minutes", "Not supported when watch is true"]),
        ("fieldManager", &["128 characters", "Required for server-side apply"]),
        ("fieldSelector", &["Defaults to everything"]),
        ("force", &["server-side apply"]),
        ("gracePeriodSeconds", &["zero deletes immediately"]),
        ("labelSelector", &["Defaults to everything"]),
        ("limit", &["`continue`", "consistent snapshot"]),
        ("orphanDependents", &["Deprecated", "propagationPolicy", "\"orphan\" finalizer"]),
        ("path", &["at the pod", "at the node", "service's proxy"]),
        ("pretty", &["Defaults to 'false'", "curl and wget"]),
        ("propagationPolicy", &["'Orphan'", "'Background'", "'Foreground'"]),
        ("resourceVersion", &["api-concepts/#resource-versions", "Defaults to unset"]),
        ("resourceVersionMatch", &["Exact or NotOlderThan", "Defaults to unset"]),
        ("sendInitialEvents", &["`watch=true`", "k8s.io/initial-events-end", "`resourceVersionMatch`"]),
        ("shardSelector", &["shardRange(object.metadata.uid", "ShardedListAndWatch"]),
        ("tailLines", &["before the end", "stream can only be \"All\""]),
        ("timeoutSeconds", &["list or watch call ends"]),
        ("watch", &["added, modified and deleted", "resourceVersion"]),
    ] {
        let text = about(name);
        let missing: Vec<_> = facts.iter().filter(|fact| !text.contains(**fact)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?} in {text}");
    }
    let write = &document["paths"]["/api/v1/nodes"]["post"]["parameters"].to_string();
    for fact in ["- All: all stages", "- Ignore: ", "- Warn: ", "The default in v1.23+", "- Strict: "] {
        assert!(write.contains(fact), "{fact} in {write}");
    }
}

/// What the other server answers by path; and what it was asked: path, user and the tag that was sent.
#[derive(Clone, Default)]
struct Other {
    answers: Arc<Mutex<BTreeMap<String, String>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Other {
    fn says(&self, path: &str, answer: Value) {
        self.answers.lock().unwrap().insert(path.into(), answer.to_string());
    }

    fn was_asked(&self, path: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|line| line.starts_with(path)).cloned().collect()
    }

    /// With the ETag of what is said.
    fn answer(&self, request: &ApiRequest) -> ApiResponse {
        let said = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let path = request.uri().path();
        let line = [path, said("x-remote-user").unwrap_or(""), said("if-none-match").unwrap_or("")].join(" ");
        self.asked.lock().unwrap().push(line);
        let mut response = ApiResponse::default();
        let answers = self.answers.lock().unwrap();
        let Some(text) = answers.get(path) else {
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        };
        let etag = format!("\"{}\"", text.len());
        if said("if-none-match") == Some(&etag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        response.headers_mut().insert("etag", etag.parse().unwrap());
        *response.body_mut() = Body::from(text.clone());
        response
    }

    async fn start(&self) -> server::Server {
        let now = Clock::real().now();
        let identity = Authority::generate(now).unwrap().server(&["other.default.svc"], &[], now).unwrap();
        let other = self.clone();
        let service = ApiService::new(tower::service_fn(move |request: ApiRequest| {
            let other = other.clone();
            async move { Ok(other.answer(&request)) }
        }));
        let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let tls = server::Tls { identity, client_authorities: vec![], demands_client_certificates: false };
        server::Server::start(listener, Some(&tls), service).unwrap()
    }
}

/// A document for `versions` of a group, with a Thing of its own and a `Status` that says something else than
/// ours.
fn swagger(group: &str, description: &str) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
    let get = json!({"operationId": "getThing", "produces": ["application/json"], "responses": {
        "200": {"description": "OK", "schema": reference("com.example.Thing")}}});
    json!({"swagger": "2.0", "info": {"title": "Other", "version": "v1"}, "paths": {
        format!("/apis/{group}/v1/things"): {"get": get},
        "/apis/other.example.com/v9/things": {"get": {"responses": {"200": {"description": "OK",
            "schema": reference("com.example.Unseen")}}}},
    }, "definitions": {
        "com.example.Thing": {"type": "object", "description": description, "properties": {
            "status": reference("io.k8s.apimachinery.pkg.apis.meta.v1.Status")},
            "x-kubernetes-group-version-kind": [{"group": group, "kind": "Thing", "version": "v1"}]},
        "com.example.Unseen": {"type": "object"},
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status": {"type": "object", "description": "Another."},
    }})
}

async fn registered(server: &Server, port: u16, group: &str) {
    let spec = json!({"group": group, "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
        "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "other", "port": port}});
    let service = json!({"metadata": {"name": format!("v1.{group}")}, "spec": spec});
    server.create("/apis/apiregistration.k8s.io/v1/apiservices", service).await;
}

const GROUP: &str = "things.example.com";

/// A server beside another that has a group.
async fn beside(other: &Other) -> (Server, server::Server) {
    other.says(&format!("/apis/{GROUP}/v1"), json!({"kind": "APIResourceList", "resources": []}));
    let running = other.start().await;
    let port = running.address().port();
    let server = Server::start().await;
    let service = json!({"metadata": {"name": "other"}, "spec": {
        "type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
    server.create("/api/v1/namespaces/default/services", service).await;
    registered(&server, port, GROUP).await;
    (server, running)
}

#[tokio::test]
async fn what_another_server_publishes_is_merged() {
    let other = Other::default();
    other.says("/openapi/v2", swagger(GROUP, "A thing."));
    let (server, running) = beside(&other).await;
    let merged = server.get("/openapi/v2").await;
    let things = &merged["paths"][format!("/apis/{GROUP}/v1/things")]["get"];
    assert_eq!(things["operationId"], "getThing", "{}", merged["paths"]);
    assert!(merged["paths"]["/apis/other.example.com/v9/things"].is_null(), "of another group");
    let definitions = &merged["definitions"];
    assert!(definitions["com.example.Unseen"].is_null());
    let status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
    assert_eq!(definitions[format!("{status}_v2")]["description"], "Another.");
    assert_ne!(definitions[status]["description"], "Another.");
    let reference = &definitions["com.example.Thing"]["properties"]["status"]["$ref"];
    assert_eq!(*reference, format!("#/definitions/{status}_v2"));
    let protobuf = server.get_as("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
    assert!(protobuf.await.text.contains("com.example.Thing"));
    assert_eq!(other.was_asked("/openapi/v2"), ["/openapi/v2 system:aggregator "], "once a minute");

    // It publishes no v3, so that is made of v2.
    let path = format!("apis/{GROUP}/v1");
    let index = server.get("/openapi/v3").await;
    let url = index["paths"][&path]["serverRelativeURL"].as_str().unwrap_or_else(|| panic!("{index}"));
    let converted = server.get(url).await;
    assert_eq!(converted["components"]["schemas"]["com.example.Thing"]["description"], "A thing.");
    let answer = &converted["paths"][format!("/{path}/things")]["get"]["responses"]["200"]["content"];
    let reference = json!({"$ref": "#/components/schemas/com.example.Thing"});
    assert_eq!(answer["application/json"]["schema"], reference);
    assert!(server.get_as(url, V3_PROTOBUF).await.text.contains("com.example.Thing"));
    running.stop().await;
    assert!(server.get("/openapi/v2").await["definitions"]["com.example.Thing"].is_object(), "it was there");
    server
        .call(&format!("DELETE /apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}"), &Value::Null)
        .await;
    let is_gone = async || server.get("/openapi/v2").await["definitions"]["com.example.Thing"].is_null();
    while !is_gone().await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_v3_document_of_another_server_is_its_own_to_give() {
    let other = Other::default();
    let path = format!("apis/{GROUP}/v1");
    let url = format!("/openapi/v3/{path}?hash=ABC");
    let version = json!({"serverRelativeURL": "/openapi/v3/version?hash=OTHER"});
    other.says("/openapi/v3", json!({"paths": {&path: {"serverRelativeURL": url}, "version": version}}));
    other.says(&format!("/openapi/v3/{path}"), json!({"openapi": "3.0.0", "info": {"title": "Other"}}));
    // Nonsense is no document, and nothing else suffers.
    other.says("/openapi/v2", json!({"swagger": "2.0", "paths": {"/apis/": 1}}));
    let (server, running) = beside(&other).await;
    let index = server.get("/openapi/v3").await;
    assert_eq!(index["paths"][&path]["serverRelativeURL"], url);
    assert!(!index["paths"]["version"].to_string().contains("OTHER"), "ours goes before theirs");
    assert_eq!(server.get(&url).await["info"]["title"], "Other");
    let asked = other.was_asked(&format!("/openapi/v3/{path}"));
    assert_eq!(asked, [format!("/openapi/v3/{path} admin ")], "in the user's name");
    let v2 = server.get("/openapi/v2").await;
    assert!(v2["paths"]["/api/v1/pods"].is_object() && v2["paths"]["/apis/"].is_object());
    server.get("/openapi/v2").await;
    assert_eq!(other.was_asked("/openapi/v2").len(), 1, "what fails is left alone for a while");
    running.stop().await;
}
