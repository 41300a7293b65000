//! Which devices an expression means (`dynamic-resource-allocation/cel`).

use std::collections::BTreeMap;
use std::sync::Arc;

use apimachinery::quantity::Quantity;
use cel::{Activation, Budget, Environment, MapKey, Opaque, Program, Type, Value as CelValue};
use serde_json::Value;

use crate::tree::{flag, members, text};

/// `CELSelectorExpressionMaxCost`: an expression that costs more is an error.
const MOST_COST: u64 = 1_000_000;

/// A selector that was compiled.
pub struct DeviceSelector {
    program: Program,
}

/// Why nothing can be said of a device.
#[derive(Debug)]
pub struct SelectorError(pub String);

/// What an expression may ask of a device.
pub(super) fn device_environment() -> Environment {
    let of_domain = |value: Type| Type::map_of(Type::map_of(value));
    let fields = [
        ("driver", Type::String),
        ("attributes", of_domain(Type::Dyn)),
        ("capacity", of_domain(Type::Opaque("kubernetes.Quantity".into()))),
        ("allowMultipleAllocations", Type::Bool),
    ];
    let device = Type::object("kubernetes.DRADevice", fields);
    Environment::new().with_variable("device", device).with_bindings()
}

impl DeviceSelector {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(expression: &str) -> Result<DeviceSelector, SelectorError> {
        let compiled = device_environment().compile(expression);
        let failed =
            |error: cel::CompileError| SelectorError(format!("CEL compile error: {}", error.described()));
        Ok(DeviceSelector { program: compiled.map_err(failed)? })
    }

    /// Whether it means a device of a driver.
    ///
    /// # Errors
    /// What went wrong while it was looked at: a field that is not there, or too much work.
    pub fn matches(&self, driver: &str, device: &Value) -> Result<bool, SelectorError> {
        let activation = Activation::new().with("device", device_value(driver, device));
        let outcome = self.program.evaluate(&activation, &mut Budget::new(MOST_COST));
        match outcome {
            Ok(CelValue::Bool(matches)) => Ok(matches),
            Ok(_) => Err(SelectorError("CEL runtime error: the result is no bool".into())),
            Err(error) => Err(SelectorError(format!("CEL runtime error: {error}"))),
        }
    }
}

fn device_value(driver: &str, device: &Value) -> CelValue {
    let attributes = by_domain(driver, members(device, "attributes").map(|(name, it)| (name, attribute(it))));
    let capacities = by_domain(driver, members(device, "capacity").map(|(name, it)| (name, capacity(it))));
    CelValue::map([
        ("driver".into(), driver.into()),
        ("attributes".into(), attributes),
        ("capacity".into(), capacities),
        ("allowMultipleAllocations".into(), flag(device, "allowMultipleAllocations").into()),
    ])
}

/// A name without a domain is of the driver's.
fn by_domain<'a>(driver: &str, entries: impl Iterator<Item = (&'a String, Option<CelValue>)>) -> CelValue {
    let mut domains: BTreeMap<MapKey, BTreeMap<MapKey, CelValue>> = BTreeMap::new();
    domains.insert(MapKey::String(driver.into()), BTreeMap::new());
    for (name, value) in entries {
        let (domain, id) = name.split_once('/').unwrap_or((driver, name));
        let Some(value) = value else { continue };
        let domain = domains.entry(MapKey::String(domain.into())).or_default();
        domain.insert(MapKey::String(id.into()), value);
    }
    let map = |entries| CelValue::Map(Arc::new(cel::Map::of(entries)));
    map(domains.into_iter().map(|(domain, entries)| (domain, map(entries))).collect())
}

fn attribute(value: &Value) -> Option<CelValue> {
    if let Some(version) = value.get("version").and_then(Value::as_str) {
        return cel::Semver::read(version).map(|it| CelValue::Opaque(Opaque::Semver(Arc::new(it))));
    }
    let kinds = ["bool", "int", "string", "bools", "ints", "strings"];
    kinds.iter().find_map(|kind| value.get(kind)).map(CelValue::from_json)
}

fn capacity(value: &Value) -> Option<CelValue> {
    let quantity = Quantity::parse(text(value, "value")).ok()?;
    Some(CelValue::Opaque(Opaque::Quantity(Arc::new(quantity))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expressions_see_a_device_as_upstream_shows_it() {
        let device = json!({
            "attributes": {"index": {"int": 3}, "model": {"string": "LATEST"}, "driverVersion": {"version": "1.2.3"},
                "other.io/fast": {"bool": true}},
            "capacity": {"memory": {"value": "80Gi"}},
        });
        let cases = [
            ("device.driver == 'gpu.example.com'", true),
            ("device.attributes['gpu.example.com'].model == 'LATEST'", true),
            ("device.attributes['gpu.example.com'].index > 3", false),
            ("device.attributes['other.io'].fast", true),
            ("device.attributes['gpu.example.com'].driverVersion.compareTo(semver('1.0.0')) > 0", true),
            ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0", true),
            ("'missing' in device.attributes['gpu.example.com']", false),
            ("device.allowMultipleAllocations", false),
        ];
        for (expression, expected) in cases {
            let selector = DeviceSelector::compile(expression).unwrap();
            assert_eq!(selector.matches("gpu.example.com", &device).unwrap(), expected, "{expression}");
        }
        let missing = DeviceSelector::compile("device.attributes['gpu.example.com'].nothing == 1").unwrap();
        assert!(missing.matches("gpu.example.com", &device).unwrap_err().0.starts_with("CEL runtime error"));
        assert!(DeviceSelector::compile("device.").err().unwrap().0.starts_with("CEL compile error"));
    }
}
