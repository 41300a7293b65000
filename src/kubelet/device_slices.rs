//! What a driver on a simulated node publishes of its devices
//! (`k8s.io/dynamic-resource-allocation/resourceslice`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::dependencies::Dependencies;
use super::device_counters::CounterSet;
use super::device_group::DeviceGroup;
use super::node_refusal::NodeRefusal;
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::resource::resource_slice::RESOURCE_SLICES;
use apis::tree::{at, items, text};
use client_go::shared_informer::{Deleted, ResourceEventHandler};

/// As many as are in one slice (`ResourceSliceMaxDevicesWithTaintsOrConsumesCounters`).
const MAX_IN_SLICE: usize = 64;
/// As many sets of counters as are in one slice (`ResourceSliceMaxCounterSets`).
const MAX_SETS_IN_SLICE: usize = 8;
/// Until slices that could not be written are tried again; each time twice as long, as those of a node that
/// is gone cannot be.
const PUBLISH_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(64);
/// Until slices that somebody deleted are there again (`DefaultSyncDelay`).
const SYNC_DELAY: Duration = Duration::from_secs(30);

/// What one driver has on a node.
#[derive(Default)]
struct OfDriver {
    devices: Vec<Value>,
    counters: Vec<Value>,
}

/// The slices of a node, each driver's with a pool that is named after the node. Counters that devices share
/// stand in slices of their own, after those of the devices.
fn slices(groups: &[DeviceGroup], node: &str, uid: &str) -> Vec<Value> {
    let mut by_driver: BTreeMap<&str, OfDriver> = BTreeMap::new();
    for group in groups {
        let own = by_driver.entry(&group.driver).or_default();
        own.devices.extend(group.devices());
        own.counters.extend(group.shared_counters.iter().map(CounterSet::in_slice));
    }
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": true});
    let mut slices = Vec::new();
    for (driver, OfDriver { devices, counters }) in by_driver {
        let devices = devices.chunks(MAX_IN_SLICE).map(|devices| ("devices", devices));
        let counters = counters.chunks(MAX_SETS_IN_SLICE).map(|sets| ("sharedCounters", sets));
        let parts: Vec<(&str, &[Value])> = devices.chain(counters).collect();
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": parts.len()});
        slices.extend(parts.iter().enumerate().map(|(at, (field, part))| {
            json!({
                "metadata": {"name": format!("{node}-{driver}-{at}"), "ownerReferences": [owner]},
                "spec": {"driver": driver, "nodeName": node, "pool": pool, *field: part},
            })
        }));
    }
    slices
}

/// Whether a node can have such devices together: what an apiserver says of their slices, and what only all
/// of them show.
///
/// # Errors
/// What is wrong, as of the ResourceSlice that would be published.
pub(crate) fn check(groups: &[DeviceGroup]) -> Result<(), NodeRefusal> {
    let drivers: BTreeSet<&str> = groups.iter().map(|group| group.driver.as_str()).collect();
    for driver in drivers {
        let own: Vec<&DeviceGroup> = groups.iter().filter(|group| group.driver == driver).collect();
        if let Some(why) = problem_of_driver(&own) {
            return Err(format!("devices of {driver:?}: {why}").into());
        }
    }
    for slice in slices(groups, "node", "uid") {
        if let Some(cause) = RESOURCE_SLICES.strategy.validate(&slice).causes().first() {
            let driver = text(&slice, "spec.driver");
            return Err(format!("devices of {driver:?}: {}: {}", cause.field, cause.message).into());
        }
    }
    Ok(())
}

