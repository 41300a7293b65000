//! The attach and detach controller (`pkg/controller/volume/attachdetach`): volumes of CSI drivers come to
//! the nodes whose pods use them, and leave the others.
//!
//! What should be is read from pods, claims and volumes; what is, from VolumeAttachments. A node's kubelet
//! waits until the node's status says that a volume is attached, and says there itself what it uses: that
//! is never detached from a node that is well. A key is the name of a PersistentVolume.

mod attachable;
pub(crate) mod attacher;
mod node_status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sync::Mutex;

use self::attachable::{AttachableVolume, VolumeUsers, multi_attach_message};
use self::node_status::{MAX_WAIT_FOR_UNMOUNT, NodeVolumes};
use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::volume_counts::AttachmentCounts;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::storage::csi::CSI_DRIVERS;
use apis::storage::volume_attachment::VOLUME_ATTACHMENTS;
use apis::tree::{flag, text, texts};
use apis::views::pod::Pod;
use client_go::ComponentContext;
use client_go::lister::Lister;

/// Attaches and detaches.
pub(crate) struct AttachDetachController {
    pods: Lister,
    claims: Lister,
    volumes: Lister,
    attachments: Lister,
    drivers: Lister,
    nodes: Lister,
    /// Since when attachments are to go, by volume and node. Bound: the attachments that there are; forgotten
    /// when they go or are wanted again.
    leaving: Mutex<BTreeMap<(String, String), Duration>>,
    /// Volumes and the nodes whose pods were told that another node has them. Bound: nodes with such pods,
    /// forgotten when they get the volume or want it no more.
    told: Mutex<BTreeSet<(String, String)>>,
    counts: Arc<AttachmentCounts>,
}

/// The attachments of a volume by their nodes.
type Attachments = BTreeMap<String, Arc<Object>>;

