//! What a killed server has claimed for Services that it never wrote.

use super::*;

/// As a server leaves it that claims it and is killed.
fn leaked(name: &str, service: &str) -> String {
    serde_json::json!({
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": name,
            "uid": format!("00000000-0000-4000-8000-{:012}", service.len()),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": service}},
    })
    .to_string()
}

/// A Service as an earlier server may have stored it, which nobody has checked since.
fn stored(name: &str, ip: &str) -> String {
    serde_json::json!({
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("00000000-0000-4000-8000-{:012}", ip.len()),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80}]},
    })
    .to_string()
}

#[test]
fn claims_of_killed_servers_are_released_and_claims_that_are_missing_made() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let flags = ["--apiserver-only", "--storage-media-type", "application/vnd.kubernetes.protobuf"];
    let up = server(&etcd, &keys, &flags);
    let first = kubectl(&up);
    first.ok("create service nodeport web --tcp=80 --node-port=30007");
    let ip = first.ok("get service web -o jsonpath={.spec.clusterIP}");
    let range = etcd.ctl(&["get", "/registry/ranges/servicenodeports", "--print-value-only"]);
    assert!(range.starts_with("k8s\0") && range.contains("30000-32767"), "{range}");
    drop(up);
    let key = |name: &str| format!("/registry/ipaddresses/{name}");
    etcd.ctl(&["put", &key("10.96.200.1"), &leaked("10.96.200.1", "gone")]);
    etcd.ctl(&["put", &key("10.96.200.2"), &leaked("10.96.200.2", "web")]);
    etcd.ctl(&["del", &key(&ip)]);
    for (name, ip) in [("outside", "10.200.0.1"), ("twin", "10.96.0.1"), ("moved", "10.96.200.3")] {
        etcd.ctl(&["put", &format!("/registry/services/specs/default/{name}"), &stored(name, ip)]);
    }
    etcd.ctl(&["put", &key("10.96.200.3"), &leaked("10.96.200.3", "gone")]);
    let up = server(&etcd, &keys, &flags);
    let again = kubectl(&up);
    again.until("get ipaddresses -o name", |names| {
        names.contains(&ip) && !names.contains("10.96.200.1") && !names.contains("10.96.200.2")
    });
    let moved = "get ipaddress 10.96.200.3 -o jsonpath={.spec.parentRef.name}";
    again.until(moved, |parent| parent == "moved");
    let events = "get events -A -o jsonpath={.items[*].message}";
    let events = again.until(events, |told| told.contains("10.96.200.2 for Service"));
    for wanted in [
        "IPAddress: 10.96.200.1 for Service default/gone appears to have leaked: cleaning up",
        "IPAddress: 10.96.200.2 for Service default/web has a wrong reference; cleaning up",
        &format!("Cluster IP [IPv4]: {ip} is not allocated; repairing"),
        "Cluster IP [IPv4]: 10.200.0.1 is not within any configured Service CIDR; please recreate service",
        "Cluster IP [IPv4]:10.96.0.1 was assigned to multiple services; please recreate service",
        "the ClusterIP [IPv4]: 10.96.200.3 for Service default/moved has a wrong reference; repairing",
    ] {
        assert!(events.contains(wanted), "{wanted}: {events}");
    }
    // The range is read in that form, too.
    let refused = again.fails("create service nodeport other --tcp=80 --node-port=30007");
    assert!(refused.contains("provided port is already allocated"), "{refused}");
}
