//! The simulated attacher, in place of those that storage drivers bring along (`external-attacher`): whatever
//! is to be attached is, at once, unless its driver or its volume says otherwise.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::kind::Kind;
use apis::storage::csi::CSI_DRIVERS;
use apis::storage::volume_attachment::VOLUME_ATTACHMENTS;
use apis::tree::{add_finalizers, annotation, at, flag, remove_finalizers, text};
use client_go::ComponentContext;
use client_go::lister::Lister;

/// On a CSIDriver, with the value `external`: somebody else attaches its volumes.
const ATTACHER: &str = "kubarium.dev/attacher";
/// On a PersistentVolume: it cannot be attached, and this is what its driver says.
const ATTACH_ERROR: &str = "kubarium.dev/attach-error";

/// Before the name of a volume in the queue; an attachment is its name.
const VOLUME: &str = "volume:";
/// Before the name of a driver in the finalizer of its attacher.
const FINALIZER: &str = "external-attacher/";

/// Says of attachments that they are there.
pub(crate) struct SimulatedAttacher {
    attachments: Lister,
    drivers: Lister,
    volumes: Lister,
}

impl SimulatedAttacher {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> SimulatedAttacher {
        let [attachments, drivers, volumes] = [&VOLUME_ATTACHMENTS, &CSI_DRIVERS, &PERSISTENT_VOLUMES]
            .map(|kind| ctx.informers.informer(kind).lister());
        SimulatedAttacher { attachments, drivers, volumes }
    }

    fn is_external(&self, driver: &str) -> bool {
        let driver = self.drivers.get("", driver);
        driver.is_some_and(|driver| annotation(&driver.to_value(), ATTACHER) == "external")
    }

    /// What goes wrong. An attachment of a volume that is not there is nothing for a driver.
    fn fault(&self, attachment: &Value) -> Option<String> {
        let volume = self.volumes.get("", text(attachment, "spec.source.persistentVolumeName"));
        let going =
            |volume: &Object| format!("PersistentVolume {:?} is marked for deletion", volume.metadata.name);
        volume.map(|volume| if volume.is_deleting() { going(&volume) } else { fault_of(&volume) })
    }

    /// Whether an attachment of the volume is left, as far as the cache knows.
    fn is_attached(&self, volume: &str) -> bool {
        let of = |it: &Arc<Object>| text(&it.to_value(), "spec.source.persistentVolumeName") == volume;
        self.attachments.all().iter().any(of)
    }

    /// Keeps an attachment and its volume, before it is attached. A volume that is to go is attached no more,
    /// and nothing of it is kept.
    async fn hold(&self, ctx: &Reconcile, mut attachment: Value) -> Result<(), Status> {
        let name = text(&attachment, "spec.source.persistentVolumeName");
        let volume = self.volumes.get("", name).filter(|volume| !volume.is_deleting());
        let Some(mut volume) = volume.map(|volume| volume.to_value()) else { return Ok(()) };
        let finalizer = finalizer(text(&attachment, "spec.attacher"));
        if add_finalizers(&mut volume, &[&finalizer]) {
            write_finalizers(ctx, &PERSISTENT_VOLUMES, &volume).await?;
        }
        if add_finalizers(&mut attachment, &[&finalizer]) {
            write_finalizers(ctx, &VOLUME_ATTACHMENTS, &attachment).await?;
        }
        Ok(())
    }

    /// A volume that somebody deleted is let go once nothing is attached, as by
    /// `SyncNewOrUpdatedPersistentVolume`; one that stays keeps the finalizer.
    async fn let_volume_go(&self, ctx: &Reconcile, name: &str) -> Result<(), Status> {
        let Some(volume) = self.volumes.get("", name) else { return Ok(()) };
        let mut tree = volume.to_value();
        let driver = text(&tree, "spec.csi.driver").to_owned();
        if !volume.is_deleting() || self.is_external(&driver) || self.is_attached(name) {
            return Ok(());
        }
        if remove_finalizers(&mut tree, &[&finalizer(&driver)]) {
            write_finalizers(ctx, &PERSISTENT_VOLUMES, &tree).await?;
        }
        Ok(())
    }

    /// An attachment that is to go is detached at once.
    async fn detach(&self, ctx: &Reconcile, mut tree: Value) -> Result<(), Status> {
        let driver = text(&tree, "spec.attacher").to_owned();
        if !self.is_external(&driver) && remove_finalizers(&mut tree, &[&finalizer(&driver)]) {
            write_finalizers(ctx, &VOLUME_ATTACHMENTS, &tree).await?;
        }
        Ok(())
    }

