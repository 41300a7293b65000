//! A deployment and its ReplicaSets in the hands of one sync.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::revision;
use crate::conditions::{conditions_value, new_condition};
use crate::controller::Reconcile;
use crate::status::put_count;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::apps::deployment::DEPLOYMENTS;
use apis::views::deployment::{Deployment, DeploymentStatus};
use apis::views::meta::Condition;
use apis::views::replica_set::ReplicaSet;

/// The label that tells the sets of one deployment apart (`DefaultDeploymentUniqueLabelKey`).
pub(super) const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// One ReplicaSet, as it is in the cache or came back from a write.
#[derive(Clone)]
pub(super) struct RolloutSet {
    /// The whole.
    pub object: Arc<Object>,
    /// What is read of it.
    pub view: Arc<ReplicaSet>,
}

impl RolloutSet {
    /// Of an object.
    pub(super) fn of(object: Arc<Object>) -> RolloutSet {
        let view = object.view::<ReplicaSet>();
        RolloutSet { object, view }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.object.metadata.name
    }

    /// Its desired size.
    pub(super) fn size(&self) -> i64 {
        self.view.replicas()
    }

    /// Its revision; 0 when it has none.
    pub(super) fn revision(&self) -> i64 {
        revision::of(&self.view.metadata.annotations)
    }

    /// An annotation that is a number.
    pub(super) fn number(&self, annotation: &str) -> Option<i64> {
        self.view.metadata.annotations.get(annotation)?.parse().ok()
    }

    fn created(&self) -> (Option<Time>, &str) {
        (self.object.metadata.creation_timestamp, self.name())
    }
}

/// The newest set, which has the deployment's template, and all others.
#[derive(Clone)]
pub(super) struct Sets {
    /// There is none before it is created.
    pub new: Option<RolloutSet>,
    /// From the oldest on.
    pub old: Vec<RolloutSet>,
}

impl Sets {
    /// Tells the newest from the others: the oldest of those whose template is `template`, so that one answer
    /// is given should there be more (`FindNewReplicaSet`).
    pub(super) fn sort(mut sets: Vec<RolloutSet>, template: &Value) -> Sets {
        sets.sort_by(|a, b| a.created().cmp(&b.created()));
        let at = sets.iter().position(|set| is_same_template(&set.view.spec.template, template));
        let new = at.map(|at| sets.remove(at));
        Sets { new, old: sets }
    }

    /// All, the newest last.
    pub(super) fn all(&self) -> impl Iterator<Item = &RolloutSet> {
        self.old.iter().chain(&self.new)
    }

    /// Those that want pods.
    pub(super) fn active(&self) -> Vec<RolloutSet> {
        self.all().filter(|set| set.size() > 0).cloned().collect()
    }

    /// What all want together.
    pub(super) fn total_size(&self) -> i64 {
        self.all().map(RolloutSet::size).sum()
    }

    /// The sum of a number in the statuses of all.
    pub(super) fn sum(&self, number: fn(&ReplicaSet) -> i64) -> i64 {
        self.all().map(|set| number(&set.view)).sum()
    }

    /// Puts a set that was written in the place of its former self.
    pub(super) fn replace(&mut self, written: RolloutSet) {
        let is_it = |set: &&mut RolloutSet| set.object.metadata.uid == written.object.metadata.uid;
        if let Some(place) = self.old.iter_mut().chain(&mut self.new).find(is_it) {
            *place = written;
        }
    }
}

/// A deployment that is being synced. Its annotations and status may run ahead of what is stored, until they
/// are written.
pub(super) struct DeploymentWork {
    /// As it was last read or written.
    pub object: Arc<Object>,
    /// What is read of it.
    pub view: Arc<Deployment>,
    /// With what this sync changes.
    pub annotations: BTreeMap<String, String>,
    /// With what this sync changes.
    pub status: DeploymentStatus,
    /// Of this sync.
    pub now: Time,
}

impl DeploymentWork {
    /// Of the cached object.
    pub(super) fn of(object: Arc<Object>, now: Time) -> DeploymentWork {
        let view = object.view::<Deployment>();
        let (annotations, status) = (view.metadata.annotations.clone(), view.status.clone());
        DeploymentWork { object, view, annotations, status, now }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.object.metadata.name
    }

