//! Pods on the nodes that want one, and none elsewhere (`manage`, `podsShouldBeOnNode`, `syncNodes`).

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;

use super::DaemonSetController;
use super::eligibility::Placement;
use super::template::{for_node, pod_template};
use super::work::{DaemonSetWork, PodsByNode, seniority};
use crate::controller::Reconcile;
use crate::history::REVISION_HASH;
use crate::pod_control::{create_pod, delete_pod, is_namespace_terminating, slow_start_batch};
use crate::pod_state::is_available;
use apimachinery::int_or_string::IntOrString;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::apps::daemon_set::DAEMON_SETS;
use apis::views::daemon_set::DaemonSet;
use apis::views::deployment::RollingUpdate;
use apis::views::pod::Pod;

/// Upstream's `BurstReplicas`: so many pods are created, and so many deleted, in one round.
const BURST_REPLICAS: usize = 250;

/// What is to be done in one round.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The nodes that get a pod.
    pub create_on: Vec<String>,
    /// The pods that go.
    pub delete: Vec<Arc<Object>>,
}

impl DaemonSetController {
    /// A pod where there should be one, no pod where there should be none, no two where one will do.
    pub(super) async fn manage(
        &self,
        ctx: &Reconcile,
        work: &DaemonSetWork,
        hash: &str,
    ) -> Result<(), Status> {
        let pods = work.pods_by_node(&self.pods);
        let mut plan = Plan::default();
        let wanted = work.placements.iter().filter(|(_, placement)| placement.should_run).count();
        ctx.compares("nodes with a pod", wanted as i64, pods.len() as i64);
        for (node, placement) in &work.placements {
            let on_node = pods.get(&node.metadata.name).map_or(&[][..], Vec::as_slice);
            self.plan_for_node(ctx, work, (&node.metadata.name, *placement, on_node), hash, &mut plan);
        }
        plan.delete.extend(for_missing_nodes(work, &pods));
        self.carry_out(ctx, work, plan, hash).await
    }

    /// `syncNodes`
    pub(super) async fn carry_out(
        &self,
        ctx: &Reconcile,
        work: &DaemonSetWork,
        mut plan: Plan,
        hash: &str,
    ) -> Result<(), Status> {
        plan.create_on.truncate(BURST_REPLICAS);
        plan.delete.truncate(BURST_REPLICAS);
        let doomed = plan.delete.iter().map(|pod| pod.metadata.uid.clone());
        self.expectations.expect(work.uid(), plan.create_on.len(), doomed);
        let created = self.create(ctx, work, &plan.create_on, hash).await;
        let deleted = self.delete(ctx, work, plan.delete).await;
        created.and(deleted)
    }

    fn plan_for_node(
        &self,
        ctx: &Reconcile,
        work: &DaemonSetWork,
        (node, placement, pods): (&str, Placement, &[Arc<Object>]),
        hash: &str,
        plan: &mut Plan,
    ) {
        if placement.should_run && pods.is_empty() {
            plan.create_on.push(node.to_owned());
        } else if placement.should_continue {
            let living = pods.iter().filter(|pod| !pod.is_deleting());
            let (ended, mut running): (Vec<_>, Vec<_>) =
                living.cloned().partition(|pod| pod.view::<Pod>().is_terminal());
            plan.delete.extend(ended.into_iter().filter(|pod| self.may_replace(ctx, work, node, pod)));
            running.sort_by_key(|pod| seniority(pod));
            if !allows_surge(&work.view) {
                plan.delete.extend(running.into_iter().skip(1));
            } else if running.is_empty() && placement.should_run {
                plan.create_on.push(node.to_owned());
            } else if running.len() > 1 {
                plan.delete.extend(superfluous_in_surge(work, running, hash));
            }
        } else {
            plan.delete.extend(pods.iter().filter(|pod| !pod.is_deleting()).cloned());
        }
    }

    /// A pod that ended is replaced; one that failed not too often.
    fn may_replace(&self, ctx: &Reconcile, work: &DaemonSetWork, node: &str, pod: &Object) -> bool {
        let key = pod.key();
        if pod.view::<Pod>().status.phase == "Succeeded" {
            let message = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
            work.event(ctx, "Normal", "SucceededDaemonPod", message);
            return true;
        }
        let generation = work.view.status.observed_generation;
        if let Some(delay) = self.failed_pods.next(work.uid(), generation, node) {
            ctx.enqueue.after(work.object.key(), delay);
            return false;
        }
        let message = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
        work.event(ctx, "Warning", "FailedDaemonPod", message);
        true
    }

