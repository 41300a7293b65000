//! What a driver on a simulated node publishes of its devices
//! (`k8s.io/dynamic-resource-allocation/resourceslice`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::dependencies::Dependencies;
use super::device_group::DeviceGroup;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::resource::resource_slice::RESOURCE_SLICES;
use apis::tree::{at, items, text};

/// As many as are in one slice (`ResourceSliceMaxDevicesWithTaintsOrConsumesCounters`).
const MAX_IN_SLICE: usize = 64;
/// Until slices that could not be written are tried again.
const PUBLISH_RETRY: Duration = Duration::from_secs(1);

/// The slices of a node, each driver's with a pool that is named after the node.
fn slices(groups: &[DeviceGroup], node: &str, uid: &str) -> Vec<Value> {
    let mut by_driver: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for group in groups {
        by_driver.entry(&group.driver).or_default().extend(group.devices());
    }
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": true});
    let mut slices = Vec::new();
    for (driver, devices) in by_driver {
        let chunks = devices.chunks(MAX_IN_SLICE);
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": chunks.len()});
        slices.extend(chunks.enumerate().map(|(at, devices)| {
            json!({
                "metadata": {"name": format!("{node}-{driver}-{at}"), "ownerReferences": [owner]},
                "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": devices},
            })
        }));
    }
    slices
}

/// Publishes what the node has. What is there from an earlier time is brought up to date; taints that
/// somebody has put on stay.
pub(crate) async fn publish(kubelet: Arc<Dependencies>) {
    while let Err(status) = try_publish(&kubelet).await {
        tracing::debug!(node = kubelet.node_name(), status = %status.message, "publishing devices");
        kubelet.context.clock.sleep(PUBLISH_RETRY).await;
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
        if let Some(taints) = known.and_then(|known| known.get("taints"))
            && device.get("taints").is_none()
        {
            device["taints"] = taints.clone();
        }
    }
    there["spec"] = spec;
    there["metadata"]["ownerReferences"] = wanted["metadata"]["ownerReferences"].clone();
    *there != before
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
}
