//! A provisioner of simulated disks: makes a volume for each claim of a class that names it, and removes
//! those whose claim is gone. To everybody else it is one of those that clusters bring along (`local-path` in
//! kind): it is told by annotations, and tells by volumes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pv_protection::keep_finalizer;
use super::simulated_disks::{CSI_DRIVER, OWN_DRIVERS, PROVISIONER, is_own_driver};
use super::volume_snapshots::data_source::{DataSource, DataSources};
use apimachinery::object::{Object, split_key};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::core::node_labels::HOSTNAME;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::scheme::Scheme;
use apis::storage::storage_class::STORAGE_CLASSES;
use apis::storage::volume_attributes_class::VOLUME_ATTRIBUTES_CLASSES;
use apis::tree::{add_finalizers, annotation, at, items, remove_finalizers, set, text, texts};
use apis::volumes::{
    PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER, claim_reference, claimed_by, is_bound,
};
use client_go::ComponentContext;
use client_go::lister::Lister;

/// Keeps a volume until its disk is deleted (`finalizerPV` of `sig-storage-lib-external-provisioner`).
const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

/// Before the name of a volume in the queue; a claim is `namespace/name`.
const VOLUME: &str = "volume:";

/// Makes and removes volumes.
pub(crate) struct VolumeProvisioner {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
    attributes: Lister,
    nodes: Lister,
    scheme: Arc<Scheme>,
}

