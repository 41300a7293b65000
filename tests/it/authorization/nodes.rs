//! Kubelets: the Node authorizer lets them at what their pods need, NodeRestriction at their own objects.

use kubarium::apis::coordination::lease::LEASES;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::secret::SECRETS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;

use super::*;

/// A node, a pod on it, and one elsewhere; each names a secret and a config map.
async fn with_pods(client: &Client) {
    client.create(&SERVICE_ACCOUNTS, "team", json!({"metadata": {"name": "default"}})).await.unwrap();
    for node in ["node-1", "node-2"] {
        client.create(&NODES, "", json!({"metadata": {"name": node}})).await.unwrap();
        let volumes = json!([{"name": "c", "configMap": {"name": node}}]);
        let env = json!([{"name": "S", "valueFrom": {"secretKeyRef": {"name": node, "key": "k"}}}]);
        let containers = json!([{"name": "c", "image": "nginx", "env": env}]);
        let spec = json!({"nodeName": node, "containers": containers, "volumes": volumes});
        client.create(&PODS, "team", json!({"metadata": {"name": node}, "spec": spec})).await.unwrap();
        client.create(&SECRETS, "team", json!({"metadata": {"name": node}})).await.unwrap();
        client.create(&CONFIG_MAPS, "team", json!({"metadata": {"name": node}})).await.unwrap();
    }
}

fn kubelet(client: &Client) -> Client {
    client.acting_as(UserInfo::authenticated("system:node:node-1", &["system:nodes"]))
}

#[tokio::test]
async fn a_kubelet_reads_what_its_pods_need() {
    let cluster = start().await;
    let client = cluster.client();
    with_pods(&client).await;
    let kubelet = kubelet(&client);
    for kind in [&SECRETS, &CONFIG_MAPS, &PODS] {
        kubelet.get(kind, "team", "node-1").await.unwrap();
        let refused = message(kubelet.get(kind, "team", "node-2").await);
        let why = "no relationship found between node 'node-1' and this object";
        assert!(refused.ends_with(why), "{refused}");
    }
    for (what, allowed) in [
        ("create serviceaccounts/token team default", true),
        ("create serviceaccounts/token team other", false),
        ("list secrets team node-1", true),
        ("get secrets default node-1", false),
    ] {
        let status = review(&client, "system:node:node-1", &["system:nodes"], what).await;
        assert_eq!(status["allowed"], allowed, "{what}: {status}");
    }
}

#[tokio::test]
async fn a_kubelet_writes_what_is_its_own() {
    let cluster = start().await;
    let client = cluster.client();
    with_pods(&client).await;
    let kubelet = kubelet(&client);
    let mut node = kubelet.get(&NODES, "", "node-1").await.unwrap().to_value();
    node["metadata"]["labels"] = json!({"node-role.kubernetes.io/control-plane": "", "own": "yes"});
    let refused = message(kubelet.update(&NODES, "", "node-1", node.clone()).await);
    let wanted = "nodes \"node-1\" is forbidden: is not allowed to modify labels: \
        node-role.kubernetes.io/control-plane";
    assert_eq!(refused, wanted);
    node["metadata"]["labels"] = json!({"own": "yes"});
    let mut tainted = node.clone();
    kubelet.update(&NODES, "", "node-1", node).await.unwrap();
    tainted["spec"]["taints"] = json!([]);
    tainted["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let refused = message(kubelet.update(&NODES, "", "node-1", tainted).await);
    assert_eq!(refused, "nodes \"node-1\" is forbidden: node \"node-1\" is not allowed to modify taints");
    let other = kubelet.create(&NODES, "", json!({"metadata": {"name": "node-3"}})).await;
    let wanted = "nodes \"node-3\" is forbidden: node \"node-1\" is not allowed to modify node \"node-3\"";
    assert_eq!(message(other), wanted);

    let plain = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "node-1",
        "containers": [{"name": "c", "image": "nginx"}]}});
    let refused = message(kubelet.create(&PODS, "team", plain).await);
    let wanted = "pods \"p\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" annotation, node \
        \"node-1\" can only create mirror pods";
    assert_eq!(refused, wanted);
    let refused = message(kubelet.delete(&PODS, "team", "node-2", &Default::default()).await);
    let wanted = "pods \"node-2\" is forbidden: node \"node-1\" can only delete pods with spec.nodeName set to \
        itself";
    assert_eq!(refused, wanted);
    let eviction = json!({"metadata": {"name": "node-2", "namespace": "team"}});
    let refused = message(kubelet.create_subresource(&PODS, "team", "node-2", "eviction", eviction).await);
    let wanted =
        "pods \"node-2\" is forbidden: node node-1 can only evict pods with spec.nodeName set to itself";
    assert_eq!(refused, wanted);
    let mut pod = client.get(&PODS, "team", "node-1").await.unwrap().to_value();
    pod["metadata"]["labels"] = json!({"a": "b"});
    let refused = message(kubelet.update_status(&PODS, "team", "node-1", pod).await);
    let wanted = "pods \"node-1\" is forbidden: node \"node-1\" cannot update labels through pod status";
    assert_eq!(refused, wanted);
    let mut pod = client.get(&PODS, "team", "node-1").await.unwrap().to_value();
    pod["status"]["extendedResourceClaimStatus"] =
        json!({"requestMappings": [], "resourceClaimName": "other"});
    let refused = message(kubelet.update_status(&PODS, "team", "node-1", pod).await);
    let wanted = "pods \"node-1\" is forbidden: node \"node-1\" cannot update extended resource claim status";
    assert_eq!(refused, wanted);

    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {}});
    kubelet.create(&LEASES, "kube-node-lease", lease("node-1")).await.unwrap();
    let refused = message(kubelet.create(&LEASES, "kube-node-lease", lease("node-2")).await);
    assert!(refused.ends_with("can only access node lease with the same name as the requesting node"));
}
