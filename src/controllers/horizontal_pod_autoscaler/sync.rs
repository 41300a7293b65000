//! One sync of an autoscaler (`reconcileAutoscaler`): its target's size, what metrics ask for, what may
//! change now, and what is said of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::behavior::{
    Normalization, Normalized, limit, limit_with_behavior, stabilize, stabilize_with_behavior,
    stabilized_or_ready,
};
use super::compute::{Computation, MetricResult, Unavailable};
use super::group_pods::TargetPod;
use super::memory::AutoscalerMemory;
use super::metrics_client::MetricsClient;
use super::monitor::SyncOutcome;
use super::parts::HorizontalParts;
use super::replica_calculator::{ReplicaCalculator, Tolerances};
use super::target::ScaleTarget;
use crate::conditions::new_condition;
use crate::controller::{Key, Reconcile};
use apimachinery::gvk::GroupVersion;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;
use apis::autoscaling::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS;
use apis::tree::text;
use apis::views::horizontal_pod_autoscaler::{
    HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus, HpaScalingRules,
};
use apis::views::meta::is_true;

/// An autoscaler in the hands of one sync.
pub(super) struct AutoscalerWork<'a> {
    pub(super) parts: &'a HorizontalParts,
    pub(super) ctx: &'a Reconcile,
    pub(super) key: &'a Key,
    pub(super) object: &'a Object,
    pub(super) spec: &'a HorizontalPodAutoscalerSpec,
    pub(super) status: HorizontalPodAutoscalerStatus,
    pub(super) memory: AutoscalerMemory,
    pub(super) now: Time,
    pub(super) outcome: SyncOutcome,
}

/// What is to be done about a size.
enum SizeDecision {
    /// It stays.
    Stays,
    /// It becomes another one, for a reason.
    Changes(i64, String),
    /// Metrics do not say.
    Unknown,
}

