//! The volume controller (`pkg/controller/volume/persistentvolume`), as far as it binds: a claim gets a
//! volume that is there. Nothing is provisioned: there are no drivers in a simulated cluster.
//!
//! Both sides are written, the volume first: what was begun is found again from either.

use std::sync::Arc;

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pvc_protection::claims_of;
use crate::apimachinery::labels::{LabelSelector, Selector};
use crate::apimachinery::object::{Object, object_key, split_key};
use crate::apimachinery::pick::pick;
use crate::apimachinery::status::Status;
use crate::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use crate::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use crate::apis::core::pod::PODS;
use crate::apis::kind::Kind;
use crate::apis::resources::amounts;
use crate::apis::storage::storage_class::STORAGE_CLASSES;
use crate::apis::tree::{annotation, at, is_set, object_mut, set, text, texts};
use crate::client_go::ComponentContext;
use crate::client_go::lister::Lister;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Before the name of a volume in the queue; a claim is `namespace/name`.
const VOLUME: &str = "volume:";

/// Binds claims to volumes, and says what became of volumes whose claim is gone.
pub struct VolumeBinder {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
    pods: Lister,
}

impl VolumeBinder {
    /// With its informers.
    pub fn new(ctx: &ComponentContext) -> VolumeBinder {
        VolumeBinder {
            claims: ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister(),
            volumes: ctx.informers.informer(&PERSISTENT_VOLUMES).lister(),
            classes: ctx.informers.informer(&STORAGE_CLASSES).lister(),
            pods: ctx.informers.informer(&PODS).lister(),
        }
    }

    async fn sync_claim(&self, ctx: &Reconcile, claim: &Object) -> Result<(), Status> {
        let tree = claim.to_value();
        if claim.is_deleting() {
            return Ok(());
        }
        if !annotation(&tree, BIND_COMPLETED).is_empty() {
            return self.sync_bound(ctx, claim, &tree).await;
        }
        let volume = match text(&tree, "spec.volumeName") {
            "" => self.find(&tree),
            name => self.volumes.get("", name),
        };
        let Some(volume) = volume else {
            self.tell_why(ctx, claim, &tree);
            return set_phase(ctx, &tree, "Pending").await;
        };
        let is_taken = claimed_by(&volume.to_value()).is_some_and(|key| key != claim.key());
        if is_taken {
            return set_phase(ctx, &tree, "Pending").await;
        }
        bind(ctx, claim, &tree, &volume).await
    }

