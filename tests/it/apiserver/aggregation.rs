//! APIServices: of the groups that are served here, and of others.

use super::*;

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
