//! The devices that a node can reach, pool by pool (`GatherPools`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use apimachinery::object::{Object, ObjectMeta};
use apis::tree::{at, flag, items, members, number, text};
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
    /// The pool's driver and name, with a slash between.
    pub id: String,
    /// Those that the node can reach.
    pub devices: Vec<NodeDevice>,
    /// Its driver has not published all slices of this generation yet.
    pub is_incomplete: bool,
    /// What its driver has published cannot be: two devices of one name, counters that are nowhere.
    pub is_invalid: bool,
    /// What devices share, by the names of set and counter.
    pub counters: Arc<SharedCounters>,
    /// Who shares it, also those that this node cannot reach.
    pub consumers: Arc<Vec<PublishedDevice>>,
}

/// A device as it stands in its slice.
pub(crate) type PublishedDevice = (DeviceId, Arc<Value>);

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
    /// Its counters are wrong.
    is_invalid: bool,
    /// Two of its devices have one name: no node may reach both.
    has_twins: bool,
    counters: Arc<SharedCounters>,
    consumers: Arc<Vec<PublishedDevice>>,
}

/// A slice of the newest generation.
#[derive(Debug)]
struct PublishedSlice {
    /// Who can reach it, unless each device says so.
    spec: Value,
    devices: Vec<PublishedDevice>,
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
    let sets: Vec<&Value> = slices.iter().flat_map(|slice| items(slice, "spec.sharedCounters")).collect();
    let names: BTreeSet<&str> = sets.iter().map(|set| text(set, "name")).collect();
    let is_named_twice = names.len() < sets.len();
    let counters = shared_counters(&sets);
    let is_incomplete = slices.len() as i64 != wanted;
    let slices: Vec<PublishedSlice> = slices.into_iter().map(slice).collect();
    let devices = || slices.iter().flat_map(|slice| &slice.devices);
    let device_names: BTreeSet<&str> = devices().map(|(id, _)| id.2.as_str()).collect();
    let has_twins = device_names.len() < devices().count();
    let consumers: Vec<PublishedDevice> =
        devices().filter(|(_, tree)| consumption(tree).next().is_some()).cloned().collect();
    let is_known =
        |(_, tree): &PublishedDevice| consumption(tree).all(|(key, _)| counters.contains_key(&key));
    Some(PublishedPool {
        is_invalid: is_named_twice || !consumers.iter().all(is_known),
        has_twins,
        slices,
        is_incomplete,
        counters: Arc::new(counters),
        consumers: Arc::new(consumers),
    })
}

fn shared_counters(sets: &[&Value]) -> SharedCounters {
    let mut counters = SharedCounters::new();
    for set in sets {
        for (name, counter) in members(set, "counters") {
            let key = (text(set, "name").to_owned(), name.clone());
            counters.insert(key, at(counter, "value").clone());
        }
    }
    counters
}

/// What a device takes of the counters that it shares, by the names of set and counter.
pub(crate) fn consumption(device: &Value) -> impl Iterator<Item = ((String, String), &Value)> + '_ {
    items(device, "consumesCounters").iter().flat_map(|set| {
        let name = text(set, "counterSet").to_owned();
        members(set, "counters").map(move |(counter, it)| ((name.clone(), counter.clone()), at(it, "value")))
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
    let pools = published.0.iter().filter_map(|((driver, name), pool)| {
        let mut found = DevicePool {
            id: format!("{driver}/{name}"),
            devices: pool.slices.iter().flat_map(|slice| slice.devices_of(node)).collect(),
            is_incomplete: pool.is_incomplete,
            is_invalid: pool.is_invalid,
            counters: pool.counters.clone(),
            consumers: pool.consumers.clone(),
        };
        if pool.has_twins {
            found.refuse_twins();
        }
        (!found.devices.is_empty()).then_some(found)
    });
    let mut pools: Vec<DevicePool> = pools.collect();
    pools.sort_by_cached_key(DevicePool::has_binding_conditions);
    pools
}

impl DevicePool {
    /// Whether devices can be had of it (`IsIncomplete`, `IsInvalid`).
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_incomplete && !self.is_invalid
    }

    /// Of two devices with one name nobody could say who has which.
    fn refuse_twins(&mut self) {
        let mut names = BTreeSet::new();
        self.is_invalid |= !self.devices.iter().all(|device| names.insert(&device.id.2));
    }

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
