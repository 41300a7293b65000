//! What a kubelet wants to know of a pod beyond what everybody does: where the files and the variables of
//! its containers come from.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::pod::EnvVar;
use apimachinery::object::{list, nullable};

/// `v1.Pod`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodDetail {
    /// The desired state, from whoever wrote the object.
    pub spec: PodDetailSpec,
}

/// `v1.PodSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDetailSpec {
    /// What containers may mount.
    #[serde(deserialize_with = "list")]
    pub volumes: Vec<Volume>,
    /// As in [`super::pod::PodSpec`].
    #[serde(deserialize_with = "list")]
    pub containers: Vec<ContainerDetail>,
    /// As in [`super::pod::PodSpec`].
    #[serde(deserialize_with = "list")]
    pub init_containers: Vec<ContainerDetail>,
    /// As in [`super::pod::PodSpec`].
    #[serde(deserialize_with = "list")]
    pub ephemeral_containers: Vec<ContainerDetail>,
    /// Who its containers run as.
    #[serde(deserialize_with = "nullable")]
    pub security_context: SecurityContext,
    /// Lines of `/etc/hosts`.
    #[serde(deserialize_with = "list")]
    pub host_aliases: Vec<HostAlias>,
    /// Whether services are variables; without, they are.
    pub enable_service_links: Option<bool>,
    /// Whether its host name has its domain behind it.
    #[serde(rename = "setHostnameAsFQDN")]
    pub set_hostname_as_fqdn: Option<bool>,
    /// Whether it sees the processes of its node.
    #[serde(rename = "hostPID")]
    pub host_pid: bool,
    /// As `ClusterFirst`.
    pub dns_policy: String,
    /// Lines of `/etc/resolv.conf`, as they stand.
    pub dns_config: Option<Box<Value>>,
}

/// `v1.Container`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerDetail {
    /// Unique in the pod.
    pub name: String,
    /// Its variables.
    #[serde(deserialize_with = "list")]
    pub env: Vec<EnvVar>,
    /// Variables from all keys of an object.
    #[serde(deserialize_with = "list")]
    pub env_from: Vec<EnvFrom>,
    /// Where its volumes are.
    #[serde(deserialize_with = "list")]
    pub volume_mounts: Vec<Mount>,
    /// Its volumes that are blocks.
    #[serde(deserialize_with = "list")]
    pub volume_devices: Vec<BlockMount>,
    /// Who it runs as.
    #[serde(deserialize_with = "nullable")]
    pub security_context: SecurityContext,
    /// Where it runs.
    pub working_dir: String,
    /// The file with its last word.
    pub termination_message_path: String,
    /// `File` or `FallbackToLogsOnError`.
    pub termination_message_policy: String,
}

/// `v1.EnvFromSource`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvFrom {
    /// Before each name.
    pub prefix: String,
    /// All keys of a ConfigMap.
    pub config_map_ref: Option<Reference>,
    /// All keys of a Secret.
    pub secret_ref: Option<Reference>,
}

/// A ConfigMap or a Secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// Whether it may be missing.
    pub optional: Option<bool>,
}

/// `v1.VolumeMount`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mount {
    /// The volume's.
    pub name: String,
    /// In the container.
    pub mount_path: String,
    /// Where in the volume that is.
    pub sub_path: String,
    /// Where in the volume that is, with variables in it.
    pub sub_path_expr: String,
    /// Whether it may not be written.
    pub read_only: bool,
}

/// `v1.VolumeDevice`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockMount {
    /// The volume's.
    pub name: String,
    /// In the container.
    pub device_path: String,
}

/// `v1.SecurityContext` and `v1.PodSecurityContext`, what they have in common and more.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityContext {
    /// User id.
    pub run_as_user: Option<i64>,
    /// Group id.
    pub run_as_group: Option<i64>,
    /// The group of the volumes.
    pub fs_group: Option<i64>,
    /// More groups.
    #[serde(deserialize_with = "list")]
    pub supplemental_groups: Vec<i64>,
    /// Whether only volumes may be written.
    pub read_only_root_filesystem: Option<bool>,
    /// Kernel parameters.
    #[serde(deserialize_with = "list")]
    pub sysctls: Vec<Sysctl>,
    /// Whether it may do all that the node may.
    pub privileged: Option<bool>,
    /// Whether a program may get more rights than who starts it.
    pub allow_privilege_escalation: Option<bool>,
    /// What of the rights of root it has.
    pub capabilities: Option<Capabilities>,
    /// Which system calls it may make.
    pub seccomp_profile: Option<SeccompProfile>,
}

/// `v1.Capabilities`: names without `CAP_`, or `ALL`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// More than by default.
    #[serde(deserialize_with = "list")]
    pub add: Vec<String>,
    /// Less than that.
    #[serde(deserialize_with = "list")]
    pub drop: Vec<String>,
}