/// What is wrong with the devices of a driver together: names that stand twice, and counters that are not
/// there. A ResourceSlice alone does not show it, since counters stand in another one than devices.
fn problem_of_driver(groups: &[&DeviceGroup]) -> Option<String> {
    let mut sets = BTreeMap::new();
    for set in groups.iter().flat_map(|group| &group.shared_counters) {
        if let Some(why) = set.problem() {
            return Some(why);
        }
        if sets.insert(set.name.as_str(), set).is_some() {
            return Some(format!("sharedCounters: two are named {:?}", set.name));
        }
    }
    let mut names = BTreeSet::new();
    for device in groups.iter().flat_map(|group| group.devices()) {
        if !names.insert(device["name"].to_string()) {
            return Some(format!("two devices are named {}", device["name"]));
        }
    }
    groups.iter().flat_map(|group| &group.consumes_counters).find_map(|taken| taken.problem(&sets))
}

/// Hears of slices that somebody deletes.
struct LostSlices(Arc<Notify>);

impl ResourceEventHandler for LostSlices {
    fn on_add(&self, _: &Arc<Object>, _: bool) {}

    fn on_update(&self, _: &Arc<Object>, _: &Arc<Object>) {}

    fn on_delete(&self, _: &Deleted) {
        self.0.notify_one();
    }
}

/// Publishes what the node has as a task of its kubelet, and again what is lost. What is there from an
/// earlier time is brought up to date; taints that somebody has put on stay.
pub(crate) fn start(kubelet: &Arc<Dependencies>) {
    if kubelet.config.devices.is_empty() {
        return;
    }
    let context = &kubelet.context;
    let lost = Arc::new(Notify::new());
    let own = FieldSelector::equal("spec.nodeName", kubelet.node_name());
    let informer = context.informers.informer_for(&RESOURCE_SLICES, "", own);
    informer.add_handler(LostSlices(lost.clone()));
    context.informers.start(&context.tasks);
    let name = format!("kubelet/{}: devices", kubelet.node_name());
    let shared = kubelet.clone();
    context.tasks.supervise(&name, move || publish(shared.clone(), lost.clone()));
}

async fn publish(kubelet: Arc<Dependencies>, lost: Arc<Notify>) {
    let clock = &kubelet.context.clock;
    loop {
        let mut retry = PUBLISH_RETRY;
        while let Err(status) = try_publish(&kubelet).await {
            tracing::debug!(node = kubelet.node_name(), status = %status.message, "publishing devices");
            // Those of a node that is gone cannot be, and nothing is due until it is there again.
            clock.look_after(retry).await;
            retry = (retry * 2).min(LONGEST_RETRY);
        }
        lost.notified().await;
        clock.sleep(SYNC_DELAY).await;
    }
}

async fn try_publish(kubelet: &Dependencies) -> Result<(), Status> {
    let (client, node) = (&kubelet.context.client, kubelet.node_name());
    let uid = client.get(&NODES, "", node).await?.metadata.uid.clone();
    for slice in slices(&kubelet.config.devices, node, &uid) {
        let name = text(&slice, "metadata.name").to_owned();
        match client.create(&RESOURCE_SLICES, "", slice.clone()).await {
            Err(status) if status.is_already_exists() => {
                let mut there = client.get(&RESOURCE_SLICES, "", &name).await?.to_value();
                if take_over(&mut there, &slice) {
                    client.update(&RESOURCE_SLICES, "", &name, there).await?;
                }
            }
            written => drop(written?),
        }
    }
    Ok(())
}

/// Brings a slice that is there to what it should be. Says whether that changed it.
fn take_over(there: &mut Value, wanted: &Value) -> bool {
    let before = there.clone();
    let mut spec = at(wanted, "spec").clone();
    for device in spec["devices"].as_array_mut().into_iter().flatten() {
        let known = items(&before, "spec.devices").iter().find(|known| known["name"] == device["name"]);
        let Some(taints) = known.and_then(|known| known.get("taints")) else { continue };
        match device.get_mut("taints") {
            None => device["taints"] = taints.clone(),
            Some(wanted) => keep_times(wanted, taints),
        }
    }
    there["spec"] = spec;
    there["metadata"]["ownerReferences"] = wanted["metadata"]["ownerReferences"].clone();
    *there != before
}

