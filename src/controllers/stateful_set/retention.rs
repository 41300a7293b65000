//! What becomes of the claims when the set shrinks or goes (`persistentVolumeClaimRetentionPolicy`): a claim
//! that shall go with the set is owned by the set, one that shall go with its pod by the pod, once the pod is
//! condemned; the garbage collector does the rest.

use super::StatefulSetController;
use super::claims::find_claim;
use super::identity::ordinal;
use super::work::StatefulSetWork;
use crate::controller::Reconcile;
use crate::controller_ref::controller_reference;
use apimachinery::object::{Object, OwnerReference};
use apimachinery::status::Status;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::kind::Kind;

/// A pod, its set, and who should own the pod's claims.
struct ClaimOwners<'a> {
    work: &'a StatefulSetWork,
    pod: &'a Object,
}

impl StatefulSetController {
    /// Whether the claims of a pod are owned as the policy has it; claims that are missing are no matter.
    pub(super) fn claims_match_policy(&self, work: &StatefulSetWork, pod: &Object) -> bool {
        let owners = ClaimOwners { work, pod };
        let templates = &work.view.spec.volume_claim_templates;
        let mut claims =
            templates.iter().filter_map(|template| find_claim(&self.claims, work, template, ordinal(pod)));
        claims.all(|claim| owners.are_right(&claim))
    }

    /// Sees to it that they are (`UpdatePodClaimForRetentionPolicy`).
    pub(super) async fn apply_policy(
        &self,
        ctx: &Reconcile,
        work: &StatefulSetWork,
        pod: &Object,
    ) -> Result<(), Status> {
        let owners = ClaimOwners { work, pod };
        for template in &work.view.spec.volume_claim_templates {
            let Some(claim) = find_claim(&self.claims, work, template, ordinal(pod)) else { continue };
            let name = &claim.metadata.name;
            if owners.is_controlled_by_another(&claim) {
                let message = format!(
                    "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging \
                     controller, the retention policy is ignored for this claim"
                );
                work.event(ctx, "Warning", "ConflictingController", message);
            }
            if owners.are_right(&claim) {
                continue;
            }
            let mut tree = claim.to_value();
            tree["metadata"]["ownerReferences"] = serde_json::json!(owners.wanted(&claim));
            let updated = ctx.client.update(&PERSISTENT_VOLUME_CLAIMS, work.namespace(), name, tree).await;
            updated.map_err(|error| {
                Status::internal(format!(
                    "could not update claim {name} for delete policy ownerRefs: {error}"
                ))
            })?;
        }
        Ok(())
    }

    /// Whether a claim of a pod that is to be created still goes with its predecessor: it must be gone first.
    pub(super) fn has_stale_claim(&self, work: &StatefulSetWork, pod: &str, ordinal: i64) -> bool {
        let of_pod = |reference: &OwnerReference| is_of(reference, &PODS, pod);
        let is_stale = |claim: &Object| claim.metadata.owner_references.iter().any(of_pod);
        let templates = &work.view.spec.volume_claim_templates;
        let mut claims =
            templates.iter().filter_map(|template| find_claim(&self.claims, work, template, ordinal));
        work.view.deletes_claims_when_scaled() && claims.any(|claim| is_stale(&claim))
    }
}

