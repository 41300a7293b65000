//! How often the verbs of CRI are called and how long they take (`instrumented_services.go`), and how long
//! images take to come.

use std::time::Duration;

use component_base::metrics::{Family, Render};

/// `ExponentialBuckets(.005, 2.5, 14)`: of the verbs.
const BOUNDS: [f64; 14] = [
    0.005,
    0.0125,
    0.03125,
    0.078_125,
    0.195_312_5,
    0.488_281_25,
    1.220_703_125,
    3.051_757_812_5,
    7.629_394_531_25,
    19.073_486_328_125,
    47.683_715_820_312_5,
    119.209_289_550_781_25,
    298.023_223_876_953_1,
    745.058_059_692_382_8,
];
/// `imagePullDurationBuckets`
const PULL_BOUNDS: [f64; 18] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0,
    2700.0, 3600.0,
];
/// The verb that makes a sandbox.
pub(crate) const RUN_SANDBOX: &str = "run_podsandbox";
const MEBI: u64 = 1 << 20;
const GIBI: u64 = 1 << 30;
/// How large images are: above how many bytes, and how that is called (`imageSizeBuckets`).
const SIZES: [(u64, &str); 12] = [
    (0, "0-10MB"),
    (10 * MEBI, "10MB-100MB"),
    (100 * MEBI, "100MB-500MB"),
    (500 * MEBI, "500MB-1GB"),
    (GIBI, "1GB-5GB"),
    (5 * GIBI, "5GB-10GB"),
    (10 * GIBI, "10GB-20GB"),
    (20 * GIBI, "20GB-30GB"),
    (30 * GIBI, "30GB-40GB"),
    (40 * GIBI, "40GB-60GB"),
    (60 * GIBI, "60GB-100GB"),
    (100 * GIBI, "GT100GB"),
];

/// What the runtime of one node was told to do.
pub(crate) struct RuntimeOperations {
    total: Family<1>,
    durations: Family<1>,
    errors: Family<1>,
    pulls: Family<1>,
}

impl Default for RuntimeOperations {
    fn default() -> RuntimeOperations {
        let label = ["operation_type"];
        RuntimeOperations {
            total: Family::counter(
                "kubelet_runtime_operations_total",
                "[ALPHA] Cumulative number of runtime operations by operation type.",
                label,
            ),
            durations: Family::histogram(
                "kubelet_runtime_operations_duration_seconds",
                "[ALPHA] Duration in seconds of runtime operations. Broken down by operation type.",
                label,
                &BOUNDS,
            ),
            errors: Family::counter(
                "kubelet_runtime_operations_errors_total",
                "[ALPHA] Cumulative number of runtime operation errors by operation type.",
                label,
            ),
            pulls: Family::histogram(
                "kubelet_image_pull_duration_seconds",
                "[ALPHA] Duration in seconds to pull an image.",
                ["image_size_in_bytes"],
                &PULL_BOUNDS,
            ),
        }
    }
}

impl RuntimeOperations {
    /// A verb has returned.
    pub(crate) fn returned(&self, operation: &str, took: Duration, has_failed: bool) {
        self.total.count([operation]);
        self.durations.observe([operation], took);
        self.errors.add([operation], u64::from(has_failed));
    }

    /// An image of so many bytes has come.
    pub(crate) fn pulled(&self, took: Duration, size: u64) {
        self.pulls.observe([size_label(size)], took);
    }
}

impl Render for RuntimeOperations {
    fn render(&self, out: &mut String) {
        for family in [&self.pulls, &self.durations, &self.errors, &self.total] {
            family.render(out);
        }
    }
}

/// `GetImageSizeBucket`
fn size_label(size: u64) -> &'static str {
    SIZES.iter().rev().find(|(above, _)| size > *above).map_or("N/A", |(_, label)| label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_counted_and_images_by_their_size() {
        let operations = RuntimeOperations::default();
        operations.returned("create_container", Duration::from_millis(20), false);
        operations.returned("create_container", Duration::ZERO, true);
        for size in [0, 1, 10 * MEBI, 10 * MEBI + 1, 101 * GIBI] {
            operations.pulled(Duration::from_secs(6), size);
        }
        let mut told = String::new();
        operations.render(&mut told);
        for line in [
            "kubelet_runtime_operations_total{operation_type=\"create_container\"} 2",
            "kubelet_runtime_operations_errors_total{operation_type=\"create_container\"} 1",
            "kubelet_runtime_operations_duration_seconds_bucket{operation_type=\"create_container\",le=\"0.0125\"} 1",
            "kubelet_runtime_operations_duration_seconds_bucket{operation_type=\"create_container\",le=\"0.03125\"} 2",
            "kubelet_image_pull_duration_seconds_count{image_size_in_bytes=\"N/A\"} 1",
            "kubelet_image_pull_duration_seconds_count{image_size_in_bytes=\"0-10MB\"} 2",
            "kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes=\"10MB-100MB\",le=\"5\"} 0",
            "kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes=\"10MB-100MB\",le=\"10\"} 1",
            "kubelet_image_pull_duration_seconds_count{image_size_in_bytes=\"GT100GB\"} 1",
        ] {
            assert!(told.lines().any(|own| own == line), "{line}\n{told}");
        }
    }
}