impl AttachDetachController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> AttachDetachController {
        let lister = |kind| ctx.informers.informer(kind).lister();
        let counts = Arc::new(AttachmentCounts {
            volumes: lister(&PERSISTENT_VOLUMES),
            claims: lister(&PERSISTENT_VOLUME_CLAIMS),
            pods: lister(&PODS),
            attachments: lister(&VOLUME_ATTACHMENTS),
            forced: AttachmentCounts::forced(),
        });
        ctx.metrics.add("attach-detach", counts.clone());
        AttachDetachController {
            pods: lister(&PODS),
            claims: lister(&PERSISTENT_VOLUME_CLAIMS),
            volumes: lister(&PERSISTENT_VOLUMES),
            attachments: lister(&VOLUME_ATTACHMENTS),
            drivers: lister(&CSI_DRIVERS),
            nodes: lister(&NODES),
            leaving: Mutex::default(),
            told: Mutex::default(),
            counts,
        }
    }

    /// Those that this controller made.
    fn attachments_of(&self, volume: &str) -> Attachments {
        let of = |attachment: Arc<Object>| {
            let tree = attachment.to_value();
            let is_its = text(&tree, "spec.source.persistentVolumeName") == volume;
            is_its.then(|| (text(&tree, "spec.nodeName").to_owned(), attachment))
        };
        let own = |attachment: &Arc<Object>| AttachableVolume::is_attachment_name(&attachment.metadata.name);
        self.attachments.all().into_iter().filter(own).filter_map(of).collect()
    }

    /// The pods that want the volume where they are (`DetermineVolumeAction`), by nodes that leave attaching
    /// to this controller.
    fn users(&self, volume: &Object) -> VolumeUsers {
        let tree = volume.to_value();
        let namespace = text(&tree, "spec.claimRef.namespace");
        let claim = self.claims.get(namespace, text(&tree, "spec.claimRef.name"));
        let is_bound = |claim: &Arc<Object>| {
            text(&claim.to_value(), "spec.volumeName") == volume.metadata.name
                && claim.metadata.uid == text(&tree, "spec.claimRef.uid")
        };
        let Some(claim) = claim.filter(is_bound) else { return VolumeUsers::new() };
        let mut users = VolumeUsers::new();
        for pod in self.pods.list(namespace, &Selector::everything()) {
            let view = pod.view::<Pod>();
            let has_claim = || view.spec.claims.has(&pod.metadata.name, &claim.metadata.name);
            if !view.spec.node_name.is_empty() && !view.is_terminal() && has_claim() {
                users.entry(view.spec.node_name.to_string()).or_default().push(pod);
            }
        }
        let is_managed = |node: &str| {
            self.nodes.get("", node).is_some_and(|node| NodeVolumes(node.to_value()).is_managed())
        };
        users.retain(|node, _| is_managed(node));
        users
    }

    async fn sync(&self, ctx: &Reconcile, name: &str) -> Result<Action, Status> {
        let attachments = self.attachments_of(name);
        let volume = self.volumes.get("", name);
        let attachable = volume.as_ref().and_then(|volume| AttachableVolume::of(volume, &self.drivers));
        let users = match (&volume, &attachable) {
            (Some(volume), Some(_)) => self.users(volume),
            _ => VolumeUsers::new(),
        };
        let is_there = |node: &String| attachments.contains_key(node) && !users.contains_key(node);
        self.leaving.lock().retain(|(volume, node), _| volume != name || is_there(node));
        let mut next = Action::Done;
        for (node, attachment) in attachments.iter().filter(|(node, _)| !users.contains_key(*node)) {
            let waits = self.detach(ctx, (name, node), attachment, attachable.as_ref()).await?;
            next = waits.map_or(next, Action::RequeueAfter);
        }
        self.told.lock().retain(|(volume, node)| volume != name || users.contains_key(node));
        let Some(attachable) = attachable else { return Ok(next) };
        for (node, pods) in &users {
            match attachments.get(node) {
                Some(attachment) => self.follow(ctx, &attachable, node, attachment, pods).await?,
                None => self.attach(ctx, &attachable, node, (&users, &attachments)).await?,
            }
        }
        Ok(next)
    }

    async fn attach(
        &self,
        ctx: &Reconcile,
        volume: &AttachableVolume,
        node: &str,
        (users, attachments): (&VolumeUsers, &Attachments),
    ) -> Result<(), Status> {
        if volume.is_for_one_node && self.is_elsewhere(ctx, volume, node, (users, attachments)).await? {
            self.tell_of_other(ctx, volume, node, (users, attachments));
            return Ok(());
        }
        match ctx.client.create(&VOLUME_ATTACHMENTS, "", volume.attachment(node)).await {
            Err(status) if !status.is_already_exists() => {
                let message =
                    format!("AttachVolume.Attach failed for volume {:?} : {}", volume.name, status.message);
                tell(ctx, &users[node], "Warning", "FailedAttachVolume", &message);
                Err(status)
            }
            _ => Ok(()),
        }
    }

    /// Whether another node has the volume. What was just attached may not be known yet: it is looked for
    /// where other pods want it.
    async fn is_elsewhere(
        &self,
        ctx: &Reconcile,
        volume: &AttachableVolume,
        node: &str,
        (users, attachments): (&VolumeUsers, &Attachments),
    ) -> Result<bool, Status> {
        if attachments.keys().any(|other| other != node) {
            return Ok(true);
        }
        for other in users.keys().filter(|other| *other != node) {
            match ctx.client.get(&VOLUME_ATTACHMENTS, "", &volume.attachment_name(other)).await {
                Ok(_) => return Ok(true),
                Err(status) if status.is_not_found() => {}
                Err(status) => return Err(status),
            }
        }
        Ok(false)
    }

    /// Once for each node that wants it.
    fn tell_of_other(
        &self,
        ctx: &Reconcile,
        volume: &AttachableVolume,
        node: &str,
        (users, attachments): (&VolumeUsers, &Attachments),
    ) {
        if !self.told.lock().insert((volume.name.clone(), node.to_owned())) {
            return;
        }
        let has_it = |(other, _): &(&String, &Vec<Arc<Object>>)| {
            *other != node && (attachments.is_empty() || attachments.contains_key(*other))
        };
        let elsewhere: Vec<Arc<Object>> =
            users.iter().filter(has_it).flat_map(|(_, pods)| pods.clone()).collect();
        for pod in &users[node] {
            let message = multi_attach_message(&volume.name, &pod.metadata.namespace, &elsewhere);
            ctx.event(&PODS, pod, "Warning", "FailedAttachVolume", message);
        }
    }

    /// An attachment that somebody wants: once its driver is done, its node is told.
    async fn follow(
        &self,
        ctx: &Reconcile,
        volume: &AttachableVolume,
        node: &str,
        attachment: &Object,
        pods: &[Arc<Object>],
    ) -> Result<(), Status> {
        self.told.lock().remove(&(volume.name.clone(), node.to_owned()));
        let tree = attachment.to_value();
        let fault = text(&tree, "status.attachError.message");
        if !fault.is_empty() {
            let message = format!("AttachVolume.Attach failed for volume {:?} : {fault}", volume.name);
            tell(ctx, pods, "Warning", "FailedAttachVolume", &message);
        }
        let knows = self.nodes.get("", node).map(|node| NodeVolumes(node.to_value()));
        let knows = knows.is_some_and(|node| node.has_attached(&volume.unique_name));
        if !flag(&tree, "status.attached") || attachment.is_deleting() || knows {
            return Ok(());
        }
        let Some(now) = NodeVolumes::get(ctx, node).await? else { return Ok(()) };
        if !now.has_attached(&volume.unique_name) {
            now.add(ctx, &volume.unique_name).await?;
            let message = format!("AttachVolume.Attach succeeded for volume {:?} ", volume.name);
            tell(ctx, pods, "Normal", "SuccessfulAttachVolume", &message);
        }
        Ok(())
    }

    /// An attachment that nobody wants goes when its node does not use it any more. Says when it is to be
    /// looked at again although nothing changes.
    async fn detach(
        &self,
        ctx: &Reconcile,
        (of, node): (&str, &str),
        attachment: &Object,
        volume: Option<&AttachableVolume>,
    ) -> Result<Option<Duration>, Status> {
        let name = &attachment.metadata.name;
        if attachment.is_deleting() {
            return Ok(None);
        }
        let now = ctx.clock.elapsed();
        let since = *self.leaving.lock().entry((of.to_owned(), node.to_owned())).or_insert(now);
        let due = (since + MAX_WAIT_FOR_UNMOUNT).saturating_sub(now);
        let at_node = NodeVolumes::get(ctx, node).await?;
        if let (Some(node), Some(volume)) = (&at_node, volume) {
            let may_be_forced = node.is_out_of_service() || (!node.is_ready() && due.is_zero());
            if node.uses(&volume.unique_name) && !may_be_forced {
                return Ok(Some(due).filter(|due| !due.is_zero()));
            }
            if node.uses(&volume.unique_name) {
                let reason = if node.is_out_of_service() { "out-of-service" } else { "timeout" };
                self.counts.forced.count([reason]);
            }
            if node.has_attached(&volume.unique_name) {
                node.remove(ctx, &volume.unique_name).await?;
            }
        }
        let options = DeleteOptions::default().of_uid(&attachment.metadata.uid);
        match ctx.client.delete(&VOLUME_ATTACHMENTS, "", name, &options).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(None),
        }
    }
}

