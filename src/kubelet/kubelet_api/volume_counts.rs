//! `volume_manager_total_volumes` (`pkg/kubelet/volumemanager/metrics`): how many volumes the pods of the
//! node are to have and have, by who mounts them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pods::PodHere;
use super::volume_stats::claim_of;
use crate::kubelet::Kubelet;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::tree::{at, items, text};
use component_base::metrics::gauge;

/// Members of a source of volumes, and the plugin that mounts it.
const PLUGINS: [(&str, &str); 12] = [
    ("configMap", "kubernetes.io/configmap"),
    ("csi", "kubernetes.io/csi"),
    ("downwardAPI", "kubernetes.io/downward-api"),
    ("emptyDir", "kubernetes.io/empty-dir"),
    ("fc", "kubernetes.io/fc"),
    ("hostPath", "kubernetes.io/host-path"),
    ("image", "kubernetes.io/image"),
    ("iscsi", "kubernetes.io/iscsi"),
    ("local", "kubernetes.io/local-volume"),
    ("nfs", "kubernetes.io/nfs"),
    ("projected", "kubernetes.io/projected"),
    ("secret", "kubernetes.io/secret"),
];

/// What mounts a source; in-tree disks of clouds are their CSI drivers' by now.
fn plugin_of(source: &Value) -> &'static str {
    let found = PLUGINS.iter().find(|(member, _)| !at(source, member).is_null());
    found.map_or("kubernetes.io/csi", |(_, plugin)| plugin)
}

impl Kubelet {
    /// The whole family, of the pods of the node.
    pub(super) async fn volume_counts(&self, pods: &[PodHere]) -> String {
        let mut counts: BTreeMap<[&'static str; 2], usize> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| !pod.pod.is_terminal()) {
            let has_begun = !pod.running.is_empty() || pod.ended > 0;
            for volume in items(&pod.object.to_value(), "spec.volumes") {
                let Some(plugin) = self.plugin_of_volume(pod, volume).await else { continue };
                *counts.entry([plugin, "desired_state_of_world"]).or_default() += 1;
                if has_begun {
                    *counts.entry([plugin, "actual_state_of_world"]).or_default() += 1;
                }
            }
        }
        let mut out = String::new();
        let about = ("volume_manager_total_volumes", "[ALPHA] Number of volumes in Volume Manager");
        gauge(&mut out, about, ["plugin_name", "state"], counts);
        out
    }

    /// That of a claim is its volume's: nothing while it has none.
    async fn plugin_of_volume(&self, pod: &PodHere, volume: &Value) -> Option<&'static str> {
        let Some(claim) = claim_of(volume, pod.name()) else { return Some(plugin_of(volume)) };
        let client = &self.shared.context.client;
        let claim = client.get(&PERSISTENT_VOLUME_CLAIMS, pod.namespace(), &claim).await.ok()?;
        let bound =
            client.get(&PERSISTENT_VOLUMES, "", text(&claim.to_value(), "spec.volumeName")).await.ok()?;
        Some(plugin_of(at(&bound.to_value(), "spec")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_source_has_its_plugin() {
        assert_eq!(plugin_of(&json!({"name": "a", "emptyDir": {}})), "kubernetes.io/empty-dir");
        assert_eq!(
            plugin_of(&json!({"capacity": {}, "local": {"path": "/a"}})),
            "kubernetes.io/local-volume"
        );
        assert_eq!(plugin_of(&json!({"awsElasticBlockStore": {"volumeID": "a"}})), "kubernetes.io/csi");
    }
}
