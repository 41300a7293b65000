//! The history of a workload as ControllerRevisions: each keeps one template, so that pods can be made of it
//! and people can go back to it (`pkg/controller/history`).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use golang::first_bytes::first_bytes;
use serde_json::{Value, json};

use super::controller::Reconcile;
use super::controller_ref::{ControllerRefManager, controller_reference};
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::apps::controller_revision::CONTROLLER_REVISIONS;
use apis::kind::Builtin;
use apis::views::controller_revision::ControllerRevision;
use client_go::lister::Lister;

/// The label of pods that says which revision they are of: its hash for a DaemonSet, its name for a
/// StatefulSet (`ControllerRevisionHashLabelKey`).
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";
/// Longer names of owners are cut, so that a hash has room behind them.
const LONGEST_PREFIX: usize = 223;

/// One past state of an owner.
#[derive(Clone)]
pub(crate) struct OwnerRevision {
    /// As it is stored.
    pub object: Arc<Object>,
    view: Arc<ControllerRevision>,
}

impl OwnerRevision {
    /// Of a ControllerRevision.
    pub(crate) fn of(object: Arc<Object>) -> OwnerRevision {
        let view = object.view::<ControllerRevision>();
        OwnerRevision { object, view }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.object.metadata.name
    }

    /// Its place in the history: the newest has the highest.
    pub(crate) fn number(&self) -> i64 {
        self.view.revision
    }

    /// The patch that brings its state back.
    pub(crate) fn data(&self) -> &Value {
        &self.view.data
    }

    /// The template that it keeps.
    pub(crate) fn template(&self) -> Value {
        let mut template = self.data()["spec"]["template"].clone();
        if let Some(members) = template.as_object_mut() {
            members.remove("$patch");
        }
        template
    }

    /// A label; empty when it is not there.
    pub(crate) fn label(&self, key: &str) -> &str {
        self.object.metadata.labels.get(key).map_or("", String::as_str)
    }

    /// By number, then by age, then by name (`byRevision`).
    fn order(&self, other: &OwnerRevision) -> Ordering {
        let rank = |it: &OwnerRevision| (it.number(), it.object.metadata.creation_timestamp);
        rank(self).cmp(&rank(other)).then_with(|| self.name().cmp(other.name()))
    }
}

/// What revisions an owner has: reads through a lister, writes through the API.
pub(crate) struct History<'a> {
    /// Of the sync.
    pub ctx: &'a Reconcile,
    /// Of ControllerRevisions, with [`super::controller_ref::CONTROLLER_INDEX`].
    pub revisions: &'a Lister,
    /// Whose history.
    pub owner: &'a Object,
    /// What the owner is.
    pub kind: &'static Builtin,
}

