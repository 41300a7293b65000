//! ReplicaSet and ReplicationController: as many pods of one template as are asked for.
//! Next: src/scheduler/schedule_one.rs
//!
//! Upstream's `pkg/controller/replicaset`, which serves both kinds, too. In: a ReplicaSet and the pods that
//! it controls or may adopt. Out: pods created or deleted, and the status. It must not know where a pod runs
//! (except that pods doubled up on a node go first), nor why the number was asked for.

pub(crate) mod ranking;
mod status;

use std::sync::Arc;

use futures::future::join_all;

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::controller_ref::{CONTROLLER_INDEX, ControllerRefManager, controller_index};
use super::dependents;
use super::expectations::Expectations;
use super::pod_control::{create_pod, delete_pod, is_namespace_terminating, slow_start_batch};
use super::pod_state::{is_active, is_terminating, next_availability_check};
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apis::apps::replica_set::REPLICA_SETS;
use apis::core::pod::PODS;
use apis::core::replication_controller::REPLICATION_CONTROLLERS;
use apis::kind::Builtin;
use apis::views::replica_set::ReplicaSet;
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use component_base::metrics::Family;

/// Upstream's `BurstReplicas`: so many pods are created or deleted in one round.
const BURST_REPLICAS: usize = 500;
/// For each so many of its pods a set lets all others run once before it looks at them.
const PODS_A_TURN: i64 = 250;
/// So many turns at most: how many pods there are is read from a status, which others may write, too.
const MAX_TURNS: i64 = 400;

/// The controller of ReplicaSets.
pub(crate) struct ReplicaSetController(Replication);

/// The controller of ReplicationControllers.
pub(crate) struct ReplicationManager(Replication);

impl ReplicaSetController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> ReplicaSetController {
        ReplicaSetController(Replication::new(ctx, &REPLICA_SETS))
    }
}

impl ReplicationManager {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> ReplicationManager {
        ReplicationManager(Replication::new(ctx, &REPLICATION_CONTROLLERS))
    }
}

impl Controller for ReplicaSetController {
    const NAME: &'static str = "replicaset";
    const EVENT_SOURCE: &'static str = "replicaset-controller";
    const SERVICE_ACCOUNT: &'static str = "replicaset-controller";

    fn watches(&self) -> Watches {
        self.0.watches()
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        self.0.reconcile(ctx, key).await
    }
}

impl Controller for ReplicationManager {
    const NAME: &'static str = "replicationcontroller";
    const EVENT_SOURCE: &'static str = "replication-controller";
    const SERVICE_ACCOUNT: &'static str = "replication-controller";

    fn watches(&self) -> Watches {
        self.0.watches()
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        self.0.reconcile(ctx, key).await
    }
}

/// `ExponentialBuckets(0.25, 2, 6)`, of ratios; observed as if they were seconds.
const RATIO_BOUNDS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

fn age_ratios() -> Family<0> {
    Family::histogram(
        "replicaset_controller_sorting_deletion_age_ratio",
        "[ALPHA] The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). Should be <2. \
         The intent of this metric is to measure the rough efficacy of the LogarithmicScaleDown feature gate's effect on \
         the sorting (and deletion) of pods when a replicaset scales down. This only considers Ready pods when \
         calculating and reporting.",
        [],
        &RATIO_BOUNDS,
    )
}

struct Replication {
    kind: &'static Builtin,
    sets: Lister,
    pods: Lister,
    expectations: Expectations,
    /// Of ReplicaSets alone, in whose name upstream counts.
    age_ratios: Option<Arc<Family<0>>>,
}

impl Replication {
    fn new(ctx: &ComponentContext, kind: &'static Builtin) -> Replication {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(CONTROLLER_INDEX, controller_index);
        let sets = ctx.informers.informer(kind);
        sets.add_index(CONTROLLER_INDEX, controller_index);
        let expectations = Expectations::new(&ctx.clock);
        let age_ratios = (kind.plural == REPLICA_SETS.plural).then(|| Arc::new(age_ratios()));
        age_ratios.iter().for_each(|ratios| ctx.metrics.add("replica-set", ratios.clone()));
        Replication { kind, sets: sets.lister(), pods: pods.lister(), expectations, age_ratios }
    }

    fn watches(&self) -> Watches {
        let sets = self.sets.clone();
        let adopters =
            move |pod: &Object| dependents::adopters(&sets, pod, |set: &ReplicaSet| &set.spec.selector);
        Watches::none()
            .maps(self.kind, dependents::of_owner(&self.expectations))
            .maps(&PODS, dependents::of_pods(&self.expectations, self.kind, adopters))
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        self.wait_for_more(ctx, namespace, name).await;
        let Some(object) = self.sets.get(namespace, name) else { return Ok(Action::Done) };
        let set = object.view::<ReplicaSet>();
        // Cannot be mended by trying again; validation refuses it.
        let Ok(selector) = set.spec.selector.selector() else { return Ok(Action::Done) };
        let may_act = self.expectations.satisfied(&object.metadata.uid) && !object.is_deleting();
        let pods = self.claim(ctx, &object, &selector).await?;
        // The older kind has no field for it.
        let counts_terminating = self.kind.kind != REPLICATION_CONTROLLERS.kind;
        let terminating = counts_terminating.then(|| pods.iter().filter(|pod| is_terminating(pod)).count());
        let active: Vec<Arc<Object>> = pods.into_iter().filter(|pod| is_active(pod)).collect();
        let managed = if may_act { self.manage(ctx, &object, &set, &active).await } else { Ok(()) };
        let now = ctx.clock.now();
        let failure = status::ReplicaFailureCondition::of(&managed, &active, &set);
        let new = status::calculate(&set, &active, terminating, failure, now);
        status::write(ctx, self.kind, &object, &set, new).await?;
        managed?;
        let next = next_availability_check(&active, set.spec.min_ready_seconds, now);
        Ok(next.map_or(Action::Done, Action::ResumeAfter))
    }

