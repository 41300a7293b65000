//! The revisions of a StatefulSet: the one that it comes from, and the one that it goes to
//! (`getStatefulSetRevisions`).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::replicas::revision_of;
use super::work::StatefulSetWork;
use crate::history::{History, NewRevision, OwnerRevision, template_patch};
use apimachinery::decode::{DecodeTarget, decode_value};
use apimachinery::object::Object;
use apimachinery::schema::Schemas;
use apimachinery::status::Status;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::tree::string_map;
use entropy::safe_encode;
use golang::fnv;

/// `history.ControllerRevisionHashLabel`
const HASH: &str = "controller.kubernetes.io/hash";
/// So many hashes are tried until one is free.
const LONGEST_SEARCH: i64 = 100;

/// What pods are made of.
pub(super) struct Revisions {
    /// The set comes from it.
    pub current: OwnerRevision,
    /// The set goes to it.
    pub update: OwnerRevision,
    /// How often a hash was taken.
    pub collision_count: i64,
}

/// Among all, the oldest first; the one of the present template is made, or moved to the end, if it is not
/// the newest. The newest may also mean the same as the template without being equal to it, if `by_meaning`.
pub(super) async fn find(
    work: &StatefulSetWork,
    history: &History<'_>,
    all: &[OwnerRevision],
    by_meaning: bool,
) -> Result<Revisions, Status> {
    let data = template_patch(&work.view.spec.template);
    let mut collision_count = work.view.status.collision_count.unwrap_or(0);
    let number = all.last().map_or(0, OwnerRevision::number) + 1;
    let update = match all.iter().rposition(|revision| *revision.data() == data) {
        Some(at) if at + 1 == all.len() => all[at].clone(),
        _ if by_meaning && newest_means(all, &work.view.spec.template) => all[all.len() - 1].clone(),
        Some(at) => history.renumber(&all[at], number).await?,
        None => create(work, history, &data, number, &mut collision_count).await?,
    };
    let current = all.iter().find(|revision| revision.name() == work.view.status.current_revision);
    Ok(Revisions { current: current.unwrap_or(&update).clone(), update, collision_count })
}

/// Whether a set of the newest revision would have the template, once it is read and defaulted as this
/// version does (`setMatchesLatestExistingRevision`, behind `StatefulSetSemanticRevisionComparison`): an
/// upgrade that knows another default, or writes no `creationTimestamp: null`, restarts no pods.
fn newest_means(all: &[OwnerRevision], template: &Value) -> bool {
    all.last().is_some_and(|newest| as_read_today(newest.template()).is_some_and(|read| read == *template))
}

/// A template without what a StatefulSet does not know and what is empty, and with its defaults.
fn as_read_today(template: Value) -> Option<Value> {
    let kind = &STATEFUL_SETS;
    let target = DecodeTarget {
        group: &kind.group_version.group,
        version: &kind.group_version.version,
        kind: &kind.kind,
        schema: Schemas::lookup(&kind.definition)?,
        typed: true,
        is_registered: &|_, _, _| true,
    };
    let mut set = decode_value(&target, json!({"spec": {"template": template}})).ok()?.value;
    (kind.defaults)(&mut set);
    Some(set["spec"]["template"].take())
}

/// Forgets the oldest that no pod is of, above the limit.
pub(super) async fn truncate(
    work: &StatefulSetWork,
    history: &History<'_>,
    all: &[OwnerRevision],
    revisions: &Revisions,
    pods: &[Arc<Object>],
) -> Result<(), Status> {
    let Ok(limit) = usize::try_from(work.view.spec.revision_history_limit.unwrap_or(10)) else {
        return Ok(());
    };
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| revision_of(pod)).collect();
    live.extend([revisions.current.name(), revisions.update.name()]);
    let dead: Vec<&OwnerRevision> = all.iter().filter(|revision| !live.contains(revision.name())).collect();
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
) -> Result<OwnerRevision, Status> {
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
    safe_encode(&fnv::sum_32(bytes).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_data_have_equal_hashes_until_they_collide() {
        let data = template_patch(&json!({"spec": {"x": 1}}));
        assert_eq!(hash(&data, 0), hash(&data.clone(), 0));
        assert_ne!(hash(&data, 0), hash(&data, 1));
        assert_ne!(hash(&data, 0), hash(&template_patch(&json!({"spec": {"x": 2}})), 0));
    }

    #[test]
    fn templates_are_read_as_this_version_reads_them() {
        let bare = json!({"metadata": {"creationTimestamp": null, "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1", "gone": true, "resources": {}}]}});
        let read = as_read_today(bare.clone()).unwrap();
        assert_eq!(read["metadata"], json!({"labels": {"app": "web"}}));
        assert_eq!(read["spec"]["containers"][0]["terminationMessagePolicy"], "File");
        assert_eq!(read["spec"]["containers"][0]["gone"], Value::Null);
        assert_eq!(as_read_today(read.clone()), Some(read.clone()));
        let mut other = bare;
        other["spec"]["containers"][0]["image"] = "nginx:2".into();
        assert_ne!(as_read_today(other), Some(read));
        assert_eq!(as_read_today(json!("no template")), None);
    }
}
