//! APIServices: of the groups that are served here, and of others.

use std::sync::OnceLock;
use std::time::Duration;

use super::*;
use kubarium::apiserver::server;
use kubarium::flow::Flow;
use kubarium::pki::Authority;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

fn remote(service: &str) -> Value {
    json!({"metadata": {"name": "v1.remote.example.com"}, "spec": {
        "group": "remote.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
        "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": service, "port": 443}}})
}

#[tokio::test]
async fn local_groups_have_theirs() {
    let server = Server::start().await;
    let list = server.get(API_SERVICES).await;
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"v1.") && names.contains(&"v1.apps") && names.contains(&"v2.autoscaling"));
    assert!(!names.contains(&"v1.apiregistration.k8s.io"), "{names:?}");
    let apps = server.get(&format!("{API_SERVICES}/v1.apps")).await;
    assert_eq!(apps["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "onstart");
    assert_eq!(
        (&apps["spec"]["groupPriorityMinimum"], &apps["spec"]["versionPriority"]),
        (&json!(17800), &json!(15))
    );
    let condition = &apps["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("Available"), &json!("Local")));
    let page = server.call("GET /metrics", &Value::Null).await.text;
    assert!(page.contains("\naggregator_unavailable_apiservice{name=\"v1.apps\"} 0\n"));
    assert!(!page.contains("{name=\"v1.apiregistration.k8s.io\"}"), "the aggregator's own group has none");
}

#[tokio::test]
async fn what_cannot_be_reached_is_unavailable_and_says_why() {
    let server = Server::start().await;
    server.create(API_SERVICES, remote("nobody")).await;
    let answer = server.call("GET /apis/remote.example.com/v1/things", &Value::Null).await;
    assert_eq!((answer.code, answer.text.as_str()), (503, "service unavailable\n"));
    let service = server.get(&format!("{API_SERVICES}/v1.remote.example.com")).await;
    let condition = &service["status"]["conditions"][0];
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["reason"], "ServiceNotFound");
    assert_eq!(condition["message"], "service/nobody in \"default\" is not present");
    let groups = server.get("/apis").await;
    let named = |group: &Value| group["name"] == "remote.example.com";
    assert!(groups["groups"].as_array().unwrap().iter().any(named), "{groups}");
    let service = json!({"metadata": {"name": "nobody"}, "spec": {"ports": [{"port": 443}]}});
    server.create("/api/v1/namespaces/default/services", service).await;
    server.call("GET /apis/remote.example.com/v1/things", &Value::Null).await;
    let service = server.get(&format!("{API_SERVICES}/v1.remote.example.com")).await;
    assert_eq!(service["status"]["conditions"][0]["reason"], "MissingEndpoints", "{service}");
}

/// What the other server says: what it serves, and else who asked for what.
fn other_server(request: &ApiRequest) -> Value {
    if request.uri().path() == "/apis/remote.example.com/v1" {
        let things = json!({"name": "things", "singularName": "thing", "namespaced": false, "kind": "Thing",
            "verbs": ["get", "list"]});
        return json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "remote.example.com/v1",
            "resources": [things]});
    }
    let said = |name: &str| -> Vec<String> {
        let values = request.headers().get_all(name).iter();
        values.filter_map(|value| value.to_str().ok().map(str::to_owned)).collect()
    };
    json!({"kind": "Echo", "path": request.uri().to_string(), "user": said("x-remote-user"),
        "groups": said("x-remote-group"), "authorization": said("authorization")})
}

