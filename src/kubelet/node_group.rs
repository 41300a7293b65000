//! Nodes as data: groups of nodes that are alike (`--node-config`), and Nodes that somebody has created.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::device_group::DeviceGroup;
use super::device_slices;
use super::node_config::NodeConfig;
use super::node_refusal::NodeRefusal;
use super::node_system_info::NodeSystemInfo;
use super::static_pods;
use apimachinery::names::{dns1123_subdomain, label_value, qualified_name};
use apimachinery::object::Object;
use apimachinery::quantity::Quantity;
use apimachinery::{duration, yaml};
use apis::core::node_labels::{ARCH, INSTANCE_TYPE, REGION, ZONE};
use apis::views::node::{Node, Taint};

/// As many nodes as a cluster takes: each is a kubelet of its own. More are refused.
pub const MAX_NODES: u32 = 3000;
/// The annotation of a Node that is to have a simulated kubelet, and its value.
pub const SIMULATED: (&str, &str) = ("kubarium.dev/node", "simulated");
/// As kwok has it.
const FAKE: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
/// How far a node's clock goes wrong.
const CLOCK_SKEW: &str = "kubarium.dev/clock-skew";
const ROLE: &str = "node-role.kubernetes.io/";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Nodes that are alike, and how many there are of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeGroup {
    /// The name of its node; with a count, what the names begin with: `gpu` makes `gpu-1` and on.
    pub name: String,
    /// How many; without, one, which has the group's name.
    pub count: Option<u32>,
    /// Their labels, beside those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Their annotations, beside those that every node has.
    pub annotations: BTreeMap<String, String>,
    /// The zones in which they are, in turns.
    pub zones: Vec<String>,
    /// The region in which they are.
    pub region: String,
    /// As `m5.large`.
    pub instance_type: String,
    /// As `worker`: a label `node-role.kubernetes.io/worker`.
    pub roles: Vec<String>,
    /// As `dedicated=gpu:NoSchedule`, or as a Node has them.
    #[serde(deserialize_with = "taints")]
    pub taints: Vec<Taint>,
    /// What they have beside 8 CPUs, 32 GiB, 100 GiB of disk and the pods of `--max-pods`, or instead.
    #[serde(deserialize_with = "amounts")]
    pub capacity: BTreeMap<String, String>,
    /// What is left of that for pods, where that is less than all.
    #[serde(deserialize_with = "amounts")]
    pub allocatable: BTreeMap<String, String>,
    /// Images that they have from the start: pods with `imagePullPolicy: Never` find no others.
    pub images: Vec<String>,
    /// Pods that each of them runs of itself, as manifests: static pods.
    pub static_pods: Vec<Value>,
    /// Devices that claims ask for (`resource.k8s.io`): each node has as many.
    pub devices: Vec<DeviceGroup>,
    /// As `arm64`.
    pub architecture: String,
    /// `linux` or `windows`.
    pub operating_system: String,
    /// For people.
    pub os_image: String,
    /// As `6.12.0`.
    pub kernel_version: String,
    /// As `v1.35.0`.
    pub kubelet_version: String,
    /// As `containerd://2.1.4`.
    pub container_runtime_version: String,
    /// By how much their clock is ahead, as `90s`; `-90s` is behind.
    pub clock_skew: String,
}

/// `--node-config`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NodeConfigFile {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    nodes: Vec<NodeGroup>,
}

impl NodeGroup {
    /// Reads a file of groups: `nodes:` and a list.
    ///
    /// # Errors
    /// What is wrong, for a person: a field that there is not, a name that is none, more than [`MAX_NODES`].
    pub fn read(text: &str) -> Result<Vec<NodeGroup>, NodeRefusal> {
        let file: NodeConfigFile = yaml::from_str(text).map_err(|error| NodeRefusal(error.to_string()))?;
        let is_ours = |given: &Option<String>, own: &str| given.as_deref().is_none_or(|given| given == own);
        if !is_ours(&file.api_version, "kubarium.dev/v1alpha1") || !is_ours(&file.kind, "NodeConfig") {
            let why = "must be kind NodeConfig of apiVersion kubarium.dev/v1alpha1, or say neither";
            return Err(NodeRefusal(why.into()));
        }
        check_all(&file.nodes)?;
        Ok(file.nodes)
    }

