//! Disruption budgets: how many pods of each may be evicted now (`pkg/controller/disruption`).

mod scale;
mod stale;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Map, Value, json};

use self::scale::Scales;
use crate::conditions::{conditions_value, new_condition, set_condition};
use crate::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use crate::status::update_status;
use apimachinery::int_or_string::IntOrString;
use apimachinery::labels::{BadSelector, LabelSelector, Selector};
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::core::pod::PODS;
use apis::kind::Kind;
use apis::policy::pod_disruption_budget::POD_DISRUPTION_BUDGETS;
use apis::scheme::Scheme;
use apis::views::meta::Condition;
use apis::views::pod::Pod;
use apis::views::pod_disruption_budget::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use client_go::EventRecorder;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// Upstream's `DeletionTimeout`: after so long an eviction that was granted is taken to have failed.
const DELETION_TIMEOUT_SECONDS: i64 = 2 * 60;
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
/// Before the key of a pod in the queue; a budget is `namespace/name`.
const POD: &str = "pod:";

/// The controller of PodDisruptionBudgets.
pub(crate) struct DisruptionController {
    budgets: Lister,
    pods: Lister,
    scales: Scales,
    recorder: EventRecorder,
}

impl DisruptionController {
    /// With its informers; the scheme knows which kinds have a size.
    pub(crate) fn new(ctx: &ComponentContext, scheme: Arc<Scheme>) -> DisruptionController {
        let budgets = ctx.informers.informer(&POD_DISRUPTION_BUDGETS).lister();
        let pods = ctx.informers.informer(&PODS).lister();
        let recorder = ctx.recorder.named(DisruptionController::EVENT_SOURCE);
        DisruptionController { budgets, pods, scales: Scales::new(ctx, scheme), recorder }
    }

    /// How many pods there should be, and how many of them healthy.
    async fn expected(
        &self,
        ctx: &Reconcile,
        object: &Object,
        budget: &PodDisruptionBudget,
        pods: &[Arc<Object>],
    ) -> Result<(i64, i64), String> {
        let count = pods.len() as i64;
        let (share, most) = match (&budget.spec.max_unavailable, &budget.spec.min_available) {
            (Some(max_unavailable), _) => (max_unavailable, true),
            (None, None) => return Ok((count, 0)),
            (None, Some(number @ IntOrString::Int(_))) => return Ok((count, number.scaled(count, true)?)),
            (None, Some(share)) => (share, false),
        };
        let (expected, unmanaged) = self.scales.expected(ctx, pods).await?;
        if !unmanaged.is_empty() {
            tell_of_unmanaged(ctx, object, budget);
        }
        let share = share.scaled(expected, true)?;
        Ok((expected, if most { (expected - share).max(0) } else { share }))
    }

    /// Evictions that were granted, and after their time the pod is still there.
    fn tell_of_spared(&self, ctx: &Reconcile, budget: &Object, pods: &[Arc<Object>]) {
        let view = budget.view::<PodDisruptionBudget>();
        let namespace = &budget.metadata.namespace;
        for pod in pods.iter().filter(|pod| !pod.is_deleting()) {
            let granted = view.status.disrupted_pods.get(&pod.metadata.name);
            if granted.is_some_and(|at| ctx.clock.now() >= *at + TimeDelta::seconds(DELETION_TIMEOUT_SECONDS))
            {
                // Upstream says the namespace twice.
                let message =
                    format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
                ctx.event(&PODS, pod, "Warning", "NotDeleted", message);
            }
        }
    }
}

fn tell_of_unmanaged(ctx: &Reconcile, object: &Object, budget: &PodDisruptionBudget) {
    let selector = budget.spec.selector.as_ref().map_or("nil".to_owned(), LabelSelector::go_string);
    let message = format!(
        "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the \
         status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for \
         these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
    );
    ctx.event(&POD_DISRUPTION_BUDGETS, object, "Warning", "UnmanagedPods", message);
}