    async fn attach(&self, ctx: &Reconcile, attachment: &Object) -> Result<(), Status> {
        let tree = attachment.to_value();
        if attachment.is_deleting() {
            return self.detach(ctx, tree).await;
        }
        if flag(&tree, "status.attached") || self.is_external(text(&tree, "spec.attacher")) {
            return Ok(());
        }
        let Some(fault) = self.fault(&tree) else { return Ok(()) };
        let status = if fault.is_empty() {
            json!({"attached": true, "attachError": null})
        } else if text(&tree, "status.attachError.message") == fault {
            return Ok(());
        } else {
            json!({"attached": false, "attachError": {"message": fault, "time": rfc3339(ctx.clock.now())}})
        };
        self.hold(ctx, tree).await?;
        let (name, patch) = (&attachment.metadata.name, json!({"status": status}));
        ctx.client.patch_status(&VOLUME_ATTACHMENTS, "", name, PatchType::Merge, &patch).await.map(drop)
    }
}

impl Controller for SimulatedAttacher {
    const NAME: &'static str = "simulated-attacher";
    const EVENT_SOURCE: &'static str = "simulated-attacher";
    const SERVICE_ACCOUNT: &'static str = "csi-attacher";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let attachments = self.attachments.clone();
        // A volume that comes late, or of which the fault was taken back, is attached after all.
        let volumes = move |change: &Change<'_>, enqueue: &Enqueue| {
            let is_alike = change.old().is_some_and(|old| fault_of(old) == fault_of(change.object()));
            if attachments.is_empty() || is_alike {
                return;
            }
            let name = &change.object().metadata.name;
            let all = attachments.all().into_iter();
            let own = all.filter(|it| text(&it.to_value(), "spec.source.persistentVolumeName") == name);
            own.for_each(|attachment| enqueue.now(attachment.key()));
        };
        let going = |change: &Change<'_>, enqueue: &Enqueue| {
            let volume = change.object();
            if volume.is_deleting() && volume.metadata.finalizers.iter().any(|it| it.starts_with(FINALIZER)) {
                enqueue.now(format!("{VOLUME}{}", volume.metadata.name));
            }
        };
        let detached = |change: &Change<'_>, enqueue: &Enqueue| {
            if matches!(change, Change::Deleted(_)) {
                let tree = change.object().to_value();
                enqueue.now(format!("{VOLUME}{}", text(&tree, "spec.source.persistentVolumeName")));
            }
        };
        Watches::of(&VOLUME_ATTACHMENTS)
            .maps(&PERSISTENT_VOLUMES, volumes)
            .maps(&PERSISTENT_VOLUMES, going)
            .maps(&VOLUME_ATTACHMENTS, detached)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let outcome = match (key.strip_prefix(VOLUME), self.attachments.get("", key)) {
            (Some(volume), _) => self.let_volume_go(ctx, volume).await,
            (None, Some(attachment)) => self.attach(ctx, &attachment).await,
            (None, None) => Ok(()),
        };
        match outcome {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

fn fault_of(volume: &Object) -> String {
    annotation(&volume.to_value(), ATTACH_ERROR).to_owned()
}

/// What the attacher of a driver keeps things by (`GetFinalizerName`): only letters, digits and dashes of the
/// driver's name are kept, and a dash at the end is followed by an `X`.
fn finalizer(driver: &str) -> String {
    let kept = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '-' };
    let end = if driver.ends_with(|sign| kept(sign) == '-') { "X" } else { "" };
    let name: String = driver.chars().map(kept).collect();
    format!("{FINALIZER}{name}{end}")
}

/// Writes the finalizers of an object, if nobody else has written it meanwhile.
async fn write_finalizers(ctx: &Reconcile, kind: &Kind, tree: &Value) -> Result<(), Status> {
    let version = text(tree, "metadata.resourceVersion");
    let finalizers = at(tree, "metadata.finalizers");
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
    ctx.client.patch(kind, "", text(tree, "metadata.name"), PatchType::Merge, &patch).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_name_the_driver_as_far_as_they_may() {
        assert_eq!(finalizer("disk.example.com"), "external-attacher/disk-example-com");
        assert_eq!(finalizer("a_b/c-1"), "external-attacher/a-b-c-1");
        assert_eq!(finalizer("a."), "external-attacher/a-X");
    }
}
