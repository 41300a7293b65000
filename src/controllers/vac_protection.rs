//! The protection of VolumeAttributesClasses (`pkg/controller/volume/vacprotection`): one that a claim or a
//! volume names stays.

use serde_json::Value;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pv_protection::keep_finalizer;
use apimachinery::status::Status;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::storage::volume_attributes_class::VOLUME_ATTRIBUTES_CLASSES;
use apis::tree::text;
use client_go::ComponentContext;
use client_go::lister::Lister;

const FINALIZER: &str = "kubernetes.io/vac-protection";
/// Where a claim or a volume names a class: wanted, had, and being changed to.
const NAMED_AT: [&str; 3] = [
    "spec.volumeAttributesClassName",
    "status.currentVolumeAttributesClassName",
    "status.modifyVolumeStatus.targetVolumeAttributesClassName",
];

/// Holds classes by a finalizer.
pub(crate) struct VacProtectionController {
    classes: Lister,
    users: [Lister; 2],
}

impl VacProtectionController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> VacProtectionController {
        let users = [&PERSISTENT_VOLUME_CLAIMS, &PERSISTENT_VOLUMES];
        VacProtectionController {
            classes: ctx.informers.informer(&VOLUME_ATTRIBUTES_CLASSES).lister(),
            users: users.map(|kind| ctx.informers.informer(kind).lister()),
        }
    }

    fn is_used(&self, class: &str) -> bool {
        let mut users = self.users.iter().flat_map(|users| users.all());
        users.any(|user| named(&user.to_value()).any(|name| name == class))
    }
}

impl Controller for VacProtectionController {
    const NAME: &'static str = "VAC protection";
    const EVENT_SOURCE: &'static str = "vac-protection-controller";
    const SERVICE_ACCOUNT: &'static str = "volumeattributesclass-protection-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let users = |classes: Lister| {
            // What a user names no more may go.
            move |change: &Change<'_>, enqueue: &Enqueue| {
                if classes.is_empty() {
                    return;
                }
                let gone = matches!(change, Change::Deleted(_)).then(|| change.object());
                let before = change.old().or(gone).map(|old| old.to_value()).unwrap_or_default();
                named(&before).for_each(|class| enqueue.now(class.to_owned()));
            }
        };
        Watches::of(&VOLUME_ATTRIBUTES_CLASSES)
            .maps(&PERSISTENT_VOLUME_CLAIMS, users(self.classes.clone()))
            .maps(&PERSISTENT_VOLUMES, users(self.classes.clone()))
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(class) = self.classes.get("", key) else { return Ok(Action::Done) };
        let must_stay = !class.is_deleting() || self.is_used(key);
        keep_finalizer(ctx, &VOLUME_ATTRIBUTES_CLASSES, &class, FINALIZER, must_stay).await
    }
}

fn named(user: &Value) -> impl Iterator<Item = &str> {
    NAMED_AT.iter().map(|path| text(user, path)).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_class_is_used_that_is_wanted_had_or_on_its_way() {
        let claim = json!({
            "spec": {"volumeAttributesClassName": "gold"},
            "status": {
                "currentVolumeAttributesClassName": "silver",
                "modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"},
            },
        });
        assert_eq!(named(&claim).collect::<Vec<_>>(), ["gold", "silver", "gold"]);
        assert_eq!(named(&json!({})).count(), 0);
    }
}