    /// A claim that was bound once is never bound again.
    async fn sync_bound(&self, ctx: &Reconcile, claim: &Object, tree: &Value) -> Result<(), Status> {
        let is_there = self.volumes.get("", text(tree, "spec.volumeName")).is_some();
        if is_there || text(tree, "status.phase") != "Bound" {
            return Ok(());
        }
        let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, "Warning", "ClaimLost", message);
        set_phase(ctx, tree, "Lost").await
    }

    /// The smallest volume that does (`findBestMatchForClaim`); one that was made for the claim goes first.
    fn find(&self, claim: &Value) -> Option<Arc<Object>> {
        if self.waits_for_consumer(claim) && !self.has_consumer(claim) {
            return None;
        }
        let name = object_key(text(claim, "metadata.namespace"), text(claim, "metadata.name"));
        let volumes: Vec<(Arc<Object>, Value)> =
            self.volumes.all().into_iter().map(|volume| (volume.clone(), volume.to_value())).collect();
        let reserved = volumes.iter().find(|(_, tree)| claimed_by(tree).is_some_and(|key| key == name));
        let fits = |(volume, tree): &&(Arc<Object>, Value)| {
            !volume.is_deleting() && claimed_by(tree).is_none() && matches(tree, volume, claim)
        };
        let size = |(volume, tree): &&(Arc<Object>, Value)| {
            (amounts(tree, "spec.capacity").remove("storage"), volume.metadata.name.clone())
        };
        let found = reserved.or_else(|| volumes.iter().filter(fits).min_by_key(size));
        found.map(|(volume, _)| volume.clone())
    }

    fn waits_for_consumer(&self, claim: &Value) -> bool {
        let class = self.classes.get("", text(claim, "spec.storageClassName"));
        class.is_some_and(|class| text(&class.to_value(), "volumeBindingMode") == "WaitForFirstConsumer")
    }

    /// Upstream's scheduler names the node on the claim before it binds the pod; the one here leaves volumes
    /// alone, so the pod that is bound counts too.
    fn has_consumer(&self, claim: &Value) -> bool {
        let (namespace, name) = (text(claim, "metadata.namespace"), text(claim, "metadata.name"));
        let pods = self.pods.list(namespace, &Selector::everything());
        let uses =
            |pod: &Value| !text(pod, "spec.nodeName").is_empty() && claims_of(pod).any(|claim| claim == name);
        !annotation(claim, SELECTED_NODE).is_empty() || pods.iter().any(|pod| uses(&pod.to_value()))
    }

    fn tell_why(&self, ctx: &Reconcile, claim: &Object, tree: &Value) {
        let class = text(tree, "spec.storageClassName");
        let (event_type, reason, message) = if class.is_empty() {
            let message = "no persistent volumes available for this claim and no storage class is set";
            ("Normal", "FailedBinding", message.to_owned())
        } else if self.waits_for_consumer(tree) {
            let message = "waiting for first consumer to be created before binding";
            ("Normal", "WaitForFirstConsumer", message.to_owned())
        } else {
            match self.classes.get("", class) {
                None => {
                    let message = format!("storageclass.storage.k8s.io {class:?} not found");
                    ("Warning", "ProvisioningFailed", message)
                }
                Some(found) => {
                    let found = found.to_value();
                    let provisioner = text(&found, "provisioner");
                    let message = format!(
                        "Waiting for a volume to be created either by the external provisioner \
                         '{provisioner}' or manually by the system administrator. If volume creation is \
                         delayed, please verify that the provisioner is running and correctly registered."
                    );
                    ("Normal", "ExternalProvisioning", message)
                }
            }
        };
        ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, event_type, reason, message);
    }

    async fn sync_volume(&self, ctx: &Reconcile, volume: &Object) -> Result<(), Status> {
        let tree = volume.to_value();
        let phase = match claimed_by(&tree) {
            None => "Available",
            // Named by whoever made the volume; its claim has not come yet, or is not bound.
            Some(_) if text(&tree, "spec.claimRef.uid").is_empty() => "Available",
            Some(key) => {
                let (namespace, name) = split_key(&key);
                let claim = self.claims.get(namespace, name);
                let uid = text(&tree, "spec.claimRef.uid");
                if claim.is_some_and(|claim| claim.metadata.uid == uid) { "Bound" } else { "Released" }
            }
        };
        if text(&tree, "status.phase") == phase {
            return Ok(());
        }
        set_status(ctx, &PERSISTENT_VOLUMES, tree, json!({"phase": phase})).await
    }
}

