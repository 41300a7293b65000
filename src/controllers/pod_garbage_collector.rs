//! Pod garbage collection: pods whose node is gone, pods deleted before they had one, too many ended ones
//! (`pkg/controller/podgc`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sync::Mutex;

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, PatchType};
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::views::meta::is_true;
use apis::views::node::Node;
use apis::views::pod::{is_terminal, node_name};
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use component_base::metrics::Family;

/// Upstream's `gcCheckPeriod`.
const CHECK_PERIOD: Duration = Duration::from_secs(20);
/// Upstream's `quarantineTime`: a node that just vanished from the cache may be coming back.
const QUARANTINE: Duration = Duration::from_secs(40);
const EVERYTHING: &str = "pods";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The collector of pods that nobody else ends.
pub(crate) struct PodGarbageCollector {
    pods: Lister,
    nodes: Lister,
    terminated_threshold: usize,
    /// Since when nodes that pods name have been missing. Bound: such nodes, forgotten when they come or no
    /// pod names them.
    missing: Mutex<BTreeMap<String, Duration>>,
    deletions: Arc<Family<2>>,
    failures: Arc<Family<2>>,
}

impl PodGarbageCollector {
    /// With its informers; so many ended pods are kept.
    pub(crate) fn new(ctx: &ComponentContext, terminated_threshold: usize) -> PodGarbageCollector {
        let [pods, nodes] = [&PODS, &NODES].map(|kind| ctx.informers.informer(kind).lister());
        let deletions = Arc::new(Family::counter(
            "pod_gc_collector_force_delete_pods_total",
            "[ALPHA] Number of pods that are being forcefully deleted since the Pod GC Controller started.",
            ["namespace", "reason"],
        ));
        let failures = Arc::new(Family::counter(
            "pod_gc_collector_force_delete_pod_errors_total",
            "[ALPHA] Number of errors encountered when forcefully deleting the pods since the Pod GC \
                Controller started.",
            ["namespace", "reason"],
        ));
        ctx.metrics.add("pod-gc-deletions", deletions.clone());
        ctx.metrics.add("pod-gc-failures", failures.clone());
        let missing = Mutex::default();
        PodGarbageCollector { pods, nodes, terminated_threshold, missing, deletions, failures }
    }

    /// Ends a pod for a reason that is counted.
    async fn collect(
        &self,
        ctx: &Reconcile,
        pod: &Object,
        reason: &str,
        why: Option<Value>,
    ) -> Result<(), Status> {
        let labels = [pod.metadata.namespace.as_str(), reason];
        let outcome = mark_failed_and_delete(ctx, pod, why).await;
        if outcome.is_err() {
            self.failures.count(labels);
        }
        self.deletions.count(labels);
        outcome
    }

    /// The nodes that have been missing for long enough.
    fn vanished(&self, now: Duration, pods: &[Arc<Object>]) -> BTreeSet<String> {
        let named = pods.iter().map(|pod| node_name(pod).into_owned());
        let missing: BTreeSet<String> =
            named.filter(|node| !node.is_empty() && self.nodes.get("", node).is_none()).collect();
        let mut since = self.missing.lock();
        since.retain(|node, _| missing.contains(node));
        for node in missing {
            since.entry(node).or_insert(now);
        }
        since.iter().filter(|(_, at)| now >= **at + QUARANTINE).map(|(node, _)| node.clone()).collect()
    }

