//! `kubectl cordon`, `drain`, `uncordon`, and where pods go.

use super::NGINX;
use crate::support::with_each_kubectl;

#[test]
fn a_node_is_drained_and_comes_back() {
    with_each_kubectl(|up, kubectl| {
        let nodes = kubectl.ok("get nodes --no-headers");
        assert_eq!(nodes.lines().filter(|line| line.contains(" Ready ")).count(), 3, "{nodes}");
        let file = up.file("nginx.yaml", &NGINX.replace("replicas: 2", "replicas: 6"));
        kubectl.ok(&format!("create -f {file}"));
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        let nodes_of_pods = || kubectl.ok("get pods -l app=nginx -o jsonpath={.items[*].spec.nodeName}");
        assert!(nodes_of_pods().contains("node-2"), "pods are spread over the nodes: {}", nodes_of_pods());
        kubectl.ok("cordon node-2");
        assert!(kubectl.ok("get node node-2").contains("Ready,SchedulingDisabled"));
        kubectl.ok("drain node-2 --ignore-daemonsets --timeout=60s");
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        assert!(!nodes_of_pods().contains("node-2"), "{}", nodes_of_pods());
        kubectl.ok("uncordon node-2");
        kubectl.ok("scale deployment nginx --replicas 12");
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        assert!(nodes_of_pods().contains("node-2"));
    });
}

#[test]
fn a_pod_that_fits_nowhere_says_why() {
    with_each_kubectl(|_, kubectl| {
        let needs = r#"{"spec":{"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"9999"}}}]}}"#;
        kubectl.ok(&format!("run big --image=nginx --overrides='{needs}'"));
        let condition = "get pod big -o jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}";
        let why = kubectl.until(condition, |text| !text.is_empty());
        assert!(why.starts_with("0/3 nodes are available: 3 Insufficient cpu."), "{why}");
        kubectl.until("get events", |text| text.contains("FailedScheduling"));
        kubectl.ok("cordon node-1");
        kubectl.ok("cordon node-2");
        kubectl.ok("cordon node-3");
        kubectl.ok("run small --image=nginx");
        let condition = "get pod small -o jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}";
        let why = kubectl.until(condition, |text| !text.is_empty());
        assert!(why.starts_with("0/3 nodes are available: 3 node(s) were unschedulable."), "{why}");
        kubectl.ok("uncordon node-3");
        kubectl.ok("wait --for=condition=Ready pod/small --timeout=60s");
    });
}
