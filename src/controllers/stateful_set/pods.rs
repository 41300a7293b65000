//! Creating, mending and deleting the pods of a StatefulSet, each told in an event about the set
//! (`StatefulPodControl`).

use super::StatefulSetController;
use super::claims::{claim_volumes, create_claims};
use super::identity::{has_storage, identify, is_identified, new_pod, ordinal, pod_name};
use super::round::Round;
use super::work::StatefulSetWork;
use crate::controller::Reconcile;
use crate::history::OwnerRevision;
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::pod::PODS;
use apis::tree::set;

impl StatefulSetController {
    /// Creates the pod with an ordinal, and before it what it claims.
    pub(super) async fn create_pod(
        &self,
        ctx: &Reconcile,
        round: &Round<'_>,
        ordinal: i64,
    ) -> Result<(), Status> {
        let work = round.work;
        let name = pod_name(work.name(), ordinal);
        let created = create_claims(ctx, &self.claims, work, &name, ordinal).await;
        if created.is_err() {
            return told(ctx, work, "create", &name, created);
        }
        let pod = new_pod(work, revision_of_new(round, ordinal), ordinal)?;
        self.expectations.expect_another_creation(work.uid());
        let pod = match ctx.client.create(&PODS, work.namespace(), pod).await {
            Ok(pod) => pod,
            Err(error) => {
                self.expectations.creation_observed(work.uid());
                let failed = Err(error);
                return match &failed {
                    // The cache does not have it yet.
                    Err(error) if error.is_already_exists() => failed,
                    _ => told(ctx, work, "create", &name, failed),
                };
            }
        };
        match self.apply_policy(ctx, work, &pod).await {
            Ok(()) => told(ctx, work, "create", &name, Ok(())),
            failed => told(ctx, work, "update", &name, failed),
        }
    }

    /// Mends a pod that is not what it should be.
    pub(super) async fn mend_pod(
        &self,
        ctx: &Reconcile,
        work: &StatefulSetWork,
        pod: &Object,
    ) -> Result<(), Status> {
        let (name, ordinal) = (&pod.metadata.name, ordinal(pod));
        let mut tree = pod.to_value();
        if !is_identified(pod) {
            identify(&mut tree, name, ordinal);
        }
        if !has_storage(work, pod) {
            let volumes = claim_volumes(work, &tree, ordinal);
            set(&mut tree, "spec.volumes", volumes);
            let created = create_claims(ctx, &self.claims, work, name, ordinal).await;
            if created.is_err() {
                return told(ctx, work, "update", name, created);
            }
        }
        if !self.claims_match_policy(work, pod) {
            let applied = self.apply_policy(ctx, work, pod).await;
            if applied.is_err() {
                return told(ctx, work, "update", name, applied);
            }
        }
        let updated = ctx.client.update(&PODS, work.namespace(), name, tree).await;
        told(ctx, work, "update", name, updated.map(drop))
    }

    /// Begins to delete a pod.
    pub(super) async fn delete_pod(
        &self,
        ctx: &Reconcile,
        work: &StatefulSetWork,
        pod: &Object,
    ) -> Result<(), Status> {
        let (name, uid) = (&pod.metadata.name, &pod.metadata.uid);
        self.expectations.expect_another_deletion(work.uid(), uid);
        let deleted = ctx.client.delete(&PODS, work.namespace(), name, &DeleteOptions::default()).await;
        if deleted.is_err() {
            self.expectations.deletion_observed(work.uid(), uid);
        }
        told(ctx, work, "delete", name, deleted)
    }
}

/// A pod that is below the partition comes back as it was (`newVersionedStatefulSetPod`).
fn revision_of_new<'a>(round: &'a Round<'_>, ordinal: i64) -> &'a OwnerRevision {
    let set = &round.work.view;
    let strategy = &set.spec.update_strategy;
    let unchanged = match &strategy.rolling_update {
        Some(rolling) => rolling.partition,
        None if set.is_rolling_update() => set.status.current_replicas,
        None => 0,
    };
    let is_old = ordinal < set.start() + unchanged;
    if is_old { &round.revisions.current } else { &round.revisions.update }
}

/// `recordPodEvent`
fn told(
    ctx: &Reconcile,
    work: &StatefulSetWork,
    verb: &str,
    pod: &str,
    result: Result<(), Status>,
) -> Result<(), Status> {
    let (set, title) = (work.name(), format!("{}{}", verb[..1].to_uppercase(), &verb[1..]));
    match &result {
        Ok(()) => {
            let message = format!("{verb} Pod {pod} in StatefulSet {set} successful");
            work.event(ctx, "Normal", &format!("Successful{title}"), message);
        }
        Err(error) => {
            let message = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}");
            work.event(ctx, "Warning", &format!("Failed{title}"), message);
        }
    }
    result
}
