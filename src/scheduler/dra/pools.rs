//! The devices that a node can reach, pool by pool (`GatherPools`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use apimachinery::object::{Object, ObjectMeta};
use apis::tree::{at, flag, items, number, text};
use apis::views::node_affinity::NodeSelector;

/// A device by its driver, its pool and its name there.
pub(crate) type DeviceId = (String, String, String);

/// A device that pods on the node can use.
#[derive(Clone, Debug)]
pub(crate) struct NodeDevice {
    /// Which one.
    pub id: DeviceId,
    /// As it stands in its slice.
    pub tree: Arc<Value>,
    /// Where pods must be that use it, as a NodeSelector; none: anywhere.
    pub node_selector: Option<Value>,
}

/// The devices of one pool.
#[derive(Clone, Debug)]
pub(crate) struct DevicePool {
    /// The pool's name.
    pub name: String,
    /// Those that the node can reach.
    pub devices: Vec<NodeDevice>,
    /// Its driver has not published all slices of this generation yet.
    pub is_incomplete: bool,
    /// What devices share, by the names of set and counter.
    pub counters: Arc<SharedCounters>,
}

/// Counters of a pool, by the names of set and counter.
pub(crate) type SharedCounters = BTreeMap<(String, String), Value>;

/// What drivers have published, by driver and name of the pool: the same for all nodes. Of slices of older
/// generations nothing is taken.
#[derive(Debug, Default)]
pub(crate) struct PublishedPools(BTreeMap<(String, String), PublishedPool>);

#[derive(Debug)]
struct PublishedPool {
    slices: Vec<PublishedSlice>,
    is_incomplete: bool,
    counters: Arc<SharedCounters>,
}

/// A slice of the newest generation.
#[derive(Debug)]
struct PublishedSlice {
    /// Who can reach it, unless each device says so.
    spec: Value,
    devices: Vec<(DeviceId, Arc<Value>)>,
}

/// Reads slices.
pub(crate) fn published(slices: &[Arc<Object>]) -> PublishedPools {
    let mut by_pool: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    for slice in slices {
        let tree = slice.to_value();
        let key = (text(&tree, "spec.driver").to_owned(), text(&tree, "spec.pool.name").to_owned());
        by_pool.entry(key).or_default().push(tree);
    }
    let pools = by_pool.into_iter().filter_map(|(key, slices)| Some((key, pool(slices)?)));
    PublishedPools(pools.collect())
}

fn pool(mut slices: Vec<Value>) -> Option<PublishedPool> {
    let generation = |slice: &Value| number(slice, "spec.pool.generation");
    let newest = slices.iter().map(generation).max()?;
    slices.retain(|slice| generation(slice) == newest);
    let wanted = slices.iter().map(|slice| number(slice, "spec.pool.resourceSliceCount")).max()?;
    let mut counters = SharedCounters::new();
    for set in slices.iter().flat_map(|slice| items(slice, "spec.sharedCounters")) {
        for (name, counter) in apis::tree::members(set, "counters") {
            let key = (text(set, "name").to_owned(), name.clone());
            counters.insert(key, at(counter, "value").clone());
        }
    }
    Some(PublishedPool {
        is_incomplete: (slices.len() as i64) < wanted,
        slices: slices.into_iter().map(slice).collect(),
        counters: Arc::new(counters),
    })
}

fn slice(mut tree: Value) -> PublishedSlice {
    let mut spec = tree["spec"].take();
    let devices = spec["devices"].take();
    let devices = devices.as_array().into_iter().flatten().map(|device| {
        let id = (
            text(&spec, "driver").to_owned(),
            text(&spec, "pool.name").to_owned(),
            text(device, "name").to_owned(),
        );
        (id, Arc::new(device.clone()))
    });
    PublishedSlice { devices: devices.collect(), spec }
}

/// The pools that a node can reach, by driver and name (`GatherPools`); those last of which a device has to
/// become ready first.
pub(crate) fn reachable(published: &PublishedPools, node: &ObjectMeta) -> Vec<DevicePool> {
    let pools = published.0.iter().filter_map(|((_, name), pool)| {
        let devices: Vec<_> = pool.slices.iter().flat_map(|slice| slice.devices_of(node)).collect();
        let PublishedPool { is_incomplete, counters, .. } = pool;
        let (name, counters) = (name.clone(), counters.clone());
        let found = DevicePool { name, devices, is_incomplete: *is_incomplete, counters };
        (!found.devices.is_empty()).then_some(found)
    });
    let mut pools: Vec<DevicePool> = pools.collect();
    pools.sort_by_cached_key(DevicePool::has_binding_conditions);
    pools
}

impl DevicePool {
    fn has_binding_conditions(&self) -> bool {
        self.devices.iter().any(|device| !items(&device.tree, "bindingConditions").is_empty())
    }
}

impl PublishedSlice {
    fn devices_of(&self, node: &ObjectMeta) -> Vec<NodeDevice> {
        let each_says = flag(&self.spec, "perDeviceNodeSelection");
        let of_slice = if each_says { None } else { reach(&self.spec, node) };
        if !each_says && of_slice.is_none() {
            return vec![];
        }
        let devices = self.devices.iter().filter_map(|(id, tree)| {
            let mut selector = if each_says { reach(tree, node) } else { of_slice.clone() }?;
            if flag(tree, "bindsToNode") {
                selector = Some(selector_of(&node.name));
            }
            Some(NodeDevice { id: id.clone(), tree: tree.clone(), node_selector: selector })
        });
        devices.collect()
    }
}

/// Whether the node can reach it (`NodeMatches`); if so, which nodes can.
fn reach(says: &Value, node: &ObjectMeta) -> Option<Option<Value>> {
    let name = text(says, "nodeName");
    if !name.is_empty() {
        return (name == node.name).then(|| Some(selector_of(name)));
    }
    if flag(says, "allNodes") {
        return Some(None);
    }
    let selector = at(says, "nodeSelector");
    matches(selector, node).then(|| Some(selector.clone()))
}

fn selector_of(node: &str) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    json!({"nodeSelectorTerms": [{"matchFields": [field]}]})
}

/// Whether a node is selected by a NodeSelector; nothing selects none.
pub(crate) fn matches(selector: &Value, node: &ObjectMeta) -> bool {
    NodeSelector::deserialize(selector).is_ok_and(|selector| selector.matches(node))
}
