//! AlwaysPullImages: whoever runs an image must be able to pull it now, not only somebody before
//! (`plugin/pkg/admission/alwayspullimages`).

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes};
use apimachinery::status::Status;
use apis::tree::{is_set, items, items_mut, text};

const LISTS: [&str; 3] = ["spec.initContainers", "spec.containers", "spec.ephemeralContainers"];

/// Sets `imagePullPolicy: Always`.
pub(super) struct AlwaysPullImages;

impl AdmissionPlugin for AlwaysPullImages {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.writes("", "pods")
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if let Some(pod) = object {
            always_pull(pod, old);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A pod that is updated without a new image keeps its policies, which may not change.
fn always_pull(pod: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| images(pod).is_subset(&images(old))) {
        return;
    }
    for list in LISTS {
        for container in items_mut(pod, list) {
            container["imagePullPolicy"] = "Always".into();
        }
    }
    for volume in items_mut(pod, "spec.volumes").iter_mut().filter(|volume| is_set(volume, "image")) {
        volume["image"]["pullPolicy"] = "Always".into();
    }
}

fn images(pod: &Value) -> BTreeSet<String> {
    let containers = LISTS.iter().flat_map(|list| items(pod, list));
    containers.map(|container| text(container, "image").to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn new_images_are_always_pulled() {
        let pod = json!({"spec": {"containers": [{"image": "a", "imagePullPolicy": "Never"}],
            "initContainers": [{"image": "b"}]}});
        let mut new = pod.clone();
        always_pull(&mut new, None);
        assert_eq!(new["spec"]["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(new["spec"]["initContainers"][0]["imagePullPolicy"], "Always");
        let mut same = pod.clone();
        always_pull(&mut same, Some(&pod));
        assert_eq!(same, pod);
    }
}
