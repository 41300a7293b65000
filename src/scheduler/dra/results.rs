//! What a search has found, as it stands in the status of a claim (`resourceapi.AllocationResult`).

use serde_json::{Value, json};

use super::in_use::DeviceCapacity;
use super::pools::NodeDevice;
use super::requests::DeviceRequest;
use apis::tree::{items, text, texts};
use entropy::Entropy;

/// A device for a request.
pub(super) struct Pick<'a> {
    /// The place of its claim among those of the pod.
    pub(super) wish: usize,
    /// Which request.
    pub(super) request: &'a DeviceRequest,
    /// Which device.
    pub(super) device: &'a NodeDevice,
    /// What is taken of it, if others may have it, too.
    pub(super) share: Option<DeviceCapacity>,
    /// What others had of it before.
    pub(super) before: Option<DeviceCapacity>,
}

/// The allocation of a claim.
pub(super) fn allocation_result(claim: &Value, picks: &[&Pick<'_>], entropy: &Entropy) -> Value {
    let results: Vec<Value> = picks.iter().map(|pick| device_result(pick, entropy)).collect();
    let mut allocation = json!({"devices": {"results": results}});
    let config = configuration(claim, picks);
    if !config.is_empty() {
        allocation["devices"]["config"] = config.into();
    }
    if let Some(selector) = node_selector(picks) {
        allocation["nodeSelector"] = selector;
    }
    allocation
}

fn device_result(pick: &Pick<'_>, entropy: &Entropy) -> Value {
    let (driver, pool, device) = &pick.device.id;
    let mut result = json!({"request": pick.request.name, "driver": driver, "pool": pool, "device": device});
    if pick.request.is_admin {
        result["adminAccess"] = true.into();
    }
    let tolerations = items(&pick.request.tree, "tolerations");
    if !tolerations.is_empty() {
        result["tolerations"] = tolerations.to_vec().into();
    }
    if let Some(share) = &pick.share {
        result["shareID"] = entropy.uid().into();
        let amounts = share.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
        result["consumedCapacity"] = Value::Object(amounts.collect());
    }
    for list in ["bindingConditions", "bindingFailureConditions"] {
        if let Some(conditions) = pick.device.tree.get(list) {
            result[list] = conditions.clone();
        }
    }
    result
}

/// What drivers are told: first what classes say, each once with the requests for it, then the claim.
fn configuration(claim: &Value, picks: &[&Pick<'_>]) -> Vec<Value> {
    let picked = |name: &str| picks.iter().map(|pick| pick.request).find(|request| request.base == name);
    let requests = items(claim, "spec.devices.requests").iter();
    let requests: Vec<&DeviceRequest> = requests.filter_map(|it| picked(text(it, "name"))).collect();
    let mut all = configuration_of_classes(&requests);
    for config in items(claim, "spec.devices.config") {
        let about = texts(config, "requests");
        let is_used =
            |request: &&DeviceRequest| about.contains(&&*request.base) || about.contains(&&*request.name);
        if about.is_empty() || requests.iter().any(is_used) {
            let mut own = json!({"source": "FromClaim", "opaque": config["opaque"]});
            if !about.is_empty() {
                own["requests"] = config["requests"].clone();
            }
            all.push(own);
        }
    }
    all
}

fn configuration_of_classes(requests: &[&DeviceRequest]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        let is_its = |other: &&&DeviceRequest| other.class.metadata.name == request.class.metadata.name;
        if requests[..place].iter().any(|other| is_its(&other)) {
            continue;
        }
        let names: Vec<&str> = requests.iter().filter(is_its).map(|it| it.name.as_str()).collect();
        for config in items(&request.class.to_value(), "spec.config") {
            all.push(json!({"source": "FromClass", "requests": names, "opaque": config["opaque"]}));
        }
    }
    all
}

/// Where all devices can be reached: a node's own make it that node; otherwise the terms of all together.
fn node_selector(picks: &[&Pick<'_>]) -> Option<Value> {
    let selectors: Vec<&Value> = picks.iter().filter_map(|pick| pick.device.node_selector.as_ref()).collect();
    let is_one_node =
        |selector: &&&Value| !items(&selector["nodeSelectorTerms"][0], "matchFields").is_empty();
    if let Some(local) = selectors.iter().find(is_one_node) {
        return Some((**local).clone());
    }
    let mut together: Vec<Value> = Vec::new();
    for selector in selectors {
        let expressions = items(&selector["nodeSelectorTerms"][0], "matchExpressions");
        together.extend(expressions.iter().filter(|it| !together.contains(it)).cloned().collect::<Vec<_>>());
    }
    (!together.is_empty()).then(|| json!({"nodeSelectorTerms": [{"matchExpressions": together}]}))
}
