//! The ReplicaSet of the current template: found, numbered, or created (`getNewReplicaSet`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::math::{RolloutLimits, new_set_size, progress_deadline_seconds};
use super::revision;
use super::sets::{DeploymentWork, POD_TEMPLATE_HASH, RolloutSet, Sets, is_same_template};
use crate::conditions::set_condition;
use crate::controller::Reconcile;
use crate::controller_ref::{controller_reference, is_controlled_by};
use crate::pod_control::is_namespace_terminating;
use crate::pod_template_hash::pod_template_hash;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::apps::deployment::DEPLOYMENTS;
use apis::apps::replica_set::REPLICA_SETS;
use apis::views::meta::condition;
use apis::views::replica_set::ReplicaSet;

/// Brings the annotations of the newest set up to date, if there is one, and takes its revision for the
/// deployment.
pub(super) async fn sync_existing(
    ctx: &Reconcile,
    work: &mut DeploymentWork,
    sets: &mut Sets,
) -> Result<(), Status> {
    let Some(new) = sets.new.clone() else { return Ok(()) };
    let had = &new.view.metadata.annotations;
    let annotations = revision::of_new_set(&work.view.metadata.annotations, had, next_revision(sets));
    let min_ready_seconds = work.view.spec.min_ready_seconds;
    if annotations != *had || new.view.spec.min_ready_seconds != min_ready_seconds {
        let mut tree = new.object.to_value();
        tree["metadata"]["annotations"] = json!(annotations);
        tree["spec"]["minReadySeconds"] = min_ready_seconds.into();
        // The rest when this write comes back through the watch.
        sets.replace(update(ctx, &new.object, tree).await?);
        return Ok(());
    }
    let revision = had.get(revision::REVISION).cloned().unwrap_or_default();
    let mut changed = take_revision(work, revision);
    let is_unseen = condition(&work.status.conditions, "Progressing").is_none();
    if progress_deadline_seconds(&work.view).is_some() && is_unseen {
        let message = format!("Found new replica set {:?}", new.name());
        set_progressing(work, "True", "FoundNewReplicaSet", &message);
        changed = true;
    }
    if changed { work.write(ctx).await } else { Ok(()) }
}

/// Finds the set of the present template, and creates it if there is none.
pub(super) async fn sync_or_create(
    ctx: &Reconcile,
    work: &mut DeploymentWork,
    sets: &mut Sets,
) -> Result<(), Status> {
    if sets.new.is_some() {
        return sync_existing(ctx, work, sets).await;
    }
    let hash = pod_template_hash(&work.view.spec.template, work.status.collision_count);
    let revision = next_revision(sets);
    let tree = new_set(work, sets, &hash, revision);
    let size = tree["spec"]["replicas"].as_i64().unwrap_or(0);
    let name = tree["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let namespace = work.object.metadata.namespace.clone();
    let (object, is_created) = match ctx.client.create(&REPLICA_SETS, &namespace, tree).await {
        Ok(object) => (object, true),
        Err(error) if error.is_already_exists() => (existing(ctx, work, &name, error).await?, false),
        Err(error) if is_namespace_terminating(&error) => return Err(error),
        Err(error) => return Err(report_failure(ctx, work, &name, error).await),
    };
    if is_created && size > 0 {
        let message = format!("Scaled up replica set {name} from 0 to {size}");
        work.event(ctx, "Normal", "ScalingReplicaSet", message);
    }
    sets.new = Some(RolloutSet::of(object));
    let mut changed = take_revision(work, revision.to_string());
    if is_created && progress_deadline_seconds(&work.view).is_some() {
        set_progressing(work, "True", "NewReplicaSetCreated", &format!("Created new replica set {name:?}"));
        changed = true;
    }
    if changed { work.write(ctx).await } else { Ok(()) }
}

/// Writes a set that was changed.
pub(super) async fn update(ctx: &Reconcile, object: &Object, tree: Value) -> Result<RolloutSet, Status> {
    let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
    Ok(RolloutSet::of(ctx.client.update(&REPLICA_SETS, namespace, name, tree).await?))
}

fn next_revision(sets: &Sets) -> i64 {
    sets.old.iter().map(RolloutSet::revision).max().unwrap_or(0) + 1
}

fn new_set(work: &DeploymentWork, sets: &Sets, hash: &str, revision: i64) -> Value {
    let spec = &work.object.to_value()["spec"];
    let (mut template, mut selector) = (spec["template"].clone(), spec["selector"].clone());
    template["metadata"]["labels"][POD_TEMPLATE_HASH] = hash.into();
    selector["matchLabels"][POD_TEMPLATE_HASH] = hash.into();
    let desired = work.view.replicas();
    let annotations = revision::of_new_set(&work.view.metadata.annotations, &Default::default(), revision);
    json!({
        "metadata": {
            "name": format!("{}-{hash}", work.name()),
            "namespace": work.object.metadata.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": revision::with_sizes(annotations, desired, RolloutLimits::of(&work.view).max_surge),
            "ownerReferences": [controller_reference(&work.object, &DEPLOYMENTS)],
        },
        "spec": {
            "replicas": new_set_size(&work.view, sets.total_size(), 0),
            "minReadySeconds": work.view.spec.min_ready_seconds,
            "selector": selector,
            "template": template,
        },
    })
}

/// The set that has the name already: our own, which the cache does not have yet, or that of another template
/// with the same hash, which is counted so that the next hash differs.
async fn existing(
    ctx: &Reconcile,
    work: &mut DeploymentWork,
    name: &str,
    error: Status,
) -> Result<Arc<Object>, Status> {
    let found = ctx.client.get(&REPLICA_SETS, &work.object.metadata.namespace, name).await?;
    let template = found.view::<ReplicaSet>().spec.template.clone();
    if is_controlled_by(&found, &work.object) && is_same_template(&template, &work.view.spec.template) {
        return Ok(found);
    }
    work.status.collision_count = Some(work.status.collision_count.unwrap_or(0) + 1);
    work.write(ctx).await?;
    Err(error)
}

async fn report_failure(ctx: &Reconcile, work: &mut DeploymentWork, name: &str, error: Status) -> Status {
    let message = format!("Failed to create new replica set {name:?}: {error}");
    if progress_deadline_seconds(&work.view).is_some() {
        set_progressing(work, "False", "ReplicaSetCreateError", &message);
        // There is a bigger problem to report than that this could not be written.
        let _ = work.write(ctx).await;
    }
    work.event(ctx, "Warning", "ReplicaSetCreateError", message);
    error
}

fn take_revision(work: &mut DeploymentWork, revision: String) -> bool {
    let changed = work.annotations.get(revision::REVISION) != Some(&revision);
    work.annotations.insert(revision::REVISION.into(), revision);
    changed
}

fn set_progressing(work: &mut DeploymentWork, status: &str, reason: &str, message: &str) {
    let condition = work.condition("Progressing", status, reason, message);
    set_condition(&mut work.status.conditions, condition);
}
