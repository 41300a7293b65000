//! What a node says of its machine and its programs (`v1.NodeSystemInfo`).

use serde::Deserialize;
use serde_json::{Value, json};

use component_base::build_info::architecture;

/// The release of Kubernetes that kubelets here behave as.
const KUBELET_VERSION: &str = "v1.36.2";

/// `v1.NodeSystemInfo`, without what follows from the node's name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSystemInfo {
    /// As Go calls it: `amd64`, `arm64`.
    pub architecture: String,
    /// `linux` or `windows`.
    pub operating_system: String,
    /// For people.
    pub os_image: String,
    /// Of `uname -r`.
    pub kernel_version: String,
    /// Which kubelet it says that it runs.
    pub kubelet_version: String,
    /// Which runtime it says that it has.
    pub container_runtime_version: String,
}

impl Default for NodeSystemInfo {
    fn default() -> NodeSystemInfo {
        NodeSystemInfo {
            architecture: architecture().into(),
            operating_system: "linux".into(),
            os_image: "Debian GNU/Linux 13 (trixie)".into(),
            kernel_version: "6.12.48+deb13-amd64".into(),
            kubelet_version: KUBELET_VERSION.into(),
            container_runtime_version: "containerd://2.1.4".into(),
        }
    }
}

impl NodeSystemInfo {
    /// What `given` says, and what it leaves empty as every node has it.
    pub(crate) fn or_default(given: NodeSystemInfo) -> NodeSystemInfo {
        let own = NodeSystemInfo::default();
        let or = |given: String, own: String| if given.is_empty() { own } else { given };
        NodeSystemInfo {
            architecture: or(given.architecture, own.architecture),
            operating_system: or(given.operating_system, own.operating_system),
            os_image: or(given.os_image, own.os_image),
            kernel_version: or(given.kernel_version, own.kernel_version),
            kubelet_version: or(given.kubelet_version, own.kubelet_version),
            container_runtime_version: or(given.container_runtime_version, own.container_runtime_version),
        }
    }

    /// Of a node of this name that was started so often again.
    pub(crate) fn to_value(&self, name: &str, reboots: u32) -> Value {
        // The same name makes the same machine, so that a node that comes back is the one that went.
        let id = |salt: &str| {
            use sha2::{Digest, Sha256};
            format!("{:x}", Sha256::digest(format!("{salt}/{name}")))
        };
        let uuid = |hex: &str| {
            format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
        };
        let boot = if reboots == 0 { "boot".to_owned() } else { format!("boot {reboots}") };
        json!({
            "architecture": self.architecture,
            "bootID": uuid(&id(&boot)),
            "containerRuntimeVersion": self.container_runtime_version,
            "kernelVersion": self.kernel_version,
            "kubeProxyVersion": "",
            "kubeletVersion": self.kubelet_version,
            "machineID": &id("machine")[..32],
            "operatingSystem": self.operating_system,
            "osImage": self.os_image,
            "systemUUID": uuid(&id("system")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reboot_changes_the_boot_alone() {
        let info = NodeSystemInfo::default();
        let (before, after) = (info.to_value("node-1", 0), info.to_value("node-1", 1));
        assert_ne!(before["bootID"], after["bootID"]);
        assert_eq!(before["machineID"], after["machineID"]);
    }

    #[test]
    fn what_is_left_empty_is_as_every_node_has_it() {
        let mut given = NodeSystemInfo { architecture: "arm64".into(), ..NodeSystemInfo::default() };
        given.kubelet_version.clear();
        let info = NodeSystemInfo::or_default(given);
        assert_eq!((info.architecture.as_str(), info.kubelet_version.as_str()), ("arm64", KUBELET_VERSION));
    }
}