    /// Whether its nodes can be made.
    ///
    /// # Errors
    /// What is wrong with which field.
    pub fn check(&self) -> Result<(), NodeRefusal> {
        let name = self.names().last().unwrap_or_else(|| self.name.clone());
        let at = |field: &str, why: Vec<String>| match why.first() {
            Some(why) => Err(NodeRefusal(format!("node group {:?}: {field}: {why}", self.name))),
            None => Ok(()),
        };
        at("name", dns1123_subdomain(&name))?;
        for (key, value) in &self.all_labels(0) {
            at(&format!("label {key:?}"), qualified_name(key))?;
            at(&format!("label {key:?}"), label_value(value))?;
        }
        // Labels of nodes, too.
        for zone in &self.zones {
            at(&format!("zone {zone:?}"), label_value(zone))?;
        }
        at("architecture", label_value(&self.architecture))?;
        at("operatingSystem", label_value(&self.operating_system))?;
        for key in self.annotations.keys() {
            at(&format!("annotation {key:?}"), qualified_name(&key.to_lowercase()))?;
        }
        for taint in &self.taints {
            at(&format!("taint {:?}", taint.key), wrong_taint(taint))?;
        }
        for (name, amount) in self.capacity.iter().chain(&self.allocatable) {
            at(&format!("resource {name:?}"), qualified_name(name))?;
            at(&format!("amount of {name:?}"), wrong_amount(amount))?;
        }
        for (name, amount) in &self.allocatable {
            at(&format!("allocatable {name:?}"), self.too_much(name, amount).into_iter().collect())?;
        }
        for devices in &self.devices {
            at(
                &format!("devices of {:?}", devices.driver),
                devices.check().err().map(|why| why.0).into_iter().collect(),
            )?;
        }
        device_slices::check(&self.devices)
            .map_err(|why| NodeRefusal(format!("node group {:?}: {}", self.name, why.0)))?;
        for (number, pod) in self.static_pods.iter().enumerate() {
            at(&format!("staticPods[{number}]"), static_pods::check(pod).into_iter().collect())?;
        }
        let skew = skew_seconds(&self.clock_skew).err();
        at("clockSkew", skew.into_iter().collect())
    }

    /// Why pods cannot have so much of a resource.
    fn too_much(&self, resource: &str, allocatable: &str) -> Option<String> {
        let usual = NodeConfig::numbered(1).capacity;
        let capacity = self.capacity.get(resource).or_else(|| usual.get(resource))?;
        let (whole, part) = (Quantity::parse(capacity).ok()?, Quantity::parse(allocatable).ok()?);
        (part > whole).then(|| format!("{allocatable} is more than the capacity, which is {capacity}"))
    }

    /// How many nodes it has.
    pub fn size(&self) -> u32 {
        self.count.unwrap_or(1)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let named = |number| match self.count {
            Some(_) => format!("{}-{number}", self.name),
            None => self.name.clone(),
        };
        (1..=self.size()).map(named)
    }

    /// Makes a node of it, counted from 0, out of one that has its addresses already.
    pub fn fill(&self, at: u32, node: &mut NodeConfig) {
        node.name = self.names().nth(at as usize).unwrap_or_default();
        node.labels.extend(self.all_labels(at));
        node.annotations.insert(SIMULATED.0.into(), SIMULATED.1.into());
        if !self.clock_skew.is_empty() {
            node.annotations.insert(CLOCK_SKEW.into(), self.clock_skew.clone());
        }
        node.annotations.extend(self.annotations.clone());
        node.taints.clone_from(&self.taints);
        node.capacity.extend(self.capacity.clone());
        node.reserved.extend(self.allocatable.clone());
        node.images.clone_from(&self.images);
        node.static_pods.clone_from(&self.static_pods);
        node.devices.clone_from(&self.devices);
        node.are_images_listed = !self.images.is_empty();
        node.clock_skew = skew_seconds(&self.clock_skew).unwrap_or(0);
        node.info = NodeSystemInfo::or_default(NodeSystemInfo {
            architecture: self.architecture.clone(),
            operating_system: self.operating_system.clone(),
            os_image: self.os_image.clone(),
            kernel_version: self.kernel_version.clone(),
            kubelet_version: self.kubelet_version.clone(),
            container_runtime_version: self.container_runtime_version.clone(),
        });
    }

