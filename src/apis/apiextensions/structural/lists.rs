//! Sets and list maps (`schema/listtype`): each element once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Structural, child};
use apimachinery::field_error::FieldErrors;

impl Structural {
    /// Elements that stand twice where they may not.
    pub fn validate_lists(&self, path: &str, value: &Value, errors: &mut FieldErrors) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    match (self.properties.get(name), &self.additional) {
                        (Some(schema), _) => schema.validate_lists(&child(path, name), value, errors),
                        (None, Some(schema)) => {
                            schema.validate_lists(&format!("{path}[{name}]"), value, errors);
                        }
                        (None, None) => {}
                    }
                }
            }
            Value::Array(items) => {
                self.unique(path, items, errors);
                let Some(schema) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    schema.validate_lists(&format!("{path}[{at}]"), item, errors);
                }
            }
            _ => {}
        }
    }

    fn unique(&self, path: &str, items: &[Value], errors: &mut FieldErrors) {
        let is_map = match self.list_type.as_str() {
            "set" => false,
            "map" => true,
            _ => return,
        };
        let is_other = |item: &Value| is_map && !item.is_object() && !item.is_null();
        if let Some(at) = items.iter().position(is_other) {
            let detail = "must be an object for an array of list-type map";
            return errors.invalid(format!("{path}[{at}]"), &items[at], detail);
        }
        let mut seen: HashMap<String, u32> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            let identity = if is_map { self.given_keys_of(item) } else { item.clone() };
            let times = seen.entry(identity.to_string()).or_default();
            *times += 1;
            // Said once of each.
            if *times == 2 {
                errors.duplicate(format!("{path}[{at}]"), &identity);
            }
        }
    }

    /// The keys that an element of a list map has.
    fn given_keys_of(&self, item: &Value) -> Value {
        let of = |key: &String| item.get(key).map(|value| (key.clone(), value.clone()));
        Value::Object(self.list_map_keys.iter().filter_map(of).collect())
    }

    /// The keys of an element of a list map; one that is not given has its default.
    pub fn keys_of(&self, item: &Value) -> Map<String, Value> {
        let defaults = self.items.as_deref();
        let of = |key: &String| {
            let default = || defaults?.properties.get(key)?.default.clone();
            item.get(key).cloned().or_else(default).map(|value| (key.clone(), value))
        };
        self.list_map_keys.iter().filter_map(of).collect()
    }
}