impl History<'_> {
    /// All that are, or become, the owner's, from the oldest to the newest.
    pub(crate) async fn claim(&self, selector: &Selector) -> Result<Vec<OwnerRevision>, Status> {
        let manager = ControllerRefManager {
            client: &self.ctx.client,
            owner: self.owner,
            owner_kind: self.kind,
            kind: &CONTROLLER_REVISIONS,
            selector,
        };
        let claimed = manager.claim(self.revisions, |_| true).await?;
        let mut claimed: Vec<OwnerRevision> = claimed.into_iter().map(OwnerRevision::of).collect();
        claimed.sort_by(OwnerRevision::order);
        Ok(claimed)
    }

    /// Keeps `data` under a hash that no other state has.
    pub(crate) async fn create(&self, revision: NewRevision<'_>) -> Result<OwnerRevision, Status> {
        let NewRevision { hash, .. } = revision;
        let name = revision_name(&self.owner.metadata.name, hash);
        let mut labels = revision.labels.clone();
        labels.insert(revision.hash_label.into(), hash.into());
        let mut metadata = json!({"name": name, "labels": labels,
            "ownerReferences": [controller_reference(self.owner, self.kind)]});
        if !revision.annotations.is_empty() {
            metadata["annotations"] = json!(revision.annotations);
        }
        let tree = json!({"metadata": metadata, "data": revision.data, "revision": revision.number});
        let namespace = &self.owner.metadata.namespace;
        self.ctx.client.create(&CONTROLLER_REVISIONS, namespace, tree).await.map(OwnerRevision::of)
    }

    /// The revision that has the name already, if it keeps the same.
    pub(crate) async fn existing(&self, hash: &str, data: &Value) -> Result<Option<OwnerRevision>, Status> {
        let metadata = &self.owner.metadata;
        let name = revision_name(&metadata.name, hash);
        let found = self.ctx.client.get(&CONTROLLER_REVISIONS, &metadata.namespace, &name).await?;
        Ok(Some(OwnerRevision::of(found)).filter(|found| found.data() == data))
    }

    /// Gives a revision another number: its state is the newest again.
    pub(crate) async fn renumber(
        &self,
        revision: &OwnerRevision,
        number: i64,
    ) -> Result<OwnerRevision, Status> {
        if revision.number() == number {
            return Ok(revision.clone());
        }
        self.update(revision, |tree| tree["revision"] = number.into()).await
    }

    /// Labels a revision.
    pub(crate) async fn label(
        &self,
        revision: &OwnerRevision,
        key: &str,
        value: &str,
    ) -> Result<OwnerRevision, Status> {
        self.update(revision, |tree| tree["metadata"]["labels"][key] = value.into()).await
    }

    /// Forgets a state.
    pub(crate) async fn delete(&self, revision: &OwnerRevision) -> Result<(), Status> {
        let (namespace, options) = (&self.owner.metadata.namespace, DeleteOptions::default());
        self.ctx.client.delete(&CONTROLLER_REVISIONS, namespace, revision.name(), &options).await
    }

    async fn update(
        &self,
        revision: &OwnerRevision,
        change: impl FnOnce(&mut Value),
    ) -> Result<OwnerRevision, Status> {
        let mut tree = revision.object.to_value();
        change(&mut tree);
        let namespace = &self.owner.metadata.namespace;
        let updated = self.ctx.client.update(&CONTROLLER_REVISIONS, namespace, revision.name(), tree).await?;
        Ok(OwnerRevision::of(updated))
    }
}

/// A state to be kept.
pub(crate) struct NewRevision<'a> {
    /// The labels of the template.
    pub labels: &'a BTreeMap<String, String>,
    /// The label that the hash is told in.
    pub hash_label: &'a str,
    /// Of the state.
    pub hash: &'a str,
    /// Those of the owner: the cause of the change is among them.
    pub annotations: &'a BTreeMap<String, String>,
    /// The state, as [`template_patch`] has it.
    pub data: &'a Value,
    /// Its place in the history.
    pub number: i64,
}

/// A strategic merge patch that puts `template` in the place of an owner's: what revisions keep, and what
/// `kubectl rollout undo` sends.
pub(crate) fn template_patch(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(members) = template.as_object_mut() {
        members.insert("$patch".into(), "replace".into());
    }
    json!({"spec": {"template": template}})
}

fn revision_name(owner: &str, hash: &str) -> String {
    format!("{}-{hash}", first_bytes(owner, LONGEST_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(name: &str, number: i64, created: &str) -> OwnerRevision {
        let metadata = json!({"name": name, "creationTimestamp": created});
        let data = template_patch(&json!({"spec": {"x": number}}));
        let tree = json!({"metadata": metadata, "revision": number, "data": data});
        OwnerRevision::of(Arc::new(Object::from_value(&tree, vec![]).unwrap()))
    }

    #[test]
    fn the_newest_is_last() {
        let mut revisions = [
            revision("d", 3, "2026-01-01T00:00:00Z"),
            revision("c", 2, "2026-01-02T00:00:00Z"),
            revision("b", 2, "2026-01-01T00:00:00Z"),
            revision("a", 2, "2026-01-02T00:00:00Z"),
        ];
        revisions.sort_by(OwnerRevision::order);
        assert_eq!(revisions.each_ref().map(OwnerRevision::name), ["b", "a", "c", "d"]);
    }

    #[test]
    fn a_template_comes_back_as_it_was() {
        let kept = revision("a", 7, "2026-01-01T00:00:00Z");
        assert_eq!(kept.data()["spec"]["template"]["$patch"], "replace");
        assert_eq!(kept.template(), json!({"spec": {"x": 7}}));
    }

    #[test]
    fn a_hash_has_room_behind_every_name() {
        assert_eq!(revision_name("web", "abc"), "web-abc");
        assert_eq!(revision_name(&"w".repeat(253), "abc").len(), 223 + 1 + 3);
    }
}
