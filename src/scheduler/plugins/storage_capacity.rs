//! Where volumes can be made: by a class's `allowedTopologies`, and by what a driver says of its room
//! (CSIStorageCapacity).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use apimachinery::labels::LabelSelector;
use apimachinery::object::{Object, ObjectMeta};
use apimachinery::quantity::Quantity;
use apis::kind::Kind;
use apis::storage::csi::{CSI_DRIVERS, CSI_STORAGE_CAPACITIES};
use apis::tree::{at, text, texts};
use client_go::lister::Lister;

/// Knows of drivers and of the room that they have.
pub(super) struct StorageCapacity {
    drivers: Lister,
    capacities: Lister,
}

impl StorageCapacity {
    /// Reads through listers.
    pub(super) fn new(lister: &dyn Fn(&Arc<Kind>) -> Lister) -> StorageCapacity {
        StorageCapacity { drivers: lister(&CSI_DRIVERS), capacities: lister(&CSI_STORAGE_CAPACITIES) }
    }

    /// `hasEnoughCapacity`: only of drivers that publish it is it looked at.
    pub(super) fn is_enough(&self, class: &Value, claim: &Value, node: &ObjectMeta) -> bool {
        let wanted = quantity(at(claim, "spec.resources.requests.storage"));
        let Some(wanted) = wanted else { return true };
        let Some(driver) = self.drivers.get("", text(class, "provisioner")) else { return true };
        if at(&driver.to_value(), "spec.storageCapacity") != &Value::Bool(true) {
            return true;
        }
        let class_name = text(class, "metadata.name");
        let does = |capacity: &Arc<Object>| {
            let tree = capacity.to_value();
            let is_of_class = text(&tree, "storageClassName") == class_name;
            is_of_class && has_room(&tree, wanted) && has_access(&tree, node)
        };
        self.capacities.all().iter().any(does)
    }
}

fn quantity(value: &Value) -> Option<i64> {
    Quantity::parse(value.as_str()?).ok().map(|quantity| quantity.value())
}

/// One volume can be smaller than all the room together.
fn has_room(capacity: &Value, wanted: i64) -> bool {
    let limit = quantity(at(capacity, "maximumVolumeSize")).or_else(|| quantity(at(capacity, "capacity")));
    limit.is_some_and(|limit| limit >= wanted)
}

fn has_access(capacity: &Value, node: &ObjectMeta) -> bool {
    let topology = LabelSelector::deserialize(at(capacity, "nodeTopology")).ok();
    let selector = topology.and_then(|topology| topology.selector().ok());
    selector.is_some_and(|selector| selector.matches(&node.labels))
}

/// Whether the class lets volumes be made on the node (`MatchTopologySelectorTerms`): without terms anywhere.
pub(super) fn is_allowed(class: &Value, node: &ObjectMeta) -> bool {
    let terms = at(class, "allowedTopologies").as_array().map_or(&[][..], Vec::as_slice);
    let is_met = |expression: &Value| {
        let value = node.labels.get(text(expression, "key"));
        value.is_some_and(|value| texts(expression, "values").contains(&value.as_str()))
    };
    let fits = |term: &Value| {
        let expressions = at(term, "matchLabelExpressions").as_array();
        expressions.is_some_and(|all| !all.is_empty() && all.iter().all(is_met))
    };
    terms.is_empty() || terms.iter().any(fits)
}
