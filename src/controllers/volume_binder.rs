//! The volume controller (`pkg/controller/volume/persistentvolume`): a claim gets a volume that is there, or
//! a provisioner is asked to make one.
//!
//! Both sides are written, the volume first: what was begun is found again from either.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::options::ControllerManagerOptions;
use super::pod_state::pods_with_claim;
use super::volume_counts::VolumeCounts;
use super::volume_fit::{self, Reclaim};
use super::volume_recycler::VolumeRecycler;
use super::volume_writes::{
    bind, give_class, lose, release, set_bound, set_phase, set_status, set_volume_phase, unbind,
};
use apimachinery::object::{Object, object_key, split_key};
use apimachinery::pick::pick;
use apimachinery::status::Status;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::storage::storage_class::STORAGE_CLASSES;
use apis::tree::{annotation, at, object_mut, text};
use apis::views::pod::Pod;
use apis::volumes::{
    BETA_STORAGE_PROVISIONER, BIND_COMPLETED, NO_PROVISIONER, PROVISIONED_BY, SELECTED_NODE,
    STORAGE_PROVISIONER, VolumeObject, claimed_by, find_matching,
};
use client_go::ComponentContext;
use client_go::lister::Lister;

/// Before the name of a volume in the queue; a claim is `namespace/name`.
const VOLUME: &str = "volume:";
/// What makes a class the default one.
const DEFAULT_MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// Where claims named their class in an older time.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Binds claims to volumes, and says what became of volumes whose claim is gone.
pub(crate) struct VolumeBinder {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
    pods: Lister,
    recycler: VolumeRecycler,
    sync_period: Duration,
}

