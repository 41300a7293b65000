//! Sets and list maps (`schema/listtype`): each element once.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Structural, child};
use crate::apimachinery::field_error::FieldErrors;

impl Structural {
    /// Elements that stand twice where they may not.
    pub fn validate_lists(&self, path: &str, value: &Value, errors: &mut FieldErrors) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if let Some(schema) = self.member(name) {
                        schema.validate_lists(&child(path, name), value, errors);
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
        let mut seen = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let identity = match self.list_type.as_str() {
                "set" => item.clone(),
                "map" => Value::Object(self.keys_of(item)),
                _ => return,
            };
            if !seen.insert(identity.to_string()) {
                errors.duplicate(format!("{path}[{at}]"), &identity);
            }
        }
    }

    /// The keys of an element of a list map.
    pub fn keys_of(&self, item: &Value) -> Map<String, Value> {
        let defaults = self.items.as_deref();
        let of = |key: &String| {
            let default = || defaults?.properties.get(key)?.default.clone();
            item.get(key).cloned().or_else(default).map(|value| (key.clone(), value))
        };
        self.list_map_keys.iter().filter_map(of).collect()
    }
}
