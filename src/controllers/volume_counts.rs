//! How many volumes and claims there are (`pkg/controller/volume/persistentvolume/metrics`,
//! `attachdetach/metrics`): looked up when somebody asks.

use std::collections::BTreeMap;

use serde_json::Value;

use apis::tree::{flag, items, text};
use client_go::lister::Lister;
use component_base::metrics::{Family, Render, gauge};

/// Of the volume binder.
pub(crate) struct VolumeCounts {
    /// The volumes that there are.
    pub(crate) volumes: Lister,
    /// Their claims.
    pub(crate) claims: Lister,
}

/// Of the attach and detach controller.
pub(crate) struct AttachmentCounts {
    /// The volumes that there are.
    pub(crate) volumes: Lister,
    /// Their claims.
    pub(crate) claims: Lister,
    /// Whose pods use them.
    pub(crate) pods: Lister,
    /// What is attached where.
    pub(crate) attachments: Lister,
    /// Detached although the node may still use them, and why.
    pub(crate) forced: Family<1>,
}

/// By the values of the labels.
pub(crate) type LabelledCounts<const N: usize> = BTreeMap<[String; N], u64>;

impl AttachmentCounts {
    /// `forced_detaches`, of which none has been.
    pub(crate) fn forced() -> Family<1> {
        Family::counter(
            "attachdetach_controller_forced_detaches",
            "[ALPHA] Number of times the A/D Controller performed a forced detach",
            ["reason"],
        )
    }

    /// The volume of a claim that pods use.
    fn volume_of(&self, namespace: &str, claim: &str) -> Option<Value> {
        let claim = self.claims.get(namespace, claim)?.to_value();
        self.volumes.get("", text(&claim, "spec.volumeName")).map(|volume| volume.to_value())
    }

    fn in_use(&self) -> LabelledCounts<2> {
        let mut counts = LabelledCounts::new();
        for pod in self.pods.all() {
            let tree = pod.to_value();
            let node = text(&tree, "spec.nodeName");
            if node.is_empty() {
                continue;
            }
            for volume in items(&tree, "spec.volumes") {
                let claim = text(volume, "persistentVolumeClaim.claimName");
                if let Some(volume) = self.volume_of(&pod.metadata.namespace, claim) {
                    *counts.entry([node.to_owned(), plugin(&volume)]).or_default() += 1;
                }
            }
        }
        counts
    }

    /// What is attached, and what is to be.
    fn total(&self) -> LabelledCounts<2> {
        let mut counts = LabelledCounts::new();
        for attachment in self.attachments.all() {
            let tree = attachment.to_value();
            let plugin = format!("kubernetes.io/csi:{}", text(&tree, "spec.attacher"));
            if !attachment.is_deleting() {
                *counts.entry([plugin.clone(), "desired_state_of_world".into()]).or_default() += 1;
            }
            if flag(&tree, "status.attached") {
                *counts.entry([plugin, "actual_state_of_world".into()]).or_default() += 1;
            }
        }
        counts
    }
}

impl Render for AttachmentCounts {
    fn render(&self, out: &mut String) {
        self.forced.render(out);
        let total = ("attachdetach_controller_total_volumes", "[ALPHA] Number of volumes in A/D Controller");
        gauge(out, total, ["plugin_name", "state"], self.total());
        let in_use = ("storage_count_attachable_volumes_in_use", "[ALPHA] Measure number of volumes in use");
        gauge(out, in_use, ["node", "volume_plugin"], self.in_use());
    }
}

impl Render for VolumeCounts {
    fn render(&self, out: &mut String) {
        let volumes: Vec<Value> = self.volumes.all().iter().map(|volume| volume.to_value()).collect();
        let claims: Vec<Value> = self.claims.all().iter().map(|claim| claim.to_value()).collect();
        let is_bound = |tree: &&Value| text(tree, "status.phase") == "Bound";
        let is_open = |tree: &&Value| !is_bound(tree) && text(tree, "status.phase") != "Failed";
        let by_class = |tree: &Value| [text(tree, "spec.storageClassName").to_owned()];
        let by_claim = |tree: &Value| {
            ["metadata.namespace", "spec.storageClassName", "spec.volumeAttributesClassName"]
                .map(|path| text(tree, path).to_owned())
        };
        let by_plugin = |tree: &Value| [plugin(tree), text(tree, "spec.volumeMode").to_owned()];
        let of_claims = ["namespace", "storage_class", "volume_attributes_class"];
        let of_volumes = ["storage_class"];
        let help = "[ALPHA] Gauge measuring number of persistent volume claim currently bound";
        let bound = count(claims.iter().filter(is_bound), by_claim);
        gauge(out, ("pv_collector_bound_pvc_count", help), of_claims, bound);
        let help = "[ALPHA] Gauge measuring number of persistent volume currently bound";
        let bound = count(volumes.iter().filter(is_bound), by_class);
        gauge(out, ("pv_collector_bound_pv_count", help), of_volumes, bound);
        let help = "[ALPHA] Gauge measuring total number of persistent volumes";
        let total = count(volumes.iter(), by_plugin);
        gauge(out, ("pv_collector_total_pv_count", help), ["plugin_name", "volume_mode"], total);
        let help = "[ALPHA] Gauge measuring number of persistent volume claim currently unbound";
        let unbound = count(claims.iter().filter(|claim| !is_bound(claim)), by_claim);
        gauge(out, ("pv_collector_unbound_pvc_count", help), of_claims, unbound);
        let help = "[ALPHA] Gauge measuring number of persistent volume currently unbound";
        let unbound = count(volumes.iter().filter(is_open), by_class);
        gauge(out, ("pv_collector_unbound_pv_count", help), of_volumes, unbound);
    }
}

fn count<'a, const N: usize>(
    trees: impl Iterator<Item = &'a Value>,
    labels: impl Fn(&Value) -> [String; N],
) -> LabelledCounts<N> {
    let mut counts = LabelledCounts::new();
    trees.for_each(|tree| *counts.entry(labels(tree)).or_default() += 1);
    counts
}

/// As the plugins are called that see to them (`GetFullQualifiedPluginNameForVolume`).
fn plugin(volume: &Value) -> String {
    const IN_TREE: [(&str, &str); 5] = [
        ("hostPath", "kubernetes.io/host-path"),
        ("local", "kubernetes.io/local-volume"),
        ("nfs", "kubernetes.io/nfs"),
        ("iscsi", "kubernetes.io/iscsi"),
        ("fc", "kubernetes.io/fc"),
    ];
    let driver = text(volume, "spec.csi.driver");
    if !driver.is_empty() {
        return format!("kubernetes.io/csi:{driver}");
    }
    let found = IN_TREE.iter().find(|(field, _)| !volume["spec"][*field].is_null());
    found.map_or("N/A", |(_, plugin)| plugin).to_owned()
}
