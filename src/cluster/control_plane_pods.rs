//! The pods of the control plane, which nodes of kubeadm run from files: as static pods they have mirror
//! pods, come back when they are deleted, and show with which flags whoever they stand for would have been
//! started.

use serde_json::{Value, json};

use super::config::Config;
use kubelet::node_config::NodeConfig;

/// By it a node says that it is one of the control plane.
pub(super) const ROLE: &str = "node-role.kubernetes.io/control-plane";
/// Where kubeadm keeps certificates.
const PKI: &str = "/etc/kubernetes/pki";
/// Where kubeadm's apiserver listens.
const PORT: u16 = 6443;

/// Where the addresses of pods are when nobody says it.
const USUAL_CLUSTER_RANGE: &str = "10.244.0.0/16";

/// What the pods show of their cluster.
#[derive(Clone)]
pub(super) struct ControlPlanePods {
    service_range: String,
    /// Of pods; empty where nobody says one.
    cluster_range: String,
}

/// One of them, but for its node.
struct ControlPlanePart {
    name: &'static str,
    image: &'static str,
    flags: Vec<String>,
    requests: Value,
    /// The annotation by which kubeadm finds it.
    found_by: Option<(&'static str, String)>,
    /// Folders and files of its node, which it mounts where they are.
    mounts: Vec<(&'static str, &'static str, &'static str)>,
}

impl ControlPlanePods {
    /// None, unless somebody wants to see them.
    pub(super) fn of(config: &Config) -> Option<ControlPlanePods> {
        let service_range = config.apiserver.services.service_cluster_ip_range.to_string();
        let usual = if service_range.contains(':') { "" } else { USUAL_CLUSTER_RANGE };
        let given = config.controller_manager.cluster_cidr.as_ref().map(ToString::to_string);
        let cluster_range = given.unwrap_or_else(|| usual.into());
        config.system_pods.then_some(ControlPlanePods { service_range, cluster_range })
    }

    /// Those are on a node of the control plane.
    pub(super) fn are_on(node: &NodeConfig) -> bool {
        node.labels.contains_key(ROLE)
    }

    /// A node runs them from now on.
    pub(super) fn put_on(&self, node: &mut NodeConfig) {
        let address = node.addresses.first().cloned().unwrap_or_default();
        let parts =
            [etcd(&node.name, &address), self.apiserver(&address), self.controller_manager(), scheduler()];
        node.static_pods.extend(parts.iter().map(manifest));
    }

    /// The names of the mirror pods of a node that has them.
    pub(super) fn names_on(node: &NodeConfig) -> Vec<String> {
        let is_one = |pod: &&Value| pod["metadata"]["labels"]["tier"] == "control-plane";
        let name =
            |pod: &Value| format!("{}-{}", pod["metadata"]["name"].as_str().unwrap_or_default(), node.name);
        node.static_pods.iter().filter(is_one).map(name).collect()
    }

    fn apiserver(&self, address: &str) -> ControlPlanePart {
        let range = &self.service_range;
        let mut flags = vec![
            format!("--advertise-address={address}"),
            "--allow-privileged=true".into(),
            "--authorization-mode=Node,RBAC".into(),
            format!("--client-ca-file={PKI}/ca.crt"),
            "--enable-admission-plugins=NodeRestriction".into(),
            "--enable-bootstrap-token-auth=true".into(),
            format!("--etcd-cafile={PKI}/etcd/ca.crt"),
            format!("--etcd-certfile={PKI}/apiserver-etcd-client.crt"),
            format!("--etcd-keyfile={PKI}/apiserver-etcd-client.key"),
            "--etcd-servers=https://127.0.0.1:2379".into(),
            format!("--kubelet-client-certificate={PKI}/apiserver-kubelet-client.crt"),
            format!("--kubelet-client-key={PKI}/apiserver-kubelet-client.key"),
            "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname".into(),
            format!("--proxy-client-cert-file={PKI}/front-proxy-client.crt"),
            format!("--proxy-client-key-file={PKI}/front-proxy-client.key"),
        ];
        flags.extend([
            "--requestheader-allowed-names=front-proxy-client".into(),
            format!("--requestheader-client-ca-file={PKI}/front-proxy-ca.crt"),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
            "--requestheader-group-headers=X-Remote-Group".into(),
            "--requestheader-username-headers=X-Remote-User".into(),
            format!("--secure-port={PORT}"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            format!("--service-account-key-file={PKI}/sa.pub"),
            format!("--service-account-signing-key-file={PKI}/sa.key"),
            format!("--service-cluster-ip-range={range}"),
            format!("--tls-cert-file={PKI}/apiserver.crt"),
            format!("--tls-private-key-file={PKI}/apiserver.key"),
        ]);
        let endpoint = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint";
        ControlPlanePart {
            name: "kube-apiserver",
            image: "registry.k8s.io/kube-apiserver:v1.36.2",
            flags,
            requests: json!({"cpu": "250m"}),
            found_by: Some((endpoint, format!("{address}:{PORT}"))),
            mounts: vec![
                ("ca-certs", "/etc/ssl/certs", "DirectoryOrCreate"),
                ("k8s-certs", PKI, "DirectoryOrCreate"),
            ],
        }
    }

    fn controller_manager(&self) -> ControlPlanePart {
        let config = "/etc/kubernetes/controller-manager.conf";
        let mut flags = vec![
            "--allocate-node-cidrs=true".into(),
            format!("--authentication-kubeconfig={config}"),
            format!("--authorization-kubeconfig={config}"),
            "--bind-address=127.0.0.1".into(),
            format!("--client-ca-file={PKI}/ca.crt"),
        ];
        if !self.cluster_range.is_empty() {
            flags.push(format!("--cluster-cidr={}", self.cluster_range));
        }
        flags.extend([
            "--cluster-name=kubernetes".into(),
            format!("--cluster-signing-cert-file={PKI}/ca.crt"),
            format!("--cluster-signing-key-file={PKI}/ca.key"),
            "--controllers=*,bootstrapsigner,tokencleaner".into(),
            format!("--kubeconfig={config}"),
            "--leader-elect=true".into(),
            format!("--requestheader-client-ca-file={PKI}/front-proxy-ca.crt"),
            format!("--root-ca-file={PKI}/ca.crt"),
            format!("--service-account-private-key-file={PKI}/sa.key"),
            format!("--service-cluster-ip-range={}", self.service_range),
            "--use-service-account-credentials=true".into(),
        ]);
        ControlPlanePart {
            name: "kube-controller-manager",
            image: "registry.k8s.io/kube-controller-manager:v1.36.2",
            flags,
            requests: json!({"cpu": "200m"}),
            found_by: None,
            mounts: vec![
                ("ca-certs", "/etc/ssl/certs", "DirectoryOrCreate"),
                ("k8s-certs", PKI, "DirectoryOrCreate"),
                ("kubeconfig", config, "FileOrCreate"),
            ],
        }
    }
}

fn scheduler() -> ControlPlanePart {
    let config = "/etc/kubernetes/scheduler.conf";
    ControlPlanePart {
        name: "kube-scheduler",
        image: "registry.k8s.io/kube-scheduler:v1.36.2",
        flags: vec![
            format!("--authentication-kubeconfig={config}"),
            format!("--authorization-kubeconfig={config}"),
            "--bind-address=127.0.0.1".into(),
            format!("--kubeconfig={config}"),
            "--leader-elect=true".into(),
        ],
        requests: json!({"cpu": "100m"}),
        found_by: None,
        mounts: vec![("kubeconfig", config, "FileOrCreate")],
    }
}

fn etcd(node: &str, address: &str) -> ControlPlanePart {
    let clients = format!("https://{address}:2379");
    ControlPlanePart {
        name: "etcd",
        image: "registry.k8s.io/etcd:3.6.6-0",
        flags: vec![
            format!("--advertise-client-urls={clients}"),
            format!("--cert-file={PKI}/etcd/server.crt"),
            "--client-cert-auth=true".into(),
            "--data-dir=/var/lib/etcd".into(),
            format!("--initial-advertise-peer-urls=https://{address}:2380"),
            format!("--initial-cluster={node}=https://{address}:2380"),
            format!("--key-file={PKI}/etcd/server.key"),
            format!("--listen-client-urls=https://127.0.0.1:2379,{clients}"),
            "--listen-metrics-urls=http://127.0.0.1:2381".into(),
            format!("--listen-peer-urls=https://{address}:2380"),
            format!("--name={node}"),
            format!("--peer-cert-file={PKI}/etcd/peer.crt"),
            "--peer-client-cert-auth=true".into(),
            format!("--peer-key-file={PKI}/etcd/peer.key"),
            format!("--peer-trusted-ca-file={PKI}/etcd/ca.crt"),
            "--snapshot-count=10000".into(),
            format!("--trusted-ca-file={PKI}/etcd/ca.crt"),
        ],
        requests: json!({"cpu": "100m", "memory": "100Mi"}),
        found_by: Some(("kubeadm.kubernetes.io/etcd.advertise-client-urls", clients)),
        mounts: vec![
            ("etcd-data", "/var/lib/etcd", "DirectoryOrCreate"),
            ("etcd-certs", "/etc/kubernetes/pki/etcd", "DirectoryOrCreate"),
        ],
    }
}

fn manifest(part: &ControlPlanePart) -> Value {
    let ControlPlanePart { name, image, flags, requests, found_by, mounts } = part;
    let command: Vec<&str> = [*name].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let mount = |(name, path, _): &(&str, &str, &str)| {
        let is_read_only = *name != "etcd-data";
        json!({"name": name, "mountPath": path, "readOnly": is_read_only})
    };
    let volume = |(name, path, kind): &(&str, &str, &str)| {
        let path = json!({"path": path, "type": kind});
        json!({"name": name, "hostPath": path})
    };
    let container = json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": requests},
        "volumeMounts": mounts.iter().map(mount).collect::<Vec<_>>(),
    });
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system",
            "labels": {"component": name, "tier": "control-plane"}},
        "spec": {"containers": [container], "hostNetwork": true, "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": mounts.iter().map(volume).collect::<Vec<_>>()},
    });
    if let Some((annotation, value)) = found_by {
        pod["metadata"]["annotations"] = json!({*annotation: value});
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_the_control_plane_shows_its_flags() {
        let pods = ControlPlanePods::of(&Config::new().system_pods(true)).unwrap();
        let mut node = NodeConfig::numbered(1);
        assert!(!ControlPlanePods::are_on(&node) && ControlPlanePods::names_on(&node).is_empty());
        pods.put_on(&mut node);
        let names = ControlPlanePods::names_on(&node);
        let parts = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
        assert_eq!(names, parts.map(|part| format!("{part}-node-1")));
        let apiserver = &node.static_pods[1];
        let command = apiserver["spec"]["containers"][0]["command"].as_array().unwrap();
        for flag in ["kube-apiserver", "--service-cluster-ip-range=10.96.0.0/16"] {
            assert!(command.iter().any(|word| word == flag), "{flag}: {command:?}");
        }
        let endpoint = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint";
        assert_eq!(apiserver["metadata"]["annotations"][endpoint], format!("{}:6443", node.addresses[0]));
        assert!(ControlPlanePods::of(&Config::new()).is_none());
    }
}
