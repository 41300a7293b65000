//! What a simulated node is like: its name, its address and what it has.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::container_runtime::own_listeners::OwnListeners;
use super::container_runtime::own_runtime::OwnRuntime;
use super::container_runtime::pod_addresses::PodAddresses;
use super::container_runtime::stages::StageSet;
use super::device_group::DeviceGroup;
use super::node_refusal::NodeRefusal;
use super::node_system_info::NodeSystemInfo;
use super::options::KubeletOptions;
use super::volume_manager::claimed_files::ClaimedFiles;
use ::stages::{MeasureBook, StageBook};
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;
use apis::core::node_labels::{self, KUBELET_LABELS};
use apis::views::node::Taint;
use usage::LoadBook;

/// Beside [`KUBELET_LABELS`], what a kubelet may say of its own Node again and again
/// (`kubelet.updateDefaultLabels`).
const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// The starts of a node's machine, after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boots {
    /// How many there were.
    pub count: u32,
    /// When the last one was.
    pub last: Option<Time>,
    /// No kubelet has started since.
    pub is_new: bool,
}

impl Boots {
    /// The machine is started again.
    pub fn again(&mut self, now: Time) {
        *self = Boots { count: self.count.saturating_add(1), last: Some(now), is_new: true };
    }

    /// Whether what started then ended with the machine. The first kubelet afterwards finds nothing that
    /// runs. A later one goes by the times, which are written in whole seconds: what started in the second
    /// of the start is taken to have started after it.
    pub(crate) fn ended(&self, started_at: Option<Time>) -> bool {
        let is_earlier = |last: Time| started_at.is_some_and(|at| at.timestamp() < last.timestamp());
        self.is_new || self.last.is_some_and(is_earlier)
    }
}

/// A node, before its kubelet starts.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// As `node-1`.
    pub name: String,
    /// Its addresses (`InternalIP`): one, or one of each IP family, that of its pods first.
    pub addresses: Vec<String>,
    /// Where its pods' addresses come from: one range, or one of each IP family.
    pub pod_cidrs: Vec<String>,
    /// Where its kubelet is reached, in a process of its own; none where the apiserver has it in its hand.
    pub endpoint: Option<SocketAddr>,
    /// The name server of its pods (`--cluster-dns`).
    pub cluster_dns: String,
    /// Labels beside those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Annotations beside those that every node has.
    pub annotations: BTreeMap<String, String>,
    /// What it registers with.
    pub taints: Vec<Taint>,
    /// Quantities of `cpu`, `memory`, `ephemeral-storage` and `pods`, and of whatever else it has.
    pub capacity: BTreeMap<String, String>,
    /// What is left of its capacity for pods, where that is not what is left by itself.
    pub reserved: BTreeMap<String, String>,
    /// Images that it has from the start.
    pub images: Vec<String>,
    /// Pods that it runs of itself, as manifests.
    pub static_pods: Vec<Value>,
    /// The devices that its simulated drivers publish.
    pub devices: Vec<DeviceGroup>,
    /// Whether those are all that it has: of others pods that forbid to pull them wait.
    pub are_images_listed: bool,
    /// What it says of its machine and its programs.
    pub info: NodeSystemInfo,
    /// What is known of its machine's starts.
    pub boots: Boots,
    /// By how many seconds its clock is ahead; below 0, behind.
    pub clock_skew: i64,
    /// What happens to its pods.
    pub stages: StageSet,
    /// Stages of kwok's kind, which play pods and nodes in place of its kubelet.
    pub book: StageBook,
    /// What kwok's objects say that pods use, and what its kubelet answers about it.
    pub measures: MeasureBook,
    /// The requests that Services are said to get.
    pub loads: LoadBook,
    /// What is in the volumes behind claims, of the whole cluster.
    pub claimed_files: ClaimedFiles,
    /// What its kubelet is told.
    pub options: KubeletOptions,
    /// What listens at ports of its pods because the user says so.
    pub listeners: OwnListeners,
    /// What runs its containers, if the user says so.
    pub runtime: OwnRuntime,
}

