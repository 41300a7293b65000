//! Taint eviction: pods leave a node with a `NoExecute` taint that they do not tolerate, or no longer
//! (`pkg/controller/tainteviction`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use sync::{Mutex, MutexGuard};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::node_lifecycle::{NODE_INDEX, node_index};
use super::pod_garbage_collector::mark_disrupted;
use apimachinery::object::{Object, split_key};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::views::node::{Node, Taint};
use apis::views::pod::{Pod, node_name};
use apis::views::toleration::Toleration;
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use component_base::metrics::Family;

/// The taint manager.
pub(crate) struct TaintEvictionController {
    nodes: Lister,
    pods: Lister,
    /// Pods whose eviction waits for its time, and since when. Bound: forgotten when they are evicted, spared
    /// or gone.
    scheduled: Arc<Mutex<BTreeMap<Key, Time>>>,
    deletions: Arc<Family<0>>,
    latency: Arc<Family<0>>,
}

/// From five milliseconds to four minutes.
const LATENCY_BOUNDS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

/// What the taints of its node mean for a pod.
#[derive(Debug, PartialEq, Eq)]
enum TaintVerdict {
    Stay,
    Leave,
    LeaveAt(Time),
}

impl TaintEvictionController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> TaintEvictionController {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(NODE_INDEX, node_index);
        let nodes = ctx.informers.informer(&NODES).lister();
        let deletions = Arc::new(Family::counter(
            "taint_eviction_controller_pod_deletions_total",
            "[ALPHA] Total number of Pods deleted by TaintEvictionController since its start.",
            [],
        ));
        let latency = Arc::new(Family::histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "[ALPHA] Latency, in seconds, between the time when a taint effect has been activated for the \
                Pod and its deletion via TaintEvictionController.",
            [],
            &LATENCY_BOUNDS,
        ));
        ctx.metrics.add("taint-eviction-deletions", deletions.clone());
        ctx.metrics.add("taint-eviction-latency", latency.clone());
        let (pods, scheduled) = (pods.lister(), Arc::default());
        TaintEvictionController { nodes, pods, scheduled, deletions, latency }
    }

    async fn evict(&self, ctx: &Reconcile, key: &Key, pod: &Object) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let activated = ctx.clock.elapsed();
        let message = format!("Marking for deletion Pod {key}");
        ctx.event(&PODS, pod, "Normal", "TaintManagerEviction", message);
        let why = json!({
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        });
        mark_disrupted(ctx, pod, why, None).await?;
        let options = DeleteOptions::default().of_uid(&pod.metadata.uid);
        let deleted = ctx.client.delete(&PODS, namespace, name, &options).await;
        if deleted.is_ok() {
            self.deletions.count([]);
            self.latency.observe([], ctx.clock.elapsed().saturating_sub(activated));
        }
        match deleted {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => {
                self.scheduled().remove(key);
                Ok(Action::Done)
            }
        }
    }

    fn scheduled(&self) -> MutexGuard<'_, BTreeMap<Key, Time>> {
        self.scheduled.lock()
    }
}

impl Controller for TaintEvictionController {
    const NAME: &'static str = "taint-eviction";
    const EVENT_SOURCE: &'static str = "taint-eviction-controller";
    const SERVICE_ACCOUNT: &'static str = "node-controller";
    const WORKERS: usize = 8;

