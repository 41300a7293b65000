//! Who controls an object, and taking or giving up that control (`controller.BaseControllerRefManager`).

use std::sync::Arc;

use serde_json::{Value, json};

use apimachinery::labels::Selector;
use apimachinery::object::{Object, OwnerReference};
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::kind::Kind;
use client_go::client::Client;
use client_go::lister::Lister;

/// The index that finds the objects that a controller may claim (upstream's `PodControllerIndex`): those of a
/// uid, and the orphans of a namespace. Without it each sync would read the whole namespace.
pub(crate) const CONTROLLER_INDEX: &str = "controllerUID";

/// The values of [`CONTROLLER_INDEX`] for an object.
pub(crate) fn controller_index(object: &Object) -> Vec<String> {
    match object.controller() {
        Some(owner) => vec![owner.uid.clone()],
        None => vec![orphans_of(&object.metadata.namespace)],
    }
}

/// `metav1.NewControllerRef`.
pub(crate) fn controller_reference(owner: &Object, kind: &Kind) -> OwnerReference {
    OwnerReference {
        api_version: kind.api_version(),
        kind: kind.kind.to_string(),
        name: owner.metadata.name.clone(),
        uid: owner.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether `object` is controlled by `owner`.
pub(crate) fn is_controlled_by(object: &Object, owner: &Object) -> bool {
    object.controller().is_some_and(|reference| reference.uid == owner.metadata.uid)
}

/// Claims objects of one kind for one owner: adopts the orphans that its selector matches, releases those of
/// its own that it no longer matches.
pub(crate) struct ControllerRefManager<'a> {
    /// Writes the references.
    pub client: &'a Client,
    /// Who claims.
    pub owner: &'a Object,
    /// What it is.
    pub owner_kind: &'a Kind,
    /// What is claimed.
    pub kind: &'a Kind,
    /// What it should have.
    pub selector: &'a Selector,
}

impl ControllerRefManager<'_> {
    /// All that is, or becomes, the owner's among what `lister` has under [`CONTROLLER_INDEX`]. Orphans for
    /// which `adoptable` is false are left alone.
    pub(crate) async fn claim(
        &self,
        lister: &Lister,
        adoptable: impl Fn(&Object) -> bool,
    ) -> Result<Vec<Arc<Object>>, Status> {
        self.claim_with(lister, adoptable, None).await
    }

    /// Claims as `claim` does; who is adopted gets a finalizer, who is released loses it.
    pub(crate) async fn claim_with_finalizer(
        &self,
        lister: &Lister,
        adoptable: impl Fn(&Object) -> bool,
        finalizer: &str,
    ) -> Result<Vec<Arc<Object>>, Status> {
        self.claim_with(lister, adoptable, Some(finalizer)).await
    }

    async fn claim_with(
        &self,
        lister: &Lister,
        adoptable: impl Fn(&Object) -> bool,
        finalizer: Option<&str>,
    ) -> Result<Vec<Arc<Object>>, Status> {
        let mut claimed = Vec::new();
        for object in lister.by_index(CONTROLLER_INDEX, &self.owner.metadata.uid) {
            if self.matches(&object) {
                claimed.push(object);
            } else if !self.owner.is_deleting() {
                self.release(&object, finalizer).await?;
            }
        }
        if self.owner.is_deleting() {
            return Ok(claimed);
        }
        let orphans = lister.by_index(CONTROLLER_INDEX, &orphans_of(&self.owner.metadata.namespace));
        let wanted =
            |orphan: &Arc<Object>| self.matches(orphan) && !orphan.is_deleting() && adoptable(orphan);
        let wanted: Vec<_> = orphans.into_iter().filter(wanted).collect();
        if !wanted.is_empty() {
            self.recheck_owner().await?;
        }
        for orphan in wanted {
            if self.adopt(&orphan, finalizer).await? {
                claimed.push(orphan);
            }
        }
        Ok(claimed)
    }

    fn matches(&self, object: &Object) -> bool {
        self.selector.matches(&object.metadata.labels)
    }

    /// The cache may not know yet that the owner is being deleted; an orphan that it takes now would be lost
    /// with it.
    async fn recheck_owner(&self) -> Result<(), Status> {
        let metadata = &self.owner.metadata;
        let fresh = self.client.get(self.owner_kind, &metadata.namespace, &metadata.name).await?;
        let kind = &self.owner_kind.kind;
        if fresh.metadata.uid != metadata.uid {
            let (got, wanted) = (&fresh.metadata.uid, &metadata.uid);
            let key = self.owner.key();
            return Err(Status::internal(format!(
                "original {kind} {key} is gone: got uid {got}, wanted {wanted}"
            )));
        }
        match fresh.metadata.deletion_timestamp {
            None => Ok(()),
            Some(time) => {
                let key = self.owner.key();
                Err(Status::internal(format!("can't adopt: {key} has just been deleted at {time}")))
            }
        }
    }

    /// False when the orphan is gone.
    async fn adopt(&self, orphan: &Object, finalizer: Option<&str>) -> Result<bool, Status> {
        let reference = controller_reference(self.owner, self.owner_kind);
        let mut patch = json!({"metadata": {"ownerReferences": [reference], "uid": orphan.metadata.uid}});
        if let Some(finalizer) = finalizer {
            patch["metadata"]["finalizers"] = json!([finalizer]);
        }
        match self.patch(orphan, &patch).await {
            Err(error) if error.is_not_found() => Ok(false),
            other => other.map(|()| true),
        }
    }

    async fn release(&self, object: &Object, finalizer: Option<&str>) -> Result<(), Status> {
        let reference = json!({"$patch": "delete", "uid": self.owner.metadata.uid});
        let mut patch = json!({"metadata": {"ownerReferences": [reference], "uid": object.metadata.uid}});
        if let Some(finalizer) = finalizer {
            patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([finalizer]);
        }
        match self.patch(object, &patch).await {
            // It is gone, or it was released and changed owners meanwhile (the uid or the reference is not
            // there).
            Err(error) if error.is_not_found() || error.is("Invalid") => Ok(()),
            other => other,
        }
    }

    async fn patch(&self, object: &Object, patch: &Value) -> Result<(), Status> {
        let metadata = &object.metadata;
        let patched = self.client.patch(
            self.kind,
            &metadata.namespace,
            &metadata.name,
            PatchType::StrategicMerge,
            patch,
        );
        patched.await.map(drop)
    }
}

/// No uid has a slash in it, so these cannot meet.
fn orphans_of(namespace: &str) -> String {
    format!("orphans/{namespace}")
}
