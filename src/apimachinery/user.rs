//! Who is asking (`k8s.io/apiserver/pkg/authentication/user`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

/// Whose members may do everything (`user.SystemPrivilegedGroup`).
pub const MASTERS: &str = "system:masters";

/// The service accounts of kube-system that upstream's controller manager makes, those of controllers that
/// are not here among them: people bind roles to them.
pub const CONTROLLER_ACCOUNTS: &[&str] = &[
    "attachdetach-controller",
    "bootstrap-signer",
    "certificate-controller",
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "disruption-controller",
    "endpoint-controller",
    "endpointslice-controller",
    "endpointslicemirroring-controller",
    "ephemeral-volume-controller",
    "expand-controller",
    "generic-garbage-collector",
    "horizontal-pod-autoscaler",
    "job-controller",
    "legacy-service-account-token-cleaner",
    "namespace-controller",
    "node-controller",
    "persistent-volume-binder",
    "pod-garbage-collector",
    "pv-protection-controller",
    "pvc-protection-controller",
    "replicaset-controller",
    "replication-controller",
    "resource-claim-controller",
    "resourcequota-controller",
    "root-ca-cert-publisher",
    "service-account-controller",
    "service-cidrs-controller",
    "statefulset-controller",
    "token-cleaner",
    "ttl-after-finished-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
];
/// What Services with load balancers are managed as, and the controllers that there are only here.
const OTHER_ACCOUNTS: &[&str] = &["service-controller"];

/// An authenticated identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// As `system:serviceaccount:default:builder` or `kubernetes-admin`.
    pub name: Arc<str>,
    /// Unique over time, where the authenticator knows one; else empty.
    pub uid: String,
    /// The groups whose permissions it has.
    pub groups: Vec<Arc<str>>,
    /// What else the authenticator said.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// An identity with a name and groups; `system:authenticated` is added, as authentication does.
    pub fn authenticated(name: &str, groups: &[&str]) -> UserInfo {
        let groups = groups.iter().copied().chain(["system:authenticated"]).map(Arc::from).collect();
        UserInfo { name: name.into(), groups, ..UserInfo::default() }
    }

    /// A service account, with the groups that each is in (`serviceaccount.UserInfo`).
    pub fn service_account(namespace: &str, name: &str) -> UserInfo {
        let of_namespace = format!("system:serviceaccounts:{namespace}");
        let name = format!("system:serviceaccount:{namespace}:{name}");
        UserInfo::authenticated(&name, &["system:serviceaccounts", &of_namespace])
    }

    /// Nobody in particular (`system:anonymous`).
    pub fn anonymous() -> UserInfo {
        let groups = vec![Arc::from("system:unauthenticated")];
        UserInfo { name: "system:anonymous".into(), groups, ..UserInfo::default() }
    }

    /// The node whose kubelet it is (`nodeidentifier`); empty if it does not say which, none if it is no
    /// kubelet.
    pub fn node_identity(&self) -> Option<&str> {
        let node = self.name.strip_prefix("system:node:")?;
        self.is_member_of("system:nodes").then_some(node)
    }

    /// `authenticationv1.UserInfo`, as reviews, webhooks and the audit log show it; what is empty is left
    /// out.
    pub fn to_value(&self) -> Value {
        let mut tree = json!({"username": &*self.name});
        if !self.uid.is_empty() {
            tree["uid"] = json!(self.uid);
        }
        if !self.groups.is_empty() {
            tree["groups"] = self.groups.iter().map(|group| Value::from(&**group)).collect();
        }
        if !self.extra.is_empty() {
            tree["extra"] = json!(self.extra);
        }
        tree
    }

    /// Whether it is one of the components that make a cluster: control plane, kubelets, controllers. What
    /// somebody runs in kube-system with an account of its own is none.
    pub fn is_component(&self) -> bool {
        let name = &*self.name;
        matches!(name, "system:kube-controller-manager" | "system:kube-scheduler" | "system:apiserver")
            || name.starts_with("system:node:")
            || name.strip_prefix("system:serviceaccount:kube-system:").is_some_and(is_controller)
    }

    /// Whether it is in `group`.
    pub fn is_member_of(&self, group: &str) -> bool {
        self.groups.iter().any(|member| &**member == group)
    }
}

fn is_controller(account: &str) -> bool {
    CONTROLLER_ACCOUNTS.contains(&account) || OTHER_ACCOUNTS.contains(&account)
}