/// `v1.SeccompProfile`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SeccompProfile {
    /// `Unconfined`, `RuntimeDefault` or `Localhost`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// `v1.Sysctl`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Sysctl {
    /// As `kernel.shm_rmid_forced`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// `v1.HostAlias`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HostAlias {
    /// The address.
    pub ip: String,
    /// Its names.
    #[serde(deserialize_with = "list")]
    pub hostnames: Vec<String>,
}

/// `v1.Volume`: of these kinds; what others hold nobody here knows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// Unique in the pod.
    pub name: String,
    /// The keys of a ConfigMap.
    pub config_map: Option<KeyedSource>,
    /// The keys of a Secret.
    pub secret: Option<KeyedSource>,
    /// Fields of the pod.
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardSource>,
    /// Several of those in one.
    pub projected: Option<Projected>,
    /// Nothing at first.
    pub empty_dir: Option<EmptyDir>,
    /// What is on the node.
    pub host_path: Option<HostPath>,
    /// A volume that is claimed.
    pub persistent_volume_claim: Option<ClaimSource>,
    /// A volume for which a claim is made that lives as long as the pod.
    pub ephemeral: Option<IgnoredAny>,
    /// What an image holds.
    pub image: Option<ImageSource>,
}

/// `v1.ImageVolumeSource`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSource {
    /// The image, as a container names its own.
    pub reference: String,
    /// `Always`, `IfNotPresent`, `Never`.
    pub pull_policy: String,
}

/// `v1.PersistentVolumeClaimVolumeSource`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSource {
    /// Of the claim.
    pub claim_name: String,
    /// No container of the pod may write it.
    pub read_only: bool,
}

/// `v1.HostPathVolumeSource`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HostPath {
    /// On the node.
    pub path: String,
    /// What it is, as `Directory`; nothing for whatever it is.
    #[serde(rename = "type")]
    pub path_type: String,
}

/// `v1.ConfigMapVolumeSource`, `v1.SecretVolumeSource` and their projections.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyedSource {
    /// The object's name; of a volume of a Secret it is `secretName`.
    #[serde(alias = "secretName")]
    pub name: String,
    /// Only these keys, each with its path; without, all of them.
    #[serde(deserialize_with = "list")]
    pub items: Vec<KeyToPath>,
    /// Whether object and keys may be missing.
    pub optional: Option<bool>,
    /// The permissions of files that have none of their own.
    pub default_mode: Option<u32>,
}

/// `v1.KeyToPath`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeyToPath {
    /// Of the object.
    pub key: String,
    /// In the volume.
    pub path: String,
    /// The permissions of the file.
    pub mode: Option<u32>,
}

/// `v1.DownwardAPIVolumeSource`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DownwardSource {
    /// The files.
    #[serde(deserialize_with = "list")]
    pub items: Vec<DownwardFile>,
    /// The permissions of files that have none of their own.
    pub default_mode: Option<u32>,
}

/// `v1.DownwardAPIVolumeFile`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DownwardFile {
    /// In the volume.
    pub path: String,
    /// The permissions of the file.
    pub mode: Option<u32>,
    /// `fieldRef` or `resourceFieldRef`, as they stand.
    #[serde(flatten)]
    pub source: BTreeMap<String, Value>,
}

/// `v1.ProjectedVolumeSource`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Projected {
    /// In order: later ones win.
    #[serde(deserialize_with = "list")]
    pub sources: Vec<Projection>,
    /// The permissions of files that have none of their own.
    pub default_mode: Option<u32>,
}

/// `v1.VolumeProjection`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Projection {
    /// The keys of a ConfigMap.
    pub config_map: Option<KeyedSource>,
    /// The keys of a Secret.
    pub secret: Option<KeyedSource>,
    /// Fields of the pod.
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardSource>,
    /// A token of the pod's service account.
    pub service_account_token: Option<TokenSource>,
}

/// `v1.ServiceAccountTokenProjection`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenSource {
    /// Whom it is for; the apiserver without.
    pub audience: String,
    /// How long it lives.
    pub expiration_seconds: Option<i64>,
    /// In the volume.
    pub path: String,
}

/// `v1.EmptyDirVolumeSource`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EmptyDir {
    /// How much may be in it; of more the pod is evicted.
    pub size_limit: Option<String>,
    /// `Memory`, or empty for the node's disk.
    pub medium: String,
}

impl PodDetail {
    /// A container of any kind by its name.
    pub fn container(&self, name: &str) -> Option<&ContainerDetail> {
        let PodDetailSpec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        let mut all = containers.iter().chain(init_containers).chain(ephemeral_containers);
        all.find(|container| container.name == name)
    }

    /// All containers.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerDetail> {
        let PodDetailSpec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        init_containers.iter().chain(containers).chain(ephemeral_containers)
    }
}
