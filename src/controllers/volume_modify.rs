//! How far the change of a claim to another VolumeAttributesClass is, as its status says it
//! (`external-resizer`'s `modifycontroller`): the state, the class that it is to be of, and conditions.

use serde_json::{Value, json};

use super::simulated_disks::{PROVISIONER, is_own_driver};
use apimachinery::time::{Time, rfc3339};
use apis::tree::{is_set, items, text};

/// Somebody works at it, or says why not.
const MODIFYING: &str = "ModifyingVolume";
/// What says how a change goes; the other conditions of a claim are none of its.
const OF_CHANGES: [&str; 2] = [MODIFYING, "ModifyVolumeError"];

/// Whether a claim wants its volume to be of another class, or has not done with the one that it has.
pub(crate) fn is_wanted(claim: &Value) -> bool {
    let wanted = text(claim, "spec.volumeAttributesClassName");
    let is_other = wanted != text(claim, "status.currentVolumeAttributesClassName");
    !wanted.is_empty() && (is_other || is_set(claim, "status.modifyVolumeStatus"))
}

/// Whether a claim that wants no class any more still says that it is being changed.
pub(crate) fn is_given_up(claim: &Value) -> bool {
    let says_so = |condition: &Value| text(condition, "type") == MODIFYING;
    text(claim, "spec.volumeAttributesClassName").is_empty()
        && items(claim, "status.conditions").iter().any(says_so)
}

/// Whether a change to this class stands like this already, so that nothing is to be said again.
pub(crate) fn stands(claim: &Value, state: &str, class: &str) -> bool {
    text(claim, "status.modifyVolumeStatus.status") == state
        && text(claim, "status.modifyVolumeStatus.targetVolumeAttributesClassName") == class
}

/// There is no such class yet. What was said of an earlier change stays.
pub(crate) fn pending(class: &str) -> Value {
    json!({"modifyVolumeStatus": state("Pending", class)})
}

/// The storage is asked.
pub(crate) fn in_progress(claim: &Value, class: &str, now: Time) -> Value {
    let message = "ModifyVolume operation in progress.";
    json!({
        "conditions": conditions(claim, Some(message), now),
        "modifyVolumeStatus": state("InProgress", class),
    })
}

/// The storage will never do it.
pub(crate) fn infeasible(claim: &Value, class: &str, why: &str, now: Time) -> Value {
    let message = format!("ModifyVolume failed with error: {why}. Waiting for retry.");
    json!({
        "conditions": conditions(claim, Some(&message), now),
        "modifyVolumeStatus": state("Infeasible", class),
    })
}

/// The volume is of the class.
pub(crate) fn finished(claim: &Value, class: &str, now: Time) -> Value {
    json!({
        "conditions": conditions(claim, None, now),
        "currentVolumeAttributesClassName": class,
        "modifyVolumeStatus": null,
    })
}

/// Nobody wants it any more.
pub(crate) fn given_up(claim: &Value, now: Time) -> Value {
    json!({"conditions": conditions(claim, None, now)})
}

/// Why a volume cannot be of a class, as its driver says it.
pub(crate) fn refusal(volume: &Value, class: &Value) -> Option<String> {
    let (name, driver) = (text(volume, "metadata.name"), text(class, "driverName"));
    let why = if !is_set(volume, "spec.csi") {
        format!(
            "volume {name:?} is not of a CSI driver and has no attributes: only a claim that names a \
             VolumeAttributesClass when it is created gets a volume that has"
        )
    } else if !is_own_driver(driver) {
        let class = text(class, "metadata.name");
        format!("VAC {class} is for driver {driver} which does not match driver name {PROVISIONER}")
    } else {
        return None;
    };
    Some(format!("rpc error: code = InvalidArgument desc = {why}"))
}

fn state(state: &str, class: &str) -> Value {
    json!({"status": state, "targetVolumeAttributesClassName": class})
}

/// Those of others, and the one that tells of the change (`MergeModifyVolumeConditionsOfPVC`).
fn conditions(claim: &Value, message: Option<&str>, now: Time) -> Vec<Value> {
    let is_of_others = |condition: &&Value| !OF_CHANGES.contains(&text(condition, "type"));
    let own = message.map(|message| {
        json!({"type": MODIFYING, "status": "True", "lastTransitionTime": rfc3339(now), "message": message})
    });
    items(claim, "status.conditions").iter().filter(is_of_others).cloned().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_wants_the_class_that_it_is_not_of() {
        let of = |class: &str| {
            json!({"spec": {"volumeAttributesClassName": class},
                "status": {"currentVolumeAttributesClassName": "gold"}})
        };
        assert!(is_wanted(&of("silver")) && !is_wanted(&of("gold")) && !is_wanted(&json!({})));
        let mut back = of("gold");
        back["status"]["modifyVolumeStatus"] = state("Infeasible", "silver");
        assert!(is_wanted(&back), "it is said that it is of the old one again");
        assert!(stands(&back, "Infeasible", "silver") && !stands(&back, "Infeasible", "gold"));
    }

    #[test]
    fn conditions_of_others_stay_and_the_own_one_goes_at_the_end() {
        let now = Time::UNIX_EPOCH;
        let mut claim = json!({"status": {"conditions": [{"type": "Foreign"}]}});
        let types = |status: &Value| -> Vec<String> {
            items(status, "conditions").iter().map(|one| text(one, "type").to_owned()).collect()
        };
        claim["status"] = in_progress(&claim, "gold", now);
        assert_eq!(types(&claim["status"]), ["Foreign", MODIFYING]);
        assert!(is_given_up(&claim), "it names no class");
        claim["status"] = infeasible(&claim, "gold", "no room", now);
        assert_eq!(
            claim["status"]["conditions"][1]["message"],
            "ModifyVolume failed with error: no room. Waiting for retry."
        );
        assert_eq!(types(&finished(&claim, "gold", now)), ["Foreign"]);
        assert_eq!(types(&given_up(&claim, now)), ["Foreign"]);
    }

    #[test]
    fn only_volumes_of_the_driver_have_attributes() {
        let class = json!({"metadata": {"name": "gold"}, "driverName": PROVISIONER});
        let own = json!({"metadata": {"name": "v"}, "spec": {"csi": {"driver": PROVISIONER}}});
        assert_eq!(refusal(&own, &class), None);
        let folder = json!({"metadata": {"name": "v"}, "spec": {"hostPath": {"path": "/a"}}});
        assert!(
            refusal(&folder, &class).is_some_and(|why| why.contains("volume \"v\" is not of a CSI driver"))
        );
        let foreign = json!({"metadata": {"name": "gold"}, "driverName": "d.example.com"});
        assert_eq!(
            refusal(&own, &foreign).as_deref(),
            Some(
                "rpc error: code = InvalidArgument desc = VAC gold is for driver d.example.com which does \
                 not match driver name kubarium.dev/simulated-disk"
            )
        );
    }
}
