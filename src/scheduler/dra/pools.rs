//! The devices that a node can reach, pool by pool (`GatherPools`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

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
    /// Those that the node can reach.
    pub devices: Vec<NodeDevice>,
    /// Its driver has not published all slices of this generation yet.
    pub is_incomplete: bool,
    /// What devices share, by the names of set and counter.
    pub counters: BTreeMap<(String, String), Value>,
}

/// The pools that a node can reach, by driver and name. Of slices of older generations nothing is taken.
pub(crate) fn gather(slices: &[Arc<Object>], node: &ObjectMeta) -> BTreeMap<(String, String), DevicePool> {
    let mut by_pool: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    for slice in slices {
        let tree = slice.to_value();
        let key = (text(&tree, "spec.driver").to_owned(), text(&tree, "spec.pool.name").to_owned());
        by_pool.entry(key).or_default().push(tree);
    }
    let pools = by_pool.into_iter().filter_map(|(key, slices)| Some((key, pool(slices, node)?)));
    pools.collect()
}

fn pool(mut slices: Vec<Value>, node: &ObjectMeta) -> Option<DevicePool> {
    let generation = |slice: &Value| number(slice, "spec.pool.generation");
    let newest = slices.iter().map(generation).max()?;
    slices.retain(|slice| generation(slice) == newest);
    let wanted = slices.iter().map(|slice| number(slice, "spec.pool.resourceSliceCount")).max()?;
    let mut pool = DevicePool {
        devices: vec![],
        is_incomplete: (slices.len() as i64) < wanted,
        counters: BTreeMap::new(),
    };
    for slice in &slices {
        for set in items(slice, "spec.sharedCounters") {
            for (name, counter) in apis::tree::members(set, "counters") {
                let key = (text(set, "name").to_owned(), name.clone());
                pool.counters.insert(key, at(counter, "value").clone());
            }
        }
        pool.devices.extend(devices(slice, node));
    }
    (!pool.devices.is_empty()).then_some(pool)
}

fn devices(slice: &Value, node: &ObjectMeta) -> Vec<NodeDevice> {
    let each_says = flag(slice, "spec.perDeviceNodeSelection");
    let of_slice = if each_says { None } else { reach(at(slice, "spec"), node) };
    let mut found = Vec::new();
    for device in items(slice, "spec.devices") {
        let reach = if each_says { reach(device, node) } else { of_slice.clone() };
        let Some(node_selector) = reach else { continue };
        let id = (
            text(slice, "spec.driver").to_owned(),
            text(slice, "spec.pool.name").to_owned(),
            text(device, "name").to_owned(),
        );
        found.push(NodeDevice { id, tree: Arc::new(device.clone()), node_selector });
    }
    found
}

/// Whether the node can reach it (`NodeMatches`); if so, which nodes can.
fn reach(says: &Value, node: &ObjectMeta) -> Option<Option<Value>> {
    let name = text(says, "nodeName");
    if !name.is_empty() {
        let field = serde_json::json!({"key": "metadata.name", "operator": "In", "values": [name]});
        let selector = serde_json::json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        return (name == node.name).then_some(Some(selector));
    }
    if flag(says, "allNodes") {
        return Some(None);
    }
    let selector = at(says, "nodeSelector");
    matches(selector, node).then(|| Some(selector.clone()))
}

/// Whether a node is selected by a NodeSelector; nothing selects none.
pub(crate) fn matches(selector: &Value, node: &ObjectMeta) -> bool {
    NodeSelector::deserialize(selector).is_ok_and(|selector| selector.matches(node))
}