impl VolumeProvisioner {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext, scheme: &Arc<Scheme>) -> VolumeProvisioner {
        VolumeProvisioner {
            claims: ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister(),
            volumes: ctx.informers.informer(&PERSISTENT_VOLUMES).lister(),
            classes: ctx.informers.informer(&STORAGE_CLASSES).lister(),
            attributes: ctx.informers.informer(&VOLUME_ATTRIBUTES_CLASSES).lister(),
            nodes: ctx.informers.informer(&NODES).lister(),
            scheme: scheme.clone(),
        }
    }

    async fn provision(&self, ctx: &Reconcile, claim: &Object) -> Result<(), Status> {
        let tree = claim.to_value();
        if claim.is_deleting() || is_bound(&tree) || annotation(&tree, STORAGE_PROVISIONER) != PROVISIONER {
            return Ok(());
        }
        let Some(class) = self.classes.get("", text(&tree, "spec.storageClassName")) else { return Ok(()) };
        let class = class.to_value();
        let node = annotation(&tree, SELECTED_NODE);
        let waits = text(&class, "volumeBindingMode") == "WaitForFirstConsumer";
        let name = format!("pvc-{}", claim.metadata.uid);
        if (waits && node.is_empty()) || self.volumes.get("", &name).is_some() {
            return Ok(());
        }
        let about = |event_type: &str, reason: &str, message: String| {
            ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, event_type, reason, message);
        };
        let sources = DataSources {
            client: &ctx.client,
            scheme: &self.scheme,
            claims: &self.claims,
            volumes: &self.volumes,
            drivers: &OWN_DRIVERS,
        };
        match sources.find(&tree, text(&class, "metadata.name")).await? {
            DataSource::Ready => {}
            DataSource::OfOthers => {
                let message = "Assuming an external populator will provision the volume";
                about("Normal", "Provisioning", message.to_owned());
                return Ok(());
            }
            DataSource::Missing(why) => {
                let class = text(&class, "metadata.name");
                let why = format!("failed to provision volume with StorageClass {class:?}: {why}");
                about("Warning", "ProvisioningFailed", why.clone());
                return Err(Status::internal(why));
            }
        }
        let message = format!("External provisioner is provisioning volume for claim \"{}\"", claim.key());
        about("Normal", "Provisioning", message);
        let refused = if at(&tree, "spec.selector").is_null() {
            self.attributes_of(&tree)
        } else {
            Err("claim Selector is not supported".to_owned())
        };
        if let Err(why) = refused {
            let class = text(&class, "metadata.name");
            let why = format!("failed to provision volume with StorageClass {class:?}: {why}");
            about("Warning", "ProvisioningFailed", why.clone());
            return Err(Status::internal(why));
        }
        let volume = self.volume(claim, &tree, &class, &name);
        match ctx.client.create(&PERSISTENT_VOLUMES, "", volume).await {
            Ok(_) => {
                about("Normal", "ProvisioningSucceeded", format!("Successfully provisioned volume {name}"));
                Ok(())
            }
            Err(error) if error.is_already_exists() => Ok(()),
            Err(error) => {
                let class = text(&class, "metadata.name");
                let message = format!("failed to provision volume with StorageClass {class:?}: {error}");
                about("Warning", "ProvisioningFailed", message);
                Err(error)
            }
        }
    }

    /// The VolumeAttributesClass that the claim names must be there, and one of these disks.
    fn attributes_of(&self, claim: &Value) -> Result<(), String> {
        let name = text(claim, "spec.volumeAttributesClassName");
        if name.is_empty() {
            return Ok(());
        }
        let Some(class) = self.attributes.get("", name) else {
            return Err(format!("volumeattributesclasses.storage.k8s.io {name:?} not found"));
        };
        match text(&class.to_value(), "driverName") {
            own if is_own_driver(own) => Ok(()),
            other => Err(format!(
                "VAC {name} referenced in PVC is for driver {other} which does not match driver name \
                 {PROVISIONER}"
            )),
        }
    }

    /// A disk of the node that the scheduler has chosen; of no node, where nobody waited for it.
    fn volume(&self, claim: &Object, tree: &Value, class: &Value, name: &str) -> Value {
        let metadata = &claim.metadata;
        let folder = format!("{name}_{}_{}", metadata.namespace, metadata.name);
        let path = format!("/var/local-path-provisioner/{folder}");
        let policy = match text(class, "reclaimPolicy") {
            "" => "Delete",
            policy => policy,
        };
        let mut volume = json!({
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "capacity": {"storage": at(tree, "spec.resources.requests.storage")},
                "accessModes": at(tree, "spec.accessModes"),
                "claimRef": claim_reference(metadata),
                "persistentVolumeReclaimPolicy": policy,
                "storageClassName": text(class, "metadata.name"),
                "volumeMode": at(tree, "spec.volumeMode"),
            },
        });
        if policy == "Delete" {
            set(&mut volume, "metadata.finalizers", json!([FINALIZER]));
        }
        let attributes = text(tree, "spec.volumeAttributesClassName");
        // Only volumes of CSI have attributes, and a folder is none of blocks.
        if attributes.is_empty() && text(tree, "spec.volumeMode") != "Block" {
            set(&mut volume, "spec.hostPath", json!({"path": path, "type": "DirectoryOrCreate"}));
        } else {
            set(&mut volume, "spec.csi", json!({"driver": CSI_DRIVER, "volumeHandle": name}));
        }
        if !attributes.is_empty() {
            set(&mut volume, "spec.volumeAttributesClassName", attributes);
        }
        let options = at(class, "mountOptions");
        if !options.is_null() {
            set(&mut volume, "spec.mountOptions", options.clone());
        }
        let node = self.nodes.get("", annotation(tree, SELECTED_NODE));
        let hostname = node.and_then(|node| node.metadata.labels.get(HOSTNAME).cloned());
        let terms = match hostname {
            Some(hostname) => vec![term([(HOSTNAME, json!([hostname]))])],
            None => allowed_terms(class),
        };
        if !terms.is_empty() {
            set(&mut volume, "spec.nodeAffinity", json!({"required": {"nodeSelectorTerms": terms}}));
        }
        volume
    }

    /// A volume that nobody claims any more goes, unless it shall be kept.
    async fn reclaim(&self, ctx: &Reconcile, volume: &Object) -> Result<(), Status> {
        let mut tree = volume.to_value();
        if annotation(&tree, PROVISIONED_BY) != PROVISIONER {
            return Ok(());
        }
        let name = &volume.metadata.name;
        if guard(&mut tree) {
            tree = ctx.client.update(&PERSISTENT_VOLUMES, "", name, tree).await?.to_value();
        }
        if !may_go(&tree) {
            return Ok(());
        }
        if !is_deleting(&tree) {
            ctx.client.delete(&PERSISTENT_VOLUMES, "", name, &DeleteOptions::default()).await?;
        }
        let Some(left) = ctx.client.find(&PERSISTENT_VOLUMES, "", name).await? else { return Ok(()) };
        if left.metadata.uid == volume.metadata.uid {
            keep_finalizer(ctx, &PERSISTENT_VOLUMES, &left, FINALIZER, false).await?;
        }
        Ok(())
    }
}

fn is_deleting(volume: &Value) -> bool {
    !at(volume, "metadata.deletionTimestamp").is_null()
}

/// The finalizer follows what the policy of a volume says now (`handleProtectionFinalizer`); whether anything
/// is to be written. One that was made without it gets it while it is bound.
fn guard(volume: &mut Value) -> bool {
    match text(volume, "spec.persistentVolumeReclaimPolicy") {
        "Retain" | "Recycle" => remove_finalizers(volume, &[FINALIZER]),
        "Delete" if !is_deleting(volume) && text(volume, "status.phase") == "Bound" => {
            add_finalizers(volume, &[FINALIZER])
        }
        _ => false,
    }
}

