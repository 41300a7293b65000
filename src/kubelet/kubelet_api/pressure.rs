//! How long containers had to wait for the processor, for memory and for the disk (Linux' PSI, `KubeletPSI`).
//!
//! Simulated containers use what they are said to use, and wait for nothing: a machine that is never short.
//! What their own limit of the CPU holds back is told as throttling.

use serde_json::{Value, json};

use apimachinery::time::{Time, rfc3339};

/// The counters of `/metrics/cadvisor`, each of which stands still, with their helps.
pub(super) const COUNTERS: [(&str, &str); 6] = [
    (
        "container_pressure_cpu_stalled_seconds_total",
        "Total time duration no tasks in the container could make progress due to CPU congestion.",
    ),
    (
        "container_pressure_cpu_waiting_seconds_total",
        "Total time duration tasks in the container have waited due to CPU congestion.",
    ),
    (
        "container_pressure_io_stalled_seconds_total",
        "Total time duration no tasks in the container could make progress due to IO congestion.",
    ),
    (
        "container_pressure_io_waiting_seconds_total",
        "Total time duration tasks in the container have waited due to IO congestion.",
    ),
    (
        "container_pressure_memory_stalled_seconds_total",
        "Total time duration no tasks in the container could make progress due to memory congestion.",
    ),
    (
        "container_pressure_memory_waiting_seconds_total",
        "Total time duration tasks in the container have waited due to memory congestion.",
    ),
];

/// `PSIStats`
pub(super) fn none() -> Value {
    let calm = json!({"total": 0, "avg10": 0, "avg60": 0, "avg300": 0});
    json!({"full": calm, "some": calm})
}

/// `IOStats`
pub(super) fn io(now: Time) -> Value {
    json!({"time": rfc3339(now), "psi": none()})
}
