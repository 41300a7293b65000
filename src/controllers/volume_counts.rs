//! How many volumes and claims there are (`pkg/controller/volume/persistentvolume/metrics`,
//! `attachdetach/metrics`): looked up when somebody asks.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use apis::tree::{flag, items, text};
use client_go::lister::Lister;
use component_base::metrics::{Family, Render, heading};

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
pub(crate) type LabelledCounts = BTreeMap<Vec<String>, u64>;

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

    fn in_use(&self) -> LabelledCounts {
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
                    *counts.entry(vec![node.to_owned(), plugin(&volume)]).or_default() += 1;
                }
            }
        }
        counts
    }

    /// What is attached, and what is to be.
    fn total(&self) -> LabelledCounts {
        let mut counts = LabelledCounts::new();
        for attachment in self.attachments.all() {
            let tree = attachment.to_value();
            let plugin = format!("kubernetes.io/csi:{}", text(&tree, "spec.attacher"));
            if !attachment.is_deleting() {
                *counts.entry(vec![plugin.clone(), "desired_state_of_world".into()]).or_default() += 1;
            }
            if flag(&tree, "status.attached") {
                *counts.entry(vec![plugin, "actual_state_of_world".into()]).or_default() += 1;
            }
        }
        counts
    }
}

impl Render for AttachmentCounts {
    fn render(&self, out: &mut String) {
        self.forced.render(out);
        let name = "attachdetach_controller_total_volumes";
        gauge(out, name, "Number of volumes in A/D Controller", &["plugin_name", "state"], &self.total());
        let name = "storage_count_attachable_volumes_in_use";
        gauge(out, name, "Measure number of volumes in use", &["node", "volume_plugin"], &self.in_use());
    }
}

impl Render for VolumeCounts {
    fn render(&self, out: &mut String) {
        let volumes: Vec<Value> = self.volumes.all().iter().map(|volume| volume.to_value()).collect();
        let claims: Vec<Value> = self.claims.all().iter().map(|claim| claim.to_value()).collect();
        let is_bound = |tree: &&Value| text(tree, "status.phase") == "Bound";
        let is_open = |tree: &&Value| !is_bound(tree) && text(tree, "status.phase") != "Failed";
        let by_class = |tree: &Value| vec![text(tree, "spec.storageClassName").to_owned()];
        let by_claim = |tree: &Value| {
            ["metadata.namespace", "spec.storageClassName", "spec.volumeAttributesClassName"]
                .map(|path| text(tree, path).to_owned())
                .to_vec()
        };
        let by_plugin = |tree: &Value| vec![plugin(tree), text(tree, "spec.volumeMode").to_owned()];
        let of_claims = ["namespace", "storage_class", "volume_attributes_class"];
        let bound = "Gauge measuring number of persistent volume claim currently bound";
        let name = "pv_collector_bound_pvc_count";
        gauge(out, name, bound, &of_claims, &count(claims.iter().filter(is_bound), by_claim));
        let bound = "Gauge measuring number of persistent volume currently bound";
        let name = "pv_collector_bound_pv_count";
        gauge(out, name, bound, &["storage_class"], &count(volumes.iter().filter(is_bound), by_class));
        let total = "Gauge measuring total number of persistent volumes";
        let name = "pv_collector_total_pv_count";
        gauge(out, name, total, &["plugin_name", "volume_mode"], &count(volumes.iter(), by_plugin));
        let unbound = "Gauge measuring number of persistent volume claim currently unbound";
        let name = "pv_collector_unbound_pvc_count";
        let open = claims.iter().filter(|claim| !is_bound(claim));
        gauge(out, name, unbound, &of_claims, &count(open, by_claim));
        let unbound = "Gauge measuring number of persistent volume currently unbound";
        let name = "pv_collector_unbound_pv_count";
        gauge(out, name, unbound, &["storage_class"], &count(volumes.iter().filter(is_open), by_class));
    }
}

fn count<'a>(
    trees: impl Iterator<Item = &'a Value>,
    labels: impl Fn(&Value) -> Vec<String>,
) -> LabelledCounts {
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

/// Nothing where there is none.
pub(crate) fn gauge(out: &mut String, name: &str, help: &str, labels: &[&str], counts: &LabelledCounts) {
    if counts.is_empty() {
        return;
    }
    heading(out, name, "gauge", &format!("[ALPHA] {help}"));
    for (values, count) in counts {
        let pairs: Vec<String> =
            labels.iter().zip(values).map(|(label, value)| format!("{label}={value:?}")).collect();
        // Writing into a text cannot fail.
        let _ = writeln!(out, "{name}{{{}}} {count}", pairs.join(","));
    }
}
