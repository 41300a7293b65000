//! What is wrong with a CSIDriver, a CSINode, a CSIStorageCapacity (`pkg/apis/storage/validation`).

use serde_json::Value;

use crate::tree::{items, remove, text};
use crate::validation::labels::label_selector;
use crate::validation::resources::quantity;
use crate::validation::texts::{csi_driver_name, shown_each, token_seconds};
use crate::validation::{Field, IMMUTABLE, NOT_NEGATIVE, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_subdomain, qualified_name};
use apimachinery::repeats::repeats;

const MOST_NODE_ID_BYTES: usize = 256;
const LEAST_UPDATE_PERIOD_SECONDS: i64 = 10;

/// `validateCSIDriverSpec`; what must be there is there by default.
pub(super) fn driver(driver: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(driver, "spec");
    spec.child("fsGroupPolicy").one_of_if_set(&["File", "None", "ReadWriteOnceWithFSType"], errors);
    let requests = spec.each("tokenRequests");
    let is_again = repeats(requests.iter().map(|one| one.child("audience").text()));
    for (at, request) in requests.iter().enumerate() {
        let audience = request.child("audience");
        if is_again[at] {
            errors.duplicate(audience.path.as_str(), &audience.text().into());
        } else if request.child("expirationSeconds").is_set() {
            token_seconds(&request.child("expirationSeconds"), errors);
        }
    }
    let modes = spec.child("volumeLifecycleModes");
    for mode in modes.items().iter().filter(|mode| !matches!(mode.text(), "Persistent" | "Ephemeral")) {
        mode.shown_as(modes.path.as_str()).not_supported(&["Persistent", "Ephemeral"], errors);
    }
    let in_secrets = spec.child("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && requests.is_empty() {
        let words = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        in_secrets.invalid(words, errors);
    }
    let period = spec.child("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.number() < LEAST_UPDATE_PERIOD_SECONDS {
        period.invalid("must be greater than or equal to 10 seconds", errors);
    }
}

/// `ValidateCSIDriverUpdate`; one path is upstream's own.
pub(super) fn driver_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let attach = Field::of(new, "spec.attachRequired").shown_as("spec.attachedRequired");
    attach.immutable(&Field::of(old, "spec.attachRequired"), errors);
    let modes = Field::of(new, "spec.volumeLifecycleModes");
    modes.immutable(&Field::of(old, "spec.volumeLifecycleModes"), errors);
}

/// `validateCSINodeSpec`
pub(super) fn node(node: &Value, errors: &mut FieldErrors) {
    let drivers = Field::of(node, "spec").each("drivers");
    let is_again = repeats(drivers.iter().map(|one| one.child("name").text()));
    for (at, driver) in drivers.iter().enumerate() {
        let (name, node_id) = (driver.child("name"), driver.child("nodeID"));
        csi_driver_name(&name, errors);
        if node_id.require(errors) && node_id.text().len() > MOST_NODE_ID_BYTES {
            node_id.invalid(format!("must be {MOST_NODE_ID_BYTES} characters or less"), errors);
        }
        driver.child("allocatable.count").nonnegative(errors);
        if is_again[at] {
            name.duplicate(errors);
        }
        let keys = driver.each("topologyKeys");
        let is_again = repeats(keys.iter().map(|one| one.text()));
        for (at, key) in keys.iter().enumerate() {
            // Upstream names the driver and not the key.
            let key = key.shown_as(driver.path.as_str());
            key.require(errors);
            if is_again[at] {
                key.duplicate(errors);
            }
            key.invalid_each(qualified_name(key.text()), errors);
        }
    }
}

/// Of a driver that is known, only the count of volumes may change.
pub(super) fn node_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let without_count = |driver: &Value| {
        let mut driver = driver.clone();
        remove(&mut driver, "allocatable");
        driver
    };
    for was in items(old, "spec.drivers") {
        for is in items(new, "spec.drivers").iter().filter(|is| text(is, "name") == text(was, "name")) {
            let (is, was) = (without_count(is), without_count(was));
            if !equal(&is, &was) {
                errors.invalid("spec.drivers", &is, IMMUTABLE);
            }
        }
    }
}

/// `ValidateCSIStorageCapacity`
pub(super) fn capacity(capacity: &Value, errors: &mut FieldErrors) {
    label_selector(&Field::of(capacity, "nodeTopology"), errors);
    shown_each(&Field::of(capacity, "storageClassName"), dns1123_subdomain, errors);
    let size = Field::of(capacity, "capacity");
    if quantity(&size).sign() < 0 {
        size.invalid(NOT_NEGATIVE, errors);
    }
}