impl Controller for DisruptionController {
    const NAME: &'static str = "disruption";
    const EVENT_SOURCE: &'static str = "controllermanager";
    const SERVICE_ACCOUNT: &'static str = "disruption-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let (budgets, recorder) = (self.budgets.clone(), self.recorder.clone());
        let pods = move |change: &Change<'_>, enqueue: &Enqueue| {
            let pod = change.object();
            let now = selecting(&budgets, pod);
            if now.len() > 1 {
                let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
                let chosen = split_key(&now[0]).1;
                let message = format!(
                    "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {chosen:?} arbitrarily."
                );
                let about: &Kind = &PODS;
                recorder.event((about, &**pod), "Warning", "MultiplePodDisruptionBudgets", message);
            }
            let before = change.old().into_iter().flat_map(|old| selecting(&budgets, old));
            let keys: BTreeSet<Key> = before.chain(now).collect();
            keys.into_iter().for_each(|key| enqueue.batched(key));
            if stale::spared_after(pod, Time::UNIX_EPOCH).is_some() {
                enqueue.now(format!("{POD}{}", pod.key()));
            }
        };
        let mut watches = Watches::of(&POD_DISRUPTION_BUDGETS).maps(&PODS, pods);
        for kind in Scales::watched() {
            // Expectations follow a change of size, which need not change any pod.
            let budgets = self.budgets.clone();
            watches = watches.maps(kind, move |change, enqueue| {
                let is_resized =
                    change.old().is_some_and(|old| old.metadata.generation != generation(change));
                if is_resized {
                    let namespace = &change.object().metadata.namespace;
                    let budgets = budgets.list(namespace, &Selector::everything());
                    budgets.into_iter().for_each(|budget| enqueue.batched(budget.key()));
                }
            });
        }
        watches
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        if let Some(pod) = key.strip_prefix(POD) {
            return match self.pods.get_by_key(pod) {
                Some(pod) => stale::spare(ctx, &pod).await,
                None => Ok(Action::Done),
            };
        }
        let (namespace, name) = split_key(key);
        let Some(object) = self.budgets.get(namespace, name) else { return Ok(Action::Done) };
        let budget = object.view::<PodDisruptionBudget>();
        let Ok(selector) = selector(&budget) else { return Ok(Action::Done) };
        let pods = self.pods.list(namespace, &selector);
        if pods.is_empty() {
            ctx.event(&POD_DISRUPTION_BUDGETS, &object, "Normal", "NoPods", "No matching pods found");
        }
        let now = ctx.clock.now();
        self.tell_of_spared(ctx, &object, &pods);
        let mut status = match self.expected(ctx, &object, &budget, &pods).await {
            Ok(expected) => calculate(&budget, &pods, expected, now),
            Err(text) => {
                let message = format!("Failed to calculate the number of expected pods: {text}");
                let reason = "CalculateExpectedPodCountFailed";
                ctx.event(&POD_DISRUPTION_BUDGETS, &object, "Warning", reason, message);
                failed(&budget, &text, now)
            }
        };
        status.observed_generation = object.metadata.generation;
        status.conditions.iter_mut().for_each(|it| it.observed_generation = Some(object.metadata.generation));
        if status != budget.status {
            update_status(&ctx.client, &POD_DISRUPTION_BUDGETS, &object, |tree| put(tree, &status)).await?;
        }
        Ok(next_check(&status, now))
    }
}

fn generation(change: &Change<'_>) -> i64 {
    change.object().metadata.generation
}

/// A null selector selects nothing, an empty one everything.
fn selector(budget: &PodDisruptionBudget) -> Result<Selector, BadSelector> {
    budget.spec.selector.as_ref().map_or(Ok(Selector::nothing()), |selector| selector.selector())
}

fn selecting(budgets: &Lister, pod: &Object) -> Vec<Key> {
    let selects = |budget: &Arc<Object>| {
        let selector = selector(&budget.view::<PodDisruptionBudget>());
        selector.is_ok_and(|selector| selector.matches(&pod.metadata.labels))
    };
    let budgets = budgets.list(&pod.metadata.namespace, &Selector::everything());
    budgets.iter().filter(|budget| selects(budget)).map(|budget| budget.key()).collect()
}

