//! The fields of a pod that are behind feature gates; what is in its spec, whatever makes pods has, too.

use crate::gated::Gated;

const STOP_SIGNALS: &str = "ContainerStopSignals";

/// Whether the resources of a whole pod may change while it runs, and are told.
pub const POD_LEVEL_RESIZE: &str = "InPlacePodLevelResourcesVerticalScaling";

/// Paths in the status of a pod.
pub const POD_STATUS_GATES: &[Gated] =
    &[Gated::new(POD_LEVEL_RESIZE, "resources"), Gated::new(POD_LEVEL_RESIZE, "allocatedResources")];

/// Paths in a spec.
pub const POD_GATES: &[Gated] = &[
    Gated::new("ClusterTrustBundleProjection", "volumes[].projected.sources[].clusterTrustBundle"),
    Gated::new("PodCertificateRequest", "volumes[].projected.sources[].podCertificate"),
    Gated::new("GenericWorkload", "schedulingGroup"),
    Gated::new(STOP_SIGNALS, "containers[].lifecycle.stopSignal").with_parent(),
    Gated::new(STOP_SIGNALS, "initContainers[].lifecycle.stopSignal").with_parent(),
    Gated::new(STOP_SIGNALS, "ephemeralContainers[].lifecycle.stopSignal").with_parent(),
];