impl AutoscalerWork<'_> {
    pub(super) async fn sync(&mut self) {
        let (namespace, reference) = (self.namespace(), &self.spec.scale_target_ref);
        match ScaleTarget::find(self.ctx, &self.parts.scheme, namespace, reference).await {
            Ok(target) => self.scale(target).await,
            Err(error) => {
                let is_named = GroupVersion::parse(&reference.api_version).is_some();
                self.outcome.fail(if is_named { "internal" } else { "spec" });
                self.event("Warning", "FailedGetScale", &error);
                let message =
                    format!("the HPA controller was unable to get the target's current scale: {error}");
                self.put_condition("AbleToScale", "False", "FailedGetScale", &message);
            }
        }
    }

    async fn scale(&mut self, target: ScaleTarget) {
        let message = "the HPA controller was able to get the target's current scale";
        self.put_condition("AbleToScale", "True", "SucceededGetScale", message);
        let current = target.wanted();
        self.memory.begin(current, self.now);
        let mut metrics = None;
        let decision = match self.without_metrics(current) {
            Some(decision) => decision,
            None => self.by_metrics(&target, &mut metrics).await,
        };
        self.status.current_replicas = current;
        self.status.current_metrics = metrics.map(Value::Array);
        match decision {
            SizeDecision::Unknown => self.outcome.fail("internal"),
            SizeDecision::Stays => self.desire(current),
            SizeDecision::Changes(desired, reason) => self.resize(target, current, desired, &reason).await,
        }
    }

    fn desire(&mut self, replicas: i64) {
        self.status.desired_replicas = replicas;
        self.parts.monitor.desires(self.key, replicas);
    }

    /// What is decided before anything is measured.
    fn without_metrics(&mut self, current: i64) -> Option<SizeDecision> {
        let (least, most) = (self.least(), self.spec.max_replicas);
        let because = |why: &str| format!("Current number of replicas {why}");
        match current {
            0 if !self.may_wake() => {
                let message = "scaling is disabled since the replica count of the target is zero";
                self.put_condition("ScalingActive", "False", "ScalingDisabled", message);
                Some(SizeDecision::Stays)
            }
            0 => None,
            _ if current > most => Some(SizeDecision::Changes(most, because("above Spec.MaxReplicas"))),
            _ if current < least => Some(SizeDecision::Changes(least, because("below Spec.MinReplicas"))),
            _ => None,
        }
    }

    /// `shouldComputeMetricsForZeroReplicas`: who was put to sleep here is woken here, and nobody else.
    fn may_wake(&self) -> bool {
        let sleeps = self.parts.rules.scales_to_zero && is_true(&self.status.conditions, "ScaledToZero");
        sleeps && (self.least() != 0 || self.has_own_metric())
    }

    /// Whether there is a metric that can be had without pods (`hasObjectOrExternalMetrics`).
    fn has_own_metric(&self) -> bool {
        self.spec.metrics.iter().any(|metric| matches!(text(metric, "type"), "Object" | "External"))
    }

    fn least(&self) -> i64 {
        self.spec.min_replicas.unwrap_or(1)
    }

    /// `computeReplicasForMetrics`, and what may change of that now.
    async fn by_metrics(&mut self, target: &ScaleTarget, shown: &mut Option<Vec<Value>>) -> SizeDecision {
        let current = target.wanted();
        let (selector, pods) = match self.selected(target) {
            Ok(selected) => selected,
            Err(error) => {
                self.event("Warning", "FailedComputeMetricsReplicas", &error);
                return SizeDecision::Unknown;
            }
        };
        let rules = &self.parts.rules;
        let calculator = ReplicaCalculator {
            pods: &pods,
            tolerances: self.tolerances(),
            periods: rules.periods,
            now: self.now,
        };
        let (client, scheme) = (&self.ctx.client, &*self.parts.scheme);
        let metrics = MetricsClient { client, scheme, namespace: self.namespace() };
        let (wanted, running) = (current, target.running());
        let computation = Computation { metrics, calculator, selector: &selector, wanted, running };
        let mut results = Vec::new();
        for metric in &self.spec.metrics {
            let begun = self.ctx.clock.elapsed();
            let result = computation.of_metric(metric).await;
            let outcome = self.weighed(&result);
            let duration = self.ctx.clock.elapsed().saturating_sub(begun);
            self.parts.monitor.computed(outcome, text(metric, "type"), duration);
            results.push(result);
        }
        let status = |result: &Result<MetricResult, Unavailable>| match result {
            Ok(result) => result.status.clone(),
            Err(_) => json!({"type": ""}),
        };
        *shown = Some(results.iter().map(status).collect::<Vec<_>>()).filter(|shown| !shown.is_empty());
        let Some((proposed, name)) = self.highest(results, current) else { return SizeDecision::Unknown };
        let reason = if proposed > current { format!("{name} above target") } else { BELOW.to_owned() };
        match self.normalize(current, proposed) {
            desired if desired == current => SizeDecision::Stays,
            desired => SizeDecision::Changes(desired, reason),
        }
    }

    /// What became of one metric, beside the replicas that there were at the last sync.
    fn weighed(&self, result: &Result<MetricResult, Unavailable>) -> SyncOutcome {
        match result {
            Ok(found) => SyncOutcome::of_change(self.status.current_replicas, found.replicas),
            Err(why) => SyncOutcome { action: "none", error: error_label(why) },
        }
    }

    /// The highest number that any metric asks for, and its name; nothing when none can be had, or when some
    /// cannot and less replicas would be left.
    fn highest(
        &mut self,
        results: Vec<Result<MetricResult, Unavailable>>,
        current: i64,
    ) -> Option<(i64, String)> {
        let count = results.len();
        let mut first = None;
        let mut invalid = 0;
        let mut highest = (0, String::new());
        for result in results {
            match result {
                Ok(MetricResult { replicas, name, .. }) if highest.0 == 0 || replicas > highest.0 => {
                    highest = (replicas, name);
                }
                Ok(_) => {}
                Err(unavailable) => {
                    self.outcome.fail(error_label(&unavailable));
                    self.event("Warning", unavailable.reason, &unavailable.message);
                    invalid += 1;
                    first.get_or_insert(unavailable);
                }
            }
        }
        if let Some(Unavailable { reason, message, error }) = first
            && (invalid == count || highest.0 < current)
        {
            let message = format!("the HPA was unable to compute the replica count: {message}");
            self.put_condition("ScalingActive", "False", reason, &message);
            let message =
                format!("invalid metrics ({invalid} invalid out of {count}), first error is: {error}");
            self.event("Warning", "FailedComputeMetricsReplicas", &message);
            return None;
        }
        let message =
            format!("the HPA was able to successfully calculate a replica count from {}", highest.1);
        self.put_condition("ScalingActive", "True", "ValidMetricFound", &message);
        Some(highest)
    }

    /// `validateAndParseSelector`, and the pods that it chooses.
    fn selected(&mut self, target: &ScaleTarget) -> Result<(Selector, Vec<TargetPod>), String> {
        let written = target.selector();
        if written.is_empty() {
            let message = "the HPA target's scale is missing a selector";
            return Err(self.bad_selector(
                "SelectorRequired",
                "selector is required",
                "InvalidSelector",
                message,
            ));
        }
        let selector = Selector::parse(written).map_err(|error| {
            let message =
                format!("couldn't convert selector into a corresponding internal selector object: {error}");
            self.bad_selector("InvalidSelector", &message, "InvalidSelector", &message)
        })?;
        let pods = self.parts.pods.chosen(self.namespace(), &selector);
        let controlling = self.controlling(&selector, &pods);
        if controlling.len() > 1 {
            let controlling = controlling.join(" ");
            let message =
                format!("pods by selector {written} are controlled by multiple HPAs: [{controlling}]");
            return Err(self.bad_selector("AmbiguousSelector", &message, "AmbiguousSelector", &message));
        }
        Ok((selector, pods.iter().map(|pod| TargetPod::of(pod)).collect()))
    }

    fn bad_selector(&mut self, event: &str, said: &str, reason: &str, message: &str) -> String {
        self.event("Warning", event, said);
        self.put_condition("ScalingActive", "False", reason, message);
        said.to_owned()
    }

    /// `hpasControllingPodsUnderSelector`, in order, as Go prints them.
    fn controlling(&self, selector: &Selector, pods: &[Arc<Object>]) -> Vec<String> {
        let mut known = self.parts.known();
        known.selectors.put(self.key, selector);
        let mut controlling = BTreeSet::new();
        pods.iter().for_each(|pod| known.selectors.add_choosing(pod, &mut controlling));
        let shown = |key: &Key| {
            let (namespace, name) = split_key(key);
            format!("{{{name} {namespace}}}")
        };
        controlling.iter().map(shown).collect()
    }

    /// `tolerancesForHpa`
    fn tolerances(&self) -> Tolerances {
        let Tolerances { down, up } = self.parts.rules.tolerances;
        let behavior = self.spec.behavior.as_ref().filter(|_| self.parts.rules.tolerates_as_told);
        let Some(behavior) = behavior else { return Tolerances { down, up } };
        Tolerances {
            down: tolerance(behavior.scale_down.as_ref()).unwrap_or(down),
            up: tolerance(behavior.scale_up.as_ref()).unwrap_or(up),
        }
    }

    /// `normalizeDesiredReplicas` and `normalizeDesiredReplicasWithBehaviors`
    fn normalize(&mut self, current: i64, proposed: i64) -> i64 {
        let (least, most, now) = (self.least(), self.spec.max_replicas, self.now);
        let window = self.parts.rules.downscale_window;
        let (stabilized, limited) = match &self.spec.behavior {
            None => {
                let stabilized = stabilize(&mut self.memory, proposed, window, now);
                (stabilized, limit(current, stabilized.replicas, least, most))
            }
            Some(behavior) => {
                let up = behavior.scale_up.clone().unwrap_or_default();
                let mut down = behavior.scale_down.clone().unwrap_or_default();
                down.stabilization_window_seconds.get_or_insert(window.num_seconds());
                let (up, down) = (&up, &down);
                let mut args = Normalization { up, down, least, most, current, desired: proposed, now };
                let stabilized = stabilize_with_behavior(&mut self.memory, &args);
                args.desired = stabilized.replicas;
                (stabilized, limit_with_behavior(&self.memory, &args))
            }
        };
        let Normalized { reason, message, .. } = stabilized_or_ready(proposed, stabilized);
        self.put_condition("AbleToScale", "True", reason, message);
        let is_limited = if limited.replicas == stabilized.replicas { "False" } else { "True" };
        self.put_condition("ScalingLimited", is_limited, limited.reason, limited.message);
        // Who is woken has at least the least.
        if current == 0 { limited.replicas.max(least) } else { limited.replicas }
    }

    async fn resize(&mut self, target: ScaleTarget, current: i64, desired: i64, reason: &str) {
        if let Err(error) = target.resize(self.ctx, desired).await {
            let message = format!("New size: {desired}; reason: {reason}; error: {error}");
            self.outcome.fail("internal");
            self.event("Warning", "FailedRescale", &message);
            let message = format!("the HPA controller was unable to update the target scale: {error}");
            return self.put_condition("AbleToScale", "False", "FailedUpdateScale", &message);
        }
        let message = format!("the HPA controller was able to update the target scale to {desired}");
        self.put_condition("AbleToScale", "True", "SucceededRescale", &message);
        self.event("Normal", "SuccessfulRescale", &format!("New size: {desired}; reason: {reason}"));
        self.memory.store_scale_event(self.spec.behavior.as_ref(), (current, desired), self.now);
        self.note_sleep(current, desired);
        self.status.last_scale_time = Some(self.now);
        self.outcome.action = SyncOutcome::of_change(current, desired).action;
        self.desire(desired);
    }

    /// Who is put to sleep is known by a condition, so that it can be woken.
    fn note_sleep(&mut self, current: i64, desired: i64) {
        if !self.parts.rules.scales_to_zero {
            return;
        }
        let sleeps = current > 0 && desired == 0 && self.least() == 0 && self.has_own_metric();
        let (status, reason, message) = if sleeps {
            ("True", "ScaledToZero", "the HPA controller scaled the workload to zero")
        } else {
            ("False", "NotScaledToZero", "the HPA controller did not scale the workload to zero")
        };
        self.put_condition("ScaledToZero", status, reason, message);
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

    fn namespace(&self) -> &str {
        &self.object.metadata.namespace
    }
}

/// Whose fault it is that a metric cannot be had.
fn error_label(why: &Unavailable) -> &'static str {
    if why.reason == "InvalidMetricSourceType" { "spec" } else { "internal" }
}

/// The reason of every change to less.
const BELOW: &str = "All metrics below target";

fn tolerance(rules: Option<&HpaScalingRules>) -> Option<f64> {
    let quantity = match rules?.tolerance.as_ref()? {
        Value::String(text) => Quantity::parse(text),
        other => Quantity::parse(&other.to_string()),
    };
    quantity.ok().map(|quantity| quantity.as_approximate_f64())
}
