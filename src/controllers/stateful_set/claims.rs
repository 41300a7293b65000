//! The claims of a StatefulSet's pods: one per template and pod, named after both, which outlive the pod.

use std::sync::Arc;

use serde_json::{Value, json};

use super::work::StatefulSetWork;
use crate::controller::Reconcile;
use crate::controller_ref::controller_reference;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::tree::{items, object_mut, set, text};
use client_go::lister::Lister;

/// The name of the claim of a template for a pod (`getPersistentVolumeClaimName`).
pub(super) fn claim_name(work: &StatefulSetWork, template: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", text(template, "metadata.name"), work.name())
}

/// The volumes of a pod: its claims, and those of its template that no claim takes the name of
/// (`updateStorage`).
pub(super) fn claim_volumes(work: &StatefulSetWork, pod: &Value, ordinal: i64) -> Vec<Value> {
    let templates = &work.view.spec.volume_claim_templates;
    let of_claim = |template: &Value| {
        let claim = json!({"claimName": claim_name(work, template, ordinal)});
        json!({"name": text(template, "metadata.name"), "persistentVolumeClaim": claim})
    };
    let is_claim = |volume: &Value| {
        templates.iter().any(|template| text(template, "metadata.name") == text(volume, "name"))
    };
    let own = items(pod, "spec.volumes").iter().filter(|volume| !is_claim(volume));
    templates.iter().map(of_claim).chain(own.cloned()).collect()
}

/// The claim of a template for a pod, if it is there.
pub(super) fn find_claim(
    claims: &Lister,
    work: &StatefulSetWork,
    template: &Value,
    ordinal: i64,
) -> Option<Arc<Object>> {
    claims.get(work.namespace(), &claim_name(work, template, ordinal))
}

/// Creates the claims of a pod that are missing. One that is on its way out is an error: the pod would
/// wait for it for ever.
pub(super) async fn create_claims(
    ctx: &Reconcile,
    claims: &Lister,
    work: &StatefulSetWork,
    pod: &str,
    ordinal: i64,
) -> Result<(), Status> {
    let mut failures = vec![];
    for template in &work.view.spec.volume_claim_templates {
        let name = claim_name(work, template, ordinal);
        match find_claim(claims, work, template, ordinal) {
            Some(claim) if claim.is_deleting() => failures.push(format!("pvc {name} is being deleted")),
            Some(_) => {}
            None => {
                let created = create_claim(ctx, work, new_claim(work, template, &name), &name, pod).await;
                failures.extend(created.err().map(|error| format!("failed to create PVC {name}: {error}")));
            }
        }
    }
    match failures.as_slice() {
        [] => Ok(()),
        [only] => Err(Status::internal(only)),
        many => Err(Status::internal(format!("[{}]", many.join(", ")))),
    }
}

fn new_claim(work: &StatefulSetWork, template: &Value, name: &str) -> Value {
    let mut claim = template.clone();
    set(&mut claim, "metadata.name", name);
    set(&mut claim, "metadata.namespace", work.namespace());
    let labels = object_mut(&mut claim, "metadata.labels");
    for (key, value) in &work.view.spec.selector.match_labels {
        labels.insert(key.clone(), value.as_str().into());
    }
    own(work, &mut claim);
    claim
}

/// A claim that shall go with the set is the set's from the start: one whose set goes before anybody has
/// looked at it again would be left, and who binds it meanwhile would meet another writer.
fn own(work: &StatefulSetWork, claim: &mut Value) {
    let mut owners = items(claim, "metadata.ownerReferences").to_vec();
    if work.view.deletes_claims() && owners.iter().all(|owner| owner["controller"] != true) {
        owners.push(json!(controller_reference(&work.object, &STATEFUL_SETS)));
        set(claim, "metadata.ownerReferences", owners);
    }
}

async fn create_claim(
    ctx: &Reconcile,
    work: &StatefulSetWork,
    claim: Value,
    name: &str,
    pod: &str,
) -> Result<(), Status> {
    let set = work.name();
    match ctx.client.create(&PERSISTENT_VOLUME_CLAIMS, work.namespace(), claim).await {
        Ok(_) => {
            let message = format!("create Claim {name} Pod {pod} in StatefulSet {set} success");
            work.event(ctx, "Normal", "SuccessfulCreate", message);
            Ok(())
        }
        // The cache does not have it yet.
        Err(error) if error.is_already_exists() => Err(error),
        Err(error) => {
            let message =
                format!("create Claim {name} for Pod {pod} in StatefulSet {set} failed error: {error}");
            work.event(ctx, "Warning", "FailedCreate", message);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::labels::Selector;
    use apis::views::stateful_set::StatefulSet;
    use chrono::DateTime;
    use serde::Deserialize;

    fn claim(when_deleted: &str, owners: Value) -> Value {
        let set = json!({"metadata": {"name": "web", "uid": "set"}});
        let policy = json!({"whenDeleted": when_deleted, "whenScaled": "Delete"});
        let spec = json!({"persistentVolumeClaimRetentionPolicy": policy});
        let work = StatefulSetWork {
            object: Arc::new(Object::from_value(&set, vec![]).unwrap()),
            view: Arc::new(StatefulSet::deserialize(json!({"spec": spec})).unwrap()),
            selector: Selector::everything(),
            now: DateTime::UNIX_EPOCH,
        };
        let template = json!({"metadata": {"name": "data", "ownerReferences": owners}});
        new_claim(&work, &template, "data-web-0")
    }

    #[test]
    fn a_claim_that_goes_with_the_set_is_the_sets_from_the_start() {
        let owners = |when_deleted: &str, owners: Value| {
            let claim = claim(when_deleted, owners);
            let owners = items(&claim, "metadata.ownerReferences").iter();
            owners.map(|owner| text(owner, "uid").to_owned()).collect::<Vec<String>>().join(" ")
        };
        assert_eq!(owners("Retain", json!([])), "");
        assert_eq!(owners("Delete", json!([])), "set");
        assert_eq!(owners("Delete", json!([{"uid": "friend"}])), "friend set");
        assert_eq!(owners("Delete", json!([{"uid": "other", "controller": true}])), "other");
        let own = claim("Delete", json!([]))["metadata"]["ownerReferences"][0].clone();
        assert_eq!((&own["kind"], &own["controller"]), (&json!("StatefulSet"), &json!(true)));
    }
}