    async fn collect_orphans(&self, ctx: &Reconcile, pods: &[Arc<Object>]) -> Result<(), Status> {
        let mut vanished = BTreeSet::new();
        for node in self.vanished(ctx.clock.elapsed(), pods) {
            // The cache may be behind.
            match ctx.client.get(&NODES, "", &node).await {
                Err(error) if error.is_not_found() => {
                    vanished.insert(node);
                }
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        for pod in pods.iter().filter(|pod| vanished.contains(&*node_name(pod))) {
            let why = json!({"reason": "DeletionByPodGC", "message": "PodGC: node no longer exists"});
            self.collect(ctx, pod, "orphaned", Some(why)).await?;
        }
        Ok(())
    }

    /// `gcTerminating`: who runs a cluster says by a taint that a silent node is off. What goes away there
    /// is gone.
    async fn collect_out_of_service(&self, ctx: &Reconcile, pods: &[Arc<Object>]) -> Result<(), Status> {
        for pod in pods.iter().filter(|pod| pod.is_deleting() && !node_name(pod).is_empty()) {
            if self.nodes.get("", &node_name(pod)).is_some_and(|node| is_off(&node.view::<Node>())) {
                self.collect(ctx, pod, "out-of-service", None).await?;
            }
        }
        Ok(())
    }

    async fn collect_terminated(&self, ctx: &Reconcile, pods: &[Arc<Object>]) -> Result<(), Status> {
        if self.terminated_threshold == 0 {
            return Ok(());
        }
        let mut ended: Vec<&Arc<Object>> = pods.iter().filter(|pod| is_terminal(pod)).collect();
        ended.sort_by_key(|pod| pod.metadata.creation_timestamp);
        let excess = ended.len().saturating_sub(self.terminated_threshold);
        for pod in ended.into_iter().take(excess) {
            self.collect(ctx, pod, "terminated", None).await?;
        }
        Ok(())
    }
}

impl Controller for PodGarbageCollector {
    const NAME: &'static str = "pod-garbage-collector";
    const EVENT_SOURCE: &'static str = "pod-garbage-collector";
    const SERVICE_ACCOUNT: &'static str = "pod-garbage-collector";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::none().at_start(EVERYTHING)
    }

    async fn reconcile(&self, ctx: &Reconcile, _key: &Key) -> Result<Action, Status> {
        let pods = self.pods.all();
        self.collect_terminated(ctx, &pods).await?;
        self.collect_out_of_service(ctx, &pods).await?;
        self.collect_orphans(ctx, &pods).await?;
        // No kubelet ever had them, so none will confirm that they are gone.
        for pod in pods.iter().filter(|pod| pod.is_deleting() && node_name(pod).is_empty()) {
            self.collect(ctx, pod, "unscheduled", None).await?;
        }
        // Of nodes that are missing time alone decides what becomes of their pods.
        let is_at_rest = self.missing.lock().is_empty();
        Ok(if is_at_rest { Action::LookAfter(CHECK_PERIOD) } else { Action::RequeueAfter(CHECK_PERIOD) })
    }
}

/// Puts the condition `DisruptionTarget` on a pod that is about to be deleted for no fault of its own;
/// `phase` ends it.
pub(crate) async fn mark_disrupted(
    ctx: &Reconcile,
    pod: &Object,
    why: Value,
    phase: Option<&str>,
) -> Result<(), Status> {
    let metadata = &pod.metadata;
    let mut condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": rfc3339(ctx.clock.now()),
        "observedGeneration": metadata.generation,
    });
    for part in ["reason", "message"] {
        condition[part] = why[part].clone();
    }
    let mut status = json!({"conditions": [condition]});
    if let Some(phase) = phase {
        status["phase"] = phase.into();
    }
    let patch = json!({"metadata": {"uid": metadata.uid}, "status": status});
    let (namespace, name) = (&metadata.namespace, &metadata.name);
    match ctx.client.patch_status(&PODS, namespace, name, PatchType::StrategicMerge, &patch).await {
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
        _ => Ok(()),
    }
}

fn is_off(node: &Node) -> bool {
    !is_true(&node.status.conditions, "Ready") && node.spec.taints.iter().any(|it| it.key == OUT_OF_SERVICE)
}

async fn mark_failed_and_delete(ctx: &Reconcile, pod: &Object, why: Option<Value>) -> Result<(), Status> {
    let metadata = &pod.metadata;
    let (namespace, name) = (&metadata.namespace, &metadata.name);
    if !is_terminal(pod) {
        match why {
            Some(why) => mark_disrupted(ctx, pod, why, Some("Failed")).await?,
            None => {
                let patch = json!({"metadata": {"uid": metadata.uid}, "status": {"phase": "Failed"}});
                let patched =
                    ctx.client.patch_status(&PODS, namespace, name, PatchType::StrategicMerge, &patch);
                patched.await.map(drop).or_else(ignore_not_found)?;
            }
        }
    }
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    ctx.client.delete(&PODS, namespace, name, &options.of_uid(&metadata.uid)).await.or_else(ignore_not_found)
}

fn ignore_not_found(error: Status) -> Result<(), Status> {
    if error.is_not_found() { Ok(()) } else { Err(error) }
}
