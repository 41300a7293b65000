//! Cluster IPs and node ports.

use super::*;

/// As decoding hands it over: defaulted.
fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({"metadata": {"name": name}, "spec": spec});
    (apis::core::service::SERVICES.defaults)(&mut service);
    service
}

fn web(kind: &str) -> Value {
    json!({"type": kind, "selector": {"a": "b"}, "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None"})
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

#[tokio::test]
async fn addresses_are_filled_in() {
    let subject = Subject::new();
    let kind = subject.kind("", "v1", "services");
    let object = subject.create(&kind, service("a", web("ClusterIP"))).await.unwrap();
    let spec = object.to_value()["spec"].take();
    assert!(spec["clusterIP"].as_str().unwrap().starts_with("10.96."));
    assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    assert_eq!((&spec["ipFamilies"], &spec["ipFamilyPolicy"]), (&json!(["IPv4"]), &json!("SingleStack")));
    assert_eq!(spec["internalTrafficPolicy"], "Cluster");
    let headless = with(web("ClusterIP"), "clusterIP", json!("None"));
    let object = subject.create(&kind, service("b", headless)).await.unwrap();
    assert_eq!(object.to_value()["spec"]["clusterIPs"], json!(["None"]));
    let object = subject.create(&kind, service("c", web("NodePort"))).await.unwrap();
    let port = object.to_value()["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    assert!((30_000..=32_767).contains(&port));
}

#[tokio::test]
async fn what_is_taken_is_refused_and_comes_back() {
    let subject = Subject::new();
    let kind = subject.kind("", "v1", "services");
    let dns = with(web("NodePort"), "clusterIP", json!("10.96.0.10"));
    let dns =
        with(dns, "ports", json!([{"port": 53, "protocol": "UDP", "nodePort": 30053, "targetPort": 53}]));
    subject.create(&kind, service("dns", dns.clone())).await.unwrap();
    let same_ip = with(web("ClusterIP"), "clusterIP", json!("10.96.0.10"));
    let refused = message(subject.create(&kind, service("a", same_ip.clone())).await);
    assert!(
        refused.ends_with("failed to allocate IP 10.96.0.10: provided IP is already allocated"),
        "{refused}"
    );
    let same_port = with(dns.clone(), "clusterIP", json!("10.96.0.11"));
    let refused = message(subject.create(&kind, service("a", same_port.clone())).await);
    let text = "spec.ports[0].nodePort: Invalid value: 30053: provided port is already allocated";
    assert_eq!(refused, format!("Service \"a\" is invalid: {text}"));
    // What the refused write had taken is free again.
    let ip = with(web("ClusterIP"), "clusterIP", json!("10.96.0.11"));
    subject.create(&kind, service("b", ip)).await.unwrap();
    subject.delete(&kind, "dns", &DeleteOptions::default()).await.unwrap();
    subject.create(&kind, service("a", same_ip)).await.unwrap();
}

#[tokio::test]
async fn a_change_of_type_takes_and_gives_back() {
    let subject = Subject::new();
    let kind = subject.kind("", "v1", "services");
    let first = subject.create(&kind, service("a", web("NodePort"))).await.unwrap().to_value();
    // A client that leaves out what the server filled in keeps it.
    let same = subject.update(&kind, Part::Main, service("a", web("NodePort"))).await.unwrap().to_value();
    assert_eq!(
        (&same["spec"]["clusterIP"], &same["spec"]["ports"]),
        (&first["spec"]["clusterIP"], &first["spec"]["ports"])
    );
    let port = first["spec"]["ports"][0]["nodePort"].clone();
    let mut inner = first.clone();
    inner["spec"]["type"] = json!("ClusterIP");
    let inner = subject.update(&kind, Part::Main, inner).await.unwrap().to_value();
    assert!(inner["spec"]["ports"][0]["nodePort"].is_null());
    let other = with(
        web("NodePort"),
        "ports",
        json!([{"port": 80, "protocol": "TCP", "nodePort": port, "targetPort": 80}]),
    );
    subject.create(&kind, service("b", other)).await.unwrap();
    let mut external = inner.clone();
    external["spec"]["type"] = json!("ExternalName");
    external["spec"]["externalName"] = json!("example.com");
    let external = subject.update(&kind, Part::Main, external).await.unwrap().to_value();
    assert!(external["spec"]["clusterIP"].is_null(), "{external}");
    let ip = with(web("ClusterIP"), "clusterIP", first["spec"]["clusterIP"].clone());
    subject.create(&kind, service("c", ip)).await.unwrap();
}
