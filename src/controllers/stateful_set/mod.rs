//! StatefulSet: pods with names and claims of their own, in order (`pkg/controller/statefulset`).
//!
//! In: a StatefulSet, the pods and revisions that it controls or may adopt, the claims of its pods. Out:
//! claims, pods, revisions and the status. It must not know what a claim is bound to, nor where a pod runs.
//!
//! A sync does as much as the order allows: pods come from the first to the last, each when those before it
//! are available; then too many go, and then old ones, from the last to the first.

mod claims;
mod identity;
mod pods;
mod replicas;
mod retention;
mod revisions;
mod rolling_update;
mod round;
mod scale;
mod status;
mod work;

use std::sync::Arc;

use replicas::Replicas;
use revisions::Revisions;
use round::{OrderedProgress, Round};
use work::StatefulSetWork;

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::controller_ref::{CONTROLLER_INDEX, ControllerRefManager, controller_index};
use super::dependents;
use super::expectations::Expectations;
use super::history::History;
use super::pod_state::next_availability_check;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::object::{Object, split_key};
use apimachinery::status::Status;
use apis::apps::controller_revision::CONTROLLER_REVISIONS;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::views::stateful_set::StatefulSet;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The controller of StatefulSets.
pub(crate) struct StatefulSetController {
    sets: Lister,
    pods: Lister,
    claims: Lister,
    revisions: Lister,
    /// Upstream relies on the names, which nobody can take twice, and lives with the errors; here a sync
    /// waits until it sees what the one before has done.
    expectations: Expectations,
    /// `StatefulSetSemanticRevisionComparison`
    compares_by_meaning: bool,
    /// `MaxUnavailableStatefulSet`
    replaces_several: bool,
}

impl StatefulSetController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext, gates: &FeatureGates) -> StatefulSetController {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(CONTROLLER_INDEX, controller_index);
        let revisions = ctx.informers.informer(&CONTROLLER_REVISIONS);
        revisions.add_index(CONTROLLER_INDEX, controller_index);
        StatefulSetController {
            sets: ctx.informers.informer(&STATEFUL_SETS).lister(),
            pods: pods.lister(),
            claims: ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister(),
            revisions: revisions.lister(),
            expectations: Expectations::new(&ctx.clock),
            compares_by_meaning: gates.enabled("StatefulSetSemanticRevisionComparison"),
            replaces_several: gates.enabled("MaxUnavailableStatefulSet"),
        }
    }

    fn history<'a>(&'a self, ctx: &'a Reconcile, work: &'a StatefulSetWork) -> History<'a> {
        History { ctx, revisions: &self.revisions, owner: &work.object, kind: &STATEFUL_SETS }
    }

    /// Adopts and releases. A pod whose name is none of the set's is nothing to it.
    async fn claim_pods(&self, ctx: &Reconcile, work: &StatefulSetWork) -> Result<Vec<Arc<Object>>, Status> {
        let manager = ControllerRefManager {
            client: &ctx.client,
            owner: &work.object,
            owner_kind: &STATEFUL_SETS,
            kind: &PODS,
            selector: &work.selector,
        };
        let is_member = |pod: &Object| identity::is_member(work.name(), &pod.metadata.name);
        let mut pods = manager.claim(&self.pods, is_member).await?;
        pods.retain(|pod| is_member(pod));
        Ok(pods)
    }

    async fn sync(&self, ctx: &Reconcile, work: &StatefulSetWork) -> Result<Action, Status> {
        let history = self.history(ctx, work);
        let all = history.claim(&work.selector).await?;
        let pods = self.claim_pods(ctx, work).await?;
        let revisions = revisions::find(work, &history, &all, self.compares_by_meaning).await?;
        let updated = self.update(ctx, work, &revisions, &pods).await;
        let truncated = revisions::truncate(work, &history, &all, &revisions, &pods).await;
        updated.and(truncated)?;
        let next = next_availability_check(&pods, work.view.spec.min_ready_seconds, work.now);
        Ok(next.map_or(Action::Done, Action::ResumeAfter))
    }

    /// Brings pods nearer to what they should be, and writes what was found (`performUpdate`).
    async fn update(
        &self,
        ctx: &Reconcile,
        work: &StatefulSetWork,
        revisions: &Revisions,
        pods: &[Arc<Object>],
    ) -> Result<(), Status> {
        let mut status = status::calculate(work, revisions, pods);
        let replicas = Replicas::of(work, pods);
        let round = Round { work, revisions, replicas: &replicas };
        let may_act = !work.object.is_deleting() && self.expectations.satisfied(work.uid());
        let acted = if may_act { self.act(ctx, &round, &mut status.current_replicas).await } else { Ok(()) };
        acted.and(status::write(ctx, work, status).await)
    }

    /// Scaling goes before updating.
    async fn act(
        &self,
        ctx: &Reconcile,
        round: &Round<'_>,
        current_replicas: &mut i64,
    ) -> Result<(), Status> {
        let scaled = self.scale(ctx, round).await?;
        if scaled == OrderedProgress::Go && round.work.view.is_rolling_update() {
            self.rolling_update(ctx, round, current_replicas).await?;
        }
        Ok(())
    }
}

impl Controller for StatefulSetController {
    const NAME: &'static str = "statefulset";
    const EVENT_SOURCE: &'static str = "statefulset-controller";
    const SERVICE_ACCOUNT: &'static str = "statefulset-controller";

    fn watches(&self) -> Watches {
        let sets = self.sets.clone();
        let adopters = move |pod: &Object| {
            let mut keys = dependents::adopters(&sets, pod, |set: &StatefulSet| &set.spec.selector);
            keys.retain(|key| identity::is_member(split_key(key).1, &pod.metadata.name));
            keys
        };
        Watches::none()
            .maps(&STATEFUL_SETS, dependents::of_owner(&self.expectations))
            .maps(&PODS, dependents::of_pods(&self.expectations, &STATEFUL_SETS, adopters))
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(object) = self.sets.get(namespace, name) else { return Ok(Action::Done) };
        let view = object.view::<StatefulSet>();
        // Cannot be mended by trying again; validation refuses it.
        let Ok(selector) = view.spec.selector.selector() else { return Ok(Action::Done) };
        let work = StatefulSetWork { object, view, selector, now: ctx.clock.now() };
        self.sync(ctx, &work).await
    }
}