impl ClaimOwners<'_> {
    /// Claims that somebody else manages, or that were left by a set or pod of the same name, are let alone.
    fn are_right(&self, claim: &Object) -> bool {
        let references = &claim.metadata.owner_references;
        if references.iter().any(|reference| self.is_stale(reference)) {
            return true;
        }
        if self.is_controlled_by_another(claim) {
            return !references.iter().any(|reference| self.is_ours(reference));
        }
        let mut ours = references.iter().filter(|reference| self.is_ours(reference));
        if ours.any(|reference| reference.controller != Some(true)) {
            return false;
        }
        let owned_by = |owner: &Object| references.iter().any(|it| it.uid == owner.metadata.uid);
        owned_by(&self.work.object) == self.belongs_to_set() && owned_by(self.pod) == self.belongs_to_pod()
    }

    fn wanted(&self, claim: &Object) -> Vec<OwnerReference> {
        let mut references = claim.metadata.owner_references.clone();
        references.retain(|reference| !self.is_by_name(reference));
        if self.is_controlled_by_another(claim) {
            return references;
        }
        if self.belongs_to_set() {
            references.push(controller_reference(&self.work.object, &STATEFUL_SETS));
        }
        if self.belongs_to_pod() {
            references.push(controller_reference(self.pod, &PODS));
        }
        references
    }

    fn belongs_to_set(&self) -> bool {
        let view = &self.work.view;
        view.deletes_claims() && !(view.deletes_claims_when_scaled() && self.is_condemned())
    }

    fn belongs_to_pod(&self) -> bool {
        self.work.view.deletes_claims_when_scaled() && self.is_condemned()
    }

    fn is_condemned(&self) -> bool {
        !self.work.view.wants(ordinal(self.pod))
    }

    /// With nothing to delete, it does not matter who manages the claim.
    fn is_controlled_by_another(&self, claim: &Object) -> bool {
        let view = &self.work.view;
        let is_foreign = |reference: &OwnerReference| {
            if self.is_by_name(reference) {
                self.is_stale(reference)
            } else {
                reference.controller == Some(true)
            }
        };
        (view.deletes_claims() || view.deletes_claims_when_scaled())
            && claim.metadata.owner_references.iter().any(is_foreign)
    }

    fn is_by_name(&self, reference: &OwnerReference) -> bool {
        is_of(reference, &STATEFUL_SETS, self.work.name()) || is_of(reference, &PODS, &self.pod.metadata.name)
    }

    fn is_ours(&self, reference: &OwnerReference) -> bool {
        [&self.pod.metadata.uid, &self.work.object.metadata.uid].contains(&&reference.uid)
    }

    fn is_stale(&self, reference: &OwnerReference) -> bool {
        self.is_by_name(reference) && !self.is_ours(reference)
    }
}

fn is_of(reference: &OwnerReference, kind: &Kind, name: &str) -> bool {
    reference.api_version == kind.api_version() && *reference.kind == *kind.kind && reference.name == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::labels::Selector;
    use apis::views::stateful_set::StatefulSet;
    use chrono::DateTime;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn object(name: &str, uid: &str, owners: Value) -> Object {
        let tree = json!({"metadata": {"name": name, "uid": uid, "ownerReferences": owners}});
        Object::from_value(&tree, vec![]).unwrap()
    }

    fn work(when_deleted: &str, when_scaled: &str) -> StatefulSetWork {
        let policy = json!({"whenDeleted": when_deleted, "whenScaled": when_scaled});
        let spec = json!({"replicas": 1, "persistentVolumeClaimRetentionPolicy": policy});
        StatefulSetWork {
            object: Arc::new(object("web", "set", json!([]))),
            view: Arc::new(StatefulSet::deserialize(json!({"spec": spec})).unwrap()),
            selector: Selector::everything(),
            now: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn claims_belong_to_whom_they_shall_go_with() {
        let cases = [
            ("Retain", "Retain", "web-0", ""),
            ("Delete", "Retain", "web-0", "set"),
            ("Delete", "Retain", "web-5", "set"),
            ("Retain", "Delete", "web-0", ""),
            ("Retain", "Delete", "web-5", "pod"),
            ("Delete", "Delete", "web-0", "set"),
            ("Delete", "Delete", "web-5", "pod"),
        ];
        for (when_deleted, when_scaled, pod, expected) in cases {
            let (work, pod) = (work(when_deleted, when_scaled), object(pod, "pod", json!([])));
            let owners = ClaimOwners { work: &work, pod: &pod };
            let claim = object("data", "claim", json!([]));
            let wanted = owners.wanted(&claim);
            let uids: Vec<&str> = wanted.iter().map(|reference| reference.uid.as_str()).collect();
            assert_eq!(uids.join(" "), expected, "{when_deleted} {when_scaled}");
            assert_eq!(owners.are_right(&claim), expected.is_empty());
            assert!(owners.are_right(&object("data", "claim", json!(wanted))));
        }
    }

    #[test]
    fn claims_of_others_are_let_alone() {
        let (work, pod) = (work("Delete", "Delete"), object("web-0", "pod", json!([])));
        let owners = ClaimOwners { work: &work, pod: &pod };
        let reference = |kind: &str, name: &str, uid: &str| {
            let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
            json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true})
        };
        for other in [
            reference("StatefulSet", "web", "former"),
            reference("Pod", "web-0", "former"),
            reference("Deployment", "else", "else"),
        ] {
            assert!(owners.are_right(&object("data", "claim", json!([other]))), "{other}");
        }
        let both = json!([reference("Deployment", "else", "else"), reference("StatefulSet", "web", "set")]);
        let claim = object("data", "claim", both);
        assert!(!owners.are_right(&claim));
        assert_eq!(owners.wanted(&claim).len(), 1);
    }
}