    fn all_labels(&self, at: u32) -> BTreeMap<String, String> {
        let zone = self.zones.get(at as usize % self.zones.len().max(1));
        let own = [
            (ZONE, zone.map_or("", String::as_str)),
            (REGION, self.region.as_str()),
            (INSTANCE_TYPE, self.instance_type.as_str()),
        ];
        let own = own.into_iter().filter(|(_, value)| !value.is_empty());
        let mut labels: BTreeMap<String, String> =
            own.map(|(key, value)| (key.into(), value.into())).collect();
        labels.extend(self.roles.iter().map(|role| (format!("{ROLE}{role}"), String::new())));
        labels.extend(self.labels.clone());
        labels
    }
}

/// Whether groups can be had together.
///
/// # Errors
/// As [`NodeGroup::check`]; two nodes of one name; too many.
pub fn check_all(groups: &[NodeGroup]) -> Result<(), NodeRefusal> {
    let count: u64 = groups.iter().map(|group| u64::from(group.size())).sum();
    if count > u64::from(MAX_NODES) {
        return Err(format!("{count} nodes are too many: a cluster takes {MAX_NODES}").into());
    }
    groups.iter().try_for_each(NodeGroup::check)?;
    let mut names: Vec<String> = groups.iter().flat_map(NodeGroup::names).collect();
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two nodes are named {:?}", pair[0]).into()),
        None => Ok(()),
    }
}

/// Whether a Node is to have a simulated kubelet.
pub fn is_simulated(node: &Object) -> bool {
    let view = node.view::<Node>();
    [SIMULATED, FAKE]
        .iter()
        .any(|(key, value)| view.metadata.annotations.get(*key).is_some_and(|given| given == value))
}

/// What a Node that somebody has created says of itself, over what it has been given.
pub fn take_from(object: &Object, node: &mut NodeConfig) {
    let view = object.view::<Node>();
    node.name.clone_from(&object.metadata.name);
    let addresses = internal_addresses(&view);
    if !addresses.is_empty() {
        node.addresses = addresses;
    }
    if !view.spec.pod_ranges().is_empty() {
        node.pod_cidrs = view.spec.pod_ranges().to_vec();
    }
    node.capacity.extend(view.status.capacity.clone());
    node.reserved = view.status.allocatable.clone();
    node.images = view.status.images.iter().filter_map(|image| image.names.first().cloned()).collect();
    let info = object.to_value()["status"]["nodeInfo"].take();
    let mut info: NodeSystemInfo = serde_json::from_value(info).unwrap_or_default();
    if let Some(architecture) = object.metadata.labels.get(ARCH) {
        info.architecture.clone_from(architecture);
    }
    node.info = NodeSystemInfo::or_default(info);
    let skew = view.metadata.annotations.get(CLOCK_SKEW).map(String::as_str).unwrap_or_default();
    node.clock_skew = skew_seconds(skew).unwrap_or(0);
}

/// The addresses of a Node, each as it is written everywhere.
pub fn internal_addresses(node: &Node) -> Vec<String> {
    let own = node.status.addresses.iter().filter(|own| own.address_type == "InternalIP");
    let canonical = |text: &String| text.parse::<IpAddr>().map_or_else(|_| text.clone(), |it| it.to_string());
    own.map(|own| canonical(&own.address)).collect()
}

fn wrong_taint(taint: &Taint) -> Vec<String> {
    let mut why = qualified_name(&taint.key);
    why.extend(label_value(&taint.value));
    if !EFFECTS.contains(&taint.effect.as_str()) {
        why.push(format!("the effect must be one of {}", EFFECTS.join(", ")));
    }
    why
}

fn wrong_amount(amount: &str) -> Vec<String> {
    let is_wrong = Quantity::parse(amount).map_or(true, |quantity| quantity.milli_value() < 0);
    is_wrong.then(|| format!("{amount:?} is no quantity, as 4, 500m or 16Gi")).into_iter().collect()
}

fn skew_seconds(text: &str) -> Result<i64, String> {
    let (sign, amount) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    if amount.is_empty() {
        return Ok(0);
    }
    let parsed = duration::parse_flag(amount)?;
    Ok(sign * i64::try_from(parsed.as_secs()).unwrap_or(i64::MAX))
}

/// Numbers are amounts, too.
fn amounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let given = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(given.into_iter().map(|(name, value)| (name, text(value))).collect())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum GivenTaint {
    Text(String),
    Fields(Taint),
}

fn taints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Taint>, D::Error> {
    let given = Vec::<GivenTaint>::deserialize(deserializer)?;
    let read = |taint| match taint {
        GivenTaint::Fields(taint) => taint,
        GivenTaint::Text(text) => taint_of(&text),
    };
    Ok(given.into_iter().map(read).collect())
}

