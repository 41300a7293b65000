//! How often the scheduler makes claims by itself (`pkg/scheduler/metrics`).

use component_base::metrics::Family;

/// Counts the claims for extended resources, by how it went to make them.
pub fn family() -> Family<1> {
    let help = "[ALPHA] Number of ResourceClaims creation requests within scheduler";
    Family::counter("scheduler_resourceclaim_creates_total", help, ["status"])
}
