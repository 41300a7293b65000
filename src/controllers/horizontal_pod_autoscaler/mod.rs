//! HorizontalPodAutoscaler: replicas between a least and a most (`pkg/controller/podautoscaler`).
//!
//! In: an autoscaler, and the scale of what it is for. Out: that scale, when it is outside of the bounds, and
//! the status. It must not know what it scales, beyond its `scale` subresource. Nothing is measured here: as
//! long as no metrics API is served, it says so as upstream does, and leaves the size between the bounds as
//! it is.

mod metrics;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::conditions::{conditions_value, new_condition};
use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::status::{put_count, update_status};
use apimachinery::gvk::GroupVersion;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::autoscaling::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS;
use apis::kind::{Kind, Subresource};
use apis::scheme::Scheme;
use apis::views::horizontal_pod_autoscaler::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus,
};
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The controller of HorizontalPodAutoscalers.
pub(crate) struct HorizontalController {
    autoscalers: Lister,
    scheme: Arc<Scheme>,
    sync_period: Duration,
}

impl HorizontalController {
    /// With its informer; `scheme` knows the kinds that can be scaled.
    pub(crate) fn new(
        ctx: &ComponentContext,
        scheme: Arc<Scheme>,
        sync_period: Duration,
    ) -> HorizontalController {
        let autoscalers = ctx.informers.informer(&HORIZONTAL_POD_AUTOSCALERS).lister();
        HorizontalController { autoscalers, scheme, sync_period }
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
        let Some(object) = self.autoscalers.get(namespace, name) else { return Ok(Action::Done) };
        let view = object.view::<HorizontalPodAutoscaler>();
        let (status, now) = (view.status.clone(), ctx.clock.now());
        let mut work = AutoscalerWork { ctx, object: &object, spec: &view.spec, status, now };
        let target = work.target(&self.scheme).await;
        work.scale(target).await;
        let status = work.status;
        if status != view.status {
            let kind = &HORIZONTAL_POD_AUTOSCALERS;
            update_status(&ctx.client, kind, &object, |tree| put(tree, &status)).await?;
        }
        Ok(Action::RequeueAfter(self.sync_period))
    }
}

/// What is scaled, and its `autoscaling/v1.Scale`.
struct ScaleTarget {
    kind: Arc<Kind>,
    scale: Value,
}

/// An autoscaler in the hands of one sync.
struct AutoscalerWork<'a> {
    ctx: &'a Reconcile,
    object: &'a Object,
    spec: &'a HorizontalPodAutoscalerSpec,
    status: HorizontalPodAutoscalerStatus,
    now: Time,
}

