//! What a simulated driver tells containers of the devices that they have: variables, as those of
//! dra-example-driver (`CDIContainerEdits`).
//!
//! A device `gpu-0` of `gpu.example.com` is `GPU_DEVICE_0`; what its claim is configured with stands beside.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::VolumeFacts;
use super::sources::{Found, PreparedDevice, Source};
use apis::tree::{flag, is_set, items, text, texts};
use apis::views::pod::Container;

/// The driver whose devices are shared even when nobody says how.
const EXAMPLE_CLASS: &str = "GPU";

/// Of all devices that a container has.
pub(super) fn of_container(facts: &VolumeFacts<'_>, container: &Container) -> BTreeMap<String, String> {
    let Some(Found::Prepared(devices)) = facts.sources.get(&Source::Devices) else { return BTreeMap::new() };
    let has = |device: &&PreparedDevice| {
        let claims = &container.resources.claims;
        claims.iter().any(|claim| claim.name == device.claim && device.is_of(&claim.request))
            || device.claim.is_empty() && is_mapped(facts, container, device)
    };
    devices.iter().filter(has).flat_map(|device| device.variables.iter().cloned()).collect()
}

/// Whether a device is for an extended resource of a container.
fn is_mapped(facts: &VolumeFacts<'_>, container: &Container, device: &PreparedDevice) -> bool {
    let status = facts.pod.status.extended_resource_claim_status.as_deref();
    let mappings = status.map_or(&[][..], |status| items(status, "requestMappings"));
    mappings.iter().any(|mapping| {
        text(mapping, "containerName") == container.name && device.is_of(text(mapping, "requestName"))
    })
}

/// Of one device that was allocated to a claim.
pub(super) fn of_result(claim: &Value, result: &Value) -> Vec<(String, String)> {
    let [driver, device, request] = ["driver", "device", "request"].map(|field| text(result, field));
    let class = driver.split('.').next().unwrap_or_default().to_uppercase().replace('-', "_");
    let id = device.split_once('-').map_or(device, |(_, id)| id).to_uppercase().replace('-', "_");
    let name = format!("{class}_DEVICE_{id}");
    let mut variables = vec![
        (name.clone(), device.to_owned()),
        (format!("{name}_RESOURCE_CLAIM"), text(claim, "metadata.uid").to_owned()),
        ("DRA_ADMIN_ACCESS".to_owned(), flag(result, "adminAccess").to_string()),
    ];
    let configured = configured(claim, driver, request);
    if class == EXAMPLE_CLASS || configured.is_some() {
        let shared = sharing(configured.unwrap_or(&Value::Null));
        variables.extend(shared.into_iter().map(|(of, value)| (format!("{name}_{of}"), value)));
    }
    for (of, capacity) in [("MEMORY", "consumedCapacity.memory"), ("COMPUTE", "consumedCapacity.compute")] {
        if is_set(result, capacity) {
            variables.push((format!("{name}_{of}"), text(result, capacity).to_owned()));
        }
    }
    variables
}

/// The parameters for a driver that are for a request; the last go before all others, a claim's before its
/// class's, which stand in that order.
fn configured<'a>(claim: &'a Value, driver: &str, request: &str) -> Option<&'a Value> {
    let is_for = |config: &&Value| {
        let requests = texts(config, "requests");
        let is_named = |named: &str| named == request || request.starts_with(&format!("{named}/"));
        text(config, "opaque.driver") == driver
            && (requests.is_empty() || requests.iter().any(|named| is_named(named)))
    };
    let all = items(claim, "status.allocation.devices.config");
    all.iter().rev().find(is_for).map(|config| &config["opaque"]["parameters"])
}

/// How a device is shared (`GpuConfig`), with what goes without saying.
fn sharing(parameters: &Value) -> Vec<(&'static str, String)> {
    let or = |path: &str, default: &str| match text(parameters, path) {
        "" => default.to_owned(),
        said => said.to_owned(),
    };
    let strategy = or("sharing.strategy", "TimeSlicing");
    let detail = match strategy.as_str() {
        "TimeSlicing" => Some(("TIMESLICE_INTERVAL", or("sharing.timeSlicingConfig.interval", "Default"))),
        "SpacePartitioning" => {
            let count = &parameters["sharing"]["spacePartitioningConfig"]["partitionCount"];
            Some(("PARTITION_COUNT", count.as_i64().unwrap_or(1).to_string()))
        }
        _ => None,
    };
    [("SHARING_STRATEGY", strategy)].into_iter().chain(detail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_device_is_told_with_what_its_request_is_configured() {
        let config = |requests: Value, sharing: Value| {
            let parameters = json!({"kind": "GpuConfig", "sharing": sharing});
            json!({"requests": requests, "opaque": {"driver": "gpu.example.com", "parameters": parameters}})
        };
        let spaces =
            json!({"strategy": "SpacePartitioning", "spacePartitioningConfig": {"partitionCount": 10}});
        let slices = json!({"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}});
        let configs = [config(json!([]), slices), config(json!(["sp"]), spaces)];
        let claim =
            json!({"metadata": {"uid": "u"}, "status": {"allocation": {"devices": {"config": configs}}}});
        let told = |driver: &str, device: &str, request: &str| {
            let result = json!({"driver": driver, "device": device, "request": request,
                "consumedCapacity": {"memory": "16Gi"}});
            let mut all: Vec<String> =
                of_result(&claim, &result).iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.retain(|line| !line.contains("RESOURCE_CLAIM") && !line.starts_with("DRA_"));
            all
        };
        let expected = [
            "GPU_DEVICE_0=gpu-0",
            "GPU_DEVICE_0_SHARING_STRATEGY=TimeSlicing",
            "GPU_DEVICE_0_TIMESLICE_INTERVAL=Long",
            "GPU_DEVICE_0_MEMORY=16Gi",
        ];
        assert_eq!(told("gpu.example.com", "gpu-0", "ts"), expected);
        let expected = [
            "GPU_DEVICE_1_PARTITION_2=gpu-1-partition-2",
            "GPU_DEVICE_1_PARTITION_2_SHARING_STRATEGY=SpacePartitioning",
            "GPU_DEVICE_1_PARTITION_2_PARTITION_COUNT=10",
            "GPU_DEVICE_1_PARTITION_2_MEMORY=16Gi",
        ];
        assert_eq!(told("gpu.example.com", "gpu-1-partition-2", "sp/half"), expected);
        assert_eq!(told("nic.example.com", "nic-3", "n"), ["NIC_DEVICE_3=nic-3", "NIC_DEVICE_3_MEMORY=16Gi"]);
    }
}