fn calculate(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Object>],
    (expected, desired): (i64, i64),
    now: Time,
) -> PodDisruptionBudgetStatus {
    let disrupted = still_disrupted(budget, pods, now);
    let is_healthy = |pod: &Object| {
        !pod.is_deleting() && !disrupted.contains_key(&pod.metadata.name) && pod.view::<Pod>().is_ready()
    };
    let healthy = pods.iter().filter(|pod| is_healthy(pod)).count() as i64;
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let mut conditions = budget.status.conditions.clone();
    let (status, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    set_condition(&mut conditions, new_condition(DISRUPTION_ALLOWED, status, reason, "", now));
    PodDisruptionBudgetStatus {
        disrupted_pods: disrupted,
        disruptions_allowed: allowed,
        current_healthy: healthy,
        desired_healthy: desired,
        expected_pods: expected,
        conditions,
        ..budget.status.clone()
    }
}

/// Until the sync succeeds again, nothing may be evicted.
fn failed(budget: &PodDisruptionBudget, text: &str, now: Time) -> PodDisruptionBudgetStatus {
    let mut status = PodDisruptionBudgetStatus { disruptions_allowed: 0, ..budget.status.clone() };
    let condition: Condition = new_condition(DISRUPTION_ALLOWED, "False", "SyncFailed", text, now);
    set_condition(&mut status.conditions, condition);
    status
}

/// Evictions that were granted and are still to be seen.
fn still_disrupted(budget: &PodDisruptionBudget, pods: &[Arc<Object>], now: Time) -> BTreeMap<String, Time> {
    let is_expected = |(name, granted): &(&String, &Time)| {
        let pod = pods.iter().find(|pod| pod.metadata.name == **name);
        let has_time = now < **granted + TimeDelta::seconds(DELETION_TIMEOUT_SECONDS);
        pod.is_some_and(|pod| !pod.is_deleting()) && has_time
    };
    budget
        .status
        .disrupted_pods
        .iter()
        .filter(is_expected)
        .map(|(name, time)| (name.clone(), *time))
        .collect()
}

fn next_check(status: &PodDisruptionBudgetStatus, now: Time) -> Action {
    let timeout = TimeDelta::seconds(DELETION_TIMEOUT_SECONDS);
    let next = status.disrupted_pods.values().map(|granted| *granted + timeout - now).min();
    let next = next.and_then(|left| left.to_std().ok());
    next.map_or(Action::Done, |left| Action::RequeueAfter(left + Duration::from_secs(1)))
}

fn put(status: &mut Map<String, Value>, new: &PodDisruptionBudgetStatus) {
    let counts = [
        ("observedGeneration", new.observed_generation),
        ("disruptionsAllowed", new.disruptions_allowed),
        ("currentHealthy", new.current_healthy),
        ("desiredHealthy", new.desired_healthy),
        ("expectedPods", new.expected_pods),
    ];
    status.extend(counts.map(|(name, count)| (name.to_owned(), count.into())));
    status.insert("conditions".into(), conditions_value(&new.conditions, true));
    status.remove("disruptedPods");
    if !new.disrupted_pods.is_empty() {
        let times: BTreeMap<&String, String> =
            new.disrupted_pods.iter().map(|(name, time)| (name, rfc3339(*time))).collect();
        status.insert("disruptedPods".into(), json!(times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use serde::Deserialize;

    fn pod(name: &str, ready: &str) -> Arc<Object> {
        let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
        Arc::new(Object::from_value(&json!({"metadata": {"name": name}, "status": status}), vec![]).unwrap())
    }

    #[test]
    fn what_is_above_the_desired_may_go() {
        let now = DateTime::from_timestamp(1000, 0).unwrap();
        let pods = [pod("a", "True"), pod("b", "True"), pod("c", "False")];
        let budget = PodDisruptionBudget::default();
        let status = calculate(&budget, &pods, (3, 1), now);
        let counts = (status.current_healthy, status.desired_healthy, status.expected_pods);
        assert_eq!((counts, status.disruptions_allowed), ((2, 1, 3), 1));
        assert_eq!(status.conditions[0].reason, "SufficientPods");
        let granted = json!({"status": {"disruptedPods": {"a": rfc3339(now), "gone": rfc3339(now)}}});
        let status = calculate(&PodDisruptionBudget::deserialize(granted).unwrap(), &pods, (3, 1), now);
        assert_eq!((status.disruptions_allowed, status.disrupted_pods.len()), (0, 1));
        assert_eq!(next_check(&status, now), Action::RequeueAfter(Duration::from_secs(121)));
        assert_eq!(calculate(&budget, &pods, (0, 0), now).disruptions_allowed, 0);
    }
}
