//! The simulated attacher, in place of those that storage drivers bring along (`external-attacher`): whatever
//! is to be attached is, at once, unless its driver or its volume says otherwise.

use serde_json::{Value, json};

use crate::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::storage::csi::CSI_DRIVERS;
use apis::storage::volume_attachment::VOLUME_ATTACHMENTS;
use apis::tree::{annotation, flag, text};
use client_go::ComponentContext;
use client_go::lister::Lister;

/// On a CSIDriver, with the value `external`: somebody else attaches its volumes.
const ATTACHER: &str = "kubarium.dev/attacher";
/// On a PersistentVolume: it cannot be attached, and this is what its driver says.
const ATTACH_ERROR: &str = "kubarium.dev/attach-error";

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

    /// What the volume says goes wrong. An attachment of a volume that is not there is nothing for a driver.
    fn fault(&self, attachment: &Value) -> Option<String> {
        let volume = self.volumes.get("", text(attachment, "spec.source.persistentVolumeName"));
        volume.map(|volume| fault_of(&volume))
    }

    async fn attach(&self, ctx: &Reconcile, attachment: &Object) -> Result<(), Status> {
        let tree = attachment.to_value();
        let is_done = attachment.is_deleting() || flag(&tree, "status.attached");
        if is_done || self.is_external(text(&tree, "spec.attacher")) {
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
        Watches::of(&VOLUME_ATTACHMENTS).maps(&PERSISTENT_VOLUMES, volumes)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(attachment) = self.attachments.get("", key) else { return Ok(Action::Done) };
        match self.attach(ctx, &attachment).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

fn fault_of(volume: &Object) -> String {
    annotation(&volume.to_value(), ATTACH_ERROR).to_owned()
}
