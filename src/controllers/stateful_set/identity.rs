//! Who a pod of a StatefulSet is: its name, which ends in its ordinal, and what follows from that.

use serde_json::{Value, json};

use super::claims::{claim_name, claim_volumes};
use super::work::StatefulSetWork;
use crate::history::{OwnerRevision, REVISION_HASH};
use crate::pod_control::pod_from_template;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::tree::{object_mut, set, text};

/// The pod's own name (`StatefulSetPodNameLabel`): a service can select one pod by it.
pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Its ordinal (`PodIndexLabel`).
pub(super) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The set's name and the ordinal in a pod's name; none when it does not end in a number
/// (`getParentNameAndOrdinal`).
pub(super) fn parent_and_ordinal(pod: &str) -> Option<(&str, i64)> {
    let (parent, digits) = pod.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let ordinal = digits.parse::<i32>().ok().filter(|_| is_number)?;
    Some((parent, i64::from(ordinal)))
}

/// Whether a pod's name is one of the set's.
pub(super) fn is_member(set: &str, pod: &str) -> bool {
    parent_and_ordinal(pod).is_some_and(|(parent, _)| parent == set)
}

/// The ordinal of one of a set's pods.
pub(super) fn ordinal(pod: &Object) -> i64 {
    parent_and_ordinal(&pod.metadata.name).map_or(-1, |(_, ordinal)| ordinal)
}

/// The name of the pod with an ordinal.
pub(super) fn pod_name(set: &str, ordinal: i64) -> String {
    format!("{set}-{ordinal}")
}

/// The pod with an ordinal, of a revision (`newStatefulSetPod`).
pub(super) fn new_pod(
    work: &StatefulSetWork,
    revision: &OwnerRevision,
    ordinal: i64,
) -> Result<Value, Status> {
    let mut pod = pod_from_template(&revision.template(), &work.object, &STATEFUL_SETS)?;
    let name = pod_name(work.name(), ordinal);
    set(&mut pod, "metadata.name", name.as_str());
    identify(&mut pod, &name, ordinal);
    object_mut(&mut pod, "metadata.labels").insert(REVISION_HASH.into(), revision.name().into());
    set(&mut pod, "spec.hostname", name);
    if !work.view.spec.service_name.is_empty() {
        set(&mut pod, "spec.subdomain", work.view.spec.service_name.as_str());
    }
    let volumes = claim_volumes(work, &pod, ordinal);
    if !volumes.is_empty() {
        set(&mut pod, "spec.volumes", volumes);
    }
    Ok(pod)
}

/// The labels that say who it is (`updateIdentity`).
pub(super) fn identify(pod: &mut Value, name: &str, ordinal: i64) {
    let labels = object_mut(pod, "metadata.labels");
    labels.insert(POD_NAME.into(), name.into());
    labels.insert(POD_INDEX.into(), ordinal.to_string().into());
}

/// Whether it still says who it is (`identityMatches`).
pub(super) fn is_identified(pod: &Object) -> bool {
    pod.metadata.labels.get(POD_NAME) == Some(&pod.metadata.name)
}

/// Whether its volumes are its claims (`storageMatches`).
pub(super) fn has_storage(work: &StatefulSetWork, pod: &Object) -> bool {
    let templates = &work.view.spec.volume_claim_templates;
    if templates.is_empty() {
        return true;
    }
    let tree = pod.to_value();
    let volumes = tree["spec"]["volumes"].as_array().map_or(&[][..], Vec::as_slice);
    templates.iter().all(|template| {
        let name = text(template, "metadata.name");
        let wanted = json!(claim_name(work, template, ordinal(pod)));
        let mine = volumes.iter().find(|volume| volume["name"] == name);
        mine.is_some_and(|volume| volume["persistentVolumeClaim"]["claimName"] == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_ordinals() {
        let cases = [
            ("web-0", Some(("web", 0))),
            ("web-a-12", Some(("web-a", 12))),
            ("web", None),
            ("web-", None),
            ("web-x", None),
            ("web-+1", None),
            ("web-99999999999", None),
        ];
        for (name, expected) in cases {
            assert_eq!(parent_and_ordinal(name), expected, "{name}");
        }
        assert!(is_member("web", "web-3") && !is_member("web", "web-a-3"));
    }
}
