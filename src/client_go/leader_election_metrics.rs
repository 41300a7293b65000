//! What leader election counts (`component-base/metrics/prometheus/clientgo/leaderelection`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use component_base::metrics::{Render, counter, gauge};

const STATUS: &str = "leader_election_master_status";
const STATUS_HELP: &str = "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates \
    backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.";
const SLOW_PATH: &str = "leader_election_slowpath_total";
const SLOW_PATH_HELP: &str = "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the \
    string used to identify the lease. Please make sure to group by name.";

/// Whether one candidate leads, and how often a renewal had to look first.
#[derive(Debug)]
pub struct LeaderElectionMetrics {
    lease: String,
    leads: AtomicBool,
    slow_paths: AtomicU64,
}

impl LeaderElectionMetrics {
    /// Of a Lease, which somebody else holds so far.
    pub(crate) fn of(lease: &str) -> LeaderElectionMetrics {
        LeaderElectionMetrics {
            lease: lease.to_owned(),
            leads: AtomicBool::new(false),
            slow_paths: AtomicU64::new(0),
        }
    }

    /// It leads, or does no longer.
    pub(crate) fn leads(&self, leads: bool) {
        self.leads.store(leads, Ordering::Relaxed);
    }

    /// The Lease was not as it was known, and is read.
    pub(crate) fn slow_path(&self) {
        self.slow_paths.fetch_add(1, Ordering::Relaxed);
    }
}

impl Render for LeaderElectionMetrics {
    fn render(&self, out: &mut String) {
        let lease = &self.lease;
        let leads = u8::from(self.leads.load(Ordering::Relaxed));
        gauge(out, (STATUS, STATUS_HELP), ["name"], [([lease], leads)]);
        let slow_paths = Some(self.slow_paths.load(Ordering::Relaxed)).filter(|count| *count > 0);
        counter(out, (SLOW_PATH, SLOW_PATH_HELP), ["name"], slow_paths.map(|count| ([lease], count)));
    }
}
