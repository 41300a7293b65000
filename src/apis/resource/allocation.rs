//! What a ResourceClaim's status says: the devices that were given, who uses them, how they are
//! (`validateResourceClaimStatusUpdate`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::devices::{
    RequestNames, configuration, device_id, raw_object, reference, references, request_names, set,
    tolerations,
};
use super::names::uid;
use crate::core::pod::validation::node_selector;
use crate::tree::{at, is_set, items};
use crate::validation::conditions::conditions;
use crate::validation::texts::{parse_cidr, shown_each};
use crate::validation::{Field, IMMUTABLE, at_most, equal};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::qualified_name;
use apimachinery::repeats::repeats;

const MOST_CONSUMERS: usize = 256;
const MOST_RESULTS: usize = 32;
/// Of the class and of the claim.
const MOST_CONFIGURATIONS: usize = 64;
const MOST_BINDING_CONDITIONS: usize = 4;
const MOST_CONDITIONS: usize = 8;
const MOST_DATA_BYTES: usize = 10 * 1024;
const MOST_ADDRESSES: usize = 16;

/// What is wrong with a change of status.
pub(super) fn validate_status_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let names = request_names(&Field::of(new, "spec.devices"));
    let status = Field::of(new, "status");
    let (reserved, allocation) = (status.child("reservedFor"), status.child("allocation"));
    let consumer = |consumer: &Field, errors: &mut FieldErrors| {
        for field in ["resource", "name", "uid"] {
            consumer.child(field).require(errors);
        }
    };
    set(&reserved, MOST_CONSUMERS, "uid", consumer, errors);
    device_statuses(&status.child("devices"), &allocation, errors);
    if !reserved.is_zero() && !allocation.is_set() {
        reserved.forbidden("may not be specified when `allocated` is not set", errors);
    } else if is_set(new, "metadata.deletionTimestamp") {
        let before = items(old, "status.reservedFor");
        if items(new, "status.reservedFor").iter().any(|is| !before.iter().any(|was| equal(is, was))) {
            let words =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            reserved.forbidden(words, errors);
        }
    }
    let before = at(old, "status.allocation");
    match (allocation.is_set(), before.is_null()) {
        (true, true) => validate_allocation(&allocation, &names, errors),
        (true, false) if !equal(allocation.value, before) => allocation.invalid(IMMUTABLE, errors),
        _ => {}
    }
}

fn validate_allocation(allocation: &Field, names: &RequestNames, errors: &mut FieldErrors) {
    for result in at_most(&allocation.child("devices.results"), MOST_RESULTS, errors) {
        reference(&result.child("request"), names, errors);
        device_id(&result, errors);
        binding_conditions(&result, errors);
        tolerations(&result.child("tolerations"), errors);
        if result.child("shareID").is_set() {
            uid(&result.child("shareID"), errors);
        }
    }
    for one in at_most(&allocation.child("devices.config"), MOST_CONFIGURATIONS, errors) {
        one.child("source").one_of(&["FromClaim", "FromClass"], errors);
        references(&one.child("requests"), names, errors);
        configuration(&one, false, errors);
    }
    if allocation.child("nodeSelector").is_set() {
        node_selector(&allocation.child("nodeSelector"), errors);
    }
}

/// `validateDeviceBindingParameters`: also of a device in a slice.
pub(super) fn binding_conditions(device: &Field, errors: &mut FieldErrors) {
    let [wanted, failed] = ["bindingConditions", "bindingFailureConditions"].map(|name| device.child(name));
    for list in [&wanted, &failed] {
        for condition in at_most(list, MOST_BINDING_CONDITIONS, errors) {
            shown_each(&condition, qualified_name, errors);
        }
    }
    for (list, overlaps) in [(&wanted, false), (&failed, true)] {
        let all = list.items();
        for (at, condition) in all.iter().enumerate() {
            let is = |other: &Field| other.text() == condition.text();
            if all[..at].iter().any(is) {
                condition.duplicate(errors);
            }
            if overlaps && wanted.items().iter().any(is) {
                let words = "bindingFailureConditions must not overlap with bindingConditions";
                condition.invalid(words, errors);
            }
        }
    }
    match (wanted.is_zero(), failed.is_zero()) {
        (true, false) => {
            wanted.invalid("bindingConditions are required to use bindingFailureConditions", errors);
        }
        (false, true) => {
            failed.invalid("bindingFailureConditions are required to use bindingConditions", errors);
        }
        _ => {}
    }
}

/// `driver/pool/device`, and what tells apart those who share it.
fn shared_id(device: &Value) -> String {
    let parts = ["driver", "pool", "device", "shareID"].map(|name| device[name].as_str().unwrap_or(""));
    parts.join("/").trim_end_matches('/').to_owned()
}

/// As Go shows it, with its own names for the fields.
fn shown_id(device: &Value) -> String {
    let [driver, pool, name, share] =
        ["driver", "pool", "device", "shareID"].map(|field| json!(device[field].as_str().unwrap_or("")));
    format!(r#"{{"Driver":{driver},"Pool":{pool},"Device":{name},"ShareID":{share}}}"#)
}

/// `validateDeviceStatus`, of each.
fn device_statuses(devices: &Field, allocation: &Field, errors: &mut FieldErrors) {
    let given: BTreeSet<String> = items(allocation.value, "devices.results").iter().map(shared_id).collect();
    let mut seen = BTreeSet::new();
    for device in devices.items() {
        device_id(&device, errors);
        if device.child("shareID").is_set() {
            uid(&device.child("shareID"), errors);
        }
        let id = shared_id(device.value);
        if !given.contains(&id) {
            let words = "must be an allocated device in the claim";
            errors.push(device.path.as_str(), ErrorType::Invalid, shown_id(device.value), words);
        }
        let list = device.child("conditions");
        if list.items().len() > MOST_CONDITIONS {
            errors.too_many(list.path.as_str(), list.items().len(), MOST_CONDITIONS);
        }
        conditions(&list, errors);
        if device.child("data").is_set() {
            raw_object(&device.child("data"), false, MOST_DATA_BYTES, errors);
        }
        network_data(&device.child("networkData"), errors);
        if !seen.insert(id.clone()) {
            errors.push(device.path.as_str(), ErrorType::Duplicate, id, "");
        }
    }
}

fn network_data(data: &Field, errors: &mut FieldErrors) {
    for (name, most) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        if data.child(name).text().len() > most {
            errors.too_long(format!("{}.{name}", data.path), most);
        }
    }
    let addresses = at_most(&data.child("ips"), MOST_ADDRESSES, errors);
    addresses.iter().for_each(|address| interface_address(address, errors));
    let is_again = repeats(addresses.iter().map(|one| one.text()));
    for (at, address) in addresses.iter().enumerate() {
        if is_again[at] {
            errors.duplicate(address.path.as_str(), &json!(address.text()));
        }
    }
}

/// `IsValidInterfaceAddress`
fn interface_address(address: &Field, errors: &mut FieldErrors) {
    let Some((ip, length)) = parse_cidr(address.text()) else {
        let words = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return address.invalid(words, errors);
    };
    let canonical = format!("{ip}/{length}");
    if address.text() != canonical {
        address.invalid(format!("must be in canonical form ({canonical:?})"), errors);
    }
}
