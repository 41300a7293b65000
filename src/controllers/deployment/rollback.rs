//! Rollbacks that are asked for in the deployment itself: `spec.rollbackTo` of the versions of old, which is
//! an annotation today (`pkg/controller/deployment/rollback.go`).

use serde_json::{Map, Value};

use super::sets::{DeploymentWork, POD_TEMPLATE_HASH, RolloutSet, Sets, is_same_template};
use crate::controller::Reconcile;
use apimachinery::status::Status;
use apis::apps::deployment::DEPLOYMENTS;

/// In which the wish is kept: a revision, or 0 for the one before.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";
const NOT_FOUND: &str = "DeploymentRollbackRevisionNotFound";

/// The revision that is wished for, if one is.
pub(super) fn wanted(work: &DeploymentWork) -> Option<i64> {
    work.view.metadata.annotations.get(ROLLBACK)?.parse().ok()
}

/// Puts the template of a former revision in the place of the present one, and takes the wish away; what
/// follows is an ordinary rollout.
pub(super) async fn roll_back(
    ctx: &Reconcile,
    work: &DeploymentWork,
    sets: &Sets,
    wanted: i64,
) -> Result<(), Status> {
    let name = &work.object.metadata.name;
    let revision = if wanted == 0 { last_revision(sets) } else { wanted };
    if revision == 0 {
        work.event(ctx, "Warning", NOT_FOUND, "Unable to find last revision.");
        return write(ctx, work, None).await;
    }
    let Some(set) = sets.all().find(|set| set.revision() == revision) else {
        work.event(ctx, "Warning", NOT_FOUND, "Unable to find the revision to rollback to.");
        return write(ctx, work, None).await;
    };
    if is_same_template(&set.view.spec.template, &work.view.spec.template) {
        let why = format!("The rollback revision contains the same template as current deployment {name:?}");
        work.event(ctx, "Warning", "DeploymentRollbackTemplateUnchanged", &why);
        return write(ctx, work, None).await;
    }
    let done = format!("Rolled back deployment {name:?} to revision {revision}");
    work.event(ctx, "Normal", "DeploymentRollback", &done);
    write(ctx, work, Some(set)).await
}

/// The one before the newest; 0 when there is none.
fn last_revision(sets: &Sets) -> i64 {
    let mut revisions: Vec<i64> = sets.all().map(RolloutSet::revision).collect();
    revisions.sort_unstable();
    revisions.iter().rev().nth(1).copied().unwrap_or(0)
}

async fn write(ctx: &Reconcile, work: &DeploymentWork, set: Option<&RolloutSet>) -> Result<(), Status> {
    let mut tree = work.object.to_value();
    if let Some(annotations) = tree["metadata"]["annotations"].as_object_mut() {
        annotations.remove(ROLLBACK);
    }
    if let Some(set) = set {
        let mut template = Value::clone(&set.view.spec.template);
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove(POD_TEMPLATE_HASH);
        }
        if template["metadata"]["labels"].as_object().is_some_and(Map::is_empty) {
            template["metadata"]["labels"].take();
        }
        tree["spec"]["template"] = template;
    }
    let metadata = &work.object.metadata;
    ctx.client.update(&DEPLOYMENTS, &metadata.namespace, &metadata.name, tree).await.map(drop)
}
