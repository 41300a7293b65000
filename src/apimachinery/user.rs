//! Who is asking (`k8s.io/apiserver/pkg/authentication/user`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

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

    /// Whether it is one of the components that make a cluster: control plane, kubelets, controllers.
    pub fn is_component(&self) -> bool {
        let name = &*self.name;
        matches!(name, "system:kube-controller-manager" | "system:kube-scheduler" | "system:apiserver")
            || name.starts_with("system:node:")
            || name.starts_with("system:serviceaccount:kube-system:")
    }

    /// Whether it is in `group`.
    pub fn is_member_of(&self, group: &str) -> bool {
        self.groups.iter().any(|member| &**member == group)
    }
}
