//! What `/metrics` tells of the storage and of the allocators.

use super::*;

fn service(name: &str, service_type: &str) -> Value {
    let spec = json!({"type": service_type, "ports": [{"port": 80}]});
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn the_storage_and_the_allocators_are_counted() {
    let server = Server::start_with(|_| ()).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    server.create(maps, config_map("a")).await;
    server.create(maps, config_map("b")).await;
    server.get(maps).await;
    server.get(&format!("{maps}?resourceVersion=0")).await;
    assert_eq!(server.call(&format!("DELETE {maps}/b"), &Value::Null).await.code, 200);
    server.create("/api/v1/namespaces/default/services", service("inside", "ClusterIP")).await;
    server.create("/api/v1/namespaces/default/services", service("outside", "NodePort")).await;
    let page = server.call("GET /metrics", &Value::Null).await.text;
    let of = "{group=\"\",resource=\"configmaps\"}";
    let asked = |operation: &str| {
        format!("etcd_requests_total{{group=\"\",operation={operation:?},resource=\"configmaps\"}}")
    };
    let cidr = "cidr=\"10.96.0.0/16\"";
    for sample in [
        format!("{} 2", asked("create")),
        format!("{} 1", asked("delete")),
        // With which the watch cache began; and the page itself asks how many there are.
        format!("{} 1", asked("list")),
        format!("{} 1", asked("listWithCount")),
        format!("apiserver_resource_objects{of} 1"),
        "apiserver_storage_objects{resource=\"configmaps\"} 1".into(),
        // With one more priority and fairness finds out what a list costs.
        "apiserver_cache_list_total{group=\"\",index=\"\",resource=\"configmaps\"} 3".into(),
        format!("apiserver_cache_list_returned_objects_total{of} 6"),
        format!("apiserver_watch_cache_initializations_total{of} 1"),
        format!("kube_apiserver_clusterip_allocator_allocation_total{{{cidr},scope=\"dynamic\"}} 2"),
        format!("kube_apiserver_clusterip_allocator_allocated_ips{{{cidr}}} 2"),
        format!("kube_apiserver_clusterip_allocator_available_ips{{{cidr}}} 65532"),
        "kube_apiserver_nodeport_allocator_allocation_total{scope=\"dynamic\"} 1".into(),
        "kube_apiserver_nodeport_allocator_allocated_ports 1".into(),
        "kube_apiserver_nodeport_allocator_available_ports 2767".into(),
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample} is not in\n{page}");
    }
    assert!(!page.contains("resource=\"tokenreviews\""), "they are not stored");
}
