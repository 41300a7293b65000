//! DaemonSet: one pod of a template on every node that wants it (`pkg/controller/daemon`).
//!
//! In: a DaemonSet, the nodes, the pods and revisions that it controls or may adopt. Out: pods that say for
//! which node they are (the scheduler binds them), revisions, and the status. It must not know what else runs
//! on a node, nor whether there is room.

mod eligibility;
mod failed_pods;
mod manage;
mod revisions;
mod rolling_update;
mod status;
mod template;
mod work;

use std::sync::Arc;

use eligibility::Eligibility;
use failed_pods::FailedPodsBackoff;
use work::DaemonSetWork;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches, owner_keys};
use super::controller_ref::{CONTROLLER_INDEX, ControllerRefManager, controller_index};
use super::dependents;
use super::expectations::Expectations;
use super::history::History;
use super::pod_state::next_availability_check;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apis::apps::controller_revision::CONTROLLER_REVISIONS;
use apis::apps::daemon_set::DAEMON_SETS;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::views::daemon_set::DaemonSet;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The controller of DaemonSets.
pub(crate) struct DaemonSetController {
    sets: Lister,
    pods: Lister,
    nodes: Lister,
    revisions: Lister,
    expectations: Expectations,
    failed_pods: Arc<FailedPodsBackoff>,
}

impl DaemonSetController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> DaemonSetController {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(CONTROLLER_INDEX, controller_index);
        let revisions = ctx.informers.informer(&CONTROLLER_REVISIONS);
        revisions.add_index(CONTROLLER_INDEX, controller_index);
        DaemonSetController {
            sets: ctx.informers.informer(&DAEMON_SETS).lister(),
            pods: pods.lister(),
            nodes: ctx.informers.informer(&NODES).lister(),
            revisions: revisions.lister(),
            expectations: Expectations::new(&ctx.clock),
            failed_pods: Arc::new(FailedPodsBackoff::new(&ctx.clock)),
        }
    }

    fn history<'a>(&'a self, ctx: &'a Reconcile, work: &'a DaemonSetWork) -> History<'a> {
        History { ctx, revisions: &self.revisions, owner: &work.object, kind: &DAEMON_SETS }
    }

    /// Adopts and releases.
    async fn claim_pods(&self, ctx: &Reconcile, work: &DaemonSetWork) -> Result<(), Status> {
        let manager = ControllerRefManager {
            client: &ctx.client,
            owner: &work.object,
            owner_kind: &DAEMON_SETS,
            kind: &PODS,
            selector: &work.selector,
        };
        manager.claim(&self.pods, |_| true).await.map(drop)
    }

    /// Pods where they are wanted, of the revision that is wanted (`updateDaemonSet`).
    async fn update(
        &self,
        ctx: &Reconcile,
        work: &DaemonSetWork,
        revisions: &revisions::DaemonSetRevisions,
    ) -> Result<(), Status> {
        self.manage(ctx, work, revisions.hash()).await?;
        let is_rolling = work.view.spec.update_strategy.strategy_type == "RollingUpdate";
        if is_rolling && self.expectations.satisfied(work.uid()) {
            self.rolling_update(ctx, work, revisions.hash()).await?;
        }
        revisions::clean_up(work, &self.history(ctx, work), revisions, &self.pods).await
    }

    async fn sync(&self, ctx: &Reconcile, work: &DaemonSetWork) -> Result<Action, Status> {
        self.claim_pods(ctx, work).await?;
        let revisions = revisions::construct(ctx, work, &self.history(ctx, work), &self.pods).await?;
        let may_act = self.expectations.satisfied(work.uid());
        let updated = if may_act { self.update(ctx, work, &revisions).await } else { Ok(()) };
        let pods = work.pods_by_node(&self.pods);
        let mut status = status::calculate(work, &pods, revisions.hash());
        if may_act {
            status.observed_generation = work.object.metadata.generation;
        }
        let written = status::write(ctx, work, status).await;
        updated.and(written)?;
        let min_ready_seconds = work.view.spec.min_ready_seconds;
        let next = next_availability_check(&work.pods(&self.pods), min_ready_seconds, work.now);
        Ok(next.map_or(Action::Done, Action::ResumeAfter))
    }
}

impl Controller for DaemonSetController {
    const NAME: &'static str = "daemonset";
    const EVENT_SOURCE: &'static str = "daemonset-controller";
    const SERVICE_ACCOUNT: &'static str = "daemon-set-controller";
    /// Upstream's `ConcurrentDaemonSetSyncs`.
    const WORKERS: usize = 2;

    fn watches(&self) -> Watches {
        let (sets, failed_pods) = (self.sets.clone(), self.failed_pods.clone());
        let own = dependents::of_owner(&self.expectations);
        let own = move |change: &Change<'_>, enqueue: &Enqueue| {
            if let Change::Deleted(set) = change {
                failed_pods.forget(&set.metadata.uid);
            }
            own(change, enqueue);
        };
        let may_adopt = |sets: &Lister, orphan: &Object| {
            dependents::adopters(sets, orphan, |set: &DaemonSet| &set.spec.selector)
        };
        let (of_pods, of_revisions) = (sets.clone(), sets.clone());
        let adopters = move |pod: &Object| may_adopt(&of_pods, pod);
        let revisions = move |change: &Change<'_>, enqueue: &Enqueue| {
            // One that came and is owned was made by the sync itself.
            if !matches!(change, Change::Added(revision) if revision.controller().is_some()) {
                let keys = owner_keys(change, &DAEMON_SETS, |orphan| may_adopt(&of_revisions, orphan));
                keys.into_iter().for_each(|key| enqueue.now(key));
            }
        };
        let nodes = move |change: &Change<'_>, enqueue: &Enqueue| {
            for set in eligibility::concerned(&sets, change) {
                enqueue.batched(set.key());
            }
        };
        Watches::none()
            .maps(&DAEMON_SETS, own)
            .maps(&PODS, dependents::of_pods(&self.expectations, &DAEMON_SETS, adopters))
            .maps(&CONTROLLER_REVISIONS, revisions)
            .maps(&NODES, nodes)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.sets.get(namespace, name) else { return Ok(Action::Done) };
        let view = object.view::<DaemonSet>();
        // Cannot be mended by trying again; validation refuses it.
        let Ok(selector) = view.spec.selector.selector() else { return Ok(Action::Done) };
        if selector.is_everything() {
            let message = "This daemon set is selecting all pods. A non-empty selector is required.";
            ctx.event(&DAEMON_SETS, &object, "Warning", "SelectingAll", message);
            return Ok(Action::Done);
        }
        // Its revisions may be gone before its pods: what is counted then would be wrong.
        if object.is_deleting() {
            return Ok(Action::Done);
        }
        let eligibility = Eligibility::of(&view);
        let place = |node: Arc<Object>| (node.clone(), eligibility.on(&node));
        let placements = self.nodes.all().into_iter().map(place).collect();
        let work = DaemonSetWork { object, view, selector, placements, now: ctx.clock.now() };
        self.sync(ctx, &work).await
    }
}