impl Controller for AttachDetachController {
    const NAME: &'static str = "attach-detach";
    const EVENT_SOURCE: &'static str = "attachdetach-controller";
    const SERVICE_ACCOUNT: &'static str = "attachdetach-controller";
    /// What a node's status says is written by one at a time.
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let (claims, volumes) = (self.claims.clone(), self.volumes.clone());
        let pods = move |change: &Change<'_>, enqueue: &Enqueue| {
            let pod = change.object();
            // Most pods have no claim, and most clusters no volume: these are not read.
            if volumes.is_empty() || pod.view::<Pod>().spec.claims.is_empty() {
                return;
            }
            for claim in pod.view::<Pod>().spec.claims.claim_names(&pod.metadata.name) {
                let claim = claims.get(&pod.metadata.namespace, &claim);
                claim.iter().for_each(|claim| enqueue_volume(claim, enqueue));
            }
        };
        let attachments = self.attachments.clone();
        let nodes = move |change: &Change<'_>, enqueue: &Enqueue| {
            if attachments.is_empty() || !has_other_volumes(change) {
                return;
            }
            let node = &change.object().metadata.name;
            for attachment in attachments.all().iter().map(|attachment| attachment.to_value()) {
                if text(&attachment, "spec.nodeName") == node {
                    enqueue.now(text(&attachment, "spec.source.persistentVolumeName").into());
                }
            }
        };
        let of_attachment = |change: &Change<'_>, enqueue: &Enqueue| {
            let tree = change.object().to_value();
            enqueue.now(text(&tree, "spec.source.persistentVolumeName").into());
        };
        Watches::of(&PERSISTENT_VOLUMES)
            .maps(&PODS, pods)
            .maps(&PERSISTENT_VOLUME_CLAIMS, |change, enqueue| enqueue_volume(change.object(), enqueue))
            .maps(&VOLUME_ATTACHMENTS, of_attachment)
            .maps(&NODES, nodes)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        match self.sync(ctx, key).await {
            Err(status) if status.is_not_found() => Ok(Action::Done),
            outcome => outcome,
        }
    }
}

fn enqueue_volume(claim: &Object, enqueue: &Enqueue) {
    let volume = text(&claim.to_value(), "spec.volumeName").to_owned();
    if !volume.is_empty() {
        enqueue.now(volume);
    }
}

/// Whether a node began or ceased to use or to have a volume, came, went, or is off.
fn has_other_volumes(change: &Change<'_>) -> bool {
    let Some(old) = change.old().map(|old| NodeVolumes(old.to_value())) else { return true };
    let new = NodeVolumes(change.object().to_value());
    let volumes = |node: &NodeVolumes| {
        let attached = node.0["status"]["volumesAttached"].clone();
        (attached, texts(&node.0, "status.volumesInUse").join(","), node.is_out_of_service(), node.is_ready())
    };
    volumes(&old) != volumes(&new)
}

fn tell(ctx: &Reconcile, pods: &[Arc<Object>], event_type: &str, reason: &str, message: &str) {
    pods.iter().for_each(|pod| ctx.event(&PODS, pod, event_type, reason, message));
}
