//! The labels by which a Job knows its pods.

/// The labels that a Job's pods get, and what of the Job their values are.
pub(super) const LABELS: [(&str, &str); 4] = [
    ("job-name", "metadata.name"),
    ("batch.kubernetes.io/job-name", "metadata.name"),
    ("controller-uid", "metadata.uid"),
    (CONTROLLER_UID, "metadata.uid"),
];

/// The label that a generated selector asks for.
pub(super) const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
