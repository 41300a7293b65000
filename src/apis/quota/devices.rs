//! What ResourceClaims use: devices, by device class (`evaluator/core.claimEvaluator`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::measure::Measure;
use crate::resources::Amounts;
use crate::tree::{annotation, at, count, items, number, text};
use apimachinery::quantity::{Format, Quantity};
use apimachinery::time::Time;

/// Between a device class and what is limited of it: nothing but the number.
const BY_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// Before a device class: its devices as the resource that pods may ask for (`ResourceDeviceClassPrefix`).
const AS_RESOURCE: &str = "requests.deviceclass.resource.kubernetes.io/";
/// On a claim that the scheduler has made for such a resource: its pod is charged.
const OF_EXTENDED_RESOURCE: &str = "resource.kubernetes.io/extended-resource-claim";
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
        measures(name)
    }

    fn usage(&self, claim: &Value, _now: Time) -> Amounts {
        usage(claim)
    }

    fn frees(&self, old: &Value, new: &Value) -> bool {
        at(old, "spec.devices") != at(new, "spec.devices")
    }
}

/// Whether it counts devices of a class.
fn measures(name: &str) -> bool {
    name.ends_with(BY_DEVICE_CLASS) || name.starts_with(AS_RESOURCE)
}

/// What a claim may get at most. Of alternatives the worst case of each class is charged.
fn usage(claim: &Value) -> Amounts {
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
    let is_its_pods = annotation(claim, OF_EXTENDED_RESOURCE) == "true";
    let mut usage = Amounts::new();
    for (class, number) in devices.into_iter().filter(|(class, _)| !class.is_empty()) {
        let number = Quantity::new(number, Format::DecimalSi);
        if !is_its_pods {
            usage.insert(format!("{AS_RESOURCE}{class}"), number.clone());
        }
        usage.insert(format!("{class}{BY_DEVICE_CLASS}"), number);
    }
    usage
}

/// The class, and how many of it.
fn wanted(request: &Value) -> (&str, i64) {
    let devices = match text(request, "allocationMode") {
        "All" => MAX_DEVICES,
        _ => number(request, "count").max(1),
    };
    (text(request, "deviceClassName"), devices)
}
