//! What all syncs share: the pods, the rules that flags and gates make, and what is known of autoscalers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::sync::{Mutex, MutexGuard};
use chrono::TimeDelta;

use super::group_pods::Periods;
use super::known_selectors::KnownSelectors;
use super::memory::AutoscalerMemory;
use super::monitor::HorizontalMonitor;
use super::replica_calculator::Tolerances;
use crate::controller::Key;
use crate::options::ControllerManagerOptions;
use apimachinery::feature_gates::FeatureGates;
use apis::scheme::Scheme;
use client_go::lister::Lister;

/// The gate without which nothing is scaled to zero replicas.
const SCALE_TO_ZERO: &str = "HPAScaleToZero";
/// The gate of `behavior.*.tolerance`.
const CONFIGURABLE_TOLERANCE: &str = "HPAConfigurableTolerance";

/// What all syncs share.
pub(super) struct HorizontalParts {
    pub(super) pods: Lister,
    pub(super) scheme: Arc<Scheme>,
    pub(super) rules: HorizontalRules,
    pub(super) known: Mutex<KnownAutoscalers>,
    pub(super) monitor: Arc<HorizontalMonitor>,
}

/// What flags and gates say.
pub(super) struct HorizontalRules {
    pub(super) sync_period: Duration,
    pub(super) downscale_window: TimeDelta,
    pub(super) tolerances: Tolerances,
    pub(super) periods: Periods,
    pub(super) scales_to_zero: bool,
    pub(super) tolerates_as_told: bool,
}

/// Bound: one entry of each for every autoscaler; they go with it.
#[derive(Default)]
pub(super) struct KnownAutoscalers {
    pub(super) memories: HashMap<Key, AutoscalerMemory>,
    /// What each chose when it last looked.
    pub(super) selectors: KnownSelectors,
}

impl HorizontalParts {
    pub(super) fn known(&self) -> MutexGuard<'_, KnownAutoscalers> {
        self.known.lock()
    }
}

impl HorizontalRules {
    pub(super) fn of(options: &ControllerManagerOptions, gates: &FeatureGates) -> HorizontalRules {
        let delta = |period| TimeDelta::from_std(period).unwrap_or(TimeDelta::MAX);
        let tolerance = options.horizontal_pod_autoscaler_tolerance;
        HorizontalRules {
            sync_period: options.horizontal_pod_autoscaler_sync_period,
            downscale_window: delta(options.horizontal_pod_autoscaler_downscale_stabilization),
            tolerances: Tolerances { down: tolerance, up: tolerance },
            periods: Periods {
                cpu_initialization: delta(options.horizontal_pod_autoscaler_cpu_initialization_period),
                initial_readiness: delta(options.horizontal_pod_autoscaler_initial_readiness_delay),
            },
            scales_to_zero: gates.enabled(SCALE_TO_ZERO),
            tolerates_as_told: gates.enabled(CONFIGURABLE_TOLERANCE),
        }
    }
}
