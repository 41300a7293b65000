//! The fields of the spec of a pod that are behind feature gates; pods and whatever makes pods have them.

use crate::gated::Gated;

const STOP_SIGNALS: &str = "ContainerStopSignals";

/// Paths in a spec.
pub const POD_GATES: &[Gated] = &[
    Gated::new("ClusterTrustBundleProjection", "volumes[].projected.sources[].clusterTrustBundle"),
    Gated::new("PodCertificateRequest", "volumes[].projected.sources[].podCertificate"),
    Gated::new("GenericWorkload", "schedulingGroup"),
    Gated::new(STOP_SIGNALS, "containers[].lifecycle.stopSignal").with_parent(),
    Gated::new(STOP_SIGNALS, "initContainers[].lifecycle.stopSignal").with_parent(),
    Gated::new(STOP_SIGNALS, "ephemeralContainers[].lifecycle.stopSignal").with_parent(),
];