impl NodeConfig {
    /// The `number`th node, counted from 1: 8 CPUs, 32 GiB, 110 pods, and addresses that go with its number.
    /// The first 3,000 get 254 pod addresses each that nobody else has, as `10.244.1.0/24`.
    pub fn numbered(number: u32) -> NodeConfig {
        NodeConfig::told(number, KubeletOptions::default())
    }

    /// What the `number`th node is called.
    pub fn name_of(number: u32) -> String {
        format!("node-{number}")
    }

    /// As [`NodeConfig::numbered`], of a kubelet that is told this.
    pub fn told(number: u32, options: KubeletOptions) -> NodeConfig {
        let capacity = [("cpu", "8"), ("memory", "32Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")];
        NodeConfig {
            name: NodeConfig::name_of(number),
            addresses: vec![address(number, IpFamily::V4)],
            pod_cidrs: vec![pod_cidr(number, IpFamily::V4)],
            endpoint: None,
            cluster_dns: "10.96.0.10".into(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            reserved: BTreeMap::new(),
            images: Vec::new(),
            static_pods: Vec::new(),
            devices: Vec::new(),
            are_images_listed: false,
            info: NodeSystemInfo::default(),
            boots: Boots::default(),
            clock_skew: 0,
            capacity: capacity.into_iter().map(|(name, amount)| (name.into(), amount.into())).collect(),
            stages: StageSet::builtin(),
            book: StageBook::default(),
            measures: MeasureBook::default(),
            loads: LoadBook::default(),
            claimed_files: ClaimedFiles::default(),
            options,
            listeners: OwnListeners::default(),
            runtime: OwnRuntime::default(),
        }
    }

    /// With an address and a range of its pods' addresses of each of these families, which go with its
    /// number.
    #[must_use]
    pub fn of_families(self, number: u32, families: &[IpFamily]) -> NodeConfig {
        let addresses = families.iter().map(|family| address(number, *family)).collect();
        let pod_cidrs = families.iter().map(|family| pod_cidr(number, *family)).collect();
        NodeConfig { addresses, pod_cidrs, ..self }
    }

    /// With these ranges, and an address of the family of each, which goes with its number.
    #[must_use]
    pub fn with_ranges(self, number: u32, pod_cidrs: Vec<String>) -> NodeConfig {
        let family = |cidr: &String| if cidr.contains(':') { IpFamily::V6 } else { IpFamily::V4 };
        let families: Vec<IpFamily> = pod_cidrs.iter().map(family).collect();
        NodeConfig { pod_cidrs, ..self.of_families(number, &families) }
    }

    /// As they stand in its status. Its name leads nowhere outside of a process of its own: where its
    /// kubelet is reached stands in its place.
    pub(crate) fn node_addresses(&self) -> Value {
        let address = |kind: &str, address: &String| json!({"type": kind, "address": address});
        let own = self.addresses.iter().map(|own| address("InternalIP", own));
        let reached = self.endpoint.map(|endpoint| endpoint.ip().to_string());
        own.chain([address("Hostname", reached.as_ref().unwrap_or(&self.name))]).collect()
    }

    /// As expressions about usage see it.
    pub(crate) fn seen(&self) -> Value {
        json!({
            "metadata": {"name": self.name, "labels": self.all_labels(), "annotations": self.all_annotations()},
            "status": {"capacity": self.capacity, "allocatable": self.allocatable()},
        })
    }

    /// The user that its kubelet is.
    pub fn user_name(&self) -> String {
        format!("system:node:{}", self.name)
    }

    /// What its clock says when it is `now`.
    pub(crate) fn skewed(&self, now: Time) -> Time {
        TimeDelta::try_seconds(self.clock_skew).and_then(|skew| now.checked_add_signed(skew)).unwrap_or(now)
    }

    /// Whether its pods can have addresses, and what its kubelet is told fits together.
    ///
    /// # Errors
    /// An unusable pod CIDR; a soft threshold without a period.
    pub fn check(&self) -> Result<(), NodeRefusal> {
        self.options.check()?;
        self.pod_addresses().map(drop)
    }

    pub(crate) fn pod_addresses(&self) -> Result<PodAddresses, NodeRefusal> {
        let cidrs = &self.pod_cidrs;
        PodAddresses::new(cidrs).ok_or_else(|| format!("invalid pod CIDR {:?}", cidrs.join(",")).into())
    }

    /// As the kubelet registers it, without its status.
    pub fn object(&self) -> Value {
        let mut spec = json!({"podCIDR": self.pod_cidrs.first(), "podCIDRs": self.pod_cidrs});
        if !self.taints.is_empty() {
            spec["taints"] = json!(self.taints);
        }
        json!({
            "metadata": {"name": self.name, "labels": self.all_labels(), "annotations": self.all_annotations()},
            "spec": spec,
        })
    }

    /// Its own, and those that every node has.
    pub(crate) fn all_labels(&self) -> BTreeMap<String, String> {
        let NodeSystemInfo { architecture, operating_system, .. } = &self.info;
        let own = [
            (node_labels::OLDER_ARCH, architecture.as_str()),
            (node_labels::OLDER_OS, operating_system),
            (node_labels::ARCH, architecture),
            (node_labels::HOSTNAME, &self.name),
            (node_labels::OS, operating_system),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        own.into_iter().chain(self.labels.clone()).collect()
    }

    /// Those of its labels that its kubelet brings up to date on a Node that is there
    /// (`updateDefaultLabels`): others are whoever's who may change the Node.
    pub(crate) fn default_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.all_labels();
        labels.retain(|name, _| KUBELET_LABELS.contains(&name.as_str()) || name == WINDOWS_BUILD);
        labels
    }

    fn all_annotations(&self) -> BTreeMap<String, String> {
        let provided = self.addresses.join(",");
        let own = [
            ("alpha.kubernetes.io/provided-node-ip", provided.as_str()),
            ("node.alpha.kubernetes.io/ttl", "0"),
            ("volumes.kubernetes.io/controller-managed-attach-detach", "true"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        own.into_iter().chain(self.annotations.clone()).collect()
    }

    /// How much memory its machine has, in bytes.
    pub(crate) fn memory_capacity(&self) -> i64 {
        self.capacity.get("memory").and_then(|text| Quantity::parse(text).ok()).map_or(0, |all| all.value())
    }

    /// What is left for pods: what it says, else all but what the thresholds of `--eviction-hard` keep; and
    /// of memory what is not in huge pages.
    pub(crate) fn allocatable(&self) -> BTreeMap<String, String> {
        let amount = |(name, amount): (&String, &String)| {
            let left = match (name.as_str(), Quantity::parse(amount)) {
                (name, _) if self.reserved.contains_key(name) => self.reserved[name].clone(),
                (name, Ok(quantity)) => self.left(name, quantity).unwrap_or_else(|| amount.clone()),
                _ => amount.clone(),
            };
            (name.clone(), left)
        };
        self.capacity.iter().map(amount).collect()
    }

    /// Nothing where all is left.
    fn left(&self, resource: &str, mut capacity: Quantity) -> Option<String> {
        let kept = self.options.eviction_hard.kept(resource, capacity.value());
        let pages: Vec<Quantity> = if resource == "memory" { self.huge_pages() } else { Vec::new() };
        if kept.is_none() && pages.is_empty() {
            return None;
        }
        kept.iter().chain(&pages).for_each(|amount| capacity.sub(amount));
        let left = if capacity.sign() < 0 { Quantity::default() } else { capacity };
        Some(if resource == "memory" { left.to_string() } else { left.value().to_string() })
    }

    /// The memory that is in huge pages, by their sizes.
    fn huge_pages(&self) -> Vec<Quantity> {
        let sizes = self.capacity.iter().filter(|(name, _)| name.starts_with("hugepages-"));
        sizes.filter_map(|(_, amount)| Quantity::parse(amount).ok()).collect()
    }
}

/// A family of IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpFamily {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

/// The address of the `number`th node: those of kind's network.
fn address(number: u32, family: IpFamily) -> String {
    let at = number + 1;
    match family {
        IpFamily::V4 => format!("172.18.{}.{}", at >> 8 & 0xff, at & 0xff),
        IpFamily::V6 => format!("fc00:f853:ccd:e793::{at:x}"),
    }
}

/// Where the addresses of its pods come from.
fn pod_cidr(number: u32, family: IpFamily) -> String {
    match family {
        IpFamily::V4 => format!("10.{}.{}.0/24", 244 + (number >> 8) % 12, number & 0xff),
        IpFamily::V6 => format!("fd00:10:244:{number:x}::/64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_goes_on_saying_its_own_labels_alone() {
        let mut node = NodeConfig::numbered(1);
        let given =
            [("team", "a"), ("node-role.kubernetes.io/worker", ""), ("topology.kubernetes.io/zone", "z")];
        node.labels.extend(given.map(|(name, value)| (name.into(), value.into())));
        let own = node.default_labels();
        assert_eq!(own["topology.kubernetes.io/zone"], "z");
        assert_eq!(own["kubernetes.io/hostname"], "node-1");
        assert_eq!(own.len(), node.all_labels().len() - 2);
    }

    #[test]
    fn pods_are_left_what_evictions_do_not_keep() {
        let left = |thresholds: &str| {
            let eviction_hard = thresholds.parse().unwrap();
            let node = NodeConfig::told(1, KubeletOptions { eviction_hard, ..KubeletOptions::default() });
            let allocatable = node.allocatable();
            ["memory", "ephemeral-storage"].map(|name| allocatable[name].clone())
        };
        let usual = NodeConfig::numbered(1).allocatable();
        assert_eq!(
            (usual["memory"].as_str(), usual["ephemeral-storage"].as_str()),
            ("32668Mi", "96636764160")
        );
        assert_eq!(left("memory.available<100Mi"), ["32668Mi", "100Gi"]);
        assert_eq!(left("nodefs.available<10Gi,imagefs.available<50%"), ["32Gi", "96636764160"]);
        assert_eq!(left("memory.available<64Gi"), ["0", "100Gi"]);
        let mut with_pages = NodeConfig::numbered(1);
        with_pages.capacity.insert("hugepages-2Mi".into(), "1Gi".into());
        let allocatable = with_pages.allocatable();
        assert_eq!((&*allocatable["memory"], &*allocatable["hugepages-2Mi"]), ("31644Mi", "1Gi"));
    }

    #[test]
    fn a_node_has_addresses_of_the_families_of_its_pods() {
        let node = NodeConfig::numbered(1).of_families(11, &[IpFamily::V6, IpFamily::V4]);
        let spec = &node.object()["spec"];
        assert_eq!(spec["podCIDR"], "fd00:10:244:b::/64");
        assert_eq!(spec["podCIDRs"], json!(["fd00:10:244:b::/64", "10.244.11.0/24"]));
        let addresses = node.node_addresses();
        assert_eq!(addresses[0], json!({"type": "InternalIP", "address": "fc00:f853:ccd:e793::c"}));
        assert_eq!(addresses[1], json!({"type": "InternalIP", "address": "172.18.0.12"}));
        assert!(node.check().is_ok());
        let node = node.with_ranges(2, vec!["10.7.0.0/24".into()]);
        assert_eq!((node.addresses, node.pod_cidrs), (vec!["172.18.0.3".into()], vec!["10.7.0.0/24".into()]));
    }
}