    /// Each change of a pod asks for a look at all pods of its set. As long as others have something to do,
    /// the look of a set of many waits for more of their changes; upstream's waits for its turn to write the
    /// status.
    async fn wait_for_more(&self, ctx: &Reconcile, namespace: &str, name: &str) {
        let set = self.sets.get(namespace, name);
        for _ in 0..set.map_or(0, |set| turns_before_a_look(&set.view::<ReplicaSet>())) {
            ctx.clock.yield_now().await;
        }
    }

    async fn claim(
        &self,
        ctx: &Reconcile,
        set: &Object,
        selector: &Selector,
    ) -> Result<Vec<Arc<Object>>, Status> {
        let manager = ControllerRefManager {
            client: &ctx.client,
            owner: set,
            owner_kind: self.kind,
            kind: &PODS,
            selector,
        };
        manager.claim(&self.pods, is_active).await
    }

    /// Creates what is missing, deletes what is too much.
    async fn manage(
        &self,
        ctx: &Reconcile,
        object: &Object,
        set: &ReplicaSet,
        active: &[Arc<Object>],
    ) -> Result<(), Status> {
        let desired = usize::try_from(set.replicas()).unwrap_or(0);
        ctx.compares("pods", set.replicas(), active.len() as i64);
        if active.len() < desired {
            self.create(ctx, object, set, (desired - active.len()).min(BURST_REPLICAS)).await
        } else if active.len() > desired {
            self.delete(ctx, object, active, (active.len() - desired).min(BURST_REPLICAS)).await
        } else {
            Ok(())
        }
    }

    async fn create(
        &self,
        ctx: &Reconcile,
        owner: &Object,
        set: &ReplicaSet,
        count: usize,
    ) -> Result<(), Status> {
        let uid = &owner.metadata.uid;
        self.expectations.expect_creations(uid, count);
        let create = |_| async {
            match create_pod(ctx, &set.spec.template, owner, self.kind).await {
                // Every creation will fail from now on, and all is being deleted anyway.
                Err(error) if is_namespace_terminating(&error) => Ok(()),
                other => other,
            }
        };
        let (successes, result) = slow_start_batch(count, create).await;
        // The informer will not see those that were not created.
        for _ in successes..count {
            self.expectations.creation_observed(uid);
        }
        result
    }

    async fn delete(
        &self,
        ctx: &Reconcile,
        owner: &Object,
        active: &[Arc<Object>],
        count: usize,
    ) -> Result<(), Status> {
        let related = self.related_pods(owner);
        let now = ctx.clock.now();
        let doomed = ranking::pods_to_delete(active, &related, count, now);
        if let Some(ratios) = self.age_ratios.as_ref().filter(|_| count < active.len()) {
            ranking::age_ratios(active, &doomed, now).for_each(|ratio| ratios.observe([], ratio));
        }
        let uid = &owner.metadata.uid;
        self.expectations.expect_deletions(uid, doomed.iter().map(|pod| pod.metadata.uid.clone()));
        let delete = |pod: Arc<Object>| async move {
            let deleted = delete_pod(ctx, &pod.metadata.name, owner, self.kind).await;
            if deleted.is_err() {
                self.expectations.deletion_observed(uid, &pod.metadata.uid);
            }
            deleted
        };
        let results = join_all(doomed.into_iter().map(delete)).await;
        let failed =
            results.into_iter().find(|result| result.as_ref().is_err_and(|error| !error.is_not_found()));
        failed.unwrap_or(Ok(()))
    }

    /// The pods of all sets that have the same owner: those of a deployment's other revisions.
    fn related_pods(&self, owner: &Object) -> Vec<Arc<Object>> {
        let siblings = match owner.controller() {
            Some(reference) => self.sets.by_index(CONTROLLER_INDEX, &reference.uid),
            None => vec![],
        };
        let mut uids: Vec<&str> = siblings.iter().map(|set| set.metadata.uid.as_str()).collect();
        if uids.is_empty() {
            uids.push(&owner.metadata.uid);
        }
        uids.into_iter().flat_map(|uid| self.pods.by_index(CONTROLLER_INDEX, uid)).collect()
    }
}

fn turns_before_a_look(set: &ReplicaSet) -> i64 {
    (set.status.replicas / PODS_A_TURN).min(MAX_TURNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[test]
    fn a_set_of_few_waits_for_nobody_and_one_whose_status_lies_not_for_ever() {
        let turns = |replicas: i64| {
            let set = json!({"status": {"replicas": replicas}});
            turns_before_a_look(&ReplicaSet::deserialize(set).unwrap())
        };
        let many = i64::from(i32::MAX);
        assert_eq!([0, 249, 250, 10_000, 100_000, many].map(turns), [0, 0, 1, 40, 400, MAX_TURNS]);
        assert!((0..turns(-many)).is_empty());
    }
}
