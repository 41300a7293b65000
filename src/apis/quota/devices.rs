//! What ResourceClaims use: devices, by device class, and by the extended resources that classes give out
//! (`evaluator/core.claimEvaluator`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::measure::Measure;
use super::pods::{OF_DEVICE_CLASS, is_extended_resource, pod_usage};
use super::surroundings::{ClaimSurroundings, pod_of};
use crate::resources::Amounts;
use crate::tree::{at, count, items, number, text};
use apimachinery::quantity::{Format, Quantity};
use apimachinery::time::Time;

/// Between a device class and what is limited of it: nothing but the number.
const BY_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// Before what pods ask for (`DefaultResourceRequestsPrefix`).
const REQUESTS: &str = "requests.";
/// More than a claim can ever get (`AllocationResultsMaxSize`): what one that wants all is charged for.
const MAX_DEVICES: i64 = 32;

/// `resourceclaims`
pub const DEVICES: DeviceMeasure = DeviceMeasure;

/// Measures ResourceClaims.
pub struct DeviceMeasure;

impl Measure for DeviceMeasure {
    fn handles(&self, _is_create: bool, subresource: &str) -> bool {
        subresource.is_empty()
    }

    fn measures(&self, name: &str) -> bool {
        name.ends_with(BY_DEVICE_CLASS) || name.strip_prefix(REQUESTS).is_some_and(is_extended_resource)
    }

    fn looks_around(&self) -> bool {
        true
    }

    fn is_known(&self, name: &str, around: &ClaimSurroundings) -> bool {
        let Some(resource) = name.strip_prefix(REQUESTS) else { return true };
        let is_class = resource.strip_prefix(OF_DEVICE_CLASS).is_some_and(|class| around.has_class(class));
        is_class || name.ends_with(BY_DEVICE_CLASS) || around.has_extended_resource(resource)
    }

    fn usage(&self, claim: &Value, now: Time, around: &ClaimSurroundings) -> Amounts {
        let devices = devices(claim);
        let charged = verified_pod(claim, around).map(|pod| pod_usage(pod, now)).unwrap_or_default();
        let mut usage = by_extended_resource(&devices, &charged, around);
        let of_class = |(class, number): (&str, i64)| (format!("{class}{BY_DEVICE_CLASS}"), amount(number));
        usage.extend(devices.into_iter().map(of_class));
        usage
    }

    fn frees(&self, old: &Value, new: &Value) -> bool {
        at(old, "spec.devices") != at(new, "spec.devices")
    }
}

/// How many devices of each class a claim may get at most. Of alternatives the worst case of each class is
/// charged.
fn devices(claim: &Value) -> BTreeMap<&str, i64> {
    let mut devices: BTreeMap<&str, i64> = BTreeMap::new();
    for request in items(claim, "spec.devices.requests") {
        if count(request, "firstAvailable") == 0 {
            let (class, number) = wanted(&request["exactly"]);
            *devices.entry(class).or_default() += number;
            continue;
        }
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        for (class, number) in items(request, "firstAvailable").iter().map(wanted) {
            let own = most.entry(class).or_default();
            *own = number.max(*own);
        }
        most.into_iter().for_each(|(class, number)| *devices.entry(class).or_default() += number);
    }
    devices.remove("");
    devices
}

/// Devices by both names that pods know them by, without what their pod is charged for by that name
/// (`addExtendedResourceQuota`).
fn by_extended_resource(
    devices: &BTreeMap<&str, i64>,
    charged: &Amounts,
    around: &ClaimSurroundings,
) -> Amounts {
    let mut usage = Amounts::new();
    for (class, number) in devices {
        let implicit = format!("{OF_DEVICE_CLASS}{class}");
        let explicit = around.extended_resource(class).map(String::from);
        for resource in [Some(implicit), explicit].into_iter().flatten() {
            usage.insert(format!("{REQUESTS}{resource}"), amount(*number));
        }
    }
    for (name, amount) in &mut usage {
        if let Some(charged) = charged.get(name) {
            amount.sub(charged);
        }
    }
    usage.retain(|_, amount| amount.sign() > 0);
    usage
}

/// The pod for whose extended resources a claim was made (`getVerifiedPodUsage`): the one that controls it
/// and names it, or, while it names none yet, that of the first such claim.
fn verified_pod<'a>(claim: &Value, around: &'a ClaimSurroundings) -> Option<&'a Value> {
    let owner = pod_of(claim)?;
    let pod = around.pods.iter().find(|pod| text(pod, "metadata.uid") == owner)?;
    let named = at(pod, "status.extendedResourceClaimStatus");
    if !named.is_null() {
        return (text(named, "resourceClaimName") == text(claim, "metadata.name")).then_some(pod);
    }
    let age = |claim: &'_ Value| -> (String, String) {
        (text(claim, "metadata.creationTimestamp").into(), text(claim, "metadata.name").into())
    };
    let own = age(claim);
    let is_earlier = |other: &&Value| pod_of(other) == Some(owner) && age(other) < own;
    around.claims.iter().find(is_earlier).is_none().then_some(pod)
}

fn amount(number: i64) -> Quantity {
    Quantity::new(number, Format::DecimalSi)
}

/// The class, and how many of it.
fn wanted(request: &Value) -> (&str, i64) {
    let devices = match text(request, "allocationMode") {
        "All" => MAX_DEVICES,
        _ => number(request, "count").max(1),
    };
    (text(request, "deviceClassName"), devices)
}