    /// A condition as of now (`NewDeploymentCondition`).
    pub(super) fn condition(
        &self,
        condition_type: &str,
        status: &str,
        reason: &str,
        message: &str,
    ) -> Condition {
        let last_update_time = Some(self.now);
        Condition { last_update_time, ..new_condition(condition_type, status, reason, message, self.now) }
    }

    /// Writes annotations and status. A conflict is an error: the sync starts again with what is new.
    pub(super) async fn write(&mut self, ctx: &Reconcile) -> Result<(), Status> {
        let mut tree = self.object.to_value();
        if !self.annotations.is_empty() {
            let text = |(key, value): (&String, &String)| (key.clone(), value.as_str().into());
            let annotations: Map<String, Value> = self.annotations.iter().map(text).collect();
            tree["metadata"]["annotations"] = annotations.into();
        }
        let mut status = tree["status"].as_object().cloned().unwrap_or_default();
        put(&mut status, &self.status);
        tree["status"] = status.into();
        let metadata = &self.object.metadata;
        let written =
            ctx.client.update_status(&DEPLOYMENTS, &metadata.namespace, &metadata.name, tree).await?;
        *self = DeploymentWork::of(written, self.now);
        Ok(())
    }

    /// An event about it.
    pub(super) fn event(&self, ctx: &Reconcile, event_type: &str, reason: &str, message: impl Into<String>) {
        ctx.event(&DEPLOYMENTS, &self.object, event_type, reason, message);
    }
}

/// `EqualIgnoreHash`: the same pods but for the hash in their labels.
pub(super) fn is_same_template(a: &Value, b: &Value) -> bool {
    let labels = |template: &Value| {
        let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        labels.remove(POD_TEMPLATE_HASH);
        labels
    };
    let annotations =
        |template: &Value| template["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    a["spec"] == b["spec"] && labels(a) == labels(b) && annotations(a) == annotations(b)
}

fn put(status: &mut Map<String, Value>, new: &DeploymentStatus) {
    put_count(status, "observedGeneration", new.observed_generation);
    put_count(status, "replicas", new.replicas);
    put_count(status, "updatedReplicas", new.updated_replicas);
    put_count(status, "readyReplicas", new.ready_replicas);
    put_count(status, "availableReplicas", new.available_replicas);
    put_count(status, "unavailableReplicas", new.unavailable_replicas);
    let optional =
        [("terminatingReplicas", new.terminating_replicas), ("collisionCount", new.collision_count)];
    for (name, count) in optional {
        status.extend(count.map(|count| (name.to_owned(), count.into())));
    }
    if new.conditions.is_empty() {
        status.remove("conditions");
    } else {
        status.insert("conditions".into(), conditions_value(&new.conditions, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(name: &str, image: &str, created: &str) -> RolloutSet {
        let template = json!({"metadata": {"labels": {"app": "web", POD_TEMPLATE_HASH: name}}, "spec": {"image": image}});
        let metadata = json!({"name": name, "uid": name, "creationTimestamp": created});
        let tree = json!({"metadata": metadata, "spec": {"replicas": 2, "template": template}});
        RolloutSet::of(Arc::new(Object::from_value(&tree, vec![]).unwrap()))
    }

    #[test]
    fn the_newest_set_has_the_deployments_template() {
        let template = json!({"metadata": {"labels": {"app": "web"}, "creationTimestamp": null}, "spec": {"image": "b"}});
        let sets = vec![
            set("late", "b", "2026-01-03T00:00:00Z"),
            set("early", "b", "2026-01-02T00:00:00Z"),
            set("other", "a", "2026-01-01T00:00:00Z"),
        ];
        let sets = Sets::sort(sets, &template);
        assert_eq!(sets.new.as_ref().unwrap().name(), "early");
        assert_eq!(sets.old.iter().map(RolloutSet::name).collect::<Vec<_>>(), ["other", "late"]);
        assert_eq!(sets.total_size(), 6);
    }
}
