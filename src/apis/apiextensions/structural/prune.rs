//! Pruning (`schema/pruning`): what the schema does not know is dropped.

use serde_json::Value;

use super::{Structural, child};

impl Structural {
    /// Drops unknown fields of a whole resource, whose type and metadata are known to every one. Returns the
    /// paths of what was dropped, sorted.
    pub fn prune(&self, value: &mut Value) -> Vec<String> {
        let mut dropped = vec![];
        self.prune_value(value, true, "", &mut dropped);
        dropped.sort();
        dropped
    }

    fn prune_value(&self, value: &mut Value, is_resource: bool, path: &str, dropped: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                let is_known = |name: &str| {
                    self.preserve_unknown_fields
                        || self.additional_allowed
                        || self.member(name).is_some()
                        || (is_resource && matches!(name, "apiVersion" | "kind" | "metadata"))
                };
                map.retain(|name, _| {
                    let keeps = is_known(name);
                    if !keeps {
                        dropped.push(child(path, name));
                    }
                    keeps
                });
                for (name, value) in map.iter_mut() {
                    if is_resource && name == "metadata" {
                        continue;
                    }
                    if let Some(schema) = self.member(name) {
                        schema.prune_value(value, schema.embedded_resource, &child(path, name), dropped);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    schema.prune_value(item, schema.embedded_resource, &format!("{path}[{at}]"), dropped);
                }
            }
            _ => {}
        }
    }
}