    async fn create(
        &self,
        ctx: &Reconcile,
        work: &DaemonSetWork,
        nodes: &[String],
        hash: &str,
    ) -> Result<(), Status> {
        if nodes.is_empty() {
            return Ok(());
        }
        let template = pod_template(&work.view, hash);
        let create = |at: usize| {
            let template = for_node(&template, &nodes[at]);
            async move {
                match create_pod(ctx, &template, &work.object, &DAEMON_SETS).await {
                    // Every creation will fail from now on, and all is being deleted anyway.
                    Err(error) if is_namespace_terminating(&error) => Ok(()),
                    other => other,
                }
            }
        };
        let (successes, result) = slow_start_batch(nodes.len(), create).await;
        // The informer will not see those that were not created.
        for _ in successes..nodes.len() {
            self.expectations.creation_observed(work.uid());
        }
        result
    }

    async fn delete(
        &self,
        ctx: &Reconcile,
        work: &DaemonSetWork,
        pods: Vec<Arc<Object>>,
    ) -> Result<(), Status> {
        let delete = |pod: Arc<Object>| async move {
            let deleted = delete_pod(ctx, &pod.metadata.name, &work.object, &DAEMON_SETS).await;
            if deleted.is_err() {
                self.expectations.deletion_observed(work.uid(), &pod.metadata.uid);
            }
            deleted
        };
        let results = join_all(pods.into_iter().map(delete)).await;
        let mut failures = results.into_iter().filter_map(Result::err).filter(|error| !error.is_not_found());
        failures.next().map_or(Ok(()), Err)
    }
}

/// The most that there may be above one pod a node, of so many nodes (`SurgeCount`).
pub(super) fn max_surge(set: &DaemonSet, nodes: usize) -> usize {
    allowance(set, |rolling| rolling.max_surge.as_ref(), nodes)
}

/// The most nodes that may be without a pod, of so many (`UnavailableCount`).
pub(super) fn max_unavailable(set: &DaemonSet, nodes: usize) -> usize {
    allowance(set, |rolling| rolling.max_unavailable.as_ref(), nodes)
}

fn allows_surge(set: &DaemonSet) -> bool {
    max_surge(set, 1) > 0
}

fn allowance(set: &DaemonSet, bound: fn(&RollingUpdate) -> Option<&IntOrString>, nodes: usize) -> usize {
    let strategy = &set.spec.update_strategy;
    let rolling = strategy.rolling_update.as_ref().filter(|_| strategy.strategy_type == "RollingUpdate");
    let total = i64::try_from(nodes).unwrap_or(i64::MAX);
    // Validation refuses what is no number and no percentage.
    let count = rolling.and_then(bound).and_then(|bound| bound.scaled(total, true).ok());
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Two pods share a node while the new one is not available and the old one is ready; all others go. If
/// neither is, the new one stays.
fn superfluous_in_surge(work: &DaemonSetWork, running: Vec<Arc<Object>>, hash: &str) -> Vec<Arc<Object>> {
    let is_new = |pod: &Arc<Object>| pod.metadata.labels.get(REVISION_HASH).is_some_and(|it| it == hash);
    let (new, old): (Vec<_>, Vec<_>) = running.into_iter().partition(is_new);
    let mut doomed: Vec<_> = new.iter().skip(1).chain(old.iter().skip(1)).cloned().collect();
    if let (Some(new), Some(old)) = (new.first(), old.first()) {
        let is_replaced = is_available(new, work.view.spec.min_ready_seconds, work.now);
        if !old.view::<Pod>().is_ready() || is_replaced {
            doomed.push(old.clone());
        }
    }
    doomed
}

/// Pods that wait for nodes that are not there: nobody else would ever remove them.
fn for_missing_nodes(work: &DaemonSetWork, pods: &PodsByNode) -> Vec<Arc<Object>> {
    let nodes: BTreeSet<&str> = work.placements.iter().map(|(node, _)| node.metadata.name.as_str()).collect();
    let missing = pods.iter().filter(|(node, _)| !nodes.contains(node.as_str()));
    let waiting = |pod: &&Arc<Object>| pod.view::<Pod>().spec.node_name.is_empty();
    missing.flat_map(|(_, pods)| pods.iter().filter(waiting)).cloned().collect()
}
