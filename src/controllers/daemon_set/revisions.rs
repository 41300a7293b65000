//! The revisions of a DaemonSet (`constructHistory`): one for each template that it had, the present one with
//! the highest number.

use std::collections::BTreeSet;

use serde_json::json;

use super::work::DaemonSetWork;
use crate::controller::Reconcile;
use crate::history::{History, NewRevision, OwnerRevision, REVISION_HASH, template_patch};
use crate::pod_template_hash::pod_template_hash;
use crate::status::update_status;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::apps::daemon_set::DAEMON_SETS;
use apis::core::pod::PODS;
use apis::views::daemon_set::DaemonSet;
use client_go::lister::Lister;

/// The history of a set.
pub(super) struct DaemonSetRevisions {
    /// The one of its template.
    current: OwnerRevision,
    /// The others, the oldest first.
    old: Vec<OwnerRevision>,
}

impl DaemonSetRevisions {
    /// What the pods of the present template are labelled with.
    pub(super) fn hash(&self) -> &str {
        self.current.label(REVISION_HASH)
    }
}

/// Finds or makes the revision of the present template, and gives it the highest number.
pub(super) async fn construct(
    ctx: &Reconcile,
    work: &DaemonSetWork,
    history: &History<'_>,
    pods: &Lister,
) -> Result<DaemonSetRevisions, Status> {
    let data = template_patch(&work.view.spec.template);
    let mut current = vec![];
    let mut old = vec![];
    for revision in history.claim(&work.selector).await? {
        let revision = labelled(history, revision).await?;
        if *revision.data() == data { current.push(revision) } else { old.push(revision) }
    }
    let number = old.iter().map(OwnerRevision::number).max().unwrap_or(0) + 1;
    let current = match current.pop() {
        None => snapshot(ctx, work, history, number).await?,
        Some(newest) => {
            remove_duplicates(history, work, pods, &newest, current).await?;
            if newest.number() < number { history.renumber(&newest, number).await? } else { newest }
        }
    };
    Ok(DaemonSetRevisions { current, old })
}

/// Forgets the oldest revisions that no pod is of, above the limit.
pub(super) async fn clean_up(
    work: &DaemonSetWork,
    history: &History<'_>,
    revisions: &DaemonSetRevisions,
    pods: &Lister,
) -> Result<(), Status> {
    let limit = work.view.spec.revision_history_limit.unwrap_or(10);
    let too_many = revisions.old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    if too_many == 0 {
        return Ok(());
    }
    let pods = work.pods(pods);
    let live: BTreeSet<&str> =
        pods.iter().filter_map(|pod| pod.metadata.labels.get(REVISION_HASH)).map(String::as_str).collect();
    let dead = revisions.old.iter().filter(|revision| !live.contains(revision.label(REVISION_HASH)));
    for revision in dead.take(too_many) {
        history.delete(revision).await?;
    }
    Ok(())
}

/// Of several revisions of one template (somebody made them by hand) one stays, and takes the pods.
async fn remove_duplicates(
    history: &History<'_>,
    work: &DaemonSetWork,
    pods: &Lister,
    kept: &OwnerRevision,
    duplicates: Vec<OwnerRevision>,
) -> Result<(), Status> {
    if duplicates.is_empty() {
        return Ok(());
    }
    let hash = kept.label(REVISION_HASH);
    let patch = json!({"metadata": {"labels": {REVISION_HASH: hash}}});
    for pod in work.pods(pods) {
        if pod.metadata.labels.get(REVISION_HASH).is_none_or(|label| label != hash) {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            history.ctx.client.patch(&PODS, namespace, name, PatchType::Merge, &patch).await?;
        }
    }
    for duplicate in duplicates {
        history.delete(&duplicate).await?;
    }
    Ok(())
}

/// A revision without the label gets its name there, which meets no hash.
async fn labelled(history: &History<'_>, revision: OwnerRevision) -> Result<OwnerRevision, Status> {
    if revision.object.metadata.labels.contains_key(REVISION_HASH) {
        return Ok(revision);
    }
    let name = revision.name().to_owned();
    history.label(&revision, REVISION_HASH, &name).await
}

/// A revision of the present template.
async fn snapshot(
    ctx: &Reconcile,
    work: &DaemonSetWork,
    history: &History<'_>,
    number: i64,
) -> Result<OwnerRevision, Status> {
    let template = &work.view.spec.template;
    let data = template_patch(template);
    let hash = pod_template_hash(template, work.view.status.collision_count);
    let new = NewRevision {
        labels: &super::template::labels(template),
        hash_label: REVISION_HASH,
        hash: &hash,
        annotations: &work.view.metadata.annotations,
        data: &data,
        number,
    };
    match history.create(new).await {
        Err(error) if error.is_already_exists() => match history.existing(&hash, &data).await? {
            Some(revision) => Ok(revision),
            None => Err(count_collision(ctx, work, error).await),
        },
        other => other,
    }
}

/// Another template has the same hash: the next attempt, on the set with the new count, takes another.
async fn count_collision(ctx: &Reconcile, work: &DaemonSetWork, error: Status) -> Status {
    let metadata = &work.object.metadata;
    let fresh = match ctx.client.get(&DAEMON_SETS, &metadata.namespace, &metadata.name).await {
        Ok(fresh) => fresh,
        Err(error) => return error,
    };
    let (known, count) = (work.view.status.collision_count, fresh.view::<DaemonSet>().status.collision_count);
    if known != count {
        let (known, count, name) = (known.unwrap_or(0), count.unwrap_or(0), &metadata.name);
        return Status::internal(format!(
            "found a stale collision count ({known}, expected {count}) of DaemonSet {name:?} while \
             processing; will retry until it is updated"
        ));
    }
    let count = count.unwrap_or(0) + 1;
    let counted = update_status(&ctx.client, &DAEMON_SETS, &fresh, |status| {
        status.insert("collisionCount".into(), count.into());
    });
    counted.await.err().unwrap_or(error)
}
