//! What syncs of autoscalers count (`pkg/controller/podautoscaler/monitor`).

use std::collections::BTreeMap;
use std::time::Duration;

use ::sync::Mutex;

use crate::controller::Key;
use apimachinery::object::split_key;
use client_go::lister::Lister;
use component_base::metrics::{FROM_A_MILLISECOND, Family, Render, gauge, plain_gauge};

/// What a sync has done, and what first went wrong in it, as metrics call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyncOutcome {
    /// `scale_up`, `scale_down` or `none`
    pub(super) action: &'static str,
    /// `spec`, `internal` or `none`
    pub(super) error: &'static str,
}

impl Default for SyncOutcome {
    fn default() -> SyncOutcome {
        SyncOutcome { action: "none", error: "none" }
    }
}

impl SyncOutcome {
    /// What it means to go from one number of replicas to another.
    pub(super) fn of_change(from: i64, to: i64) -> SyncOutcome {
        let action = match to.cmp(&from) {
            std::cmp::Ordering::Less => "scale_down",
            std::cmp::Ordering::Equal => "none",
            std::cmp::Ordering::Greater => "scale_up",
        };
        SyncOutcome { action, ..SyncOutcome::default() }
    }

    /// Something went wrong; the first counts.
    pub(super) fn fail(&mut self, error: &'static str) {
        if self.error == "none" {
            self.error = error;
        }
    }
}

/// The counters and histograms.
pub(super) struct HorizontalMonitor {
    autoscalers: Lister,
    /// What each wanted last. Bound: one entry for each autoscaler.
    desired: Mutex<BTreeMap<Key, i64>>,
    reconciliations: Family<2>,
    durations: Family<2>,
    computations: Family<3>,
    computation_durations: Family<3>,
}

impl HorizontalMonitor {
    /// With nothing counted yet.
    pub(super) fn new(autoscalers: Lister) -> HorizontalMonitor {
        HorizontalMonitor {
            autoscalers,
            desired: Mutex::default(),
            reconciliations: Family::counter(
                "horizontal_pod_autoscaler_controller_reconciliations_total",
                "[ALPHA] Number of reconciliations of HPA controller. The label 'action' should be either \
                 'scale_down', 'scale_up', or 'none'. Also, the label 'error' should be either 'spec', 'internal', or \
                 'none'. Note that if both spec and internal errors happen during a reconciliation, the first one to \
                 occur is reported in `error` label.",
                ["action", "error"],
            ),
            durations: Family::histogram(
                "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
                "[ALPHA] The time(seconds) that the HPA controller takes to reconcile once. The label 'action' should \
                 be either 'scale_down', 'scale_up', or 'none'. Also, the label 'error' should be either 'spec', \
                 'internal', or 'none'. Note that if both spec and internal errors happen during a reconciliation, the \
                 first one to occur is reported in `error` label.",
                ["action", "error"],
                &FROM_A_MILLISECOND,
            ),
            computations: Family::counter(
                "horizontal_pod_autoscaler_controller_metric_computation_total",
                "[ALPHA] Number of metric computations. The label 'action' should be either 'scale_down', 'scale_up', \
                 or 'none'. Also, the label 'error' should be either 'spec', 'internal', or 'none'. The label \
                 'metric_type' corresponds to HPA.spec.metrics[*].type",
                ["action", "error", "metric_type"],
            ),
            computation_durations: Family::histogram(
                "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
                "[ALPHA] The time(seconds) that the HPA controller takes to calculate one metric. The label 'action' \
                 should be either 'scale_down', 'scale_up', or 'none'. The label 'error' should be either 'spec', \
                 'internal', or 'none'. The label 'metric_type' corresponds to HPA.spec.metrics[*].type",
                ["action", "error", "metric_type"],
                &FROM_A_MILLISECOND,
            ),
        }
    }

    /// One sync is over.
    pub(super) fn reconciled(&self, outcome: SyncOutcome, duration: Duration) {
        let SyncOutcome { action, error } = outcome;
        self.reconciliations.count([action, error]);
        self.durations.observe([action, error], duration);
    }

    /// One metric was weighed.
    pub(super) fn computed(&self, outcome: SyncOutcome, metric_type: &str, duration: Duration) {
        let SyncOutcome { action, error } = outcome;
        self.computations.count([action, error, metric_type]);
        self.computation_durations.observe([action, error, metric_type], duration);
    }

    /// So many replicas an autoscaler wants.
    pub(super) fn desires(&self, key: &Key, replicas: i64) {
        let mut desired = self.desired.lock();
        match desired.get_mut(key) {
            Some(known) => *known = replicas,
            None => drop(desired.insert(key.clone(), replicas)),
        }
    }

    /// An autoscaler is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.desired.lock().remove(key);
    }
}

impl Render for HorizontalMonitor {
    fn render(&self, out: &mut String) {
        let name = "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers";
        let help = "[ALPHA] Current number of controlled HPA objects.";
        plain_gauge(out, (name, help), self.autoscalers.len());
        let desired = self.desired.lock().clone();
        let name = "horizontal_pod_autoscaler_controller_desired_replicas";
        let help = "[ALPHA] Current desired replica count for HPA objects.";
        let of_key = |(key, replicas): (&Key, &i64)| {
            let (namespace, autoscaler) = split_key(key);
            ([namespace.to_owned(), autoscaler.to_owned()], *replicas)
        };
        gauge(out, (name, help), ["namespace", "hpa_name"], desired.iter().map(of_key));
        self.reconciliations.render(out);
        self.durations.render(out);
        self.computations.render(out);
        self.computation_durations.render(out);
    }
}
