//! Devices of a simulated node, as its group says that they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::device_amounts::{capacity_of, wrong_amount};
use super::device_counters::{ConsumedCounters, CounterSet};
use super::node_refusal::NodeRefusal;
use apimachinery::names::{dns1123_label, dns1123_subdomain};

/// As many devices of one driver as a node has; more are refused.
const MAX_DEVICES: u32 = 512;
/// Devices of a node that are alike.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeviceGroup {
    /// As `gpu.example.com`.
    pub driver: String,
    /// What their names begin with: `gpu` makes `gpu-0` and on. Without, `device`.
    pub name: String,
    /// How many; without, one.
    pub count: Option<u32>,
    /// Texts, numbers, truths, or as a ResourceSlice has them (`{version: 1.0.0}`).
    pub attributes: BTreeMap<String, Value>,
    /// As `memory: 80Gi`, or as a ResourceSlice has it: `{value: 80Gi, requestPolicy: {default: 8Gi}}`.
    pub capacity: BTreeMap<String, Value>,
    /// Whether several claims may have a part of one device each, as long as its capacity is enough.
    pub allow_multiple_allocations: bool,
    /// What the devices of the driver on this node have together, by set: they say what they take of it.
    pub shared_counters: Vec<CounterSet>,
    /// What each of the devices takes of such a set.
    pub consumes_counters: Vec<ConsumedCounters>,
    /// As a ResourceSlice has them.
    pub taints: Vec<Value>,
    /// What somebody has to say of a device in its claim's status before its pod is bound.
    pub binding_conditions: Vec<String>,
    /// What somebody says there when the device cannot be had after all.
    pub binding_failure_conditions: Vec<String>,
}

impl DeviceGroup {
    /// Whether there can be such devices.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), NodeRefusal> {
        let names = dns1123_subdomain(&self.driver).into_iter().map(|why| format!("driver: {why}"));
        let label = dns1123_label(&self.device(0)).into_iter().map(|why| format!("name: {why}"));
        if let Some(why) = names.chain(label).next() {
            return Err(why.into());
        }
        let count = self.count();
        if count > MAX_DEVICES {
            let most = MAX_DEVICES;
            return Err(format!("count: {count} devices are too many: a node has {most} of a driver").into());
        }
        let wrong = self.capacity.iter().find_map(|(name, given)| Some((name, wrong_amount(given)?)));
        match wrong {
            Some((name, amount)) => {
                Err(format!("capacity {name:?}: {amount} is no quantity, as 80Gi").into())
            }
            None => Ok(()),
        }
    }

    fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }

    fn device(&self, at: u32) -> String {
        let name = if self.name.is_empty() { "device" } else { &self.name };
        format!("{name}-{at}")
    }

    /// As they are in a ResourceSlice.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Value> + '_ {
        let capacity: BTreeMap<&String, Value> =
            self.capacity.iter().map(|(name, given)| (name, capacity_of(given))).collect();
        (0..self.count()).map(move |at| {
            let mut attributes: BTreeMap<&str, Value> = [("index", json!({"int": at}))].into();
            let own = self.attributes.iter().map(|(name, value)| (name.as_str(), attribute(value)));
            attributes.extend(own);
            let mut device = json!({"name": self.device(at), "attributes": attributes});
            if !capacity.is_empty() {
                device["capacity"] = json!(capacity);
            }
            if !self.taints.is_empty() {
                device["taints"] = json!(self.taints);
            }
            if self.allow_multiple_allocations {
                device["allowMultipleAllocations"] = true.into();
            }
            if !self.consumes_counters.is_empty() {
                device["consumesCounters"] =
                    self.consumes_counters.iter().map(ConsumedCounters::in_slice).collect();
            }
            for (field, conditions) in [
                ("bindingConditions", &self.binding_conditions),
                ("bindingFailureConditions", &self.binding_failure_conditions),
            ] {
                if !conditions.is_empty() {
                    device[field] = json!(conditions);
                }
            }
            device
        })
    }
}

/// As a ResourceSlice has it.
fn attribute(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({ "string": text }),
        Value::Bool(flag) => json!({ "bool": flag }),
        Value::Number(number) => json!({ "int": number }),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(count: u32) -> DeviceGroup {
        let capacity = [("memory".to_owned(), json!("80Gi"))].into();
        DeviceGroup { driver: "gpu.io".into(), count: Some(count), capacity, ..DeviceGroup::default() }
    }

    #[test]
    fn what_is_no_device_is_refused() {
        assert!(gpus(MAX_DEVICES).check().is_ok());
        let many = "count: 513 devices are too many: a node has 512 of a driver";
        assert_eq!(gpus(MAX_DEVICES + 1).check().unwrap_err().0, many);
        assert!(DeviceGroup::default().check().is_err_and(|why| why.0.starts_with("driver:")));
        let odd = DeviceGroup { capacity: [("memory".into(), json!("much"))].into(), ..gpus(1) };
        assert_eq!(odd.check().unwrap_err().0, "capacity \"memory\": \"much\" is no quantity, as 80Gi");
    }
}
