//! APIServices: of the groups that are served here, and of others.

use super::*;
use kubarium::apiserver::server;
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
    let now = Clock::real().now();
    let authority = Authority::generate(now).unwrap();
    let identity = authority.server(&["other.default.svc"], &[], now).unwrap();
    let echo = ApiService::new(tower::service_fn(|request: ApiRequest| async move {
        Ok(ApiResponse::new(Body::from(other_server(&request).to_string())))
    }));
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let tls = server::Tls { identity, client_authorities: vec![], demands_client_certificates: false };
    let other = server::Server::start(listener, Some(&tls), echo).unwrap();
    let port = other.address().port();

    let server = Server::start().await;
    let service = json!({"metadata": {"name": "other"}, "spec": {
        "type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
    server.create("/api/v1/namespaces/default/services", service).await;
    let mut api_service = remote("other");
    api_service["spec"]["insecureSkipTLSVerify"] = false.into();
    api_service["spec"]["caBundle"] = base64(authority.certificate_pem()).into();
    api_service["spec"]["service"]["port"] = port.into();
    server.create(API_SERVICES, api_service).await;
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
    other.stop().await;
}

fn base64(text: &str) -> String {
    use ::base64::Engine;
    ::base64::engine::general_purpose::STANDARD.encode(text)
}