impl AutoscalerWork<'_> {
    /// The scale of what is scaled (`scaleForResourceMappings`).
    async fn target(&self, scheme: &Scheme) -> Result<ScaleTarget, String> {
        let target = &self.spec.scale_target_ref;
        let version = GroupVersion::parse(&target.api_version);
        let version = version.ok_or_else(|| {
            format!(
                "invalid API version in scale target reference: unexpected GroupVersion string: {}",
                target.api_version
            )
        })?;
        let kind = scheme.kind(&version, &target.kind).filter(|kind| kind.has(Subresource::Scale));
        let kind = kind.ok_or_else(|| {
            let (kind, group) = (&target.kind, &version.group);
            format!("unable to determine resource for scale target reference: no matches for kind {kind:?} in group {group:?}")
        })?;
        let namespace = &self.object.metadata.namespace;
        let scale = self.ctx.client.get_subresource(&kind, namespace, &target.name, "scale").await;
        Ok(ScaleTarget { scale: scale.map_err(|error| error.to_string())?, kind })
    }

    /// `reconcileAutoscaler`
    async fn scale(&mut self, target: Result<ScaleTarget, String>) {
        let target = match target {
            Ok(target) => target,
            Err(error) => {
                self.event("Warning", "FailedGetScale", &error);
                let message =
                    format!("the HPA controller was unable to get the target's current scale: {error}");
                return self.put_condition("AbleToScale", "False", "FailedGetScale", &message);
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        self.put_condition("AbleToScale", "True", "SucceededGetScale", message);
        let current = target.scale["spec"]["replicas"].as_i64().unwrap_or(0);
        let (least, most) = (self.spec.min_replicas.unwrap_or(1), self.spec.max_replicas);
        match () {
            () if current == 0 && least != 0 => {
                let message = "scaling is disabled since the replica count of the target is zero";
                self.put_condition("ScalingActive", "False", "ScalingDisabled", message);
                self.put_sizes(current, 0, None);
            }
            () if current > most => self.resize(target, current, most, "above Spec.MaxReplicas").await,
            () if current < least => self.resize(target, current, least, "below Spec.MinReplicas").await,
            () => self.measure(&target, current).await,
        }
    }

    async fn resize(&mut self, mut target: ScaleTarget, current: i64, desired: i64, why: &str) {
        let reason = format!("Current number of replicas {why}");
        target.scale["spec"]["replicas"] = desired.into();
        let (namespace, name) = (&self.object.metadata.namespace, &self.spec.scale_target_ref.name);
        let written =
            self.ctx.client.update_subresource(&target.kind, namespace, name, "scale", target.scale).await;
        if let Err(error) = written {
            let message = format!("New size: {desired}; reason: {reason}; error: {error}");
            self.event("Warning", "FailedRescale", &message);
            let message = format!("the HPA controller was unable to update the target scale: {error}");
            self.put_condition("AbleToScale", "False", "FailedUpdateScale", &message);
            let desired = self.status.desired_replicas;
            return self.put_sizes(current, desired, None);
        }
        let message = format!("the HPA controller was able to update the target scale to {desired}");
        self.put_condition("AbleToScale", "True", "SucceededRescale", &message);
        self.event("Normal", "SuccessfulRescale", &format!("New size: {desired}; reason: {reason}"));
        self.status.last_scale_time = Some(self.now);
        self.put_sizes(current, desired, None);
    }

    /// No metric can be had: what is, stays (`computeReplicasForMetrics`).
    async fn measure(&mut self, target: &ScaleTarget, current: i64) {
        let desired = self.status.desired_replicas;
        if target.scale["status"]["selector"].as_str().is_none_or(str::is_empty) {
            self.event("Warning", "SelectorRequired", "selector is required");
            let message = "the HPA target's scale is missing a selector";
            self.put_condition("ScalingActive", "False", "InvalidSelector", message);
            return self.put_sizes(current, desired, None);
        }
        let mut first = None;
        for metric in &self.spec.metrics {
            let unavailable = metrics::unavailable(self.ctx, &self.object.metadata.namespace, metric).await;
            self.event("Warning", unavailable.reason, &unavailable.message);
            first.get_or_insert(unavailable);
        }
        let count = self.spec.metrics.len();
        let nothing: Vec<Value> = self.spec.metrics.iter().map(|_| json!({"type": ""})).collect();
        self.put_sizes(current, desired, (count > 0).then(|| nothing.into()));
        if let Some(metrics::Unavailable { reason, message, error }) = first {
            let message = format!("the HPA was unable to compute the replica count: {message}");
            self.put_condition("ScalingActive", "False", reason, &message);
            let message =
                format!("invalid metrics ({count} invalid out of {count}), first error is: {error}");
            self.event("Warning", "FailedComputeMetricsReplicas", &message);
        }
    }

    fn put_sizes(&mut self, current: i64, desired: i64, metrics: Option<Value>) {
        self.status.current_replicas = current;
        self.status.desired_replicas = desired;
        self.status.current_metrics = metrics;
    }

    /// In the place of its predecessor; its time is that of the last change of its status.
    fn put_condition(&mut self, condition_type: &str, status: &str, reason: &str, message: &str) {
        let mut new = new_condition(condition_type, status, reason, message, self.now);
        let conditions = &mut self.status.conditions;
        match conditions.iter_mut().find(|it| it.condition_type == condition_type) {
            None => conditions.push(new),
            Some(old) => {
                if old.status == new.status {
                    new.last_transition_time = old.last_transition_time;
                }
                *old = new;
            }
        }
    }

    fn event(&self, event_type: &str, reason: &str, message: &str) {
        self.ctx.event(&HORIZONTAL_POD_AUTOSCALERS, self.object, event_type, reason, message);
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