impl Controller for VolumeBinder {
    const NAME: &'static str = "persistentvolume-binder";
    const EVENT_SOURCE: &'static str = "persistentvolume-controller";
    const SERVICE_ACCOUNT: &'static str = "persistent-volume-binder";
    /// Two claims never look for a volume at the same time.
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let (claims, unbound) = (self.claims.clone(), self.claims.clone());
        Watches::of(&PERSISTENT_VOLUME_CLAIMS)
            .maps(&PERSISTENT_VOLUMES, move |change: &Change<'_>, enqueue: &Enqueue| {
                enqueue.now(format!("{VOLUME}{}", change.object().metadata.name));
                // A volume that came may be what a claim waits for.
                for claim in claims.all() {
                    if annotation(&claim.to_value(), BIND_COMPLETED).is_empty() {
                        enqueue.now(claim.key());
                    }
                }
            })
            .maps(&PERSISTENT_VOLUME_CLAIMS, |change: &Change<'_>, enqueue: &Enqueue| {
                let volume = text(&change.object().to_value(), "spec.volumeName").to_owned();
                if !volume.is_empty() {
                    enqueue.now(format!("{VOLUME}{volume}"));
                }
            })
            .maps(&PODS, move |change: &Change<'_>, enqueue: &Enqueue| {
                let Change::Updated { old, new } = change else { return };
                let is_bound = |pod: &Object| !pick(pod.stored(), &["spec.nodeName"])[0].is_empty();
                if unbound.all().is_empty() || is_bound(old) || !is_bound(new) {
                    return;
                }
                for claim in claims_of(&new.to_value()) {
                    enqueue.now(object_key(&new.metadata.namespace, &claim));
                }
            })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let outcome = match key.strip_prefix(VOLUME) {
            Some(name) => match self.volumes.get("", name) {
                Some(volume) => self.sync_volume(ctx, &volume).await,
                None => Ok(()),
            },
            None => {
                let (namespace, name) = split_key(key);
                match self.claims.get(namespace, name) {
                    Some(claim) => self.sync_claim(ctx, &claim).await,
                    None => Ok(()),
                }
            }
        };
        match outcome {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

/// The key of the claim that a volume is bound to or kept for.
fn claimed_by(volume: &Value) -> Option<String> {
    let claim = at(volume, "spec.claimRef");
    (!claim.is_null()).then(|| object_key(text(claim, "namespace"), text(claim, "name")))
}

fn matches(volume: &Value, object: &Object, claim: &Value) -> bool {
    let mode = |tree: &Value| match text(tree, "spec.volumeMode") {
        "" => "Filesystem".to_owned(),
        mode => mode.to_owned(),
    };
    let modes = texts(volume, "spec.accessModes");
    let selector = at(claim, "spec.selector");
    let is_selected = selector.is_null()
        || serde_json::from_value::<LabelSelector>(selector.clone())
            .ok()
            .and_then(|selector| selector.selector().ok())
            .is_some_and(|selector| selector.matches(&object.metadata.labels));
    let capacity = amounts(volume, "spec.capacity").remove("storage").unwrap_or_default();
    let wanted = amounts(claim, "spec.resources.requests").remove("storage").unwrap_or_default();
    text(volume, "spec.storageClassName") == text(claim, "spec.storageClassName")
        && text(volume, "spec.volumeAttributesClassName") == text(claim, "spec.volumeAttributesClassName")
        && mode(volume) == mode(claim)
        && texts(claim, "spec.accessModes").iter().all(|mode| modes.contains(mode))
        && is_selected
        && capacity >= wanted
}

async fn bind(ctx: &Reconcile, claim: &Object, tree: &Value, volume: &Object) -> Result<(), Status> {
    let metadata = &claim.metadata;
    let mut new = volume.to_value();
    if text(&new, "spec.claimRef.uid") != metadata.uid {
        if !is_set(&new, "spec.claimRef") {
            object_mut(&mut new, "metadata.annotations").insert(BOUND_BY_CONTROLLER.into(), "yes".into());
        }
        let reference = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": metadata.name,
            "namespace": metadata.namespace, "uid": metadata.uid,
            "resourceVersion": metadata.resource_version.to_string()});
        set(&mut new, "spec.claimRef", reference);
        let name = &volume.metadata.name;
        new = ctx.client.update(&PERSISTENT_VOLUMES, "", name, new).await?.to_value();
    }
    set_status(ctx, &PERSISTENT_VOLUMES, new.clone(), json!({"phase": "Bound"})).await?;
    let mut bound = tree.clone();
    let annotations = object_mut(&mut bound, "metadata.annotations");
    annotations.insert(BIND_COMPLETED.into(), "yes".into());
    if text(tree, "spec.volumeName").is_empty() {
        annotations.insert(BOUND_BY_CONTROLLER.into(), "yes".into());
    }
    set(&mut bound, "spec.volumeName", volume.metadata.name.as_str());
    let (kind, namespace) = (&PERSISTENT_VOLUME_CLAIMS, &metadata.namespace);
    let bound = ctx.client.update(kind, namespace, &metadata.name, bound).await?.to_value();
    let status = json!({"phase": "Bound", "accessModes": at(&new, "spec.accessModes"),
        "capacity": at(&new, "spec.capacity")});
    set_status(ctx, kind, bound, status).await
}

async fn set_phase(ctx: &Reconcile, claim: &Value, phase: &str) -> Result<(), Status> {
    if text(claim, "status.phase") == phase {
        return Ok(());
    }
    set_status(ctx, &PERSISTENT_VOLUME_CLAIMS, claim.clone(), json!({"phase": phase})).await
}

/// Changes these members of an object's status.
async fn set_status(ctx: &Reconcile, kind: &Kind, mut tree: Value, status: Value) -> Result<(), Status> {
    let members = status.as_object().cloned().unwrap_or_default();
    object_mut(&mut tree, "status").extend(members);
    let (namespace, name) = (text(&tree, "metadata.namespace"), text(&tree, "metadata.name"));
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    ctx.client.update_status(kind, &namespace, &name, tree).await.map(drop)
}
