//! Which kernel parameters pods may set (`pkg/kubelet/sysctl`): those that no other pod of the node notices,
//! and those that `--allowed-unsafe-sysctls` allows.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::admission::Rejection;
use apimachinery::object::Object;
use apis::tree::{flag, items, text};
use machine::surroundings::sysctl_name;

/// Those that are safe on a kernel of these days (`SafeSysctlAllowlist`).
const SAFE: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];
/// What begins so has a value of its own in each namespace of its kind.
const NAMESPACED: [(&str, SysctlNamespace); 5] = [
    ("kernel.sem", SysctlNamespace::Ipc),
    ("kernel.shm", SysctlNamespace::Ipc),
    ("kernel.msg", SysctlNamespace::Ipc),
    ("fs.mqueue.", SysctlNamespace::Ipc),
    ("net.", SysctlNamespace::Net),
];
/// `SysctlMaxLength`
const MAX_NAME_BYTES: usize = 253;

/// What a parameter is a pod's own in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SysctlNamespace {
    Ipc,
    Net,
}

/// The parameters that pods may set. Bound: the flag.
#[derive(Clone, Debug)]
pub struct AllowedSysctls {
    /// Whole names.
    names: BTreeMap<String, SysctlNamespace>,
    /// What names begin with, as `kernel.msg`.
    prefixes: Vec<(String, SysctlNamespace)>,
}

impl FromStr for AllowedSysctls {
    type Err = String;

    /// From names and patterns that end in `*`, divided by commas; beside them all safe ones are allowed.
    fn from_str(list: &str) -> Result<AllowedSysctls, String> {
        let mut allowed = AllowedSysctls { names: BTreeMap::new(), prefixes: vec![] };
        for pattern in list.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()).chain(SAFE) {
            let (name, is_prefix) = match pattern.strip_suffix('*') {
                Some(prefix) => (sysctl_name(prefix), true),
                None => (sysctl_name(pattern), false),
            };
            let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
            if name.len() > MAX_NAME_BYTES || !name.chars().all(is_fine) {
                return Err(format!(
                    "{pattern:?} is no name of a kernel parameter, as kernel.msgmax or net.*"
                ));
            }
            let Some(namespace) = namespace_of(&name) else {
                return Err(format!("the sysctls {name:?} are not known to be namespaced"));
            };
            if is_prefix {
                allowed.prefixes.push((name, namespace));
            } else {
                allowed.names.insert(name, namespace);
            }
        }
        Ok(allowed)
    }
}

/// Of a parameter by its name, or by what its name begins with.
fn namespace_of(name: &str) -> Option<SysctlNamespace> {
    NAMESPACED.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, namespace)| *namespace)
}

impl AllowedSysctls {
    /// That a pod sets what it may not.
    pub(crate) fn refusal(&self, pod: &Object) -> Option<Rejection> {
        if !pod.mentions("\"sysctls\"") {
            return None;
        }
        let tree = pod.to_value();
        let mut set = items(&tree, "spec.securityContext.sysctls").iter();
        let why = set.find_map(|sysctl| self.forbids(&sysctl_name(text(sysctl, "name")), &tree))?;
        Some(Rejection { reason: "SysctlForbidden", message: format!("forbidden sysctl: {why}") })
    }

    fn forbids(&self, name: &str, pod: &serde_json::Value) -> Option<String> {
        let by_prefix = || self.prefixes.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|it| &it.1);
        match self.names.get(name).or_else(by_prefix) {
            None => Some(format!("{name:?} not allowlisted")),
            Some(SysctlNamespace::Ipc) if flag(pod, "spec.hostIPC") => {
                Some(format!("{name:?} not allowed with host ipc enabled"))
            }
            Some(SysctlNamespace::Net) if flag(pod, "spec.hostNetwork") => {
                Some(format!("{name:?} not allowed with host net enabled"))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_other_pods_would_notice_is_forbidden() {
        let allowed: AllowedSysctls = "kernel.msg*, net.core.somaxconn".parse().unwrap();
        let refused = |name: &str, more: Value| {
            let mut spec = json!({"securityContext": {"sysctls": [{"name": name, "value": "1"}]}});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let pod = Object::from_value(&json!({"metadata": {"name": "p"}, "spec": spec}), vec![]).unwrap();
            allowed.refusal(&pod).map(|rejection| rejection.message)
        };
        for fine in ["kernel/shm_rmid_forced", "kernel.msgmax", "net.core.somaxconn", "net.ipv4.tcp_rmem"] {
            assert_eq!(refused(fine, json!({})), None, "{fine}");
        }
        let forbidden = |why: &str| Some(format!("forbidden sysctl: {why}"));
        assert_eq!(refused("kernel.sem", json!({})), forbidden("\"kernel.sem\" not allowlisted"));
        assert_eq!(
            refused("kernel.msgmax", json!({"hostIPC": true})),
            forbidden("\"kernel.msgmax\" not allowed with host ipc enabled")
        );
        assert_eq!(
            refused("net.ipv4.tcp_rmem", json!({"hostNetwork": true})),
            forbidden("\"net.ipv4.tcp_rmem\" not allowed with host net enabled")
        );
        let bad = |list: &str| list.parse::<AllowedSysctls>().unwrap_err();
        assert_eq!(bad("vm.swappiness"), "the sysctls \"vm.swappiness\" are not known to be namespaced");
        assert!(bad("net. x").contains("is no name of a kernel parameter"), "{}", bad("net. x"));
    }
}