    fn watches(&self) -> Watches {
        let (nodes, scheduled) = (self.nodes.clone(), self.scheduled.clone());
        // Most pods are on nodes that drive nobody out: they need not be looked at.
        let pods = move |change: &Change<'_>, enqueue: &Enqueue| {
            let key = change.object().key();
            let node = node_name(change.object());
            let is_tainted = || nodes.get("", &node).is_some_and(|node| !evicting_taints(&node).is_empty());
            let waits = || scheduled.lock().contains_key(&key);
            if (!node.is_empty() && is_tainted()) || waits() {
                enqueue.now(key);
            }
        };
        let of_node = self.pods.clone();
        let nodes = move |change: &Change<'_>, enqueue: &Enqueue| {
            let before = change.old().map(|old| evicting_taints(old)).unwrap_or_default();
            if before != evicting_taints(change.object()) {
                let pods = of_node.by_index(NODE_INDEX, &change.object().metadata.name);
                pods.into_iter().for_each(|pod| enqueue.now(pod.key()));
            }
        };
        Watches::none().maps(&PODS, pods).maps(&NODES, nodes)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(pod) = self.pods.get(namespace, name).filter(|pod| !pod.is_deleting()) else {
            self.scheduled().remove(key);
            return Ok(Action::Done);
        };
        let view = pod.view::<Pod>();
        let node = self.nodes.get("", &view.spec.node_name);
        let taints = node.map(|node| evicting_taints(&node)).unwrap_or_default();
        let now = ctx.clock.now();
        let since = self.scheduled().get(key).copied().unwrap_or(now);
        match verdict(&taints, &view.spec.tolerations, since, now) {
            TaintVerdict::Leave => self.evict(ctx, key, &pod).await,
            TaintVerdict::LeaveAt(time) => {
                self.scheduled().insert(key.clone(), since);
                Ok(Action::RequeueAfter((time - now).to_std().unwrap_or(Duration::ZERO)))
            }
            TaintVerdict::Stay => {
                if self.scheduled().remove(key).is_some() {
                    let message = format!("Cancelling deletion of Pod {key}");
                    ctx.event(&PODS, &pod, "Normal", "TaintManagerEviction", message);
                }
                Ok(Action::Done)
            }
        }
    }
}

fn evicting_taints(node: &Object) -> Vec<Taint> {
    let taints = &node.view::<Node>().spec.taints;
    taints.iter().filter(|taint| taint.effect == "NoExecute").cloned().collect()
}

/// Each taint must be tolerated; of those that are for a time, the shortest counts, from when its taint was
/// put on, or, of one that does not say, from when it was first seen.
fn verdict(taints: &[Taint], tolerations: &[Toleration], since: Time, now: Time) -> TaintVerdict {
    let mut leave_at: Option<Time> = None;
    for taint in taints {
        let matching: Vec<&Toleration> = tolerations.iter().filter(|it| it.tolerates(taint)).collect();
        if matching.is_empty() {
            return TaintVerdict::Leave;
        }
        let Some(seconds) = matching.iter().filter_map(|it| it.toleration_seconds).min() else { continue };
        let until =
            taint.time_added.unwrap_or(since) + TimeDelta::seconds(seconds.clamp(0, i64::from(u32::MAX)));
        leave_at = Some(leave_at.map_or(until, |earlier| earlier.min(until)));
    }
    match leave_at {
        None => TaintVerdict::Stay,
        Some(time) if time <= now => TaintVerdict::Leave,
        Some(time) => TaintVerdict::LeaveAt(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use serde::Deserialize;
    use serde_json::Value;

    #[test]
    fn pods_leave_when_their_tolerance_is_over() {
        let now = DateTime::from_timestamp(1000, 0).unwrap();
        let taint = Taint {
            key: "node.kubernetes.io/unreachable".into(),
            effect: "NoExecute".into(),
            time_added: Some(now - TimeDelta::seconds(100)),
            ..Taint::default()
        };
        let verdict = |tolerations: Value| {
            let tolerations = Vec::<Toleration>::deserialize(tolerations).unwrap();
            verdict(std::slice::from_ref(&taint), &tolerations, now, now)
        };
        let for_seconds = |seconds: i64| {
            json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds}])
        };
        assert_eq!(verdict(json!([])), TaintVerdict::Leave);
        assert_eq!(verdict(json!([{"operator": "Exists"}])), TaintVerdict::Stay);
        assert_eq!(verdict(for_seconds(300)), TaintVerdict::LeaveAt(now + TimeDelta::seconds(200)));
        assert_eq!(verdict(for_seconds(60)), TaintVerdict::Leave);
        assert_eq!(verdict(json!([{"key": "other", "operator": "Exists"}])), TaintVerdict::Leave);
        let taint = Taint { time_added: None, ..taint.clone() };
        let tolerations = Vec::<Toleration>::deserialize(for_seconds(60)).unwrap();
        let seen = now - TimeDelta::seconds(60);
        assert_eq!(super::verdict(&[taint], &tolerations, seen, now), TaintVerdict::Leave);
    }
}