impl VolumeBinder {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext, options: &ControllerManagerOptions) -> VolumeBinder {
        let claims = ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister();
        let volumes = ctx.informers.informer(&PERSISTENT_VOLUMES).lister();
        let counts = VolumeCounts { volumes: volumes.clone(), claims: claims.clone() };
        ctx.metrics.add("pv-collector", Arc::new(counts));
        let pods = ctx.informers.informer(&PODS).lister();
        let sync_period = options.pvclaimbinder_sync_period;
        VolumeBinder {
            recycler: VolumeRecycler::new(claims.clone(), pods.clone(), sync_period),
            claims,
            volumes,
            classes: ctx.informers.informer(&STORAGE_CLASSES).lister(),
            pods,
            sync_period,
        }
    }

    /// A claim that waits is looked at again though nothing has changed
    /// (`PersistentVolumeController.resync`); nothing more can become of others unless something does.
    fn look_again(&self, key: &Key) -> Action {
        let (namespace, name) = split_key(key);
        let claim = self.claims.get(namespace, name).filter(|claim| !claim.is_deleting());
        let waits = claim.is_some_and(|claim| text(&claim.to_value(), "status.phase") == "Pending");
        if waits { Action::RequeueAfter(self.sync_period) } else { Action::Done }
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
            if !text(&tree, "spec.volumeName").is_empty() {
                // The volume that it asks for may still come; nobody is to make another.
                return set_phase(ctx, &tree, "Pending").await;
            }
            if let Some(class) = self.late_class(&tree) {
                return give_class(ctx, tree, &class).await;
            }
            self.tell_why(ctx, claim, &tree);
            let asked = self.ask_provisioner(ctx, claim, &tree).await?;
            return set_phase(ctx, &asked, "Pending").await;
        };
        if let Some((reason, message)) = refusal(claim, &tree, &volume) {
            ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, "Warning", reason, message);
            return set_phase(ctx, &tree, "Pending").await;
        }
        bind(ctx, claim, &tree, &volume).await
    }

    /// A claim that was bound once is never bound to another volume; its own one gets it back.
    async fn sync_bound(&self, ctx: &Reconcile, claim: &Object, tree: &Value) -> Result<(), Status> {
        let (name, phase) = (text(tree, "spec.volumeName"), text(tree, "status.phase"));
        // Who binds it by himself, as Stages of kwok's do, names the volume next.
        if name.is_empty() && phase == "Pending" {
            return Ok(());
        }
        let is_its = |of: &Value| text(of, "spec.claimRef.uid") == claim.metadata.uid;
        let mut volume = self.volumes.get("", name);
        if !name.is_empty() && !volume.as_ref().is_some_and(|volume| is_its(&volume.to_value())) {
            // What the cache has not heard of yet is not lost.
            volume = ctx.client.find(&PERSISTENT_VOLUMES, "", name).await?;
        }
        let Some(volume) = volume else {
            let what = if name.is_empty() { "reference to PersistentVolume" } else { "its PersistentVolume" };
            let message = format!("Bound claim has lost {what}. Data on the volume is lost!");
            return lose(ctx, claim, tree, "ClaimLost", &message).await;
        };
        let of = volume.to_value();
        if claimed_by(&of).is_none() {
            return bind(ctx, claim, tree, &volume).await;
        }
        if !is_its(&of) {
            let message = "Two claims are bound to the same volume, this one is bound incorrectly";
            return lose(ctx, claim, tree, "ClaimMisbound", message).await;
        }
        let modes = at(&of, "spec.accessModes");
        match phase {
            "Bound" if at(tree, "status.accessModes") == modes => Ok(()),
            "Bound" => {
                let status = json!({"accessModes": modes});
                set_status(ctx, &PERSISTENT_VOLUME_CLAIMS, tree.clone(), status).await
            }
            _ => set_bound(ctx, tree.clone(), &of).await,
        }
    }

    /// One that is kept for the claim, or else the smallest that does; but for a claim that waits for its
    /// first consumer the scheduler chooses, until it says where a volume is to be made.
    fn find(&self, claim: &Value) -> Option<Arc<Object>> {
        let volumes = self.volumes.all().into_iter();
        let volumes = volumes.map(|volume| (volume.clone(), volume.to_value()));
        let key = object_key(text(claim, "metadata.namespace"), text(claim, "metadata.name"));
        let is_candidate = |(_, tree): &VolumeObject| {
            !self.waits_for_consumer(claim) || claimed_by(tree).is_some_and(|of| of == key)
        };
        find_matching(&volumes.filter(is_candidate).collect::<Vec<_>>(), claim, None)
    }

    /// The default class, for a claim that came when there was none (`assignDefaultStorageClass`); the newest
    /// of several.
    fn late_class(&self, claim: &Value) -> Option<String> {
        let is_free =
            at(claim, "spec.storageClassName").is_null() && text(claim, "spec.volumeName").is_empty();
        if !is_free || !annotation(claim, BETA_CLASS).is_empty() {
            return None;
        }
        let classes = self.classes.all();
        let defaults = classes.iter().filter(|class| is_default(&class.to_value()));
        let newest = defaults.max_by_key(|class| {
            (class.metadata.creation_timestamp, std::cmp::Reverse(class.metadata.name.clone()))
        });
        newest.map(|class| class.metadata.name.to_string())
    }

    /// A claim for which a node was selected waits no longer (`ShouldDelayBinding`).
    fn waits_for_consumer(&self, claim: &Value) -> bool {
        let class = self.classes.get("", text(claim, "spec.storageClassName"));
        let mode = class.map(|class| text(&class.to_value(), "volumeBindingMode").to_owned());
        mode.is_some_and(|mode| mode == "WaitForFirstConsumer") && annotation(claim, SELECTED_NODE).is_empty()
    }

    /// The pods that use the claim and have no node yet (`findNonScheduledPodsByPVC`).
    fn waiting_pods(&self, claim: &Object) -> Vec<String> {
        let waits = |pod: &Arc<Object>| {
            let view = pod.view::<Pod>();
            view.spec.node_name.is_empty() && !view.is_terminal()
        };
        let users = pods_with_claim(&self.pods, &claim.metadata.namespace, &claim.metadata.name);
        users.iter().filter(|pod| waits(pod)).map(|pod| pod.metadata.name.clone()).collect()
    }

    /// Says who is to make the volume (`setClaimProvisioner`): that is what provisioners look for.
    async fn ask_provisioner(&self, ctx: &Reconcile, claim: &Object, tree: &Value) -> Result<Value, Status> {
        let class = self.classes.get("", text(tree, "spec.storageClassName"));
        let class = class.map(|class| class.to_value()).unwrap_or_default();
        let provisioner = text(&class, "provisioner");
        let is_asked = annotation(tree, STORAGE_PROVISIONER) == provisioner;
        if matches!(provisioner, "" | NO_PROVISIONER) || is_asked || self.waits_for_consumer(tree) {
            return Ok(tree.clone());
        }
        let mut asked = tree.clone();
        let annotations = object_mut(&mut asked, "metadata.annotations");
        for name in [STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER] {
            annotations.insert(name.into(), provisioner.into());
        }
        let (kind, metadata) = (&PERSISTENT_VOLUME_CLAIMS, &claim.metadata);
        let asked = ctx.client.update(kind, &metadata.namespace, &metadata.name, asked).await?;
        Ok(asked.to_value())
    }

    fn tell_why(&self, ctx: &Reconcile, claim: &Object, tree: &Value) {
        let class = text(tree, "spec.storageClassName");
        let (event_type, reason, message) = if class.is_empty() {
            let message = "no persistent volumes available for this claim and no storage class is set";
            ("Normal", "FailedBinding", message.to_owned())
        } else if self.waits_for_consumer(tree) {
            match self.waiting_pods(claim).as_slice() {
                [] => {
                    let message = "waiting for first consumer to be created before binding";
                    ("Normal", "WaitForFirstConsumer", message.to_owned())
                }
                [only] => {
                    let message = format!("waiting for pod {only} to be scheduled");
                    ("Normal", "WaitForPodScheduled", message)
                }
                many => {
                    let message = format!("waiting for pods {} to be scheduled", many.join(","));
                    ("Normal", "WaitForPodScheduled", message)
                }
            }
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

    /// The claim of a volume. The cache may not have heard of it yet, and on what it says a volume may be
    /// deleted: whoever is missing there is asked for.
    async fn live_claim(&self, ctx: &Reconcile, volume: &Value) -> Result<Option<Arc<Object>>, Status> {
        let Some(key) = claimed_by(volume) else { return Ok(None) };
        let is_its = |claim: &Arc<Object>| claim.metadata.uid == text(volume, "spec.claimRef.uid");
        let (namespace, name) = split_key(&key);
        let known = self.claims.get(namespace, name).filter(is_its);
        if known.is_some() || matches!(text(volume, "status.phase"), "Released" | "Failed") {
            return Ok(known);
        }
        let found = ctx.client.find(&PERSISTENT_VOLUME_CLAIMS, namespace, name).await?;
        Ok(found.filter(is_its))
    }

    async fn sync_volume(&self, ctx: &Reconcile, volume: &Object) -> Result<Action, Status> {
        let tree = volume.to_value();
        if is_recycled(volume, &tree) && self.live_claim(ctx, &tree).await?.is_none() {
            return self.recycler.recycle(ctx, volume, tree).await;
        }
        self.recycler.leave(ctx, &volume.metadata.name).await?;
        self.sync_kept(ctx, volume, tree).await.map(|()| Action::Done)
    }

    /// A volume that nobody has to empty.
    async fn sync_kept(&self, ctx: &Reconcile, volume: &Object, tree: Value) -> Result<(), Status> {
        // One that is kept for a claim by who made it is no claim's yet.
        if text(&tree, "spec.claimRef.uid").is_empty() {
            return set_volume_phase(ctx, tree, "Available").await;
        }
        let Some(claim) = self.live_claim(ctx, &tree).await? else {
            return release(ctx, volume, tree).await;
        };
        let of = claim.to_value();
        let named = text(&of, "spec.volumeName");
        if named == volume.metadata.name {
            return set_volume_phase(ctx, tree, "Bound").await;
        }
        if named.is_empty() {
            if volume_fit::has_other_mode(&tree, &of) {
                let name = &claim.metadata.name;
                let message = format!(
                    "Cannot bind PersistentVolume to requested PersistentVolumeClaim {name:?} due to \
                     incompatible volumeMode."
                );
                ctx.event(&PERSISTENT_VOLUMES, volume, "Warning", "VolumeMismatch", message);
            }
            // The rest is the claim's.
            return Ok(());
        }
        // The claim has another: what was made for it is not needed, and what was there is free.
        let is_made = !annotation(&tree, PROVISIONED_BY).is_empty();
        if is_made && text(&tree, "spec.persistentVolumeReclaimPolicy") == "Delete" {
            return release(ctx, volume, tree).await;
        }
        unbind(ctx, volume, tree).await
    }
}

impl Controller for VolumeBinder {
    const NAME: &'static str = "persistentvolume-binder";
    const EVENT_SOURCE: &'static str = "persistentvolume-controller";
    const SERVICE_ACCOUNT: &'static str = "persistent-volume-binder";
    /// Two claims never look for a volume at the same time.
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let (claims, for_class) = (self.claims.clone(), self.claims.clone());
        Watches::of(&PERSISTENT_VOLUME_CLAIMS)
            .maps(&PERSISTENT_VOLUMES, move |change: &Change<'_>, enqueue: &Enqueue| {
                let volume = &change.object().metadata.name;
                enqueue.now(format!("{VOLUME}{volume}"));
                // It may be what a claim waits for, or what one has had.
                for claim in claims.all() {
                    let is_bound = claim.mentions(BIND_COMPLETED);
                    if !is_bound || pick(&claim.stored(), &["spec.volumeName"])[0] == volume.as_str() {
                        enqueue.now(claim.key());
                    }
                }
            })
            .maps(&STORAGE_CLASSES, move |change: &Change<'_>, enqueue: &Enqueue| {
                if is_default(&change.object().to_value()) {
                    let waits =
                        |claim: &Arc<Object>| at(&claim.to_value(), "spec.storageClassName").is_null();
                    for claim in for_class.all().iter().filter(|claim| waits(claim)) {
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
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let outcome = match key.strip_prefix(VOLUME) {
            Some(name) => match self.volumes.get("", name) {
                Some(volume) => self.sync_volume(ctx, &volume).await,
                None => self.recycler.leave(ctx, name).await.map(|()| Action::Done),
            },
            None => {
                let (namespace, name) = split_key(key);
                let synced = match self.claims.get(namespace, name) {
                    Some(claim) => self.sync_claim(ctx, &claim).await,
                    None => Ok(()),
                };
                synced.map(|()| self.look_again(key))
            }
        };
        match outcome {
            Err(status) if status.is_not_found() && key.starts_with(VOLUME) => Ok(Action::Done),
            Err(status) if status.is_not_found() => Ok(self.look_again(key)),
            outcome => outcome,
        }
    }
}

/// Why a claim does not get the volume that it names, or that is kept for it: the reason and the message of
/// an Event.
fn refusal(claim: &Object, tree: &Value, volume: &Object) -> Option<(&'static str, String)> {
    let (of, name) = (volume.to_value(), &volume.metadata.name);
    let mismatch = |why: String| ("VolumeMismatch", why);
    match claimed_by(&of) {
        Some(key) if key != claim.key() => {
            Some(("FailedBinding", format!("volume {name:?} already bound to a different claim.")))
        }
        Some(_) if volume_fit::has_other_mode(&of, tree) => Some(mismatch(format!(
            "Cannot bind PersistentVolume {name:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
        ))),
        None if !text(tree, "spec.volumeName").is_empty() => {
            let why = volume_fit::mismatch(&of, tree)?;
            Some(mismatch(format!("Cannot bind to requested volume {name:?}: {why}")))
        }
        _ => None,
    }
}

/// Whether a volume is to be emptied as soon as its claim is gone.
fn is_recycled(volume: &Object, tree: &Value) -> bool {
    let was_claimed = !text(tree, "spec.claimRef.uid").is_empty();
    was_claimed && !volume.is_deleting() && volume_fit::reclaim(tree) == Reclaim::Recycle
}

fn is_default(class: &Value) -> bool {
    DEFAULT_MARKS.iter().any(|mark| annotation(class, mark) == "true")
}
