//! Pods of the system, for those who look for them (`--system-pods`): they appear as in a cluster of kubeadm,
//! and are simulated as all others. What they would do the cluster does anyway.

use serde_json::{Value, json};

use apimachinery::status::Status;
use apis::apps::daemon_set::DAEMON_SETS;
use apis::apps::deployment::DEPLOYMENTS;
use apis::core::pod::PODS;
use apis::core::service::SERVICES;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::kind::Kind;
use client_go::client::Client;

const NAMESPACE: &str = "kube-system";
/// The pods of the control plane, which kubeadm's first node runs from files: name and image.
const CONTROL_PLANE: [(&str, &str); 4] = [
    ("etcd", "registry.k8s.io/etcd:3.6.6-0"),
    ("kube-apiserver", "registry.k8s.io/kube-apiserver:v1.36.2"),
    ("kube-controller-manager", "registry.k8s.io/kube-controller-manager:v1.36.2"),
    ("kube-scheduler", "registry.k8s.io/kube-scheduler:v1.36.2"),
];

/// Creates those that are not there yet; the control plane's are on the node of that name.
///
/// # Errors
/// The server's refusal.
pub(super) async fn create(client: &Client, node: Option<&str>, cluster_dns: &str) -> Result<(), Status> {
    for account in ["coredns", "kube-proxy", "metrics-server"] {
        put(client, &SERVICE_ACCOUNTS, json!({"metadata": {"name": account}})).await?;
    }
    put(client, &SERVICES, dns_service(cluster_dns)).await?;
    put(client, &DEPLOYMENTS, coredns()).await?;
    put(client, &DEPLOYMENTS, metrics_server()).await?;
    put(client, &DAEMON_SETS, kube_proxy()).await?;
    for (name, image) in CONTROL_PLANE.iter().filter(|_| node.is_some()) {
        put(client, &PODS, of_control_plane(name, image, node.unwrap_or_default())).await?;
    }
    Ok(())
}

async fn put(client: &Client, kind: &Kind, object: Value) -> Result<(), Status> {
    match client.create(kind, NAMESPACE, object).await {
        // The address of the name server may be somebody's already, too: it is left to them.
        Err(status) if !status.is_already_exists() && status.code != 422 => Err(status),
        _ => Ok(()),
    }
}

fn dns_service(address: &str) -> Value {
    let port = |name: &str, protocol: &str, port: u16| json!({"name": name, "protocol": protocol, "port": port, "targetPort": port});
    let ports = [port("dns", "UDP", 53), port("dns-tcp", "TCP", 53), port("metrics", "TCP", 9153)];
    let labels = json!({"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true",
        "kubernetes.io/name": "CoreDNS"});
    json!({
        "metadata": {"name": "kube-dns", "labels": labels},
        "spec": {"clusterIP": address, "selector": {"k8s-app": "kube-dns"}, "ports": ports},
    })
}

/// A workload of so labelled pods; `more` is of the pod's spec.
fn workload(name: &str, labels: &Value, image: &str, more: &Value) -> Value {
    let mut spec = more.clone();
    spec["serviceAccountName"] = name.into();
    spec["containers"] = json!([{"name": name, "image": image, "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "100m", "memory": "70Mi"}}}]);
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    })
}

fn coredns() -> Value {
    let tolerations = json!([{"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
    let more = json!({"priorityClassName": "system-cluster-critical", "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": tolerations});
    let image = "registry.k8s.io/coredns/coredns:v1.13.1";
    let mut deployment = workload("coredns", &json!({"k8s-app": "kube-dns"}), image, &more);
    deployment["spec"]["replicas"] = 2.into();
    deployment
}

fn metrics_server() -> Value {
    let more = json!({"priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"}});
    let image = "registry.k8s.io/metrics-server/metrics-server:v0.8.0";
    workload("metrics-server", &json!({"k8s-app": "metrics-server"}), image, &more)
}

fn kube_proxy() -> Value {
    let more = json!({"priorityClassName": "system-node-critical", "hostNetwork": true,
        "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"operator": "Exists"}]});
    workload("kube-proxy", &json!({"k8s-app": "kube-proxy"}), "registry.k8s.io/kube-proxy:v1.36.2", &more)
}

fn of_control_plane(name: &str, image: &str, node: &str) -> Value {
    let hash = {
        use sha2::{Digest, Sha256};
        format!("{:x}", Sha256::digest(format!("{name}/{node}")))[..32].to_owned()
    };
    let annotations = json!({"kubernetes.io/config.hash": hash, "kubernetes.io/config.source": "file"});
    let container = json!({"name": name, "image": image, "imagePullPolicy": "IfNotPresent",
        "command": [name], "resources": {"requests": {"cpu": "100m"}}});
    json!({
        "metadata": {"name": format!("{name}-{node}"), "annotations": annotations,
            "labels": {"component": name, "tier": "control-plane"}},
        "spec": {"nodeName": node, "hostNetwork": true, "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists", "effect": "NoExecute"}], "containers": [container]},
    })
}