#[tokio::test]
async fn another_server_is_asked_over_tls_in_the_users_name() {
    let echo = ApiService::new(tower::service_fn(|request: ApiRequest| async move {
        Ok(ApiResponse::new(Body::from(other_server(&request).to_string())))
    }));
    let server = Server::start().await;
    let other = put_behind(&server, echo).await;
    let line = "GET /apis/remote.example.com/v1/things?limit=5";
    let said = [("x-remote-user", "mallory"), ("authorization", "Bearer secret")];
    let answer = server.call_with(line, &said, "").await;
    let echo = answer.json();
    assert_eq!(echo["authorization"], json!([]), "the credentials go no further: {echo}");
    assert_eq!(echo["user"], json!(["admin"]), "{} {}", answer.code, answer.text);
    assert_eq!(echo["groups"], json!(["system:masters", "system:authenticated"]));
    assert!(echo["path"].as_str().unwrap().ends_with("/apis/remote.example.com/v1/things?limit=5"), "{echo}");
    let available = server.get(&format!("{API_SERVICES}/v1.remote.example.com")).await;
    assert_eq!(available["status"]["conditions"][0]["reason"], "Passed", "{available}");
    let form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = server.get_as("/apis", form).await.json();
    let of_remote = |group: &&Value| group["metadata"]["name"] == "remote.example.com";
    let group = groups["items"].as_array().unwrap().iter().find(of_remote).unwrap().clone();
    assert_eq!(group["versions"][0]["resources"][0]["resource"], "things", "{group}");
    assert_eq!(server.get("/apis/remote.example.com/v1").await["resources"][0]["kind"], "Thing");
    assert_eq!(
        unavailable(&server).await,
        ["aggregator_unavailable_apiservice{name=\"v1.remote.example.com\"} 0"]
    );
    other.stop().await;
    // An APIService that has changed is asked for anew.
    let mut changed = available;
    changed["spec"]["groupPriorityMinimum"] = 2001.into();
    let path = format!("{API_SERVICES}/v1.remote.example.com");
    assert_eq!(server.call(&format!("PUT {path}"), &changed).await.code, 200);
    let gone = [
        "aggregator_unavailable_apiservice{name=\"v1.remote.example.com\"} 1",
        "aggregator_unavailable_apiservice_total{name=\"v1.remote.example.com\",reason=\"FailedDiscoveryCheck\"} 1",
    ];
    for _ in 0..2000 {
        if unavailable(&server).await == gone {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{:?}", unavailable(&server).await);
}

/// What `/metrics` says of the other server.
async fn unavailable(server: &Server) -> Vec<String> {
    let page = server.call("GET /metrics", &Value::Null).await.text;
    let lines =
        page.lines().filter(|line| line.starts_with("aggregator_") && line.contains("remote.example.com"));
    lines.map(str::to_owned).collect()
}

/// Another server, over TLS, and the Service and the APIService that lead to it.
async fn put_behind(server: &Server, service: ApiService) -> server::Server {
    let now = Clock::real().now();
    let authority = Authority::generate(now).unwrap();
    let identity = authority.server(&["other.default.svc"], &[], now).unwrap();
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let tls = server::Tls { identity, client_authorities: vec![], demands_client_certificates: false };
    let other = server::Server::start(listener, Some(&tls), service).unwrap();
    let port = other.address().port();
    let service = json!({"metadata": {"name": "other"}, "spec": {
        "type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
    server.create("/api/v1/namespaces/default/services", service).await;
    let mut api_service = remote("other");
    api_service["spec"]["insecureSkipTLSVerify"] = false.into();
    api_service["spec"]["caBundle"] = base64(authority.certificate_pem()).into();
    api_service["spec"]["service"]["port"] = port.into();
    server.create(API_SERVICES, api_service).await;
    other
}

/// A server that asks the first one whether whoever asks it may, as a delegated authorizer does.
fn delegating(first: Arc<OnceLock<ApiService>>) -> ApiService {
    ApiService::new(tower::service_fn(move |request: ApiRequest| {
        let first = first.clone();
        async move {
            if request.method() == http::Method::POST {
                let asked = json!({"verb": "create", "group": "remote.example.com", "resource": "things"});
                let review = json!({"spec": {"user": "admin", "groups": ["system:masters"],
                    "resourceAttributes": asked}});
                let first = Server::over(first.get().unwrap().clone());
                first.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review).await;
            }
            Ok(ApiResponse::new(Body::from(other_server(&request).to_string())))
        }
    }))
}

async fn story(server: &Server, resource: &str, name: &str) -> (u16, String) {
    let line = format!("GET /flowz?resource={resource}&namespace=default&name={name}&format=story");
    let answer = server.call(&line, &Value::Null).await;
    (answer.code, answer.text)
}

#[tokio::test]
async fn the_way_to_another_server_is_told_and_what_it_asked_here() {
    let server = Server::start_with(|config| config.flow = Flow::new(Clock::real())).await;
    let first: Arc<OnceLock<ApiService>> = Arc::default();
    assert!(first.set(server.service()).is_ok());
    let other = put_behind(&server, delegating(first)).await;
    let thing = json!({"apiVersion": "remote.example.com/v1", "kind": "Thing", "metadata": {"name": "x"}});
    let answer = server.call("POST /apis/remote.example.com/v1/things", &thing).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    for resource in ["things.remote.example.com", "thing", "Thing"] {
        let (code, text) = story(&server, resource, "x").await;
        let words = [
            "admin creates things.remote.example.com x, as remote.example.com/v1",
            "for APIService v1.remote.example.com to Service default/other:",
            "TLS verified by the caBundle: CN=",
            "answered 200 after",
            "admin asked here whether admin may create it (SubjectAccessReview): yes",
        ];
        assert!(code == 200 && words.iter().all(|words| text.contains(words)), "{resource} {text}");
        assert!(text.contains(&format!(" at 127.0.0.1:{}", other.address().port())), "{text}");
    }
    other.stop().await;
    let answer = server.call("DELETE /apis/remote.example.com/v1/things/x", &Value::Null).await;
    assert_eq!((answer.code, answer.text.as_str()), (503, "service unavailable\n"));
    let (_, text) = story(&server, "things.remote.example.com", "x").await;
    assert!(text.contains("no answer: ") && text.contains("refused with 503"), "{text}");
}

#[tokio::test]
async fn what_its_client_is_not_told_stands_in_the_record() {
    let server = Server::start_with(|config| config.flow = Flow::new(Clock::real())).await;
    server.create(API_SERVICES, remote("nobody")).await;
    let answer = server.call("GET /apis/remote.example.com/v1/things/x", &Value::Null).await;
    assert_eq!((answer.code, answer.text.as_str()), (503, "service unavailable\n"));
    let (_, text) = story(&server, "things.remote.example.com", "x").await;
    let why = "no answer: ServiceNotFound: service/nobody in \"default\" is not present";
    assert!(text.contains("admin gets things.remote.example.com x") && text.contains(why), "{text}");
    let (code, text) = story(&server, "others.remote.example.com", "x").await;
    assert_eq!((code, text.contains("doesn't have a resource type")), (404, true), "{text}");
}

fn base64(text: &str) -> String {
    use ::base64::Engine;
    ::base64::engine::general_purpose::STANDARD.encode(text)
}
