//! The status of a StatefulSet: counted from its pods, written when it differs.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::replicas::{is_running_and_ready, revision_of};
use super::revisions::Revisions;
use super::work::StatefulSetWork;
use crate::controller::Reconcile;
use crate::pod_state::is_available;
use crate::status::{put_count, update_status};
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::views::stateful_set::StatefulSetStatus;

/// What all pods amount to, condemned ones too.
pub(super) fn calculate(
    work: &StatefulSetWork,
    revisions: &Revisions,
    pods: &[Arc<Object>],
) -> StatefulSetStatus {
    let count =
        |holds: &dyn Fn(&Object) -> bool| -> i64 { pods.iter().filter(|pod| holds(pod)).count() as i64 };
    let min_ready_seconds = work.view.spec.min_ready_seconds;
    let is_of = |pod: &Object, revision: &str| !pod.is_deleting() && revision_of(pod) == revision;
    StatefulSetStatus {
        observed_generation: work.object.metadata.generation,
        current_revision: revisions.current.name().into(),
        update_revision: revisions.update.name().into(),
        collision_count: Some(revisions.collision_count),
        replicas: pods.len() as i64,
        ready_replicas: count(&is_running_and_ready),
        available_replicas: count(&|pod| {
            is_running_and_ready(pod) && is_available(pod, min_ready_seconds, work.now)
        }),
        current_replicas: count(&|pod| is_of(pod, revisions.current.name())),
        updated_replicas: count(&|pod| is_of(pod, revisions.update.name())),
    }
}

/// Writes `new` if it says something else than what is there.
pub(super) async fn write(
    ctx: &Reconcile,
    work: &StatefulSetWork,
    mut new: StatefulSetStatus,
) -> Result<(), Status> {
    complete_rolling_update(work, &mut new);
    let old = &work.view.status;
    // Who set the status of a later generation knows more.
    let is_news = new.observed_generation > old.observed_generation;
    let as_old = StatefulSetStatus {
        observed_generation: old.observed_generation,
        collision_count: old.collision_count,
        ..new.clone()
    };
    if !is_news && as_old == *old {
        return Ok(());
    }
    update_status(&ctx.client, &STATEFUL_SETS, &work.object, |status| put(status, &new)).await.map(drop)
}

/// All pods are there, ready, and of the revision that the set goes to: it has arrived
/// (`completeRollingUpdate`).
fn complete_rolling_update(work: &StatefulSetWork, status: &mut StatefulSetStatus) {
    let replicas = work.view.replicas();
    let counts = [status.updated_replicas, status.ready_replicas, status.replicas];
    if work.view.is_rolling_update() && counts.iter().all(|count| *count == replicas) {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
}

fn put(status: &mut Map<String, Value>, new: &StatefulSetStatus) {
    status.insert("replicas".into(), new.replicas.into());
    status.insert("availableReplicas".into(), new.available_replicas.into());
    put_count(status, "observedGeneration", new.observed_generation);
    put_count(status, "readyReplicas", new.ready_replicas);
    put_count(status, "currentReplicas", new.current_replicas);
    put_count(status, "updatedReplicas", new.updated_replicas);
    status.insert("currentRevision".into(), new.current_revision.as_str().into());
    status.insert("updateRevision".into(), new.update_revision.as_str().into());
    status.extend(new.collision_count.map(|count| ("collisionCount".into(), count.into())));
}