/// Whether the disk of a volume is to be deleted, and the volume with it (`shouldDelete`). One that somebody
/// deleted and that has no finalizer was looked after already.
fn may_go(volume: &Value) -> bool {
    let is_free = text(volume, "status.phase") == "Released" && claimed_by(volume).is_some();
    let is_held = texts(volume, "metadata.finalizers").contains(&FINALIZER);
    let is_done = is_deleting(volume) && !is_held;
    is_free && text(volume, "spec.persistentVolumeReclaimPolicy") == "Delete" && !is_done
}

/// A term of the affinity of a volume: labels that its nodes have, and with which values.
fn term<'a>(labels: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let expression =
        |(label, values): (&str, Value)| json!({"key": label, "operator": "In", "values": values});
    json!({"matchExpressions": labels.into_iter().map(expression).collect::<Vec<Value>>()})
}

/// Where a class has its disks that are made before anybody says where they are needed.
fn allowed_terms(class: &Value) -> Vec<Value> {
    let topologies = items(class, "allowedTopologies").iter();
    let labels = topologies.map(|topology| items(topology, "matchLabelExpressions"));
    let labels = labels.filter(|labels| !labels.is_empty());
    labels.map(|labels| term(labels.iter().map(|it| (text(it, "key"), at(it, "values").clone())))).collect()
}

impl Controller for VolumeProvisioner {
    const NAME: &'static str = "simulated-disk-provisioner";
    const EVENT_SOURCE: &'static str = PROVISIONER;
    /// Real ones bring an account of their own, with about these rights.
    const SERVICE_ACCOUNT: &'static str = "persistent-volume-binder";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::of(&PERSISTENT_VOLUME_CLAIMS).maps(
            &PERSISTENT_VOLUMES,
            |change: &Change<'_>, enqueue: &Enqueue| {
                enqueue.now(format!("{VOLUME}{}", change.object().metadata.name));
            },
        )
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let outcome = match key.strip_prefix(VOLUME) {
            Some(name) => match self.volumes.get("", name) {
                Some(volume) => self.reclaim(ctx, &volume).await,
                None => Ok(()),
            },
            None => match self.claims.get(namespace, name) {
                Some(claim) => self.provision(ctx, &claim).await,
                None => Ok(()),
            },
        };
        match outcome {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_a_class_are_where_it_allows_them() {
        let zones = json!({"key": "zone", "values": ["a", "b"]});
        let class = json!({"allowedTopologies": [{"matchLabelExpressions": [zones]}, {}]});
        let expression = json!({"key": "zone", "operator": "In", "values": ["a", "b"]});
        assert_eq!(allowed_terms(&class), [json!({"matchExpressions": [expression]})]);
        assert!(allowed_terms(&json!({})).is_empty());
    }

    /// A volume in a phase, with a policy and finalizers; deleted by somebody or not.
    fn disk(phase: &str, policy: &str, finalizers: &[&str], is_deleted: bool) -> Value {
        let mut volume = json!({"metadata": {"finalizers": finalizers}, "status": {"phase": phase},
            "spec": {"persistentVolumeReclaimPolicy": policy,
                "claimRef": {"namespace": "ns", "name": "data", "uid": "u"}}});
        if is_deleted {
            set(&mut volume, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
        }
        volume
    }

    #[test]
    fn the_finalizer_follows_the_policy() {
        let guarded =
            |mut volume: Value| guard(&mut volume).then(|| at(&volume, "metadata.finalizers").clone());
        assert_eq!(guarded(disk("Bound", "Delete", &["a"], false)), Some(json!(["a", FINALIZER])));
        assert_eq!(guarded(disk("Bound", "Delete", &[FINALIZER], false)), None);
        assert_eq!(guarded(disk("Bound", "Delete", &[], true)), None, "it is too late");
        assert_eq!(guarded(disk("Released", "Delete", &[], false)), None);
        assert_eq!(guarded(disk("Bound", "Retain", &["a", FINALIZER], true)), Some(json!(["a"])));
        assert_eq!(guarded(disk("Bound", "Retain", &["a"], false)), None);
    }

    #[test]
    fn what_is_released_goes_unless_that_is_done() {
        assert!(may_go(&disk("Released", "Delete", &[FINALIZER], false)));
        assert!(may_go(&disk("Released", "Delete", &[FINALIZER], true)), "its disk is there");
        assert!(may_go(&disk("Released", "Delete", &[], false)), "one of before");
        assert!(!may_go(&disk("Released", "Delete", &["a"], true)));
        assert!(!may_go(&disk("Released", "Retain", &[FINALIZER], false)));
        assert!(!may_go(&disk("Bound", "Delete", &[FINALIZER], true)));
    }
}
