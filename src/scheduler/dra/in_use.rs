//! What is allocated already: devices, their capacity, and what they took of counters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pools::{DeviceId, DevicePool, NodeDevice, consumption};
use super::requests::DeviceRequest;
use apimachinery::quantity::Quantity;
use apis::tree::{at, flag, items, members, text};

/// DeviceCapacity, by name.
pub(crate) type DeviceCapacity = BTreeMap<String, Quantity>;

/// Devices that are in use. Devices of admins are not: others may have them as well.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse {
    devices: BTreeSet<DeviceId>,
    /// Of devices that several may have.
    capacity: BTreeMap<DeviceId, DeviceCapacity>,
}

impl InUse {
    /// What an allocation took.
    pub(crate) fn add(&mut self, allocation: &Value) {
        for result in items(allocation, "devices.results") {
            if flag(result, "adminAccess") {
                continue;
            }
            let id = ["driver", "pool", "device"].map(|field| text(result, field).to_owned());
            let [driver, pool, device] = id;
            let id = (driver, pool, device);
            if text(result, "shareID").is_empty() {
                self.devices.insert(id);
            } else {
                let consumed = members(result, "consumedCapacity");
                let amounts = consumed.filter_map(|(name, it)| Some((name.clone(), quantity(it)?))).collect();
                self.consume(&id, &amounts);
            }
        }
    }

    /// Marks a device; with amounts it is shared.
    pub(crate) fn take(&mut self, id: &DeviceId, shared: Option<&DeviceCapacity>) {
        match shared {
            Some(amounts) => self.consume(id, amounts),
            None => drop(self.devices.insert(id.clone())),
        }
    }

    /// What of a device is in use by those that share it.
    pub(crate) fn shared(&self, id: &DeviceId) -> Option<&DeviceCapacity> {
        self.capacity.get(id)
    }

    /// Undoes [`InUse::take`]: of a shared device this was in use before.
    pub(crate) fn give_back(&mut self, id: &DeviceId, is_shared: bool, before: Option<DeviceCapacity>) {
        if !is_shared {
            self.devices.remove(id);
            return;
        }
        match before {
            Some(before) => drop(self.capacity.insert(id.clone(), before)),
            None => drop(self.capacity.remove(id)),
        }
    }

    fn consume(&mut self, id: &DeviceId, amounts: &DeviceCapacity) {
        let used = self.capacity.entry(id.clone()).or_default();
        for (name, amount) in amounts {
            match used.get_mut(name) {
                Some(sum) => sum.add(amount),
                None => drop(used.insert(name.clone(), amount.clone())),
            }
        }
    }

    /// Whether nobody else can have it.
    pub(crate) fn has(&self, id: &DeviceId) -> bool {
        self.devices.contains(id)
    }

    /// What a request would take of a device's capacity; none when there is not so much left, or when the
    /// device has no capacity of a name that is asked for (`CmpRequestOverCapacity`).
    pub(crate) fn share(&self, device: &NodeDevice, request: &DeviceRequest) -> Option<DeviceCapacity> {
        let asked = || members(&request.tree, "capacity.requests").map(|(name, _)| name);
        let nothing = DeviceCapacity::new();
        if asked().next().is_none() && !flag(&device.tree, "allowMultipleAllocations") {
            return Some(nothing);
        }
        if asked().any(|name| at(&device.tree, "capacity").get(name).is_none()) {
            return None;
        }
        let used = self.capacity.get(&device.id).unwrap_or(&nothing);
        let mut taken = DeviceCapacity::new();
        for (name, capacity) in members(&device.tree, "capacity") {
            let all = quantity(at(capacity, "value"))?;
            let wanted = wanted(request.capacity(name), capacity, &all)?;
            let mut sum = used.get(name).cloned().unwrap_or_default();
            sum.add(&wanted);
            if sum > all {
                return None;
            }
            taken.insert(name.clone(), wanted);
        }
        Some(taken)
    }

    /// Whether a pool's counters have room for one more device: devices count that anybody has, wherever
    /// they can be reached (`checkAvailableCounters`).
    pub(crate) fn has_room(&self, device: &NodeDevice, pool: &DevicePool) -> bool {
        let in_pool = |id: &DeviceId| self.devices.contains(id) || self.capacity.contains_key(id);
        // A device that is shared already has taken its part.
        if consumption(&device.tree).next().is_none() || self.capacity.contains_key(&device.id) {
            return true;
        }
        let others = pool.consumers.iter().filter(|(id, _)| in_pool(id) && *id != device.id);
        let mut used: BTreeMap<(String, String), Quantity> = BTreeMap::new();
        for tree in others.map(|(_, tree)| tree).chain([&device.tree]) {
            for (key, amount) in consumption(tree) {
                used.entry(key).or_default().add(&quantity(amount).unwrap_or_default());
            }
        }
        consumption(&device.tree).all(|(key, _)| {
            let all = pool.counters.get(&key).and_then(quantity).unwrap_or_default();
            used.get(&key).is_none_or(|sum| *sum <= all)
        })
    }
}

pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

/// What is taken for what is asked: by the policy of the capacity rounded up, or its default; all of it where
/// neither says anything (`calculateConsumedCapacity`). None when the policy forbids it.
fn wanted(asked: Option<&str>, capacity: &Value, all: &Quantity) -> Option<Quantity> {
    let policy = at(capacity, "requestPolicy");
    let Some(asked) = asked else {
        return Some(quantity(at(policy, "default")).unwrap_or_else(|| all.clone()));
    };
    let asked = Quantity::parse(asked).ok()?;
    let valid: Vec<Quantity> = items(policy, "validValues").iter().filter_map(quantity).collect();
    if !valid.is_empty() {
        return valid.into_iter().filter(|value| *value >= asked).min();
    }
    let range = at(policy, "validRange");
    let Some(min) = quantity(at(range, "min")) else { return Some(asked) };
    let most = quantity(at(range, "max"));
    let rounded = match quantity(at(range, "step")) {
        Some(step) if asked > min => up_to_step(&min, &step, &asked),
        _ => asked.max(min),
    };
    most.is_none_or(|most| rounded <= most).then_some(rounded)
}

fn up_to_step(min: &Quantity, step: &Quantity, asked: &Quantity) -> Quantity {
    let (min_value, step) = (min.value(), step.value().max(1));
    let steps = (asked.value() - min_value + step - 1) / step;
    Quantity::new(min_value.saturating_add(steps.saturating_mul(step)), min.format())
}
