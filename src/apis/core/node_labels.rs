//! Labels of nodes that have a meaning (`k8s.io/api/core/v1/well_known_labels.go`).

/// By which a node stands for itself.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Where it is, within [`REGION`].
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Where it is, in the large.
pub const REGION: &str = "topology.kubernetes.io/region";
/// What [`ZONE`] was called before.
pub const OLDER_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
/// What [`REGION`] was called before.
pub const OLDER_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Which machine of a cloud it is.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// What [`INSTANCE_TYPE`] was called before.
pub const OLDER_INSTANCE_TYPE: &str = "beta.kubernetes.io/instance-type";
/// Which operating system it has, as Go calls it.
pub const OS: &str = "kubernetes.io/os";
/// What [`OS`] was called before.
pub const OLDER_OS: &str = "beta.kubernetes.io/os";
/// Which processor it has, as Go calls it.
pub const ARCH: &str = "kubernetes.io/arch";
/// What [`ARCH`] was called before.
pub const OLDER_ARCH: &str = "beta.kubernetes.io/arch";

/// Those that a kubelet may set on its Node by their names (`kubeletapis.IsKubeletLabel`).
pub const KUBELET_LABELS: [&str; 11] = [
    HOSTNAME,
    ZONE,
    REGION,
    OLDER_ZONE,
    OLDER_REGION,
    INSTANCE_TYPE,
    OLDER_INSTANCE_TYPE,
    OS,
    ARCH,
    OLDER_OS,
    OLDER_ARCH,
];
