//! What of a pod and its node the variables and volumes of its containers are made of.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::sources::Sources;
use crate::container_runtime::sandbox_status::PodSandboxStatus;
use apimachinery::object::ObjectMeta;
use apis::views::pod::Pod;
use apis::views::pod_detail::PodDetail;

/// What the surroundings of a pod's containers are worked out from.
pub struct VolumeFacts<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// Its own annotations: those of `pod` may be more.
    pub annotations: &'a BTreeMap<String, String>,
    /// More of the pod.
    pub detail: &'a PodDetail,
    /// What was fetched for it.
    pub sources: &'a Sources,
    /// Its addresses, if it has any yet.
    pub pod_ips: &'a PodSandboxStatus,
    /// Its node's.
    pub host_ips: &'a [String],
    /// Who is asked for names.
    pub cluster_dns: &'a str,
    /// What its node has for pods.
    pub allocatable: &'a BTreeMap<String, String>,
    /// How much memory its node has, in bytes.
    pub memory_capacity: i64,
}

impl<'a> VolumeFacts<'a> {
    /// The name that the pod calls itself.
    pub fn hostname(&self) -> &'a str {
        self.pod.spec.host_name(&self.metadata.name)
    }

    /// What `hostname` says in it: with its domain, where the pod wants that (`setHostnameAsFQDN`).
    pub fn kernel_hostname(&self) -> Cow<'a, str> {
        let (name, domain) = (self.hostname(), self.pod.spec.subdomain.as_str());
        if self.detail.spec.set_hostname_as_fqdn != Some(true) || domain.is_empty() {
            return name.into();
        }
        format!("{name}.{domain}.{}.svc.cluster.local", self.metadata.namespace).into()
    }
}
