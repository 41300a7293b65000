//! Who is asking (`k8s.io/apiserver/pkg/authentication/user`).

use std::collections::BTreeMap;
use std::sync::Arc;

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

    /// Nobody in particular (`system:anonymous`).
    pub fn anonymous() -> UserInfo {
        let groups = vec![Arc::from("system:unauthenticated")];
        UserInfo { name: "system:anonymous".into(), groups, ..UserInfo::default() }
    }

    /// Whether it is in `group`.
    pub fn is_member_of(&self, group: &str) -> bool {
        self.groups.iter().any(|member| &**member == group)
    }
}
