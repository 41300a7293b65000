//! The revisions of a StatefulSet: the one that it comes from, and the one that it goes to
//! (`getStatefulSetRevisions`).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::replicas::revision_of;
use super::work::StatefulSetWork;
use crate::history::{History, NewRevision, Revision, template_patch};
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::tree::string_map;
use entropy::safe_encode;

/// `history.ControllerRevisionHashLabel`
const HASH: &str = "controller.kubernetes.io/hash";
/// So many hashes are tried until one is free.
const LONGEST_SEARCH: i64 = 100;

/// What pods are made of.
pub(super) struct Revisions {
    /// The set comes from it.
    pub current: Revision,
    /// The set goes to it.
    pub update: Revision,
    /// How often a hash was taken.
    pub collision_count: i64,
}

/// Among all, the oldest first; the one of the present template is made, or moved to the end, if it is not
/// the newest.
pub(super) async fn find(
    work: &StatefulSetWork,
    history: &History<'_>,
    all: &[Revision],
) -> Result<Revisions, Status> {
    let data = template_patch(&work.view.spec.template);
    let mut collision_count = work.view.status.collision_count.unwrap_or(0);
    let number = all.last().map_or(0, Revision::number) + 1;
    let update = match all.iter().rposition(|revision| *revision.data() == data) {
        Some(at) if at + 1 == all.len() => all[at].clone(),
        Some(at) => history.renumber(&all[at], number).await?,
        None => create(work, history, &data, number, &mut collision_count).await?,
    };
    let current = all.iter().find(|revision| revision.name() == work.view.status.current_revision);
    Ok(Revisions { current: current.unwrap_or(&update).clone(), update, collision_count })
}

/// Forgets the oldest that no pod is of, above the limit.
pub(super) async fn truncate(
    work: &StatefulSetWork,
    history: &History<'_>,
    all: &[Revision],
    revisions: &Revisions,
    pods: &[Arc<Object>],
) -> Result<(), Status> {
    let Ok(limit) = usize::try_from(work.view.spec.revision_history_limit.unwrap_or(10)) else {
        return Ok(());
    };
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| revision_of(pod)).collect();
    live.extend([revisions.current.name(), revisions.update.name()]);
    let dead: Vec<&Revision> = all.iter().filter(|revision| !live.contains(revision.name())).collect();
    for revision in dead.iter().take(dead.len().saturating_sub(limit)) {
        history.delete(revision).await?;
    }
    Ok(())
}

async fn create(
    work: &StatefulSetWork,
    history: &History<'_>,
    data: &Value,
    number: i64,
    collision_count: &mut i64,
) -> Result<Revision, Status> {
    for _ in 0..LONGEST_SEARCH {
        let hash = hash(data, *collision_count);
        let new = NewRevision {
            labels: &string_map(&work.view.spec.template, "metadata.labels"),
            hash_label: HASH,
            hash: &hash,
            annotations: &work.view.metadata.annotations,
            data,
            number,
        };
        match history.create(new).await {
            Err(error) if error.is_already_exists() => {}
            other => return other,
        }
        if let Some(existing) = history.existing(&hash, data).await? {
            return Ok(existing);
        }
        *collision_count += 1;
    }
    Err(Status::internal(format!("no free name for a revision of StatefulSet {}", work.name())))
}

/// `HashControllerRevision`: FNV-1 over the data as Go writes it, and the count. Equal templates have the
/// hashes that they have in other clusters.
fn hash(data: &Value, collision_count: i64) -> String {
    let escaped = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028")];
    let mut text = data.to_string();
    for (character, sequence) in escaped.into_iter().chain([('\u{2029}', "\\u2029")]) {
        text = text.replace(character, sequence);
    }
    let bytes = text.bytes().chain(collision_count.to_string().into_bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    safe_encode(&hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_data_have_equal_hashes_until_they_collide() {
        let data = template_patch(&json!({"spec": {"x": 1}}));
        assert_eq!(hash(&data, 0), hash(&data.clone(), 0));
        assert_ne!(hash(&data, 0), hash(&data, 1));
        assert_ne!(hash(&data, 0), hash(&template_patch(&json!({"spec": {"x": 2}})), 0));
    }
}