/// As `key=value:Effect`, or `key:Effect`; what is none of these has an effect that there is not.
fn taint_of(text: &str) -> Taint {
    let (pair, effect) = text.rsplit_once(':').unwrap_or((text, ""));
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    Taint { key: key.into(), value: value.into(), effect: effect.into(), time_added: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
nodes:
- name: control-plane
  roles: [control-plane]
  taints: ['node-role.kubernetes.io/control-plane:NoSchedule']
- name: gpu
  count: 3
  zones: [a, b]
  region: r
  instanceType: p4
  labels: {team: vision}
  taints: [{key: dedicated, value: gpu, effect: NoExecute}]
  capacity: {cpu: 64, nvidia.com/gpu: '8'}
  allocatable: {cpu: 62}
  images: [nginx]
  architecture: arm64
  kubeletVersion: v1.35.1
  clockSkew: -90s
";

    #[test]
    fn groups_become_nodes() {
        let groups = NodeGroup::read(FILE).unwrap();
        let names: Vec<String> = groups.iter().flat_map(NodeGroup::names).collect();
        assert_eq!(names, ["control-plane", "gpu-1", "gpu-2", "gpu-3"]);
        let mut node = NodeConfig::numbered(7);
        groups[1].fill(2, &mut node);
        assert_eq!((node.name.as_str(), node.addresses[0].as_str()), ("gpu-3", "172.18.0.8"));
        let labels = node.all_labels();
        let label = |name: &str| labels[name].as_str();
        assert_eq!((label(ZONE), label(REGION), label(INSTANCE_TYPE)), ("a", "r", "p4"));
        assert_eq!((label("team"), label("kubernetes.io/arch")), ("vision", "arm64"));
        assert_eq!(
            (node.capacity["nvidia.com/gpu"].as_str(), node.capacity["memory"].as_str()),
            ("8", "32Gi")
        );
        assert_eq!(node.allocatable()["cpu"], "62");
        assert_eq!(node.taints[0].effect, "NoExecute");
        assert_eq!((node.clock_skew, node.info.kubelet_version.as_str()), (-90, "v1.35.1"));
        assert_eq!(node.object()["spec"]["taints"][0]["key"], "dedicated");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let million = "{nodes: [{name: a, count: 1000000}]}";
        assert_eq!(
            NodeGroup::read(million).unwrap_err().0,
            "1000000 nodes are too many: a cluster takes 3000"
        );
        for (text, why) in [
            ("{nodes: [{name: A}]}", "name: a lowercase RFC 1123 subdomain"),
            ("{nodes: [{name: a, taints: ['x']}]}", "the effect must be one of NoSchedule"),
            ("{nodes: [{name: a, capacity: {cpu: many}}]}", "\"many\" is no quantity"),
            ("{nodes: [{name: a, labels: {'a b': c}}]}", "label \"a b\""),
            ("{nodes: [{name: a}, {name: a}]}", "two nodes are named \"a\""),
            ("{nodes: [{name: a, colour: red}]}", "unknown field"),
            ("{nodes: [{name: a, clockSkew: soon}]}", "clockSkew"),
            ("{nodes: [{name: a, count: 2, zones: [a, 'b c']}]}", "zone \"b c\""),
            ("{nodes: [{name: a, architecture: 'arm 64'}]}", "architecture"),
            ("{nodes: [{name: a, devices: [{driver: d, count: 1000}]}]}", "devices of \"d\": count: 1000"),
            (
                "{nodes: [{name: a, devices: [{driver: d, consumesCounters: [{counterSet: x, counters: {m: 1}}]}]}]}",
                "node group \"a\": devices of \"d\": consumesCounters: no sharedCounters",
            ),
            (
                "{nodes: [{name: a, devices: [{driver: d, sharedCounters: [{name: x, counter: 1}]}]}]}",
                "unknown field",
            ),
            (
                "{nodes: [{name: a, capacity: {cpu: 2}, allocatable: {cpu: 2500m}}]}",
                "node group \"a\": allocatable \"cpu\": 2500m is more than the capacity, which is 2",
            ),
            ("{nodes: [{name: a, allocatable: {memory: 64Gi}}]}", "more than the capacity, which is 32Gi"),
            ("{kind: Pod, nodes: []}", "kind NodeConfig"),
        ] {
            let said = NodeGroup::read(text).unwrap_err().0;
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
