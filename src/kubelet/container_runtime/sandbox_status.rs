//! What there is of a pod as a whole: its addresses.

/// What there is of a pod as a whole (`runtimeapi.PodSandboxStatus`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSandboxStatus {
    /// The address that its containers share; where there are several, that of the pod's own IP family.
    pub ip: String,
    /// Those of other IP families (`PodSandboxNetworkStatus.additional_ips`).
    pub additional_ips: Vec<String>,
}

impl PodSandboxStatus {
    /// Of all addresses, that of the pod's own family first; nothing without any.
    pub fn of(ips: impl IntoIterator<Item = String>) -> Option<PodSandboxStatus> {
        let mut ips = ips.into_iter();
        Some(PodSandboxStatus { ip: ips.next()?, additional_ips: ips.collect() })
    }

    /// All addresses, that of the pod's own family first; none before it has any.
    pub fn ips(&self) -> impl Iterator<Item = &str> {
        let all = std::iter::once(&self.ip).chain(&self.additional_ips);
        all.map(String::as_str).filter(|ip| !ip.is_empty())
    }
}
