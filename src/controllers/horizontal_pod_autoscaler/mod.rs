//! HorizontalPodAutoscaler: as many replicas as metrics ask for (`pkg/controller/podautoscaler`).
//!
//! In: an autoscaler, the scale of what it is for, its pods, and what the APIs of metrics say. Out: that
//! scale, and the status. It must not know what it scales, beyond its `scale` subresource, nor who measures.
//!
//! `sync` is the way of one sync; `compute` weighs one metric, `metrics_client` asks for it; the arithmetic
//! is in `replica_calculator` and `behavior`, which know nothing of a cluster.

mod behavior;
mod compute;
mod group_pods;
mod known_selectors;
mod memory;
mod metrics_client;
mod metrics_error;
mod monitor;
mod parts;
mod replica_calculator;
mod sync;
mod target;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::sync::Mutex;
use serde_json::{Map, Value};

use self::monitor::{HorizontalMonitor, SyncOutcome};
use self::parts::{HorizontalParts, HorizontalRules};
use self::sync::AutoscalerWork;
use super::conditions::conditions_value;
use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::options::ControllerManagerOptions;
use super::status::{put_count, update_status};
use apimachinery::feature_gates::FeatureGates;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::autoscaling::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS;
use apis::core::pod::PODS;
use apis::scheme::Scheme;
use apis::views::horizontal_pod_autoscaler::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus};
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The controller of HorizontalPodAutoscalers.
pub(crate) struct HorizontalController {
    autoscalers: Lister,
    parts: HorizontalParts,
}

impl HorizontalController {
    /// With its informers; `scheme` knows the kinds that can be scaled.
    pub(crate) fn new(
        ctx: &ComponentContext,
        scheme: Arc<Scheme>,
        options: &ControllerManagerOptions,
        gates: &FeatureGates,
    ) -> HorizontalController {
        let pods = ctx.informers.informer(&PODS).lister();
        let rules = HorizontalRules::of(options, gates);
        let autoscalers = ctx.informers.informer(&HORIZONTAL_POD_AUTOSCALERS).lister();
        let monitor = Arc::new(HorizontalMonitor::new(autoscalers.clone()));
        ctx.metrics.add("horizontal-pod-autoscaler", monitor.clone());
        let parts = HorizontalParts { pods, scheme, rules, known: Mutex::default(), monitor };
        HorizontalController { autoscalers, parts }
    }
}

impl Controller for HorizontalController {
    const NAME: &'static str = "horizontalpodautoscaler";
    const EVENT_SOURCE: &'static str = "horizontal-pod-autoscaler";
    const SERVICE_ACCOUNT: &'static str = "horizontal-pod-autoscaler";

    fn watches(&self) -> Watches {
        Watches::none().maps(&HORIZONTAL_POD_AUTOSCALERS, |change, enqueue| {
            // Its own writes of the status are no reason to look again.
            let spec = |object: &Object| object.to_value()["spec"].clone();
            if change.old().is_none_or(|old| spec(old) != spec(change.object())) {
                enqueue.now(change.object().key());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.autoscalers.get(namespace, name) else {
            let mut known = self.parts.known();
            known.memories.remove(key);
            known.selectors.remove(key);
            self.parts.monitor.forget(key);
            return Ok(Action::Done);
        };
        // No key is worked on twice at once, so nobody else asks for it meanwhile.
        let memory = self.parts.known().memories.remove(key).unwrap_or_default();
        let view = object.view::<HorizontalPodAutoscaler>();
        let (status, now, begun) = (view.status.clone(), ctx.clock.now(), ctx.clock.elapsed());
        let (parts, spec, outcome) = (&self.parts, &view.spec, SyncOutcome::default());
        let mut work =
            AutoscalerWork { parts, ctx, key, object: &object, spec, status, memory, now, outcome };
        work.sync().await;
        let AutoscalerWork { status, memory, mut outcome, .. } = work;
        self.parts.known().memories.insert(key.clone(), memory);
        let written = self.write(ctx, &object, &view.status, &status).await;
        if written.is_err() {
            outcome.fail("internal");
        }
        self.parts.monitor.reconciled(outcome, ctx.clock.elapsed().saturating_sub(begun));
        written?;
        Ok(Action::RequeueAfter(self.parts.rules.sync_period))
    }
}

impl HorizontalController {
    /// Writes what has changed of the status.
    async fn write(
        &self,
        ctx: &Reconcile,
        object: &Object,
        before: &HorizontalPodAutoscalerStatus,
        status: &HorizontalPodAutoscalerStatus,
    ) -> Result<(), Status> {
        if status == before {
            return Ok(());
        }
        let kind = &HORIZONTAL_POD_AUTOSCALERS;
        let written = update_status(&ctx.client, kind, object, |tree| put(tree, status)).await;
        if let Err(error) = &written {
            ctx.event(kind, object, "Warning", "FailedUpdateStatus", error.to_string());
        }
        written.map(drop)
    }
}

fn put(status: &mut Map<String, Value>, new: &HorizontalPodAutoscalerStatus) {
    put_count(status, "currentReplicas", new.current_replicas);
    status.insert("desiredReplicas".into(), new.desired_replicas.into());
    status.insert("conditions".into(), conditions_value(&new.conditions, false));
    let optional = [
        ("currentMetrics", new.current_metrics.clone()),
        ("lastScaleTime", new.last_scale_time.map(|time| rfc3339(time).into())),
    ];
    for (name, value) in optional {
        match value {
            Some(value) => drop(status.insert(name.into(), value)),
            None => drop(status.remove(name)),
        }
    }
}
