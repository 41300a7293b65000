//! Pods of the system, for those who look for them (`--system-pods`): they appear as in a cluster of kubeadm,
//! and are simulated as all others. What they would do the cluster does anyway.

use serde_json::{Value, json};

use super::control_plane_pods::ROLE;
use apimachinery::status::Status;
use apimachinery::yaml;
use apis::apps::daemon_set::DAEMON_SETS;
use apis::apps::deployment::DEPLOYMENTS;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::node_labels::OS;
use apis::core::service::SERVICES;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::kind::Kind;
use client_go::client::Client;

const NAMESPACE: &str = "kube-system";
/// What CoreDNS is told of the cluster.
const COREFILE: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
";

/// Creates those that are not there yet, but for the control plane's, which are static.
///
/// # Errors
/// The server's refusal.
pub(super) async fn create(client: &Client, cluster_dns: &str) -> Result<(), Status> {
    for account in ["coredns", "kube-proxy", "metrics-server"] {
        put(client, &SERVICE_ACCOUNTS, json!({"metadata": {"name": account}})).await?;
    }
    put(client, &CONFIG_MAPS, config_map("coredns", "Corefile", COREFILE)).await?;
    put(client, &CONFIG_MAPS, config_map("kube-proxy", "config.conf", &proxy_configuration())).await?;
    put(client, &SERVICES, dns_service(cluster_dns)).await?;
    put(client, &SERVICES, metrics_service()).await?;
    put(client, &DEPLOYMENTS, coredns()).await?;
    put(client, &DEPLOYMENTS, metrics_server()).await?;
    put(client, &DAEMON_SETS, kube_proxy()).await
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

fn metrics_service() -> Value {
    let labels = json!({"k8s-app": "metrics-server"});
    let port = json!({"name": "https", "protocol": "TCP", "port": 443, "targetPort": "https"});
    json!({
        "metadata": {"name": "metrics-server", "labels": labels},
        "spec": {"selector": labels, "ports": [port]},
    })
}

fn config_map(name: &str, file: &str, content: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {file: content}})
}

fn proxy_configuration() -> String {
    let configuration = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": "0.0.0.0",
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
        "mode": "iptables",
    });
    yaml::to_string(&configuration)
}

/// A workload of so labelled pods, of one container; `more` is of the pod's spec.
fn workload(name: &str, labels: &Value, container: Value, more: &Value) -> Value {
    let mut spec = more.clone();
    spec["serviceAccountName"] = name.into();
    spec["containers"] = json!([container]);
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    })
}

/// What a file of a ConfigMap is mounted by, and where.
fn mounted(volume: &str, path: &str) -> Value {
    json!({"name": volume, "mountPath": path, "readOnly": true})
}

fn coredns() -> Value {
    let tolerations = json!([{"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": ROLE, "effect": "NoSchedule"}]);
    let items = json!([{"key": "Corefile", "path": "Corefile"}]);
    let volume = json!({"name": "config-volume", "configMap": {"name": "coredns", "items": items}});
    let more = json!({"priorityClassName": "system-cluster-critical", "dnsPolicy": "Default",
        "nodeSelector": {OS: "linux"}, "tolerations": tolerations, "volumes": [volume]});
    let port = |name: &str, protocol: &str, port: u16| {
        let number: Value = port.into();
        json!({"name": name, "protocol": protocol, "containerPort": number})
    };
    let container = json!({
        "name": "coredns",
        "image": "registry.k8s.io/coredns/coredns:v1.13.1",
        "imagePullPolicy": "IfNotPresent",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [port("dns", "UDP", 53), port("dns-tcp", "TCP", 53), port("metrics", "TCP", 9153)],
        "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}},
        "volumeMounts": [mounted("config-volume", "/etc/coredns")],
    });
    let mut deployment = workload("coredns", &json!({"k8s-app": "kube-dns"}), container, &more);
    deployment["spec"]["replicas"] = 2.into();
    deployment["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    deployment
}

fn metrics_server() -> Value {
    let more = json!({"priorityClassName": "system-cluster-critical",
        "nodeSelector": {OS: "linux"}});
    let container = json!({
        "name": "metrics-server",
        "image": "registry.k8s.io/metrics-server/metrics-server:v0.8.0",
        "imagePullPolicy": "IfNotPresent",
        "args": ["--cert-dir=/tmp", "--secure-port=10250", "--kubelet-use-node-status-port",
            "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname", "--metric-resolution=15s"],
        "ports": [{"name": "https", "containerPort": 10250}],
        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}},
    });
    workload("metrics-server", &json!({"k8s-app": "metrics-server"}), container, &more)
}

fn kube_proxy() -> Value {
    let volumes = json!([{"name": "kube-proxy", "configMap": {"name": "kube-proxy"}},
        {"name": "xtables-lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
        {"name": "lib-modules", "hostPath": {"path": "/lib/modules"}}]);
    let more = json!({"priorityClassName": "system-node-critical", "hostNetwork": true,
        "nodeSelector": {OS: "linux"}, "tolerations": [{"operator": "Exists"}], "volumes": volumes});
    let config = mounted("kube-proxy", "/var/lib/kube-proxy");
    let lock = json!({"name": "xtables-lock", "mountPath": "/run/xtables.lock"});
    let container = json!({
        "name": "kube-proxy",
        "image": "registry.k8s.io/kube-proxy:v1.36.2",
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf",
            "--hostname-override=$(NODE_NAME)"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "securityContext": {"privileged": true},
        "volumeMounts": [config, lock, mounted("lib-modules", "/lib/modules")],
    });
    workload("kube-proxy", &json!({"k8s-app": "kube-proxy"}), container, &more)
}
