//! The right number of pods, in order: from the first to the last when they come, from the last to the first
//! when they go (`processReplica`, `processCondemned`).

use std::sync::Arc;

use super::StatefulSetController;
use super::claims::create_claims;
use super::identity::{has_storage, is_identified, ordinal, pod_name};
use super::replicas::{is_running_and_ready, is_unavailable};
use super::round::{OrderedProgress, Round};
use crate::controller::Reconcile;
use crate::pod_control::slow_start_batch;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::views::pod::Pod;

/// Upstream's `MaxBatchSize`: so many pods are created in one round where no order holds them up.
const MAX_BATCH_SIZE: usize = 500;

impl StatefulSetController {
    pub(super) async fn scale(&self, ctx: &Reconcile, round: &Round<'_>) -> Result<OrderedProgress, Status> {
        ctx.compares("pods", round.work.view.replicas(), round.replicas.present.len() as i64);
        if !round.work.view.is_monotonic() {
            return self.scale_at_once(ctx, round).await;
        }
        let set = &round.work.view;
        for ordinal in set.start()..set.start() + set.replicas() {
            if self.process_replica(ctx, round, ordinal).await? == OrderedProgress::Wait {
                return Ok(OrderedProgress::Wait);
            }
        }
        for pod in &round.replicas.condemned {
            self.keep_claims_right(ctx, round, pod).await?;
        }
        for pod in &round.replicas.condemned {
            if self.process_condemned(ctx, round, pod).await? == OrderedProgress::Wait {
                return Ok(OrderedProgress::Wait);
            }
        }
        Ok(OrderedProgress::Go)
    }

    /// No pod waits for another (`Parallel`).
    async fn scale_at_once(&self, ctx: &Reconcile, round: &Round<'_>) -> Result<OrderedProgress, Status> {
        let missing = round.replicas.missing(round.work, MAX_BATCH_SIZE);
        let mut ordinals: Vec<i64> = round.replicas.present.keys().copied().chain(missing).collect();
        ordinals.sort_unstable();
        let ordinals = &ordinals;
        let process =
            |at: usize| async move { self.process_replica(ctx, round, ordinals[at]).await.map(drop) };
        slow_start_batch(ordinals.len(), process).await.1?;
        let condemned = &round.replicas.condemned;
        let keep = |at: usize| self.keep_claims_right(ctx, round, &condemned[at]);
        slow_start_batch(condemned.len(), keep).await.1?;
        let process =
            |at: usize| async move { self.process_condemned(ctx, round, &condemned[at]).await.map(drop) };
        slow_start_batch(condemned.len(), process).await.1?;
        Ok(OrderedProgress::Go)
    }

    /// One place: a pod that is there, alive, and as it should be.
    async fn process_replica(
        &self,
        ctx: &Reconcile,
        round: &Round<'_>,
        ordinal: i64,
    ) -> Result<OrderedProgress, Status> {
        let work = round.work;
        let Some(pod) = round.replicas.present.get(&ordinal) else {
            return self.fill(ctx, round, ordinal).await;
        };
        let view = pod.view::<Pod>();
        // Also one that succeeded: how a pod ends that was evicted depends on its containers. A new one comes
        // when this one is gone.
        if view.is_terminal() {
            if !pod.is_deleting() {
                self.delete_pod(ctx, work, pod).await?;
            }
            return Ok(OrderedProgress::Wait);
        }
        if view.status.phase == "Pending" {
            create_claims(ctx, &self.claims, work, &pod.metadata.name, ordinal).await?;
            self.apply_policy(ctx, work, pod).await?;
        }
        let is_settled = is_running_and_ready(pod) && !self.is_unavailable(round, pod);
        if work.view.is_monotonic() && !is_settled {
            return Ok(OrderedProgress::Wait);
        }
        let is_right = is_identified(pod) && has_storage(work, pod) && self.claims_match_policy(work, pod);
        if !is_right {
            self.mend_pod(ctx, work, pod).await?;
        }
        Ok(OrderedProgress::Go)
    }

    async fn fill(
        &self,
        ctx: &Reconcile,
        round: &Round<'_>,
        ordinal: i64,
    ) -> Result<OrderedProgress, Status> {
        let name = pod_name(round.work.name(), ordinal);
        if self.has_stale_claim(round.work, &name, ordinal) {
            return Err(Status::internal(format!("a claim of the former Pod {name} is not gone yet")));
        }
        self.create_pod(ctx, round, ordinal).await?;
        Ok(if round.work.view.is_monotonic() { OrderedProgress::Wait } else { OrderedProgress::Go })
    }

    async fn keep_claims_right(
        &self,
        ctx: &Reconcile,
        round: &Round<'_>,
        pod: &Arc<Object>,
    ) -> Result<(), Status> {
        if self.claims_match_policy(round.work, pod) {
            Ok(())
        } else {
            self.apply_policy(ctx, round.work, pod).await
        }
    }

    /// In order a pod goes when those behind it are gone; and while another is not available, only the first
    /// that is not.
    async fn process_condemned(
        &self,
        ctx: &Reconcile,
        round: &Round<'_>,
        pod: &Arc<Object>,
    ) -> Result<OrderedProgress, Status> {
        let is_monotonic = round.work.view.is_monotonic();
        if pod.is_deleting() {
            return Ok(if is_monotonic { OrderedProgress::Wait } else { OrderedProgress::Go });
        }
        let is_settled = is_running_and_ready(pod) && !self.is_unavailable(round, pod);
        let first = round.replicas.first_unavailable.as_ref().map(|pod| ordinal(pod));
        if is_monotonic && !is_settled && first != Some(ordinal(pod)) {
            return Ok(OrderedProgress::Wait);
        }
        self.delete_pod(ctx, round.work, pod).await?;
        Ok(OrderedProgress::Wait)
    }

    pub(super) fn is_unavailable(&self, round: &Round<'_>, pod: &Object) -> bool {
        is_unavailable(pod, round.work.view.spec.min_ready_seconds, round.work.now)
    }
}
