//! How much of the CPU a limit leaves, as the kubelet tells a runtime and the kernel keeps to it
//! (`MilliCPUToQuota`).

use super::container_limit::container_limit;
use apimachinery::quantity::Quantity;
use apis::views::pod::{Container, Pod};

/// `QuotaPeriod`, in microseconds.
pub(crate) const PERIOD: i64 = 100_000;
/// `MinQuotaPeriod`: less than a millisecond of it nobody gets.
const MIN_QUOTA: i64 = 1_000;

/// How much of each [`PERIOD`] a container may have; nothing where it has no limit.
pub(crate) fn cpu_quota(pod: &Pod, container: &Container) -> Option<i64> {
    container_limit(pod, container, "cpu").map(|limit| quota_of(&limit))
}

/// How much of each [`PERIOD`] a limit leaves.
pub(crate) fn quota_of(limit: &Quantity) -> i64 {
    limit.milli_value().saturating_mul(PERIOD / 1000).max(MIN_QUOTA)
}

/// As [`cpu_quota`], in cores.
pub(super) fn cores(pod: &Pod, container: &Container) -> Option<f64> {
    cpu_quota(pod, container).map(|quota| quota as f64 / PERIOD as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nobody_gets_less_than_a_millisecond_of_each_period() {
        let container = |cpu: &str| -> Container {
            serde_json::from_value(json!({"resources": {"limits": {"cpu": cpu}}})).unwrap()
        };
        let limits = ["0", "1m", "9m", "10m", "11m", "250m", "2"];
        let expected = [None, Some(0.01), Some(0.01), Some(0.01), Some(0.011), Some(0.25), Some(2.0)];
        assert_eq!(limits.map(|cpu| cores(&Pod::default(), &container(cpu))), expected);
    }
}