/// Since when a taint is there the server has said; it does not begin anew.
fn keep_times(wanted: &mut Value, there: &Value) {
    let there = there.as_array().map(Vec::as_slice).unwrap_or_default();
    for taint in wanted.as_array_mut().into_iter().flatten() {
        let alike = |known: &&Value| ["key", "value", "effect"].iter().all(|it| known[*it] == taint[*it]);
        let since = there.iter().find(alike).and_then(|known| known.get("timeAdded").cloned());
        if taint.get("timeAdded").is_none()
            && let Some(since) = since
        {
            taint["timeAdded"] = since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(count: u32) -> DeviceGroup {
        serde_json::from_value(json!({
            "driver": "gpu.example.com", "name": "gpu", "count": count,
            "attributes": {"model": "A", "driverVersion": {"version": "1.0.0"}},
            "capacity": {"memory": "80Gi"},
        }))
        .unwrap()
    }

    #[test]
    fn devices_are_in_slices_of_their_driver() {
        let slices = slices(&[gpus(65), DeviceGroup { driver: "net.io".into(), ..gpus(1) }], "n", "u");
        let names: Vec<&str> = slices.iter().map(|slice| text(slice, "metadata.name")).collect();
        assert_eq!(names, ["n-gpu.example.com-0", "n-gpu.example.com-1", "n-net.io-0"]);
        assert_eq!(slices[0]["spec"]["pool"], json!({"name": "n", "generation": 1, "resourceSliceCount": 2}));
        assert_eq!(items(&slices[1], "spec.devices").len(), 1);
        let device = &slices[1]["spec"]["devices"][0];
        assert_eq!(device["name"], "gpu-64");
        let attributes = json!({"index": {"int": 64}, "model": {"string": "A"},
            "driverVersion": {"version": "1.0.0"}});
        assert_eq!(device["attributes"], attributes);
        assert_eq!(device["capacity"], json!({"memory": {"value": "80Gi"}}));
    }

    #[test]
    fn taints_that_somebody_put_on_stay() {
        let wanted = slices(&[gpus(2)], "n", "u").remove(0);
        let mut there = wanted.clone();
        there["metadata"]["resourceVersion"] = "7".into();
        assert!(!take_over(&mut there, &wanted));
        there["spec"]["devices"][1]["taints"] = json!([{"key": "k", "effect": "NoExecute"}]);
        assert!(!take_over(&mut there, &wanted));
        there["spec"]["devices"][0]["capacity"] = json!({});
        assert!(take_over(&mut there, &wanted));
        assert_eq!(there["spec"]["devices"][1]["taints"][0]["key"], "k");
    }

    #[test]
    fn a_taint_of_the_configuration_does_not_begin_anew() {
        let taint = json!({"key": "k", "effect": "NoExecute"});
        let group = DeviceGroup { taints: vec![taint.clone()], ..gpus(1) };
        let wanted = slices(&[group], "n", "u").remove(0);
        let mut there = wanted.clone();
        there["spec"]["devices"][0]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z".into();
        let before = there.clone();
        assert!(!take_over(&mut there, &wanted));
        assert_eq!(there, before);
        there["spec"]["devices"][0]["taints"][0]["effect"] = "NoSchedule".into();
        assert!(take_over(&mut there, &wanted));
        assert_eq!(there["spec"]["devices"][0]["taints"], json!([taint]));
    }

    fn read(groups: Value) -> Vec<DeviceGroup> {
        serde_json::from_value(groups).unwrap()
    }

    fn parts(half: Value) -> Vec<DeviceGroup> {
        let sets = json!([{"name": "gpu", "counters": {"memory": "80Gi", "slices": 7}}]);
        let whole = json!([{"counterSet": "gpu", "counters": {"memory": "80Gi", "slices": {"value": "7"}}}]);
        read(json!([
            {"driver": "gpu.io", "name": "gpu", "sharedCounters": sets, "consumesCounters": whole},
            {"driver": "gpu.io", "name": "half", "count": 2, "consumesCounters": [half]},
        ]))
    }

    #[test]
    fn counters_that_devices_share_stand_in_a_slice_of_their_own() {
        let groups = parts(json!({"counterSet": "gpu", "counters": {"memory": "40Gi", "slices": 3}}));
        check(&groups).unwrap();
        let slices = slices(&groups, "n", "u");
        assert_eq!(slices.len(), 2);
        let specs: Vec<&Value> = slices.iter().map(|slice| &slice["spec"]).collect();
        assert_eq!(specs[0]["pool"], json!({"name": "n", "generation": 1, "resourceSliceCount": 2}));
        assert_eq!((specs[0].get("sharedCounters"), specs[1].get("devices")), (None, None));
        let amounts = json!({"memory": {"value": "80Gi"}, "slices": {"value": "7"}});
        assert_eq!(specs[1]["sharedCounters"], json!([{"name": "gpu", "counters": amounts}]));
        assert_eq!(specs[0]["devices"][0]["consumesCounters"][0]["counters"], amounts);
        assert_eq!(specs[0]["devices"][2]["name"], "half-1");
    }

    #[test]
    fn what_several_may_have_says_how_much_of_it() {
        let range = json!({"default": 1, "validRange": {"min": 1, "max": "10", "step": 1}});
        let groups = read(json!([{"driver": "net.io", "name": "nic", "allowMultipleAllocations": true,
            "capacity": {"bandwidth": {"value": 10, "requestPolicy": range}}}]));
        check(&groups).unwrap();
        let device = &slices(&groups, "n", "u")[0]["spec"]["devices"][0];
        assert_eq!(device["allowMultipleAllocations"], true);
        let policy = json!({"default": "1", "validRange": {"min": "1", "max": "10", "step": "1"}});
        assert_eq!(device["capacity"]["bandwidth"], json!({"value": "10", "requestPolicy": policy}));
    }

    #[test]
    fn devices_that_nobody_could_have_are_refused() {
        let taken = |set: &str, counters: Value| parts(json!({"counterSet": set, "counters": counters}));
        let policy = json!({"value": "10", "requestPolicy": {"default": "20", "validRange": {"min": "1", "max": "10"}}});
        let nic = |more: Value| {
            let mut group = json!({"driver": "net.io", "name": "nic", "capacity": {"bandwidth": policy}});
            group.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(json!([group]))
        };
        let sets: Vec<Value> = (0..33).map(|at| json!(format!("c{at}"))).collect();
        let counters: BTreeMap<&str, u32> =
            sets.iter().filter_map(|name| Some((name.as_str()?, 1))).collect();
        for (groups, why) in [
            (taken("cpu", json!({"memory": 1})), "no sharedCounters of this driver are named \"cpu\""),
            (taken("gpu", json!({"cores": 1})), "consumesCounters: \"gpu\" has no counter \"cores\""),
            (taken("gpu", json!({"memory": "much"})), "counter \"memory\": \"much\" is no quantity, as 80Gi"),
            (taken("gpu", json!({})), "spec.devices[1].consumesCounters[0].counters: Required value"),
            (
                nic(json!({})),
                "capacity[bandwidth].requestPolicy: Forbidden: allowMultipleAllocations must be true",
            ),
            (nic(json!({"allowMultipleAllocations": true})), "default is more than max"),
            (
                read(
                    json!([{"driver": "gpu.io", "sharedCounters": [{"name": "all", "counters": counters}]}]),
                ),
                "spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items",
            ),
            (
                read(json!([{"driver": "a.io", "name": "x"}, {"driver": "a.io", "name": "x"}])),
                "devices of \"a.io\": two devices are named \"x-0\"",
            ),
            (
                read(json!([{"driver": "a.io", "attributes": {"model": "x".repeat(65)}}])),
                "Too long: may not be more than 64 bytes",
            ),
        ] {
            let said = check(&groups).unwrap_err().0;
            assert!(said.contains(why), "{why}\n{said}");
        }
    }
}
