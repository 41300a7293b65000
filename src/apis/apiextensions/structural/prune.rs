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
                let is_own = |name: &str| is_resource && matches!(name, "apiVersion" | "kind" | "metadata");
                map.retain(|name, _| {
                    let keeps = self.preserve_unknown_fields
                        || self.additional_allowed
                        || self.member(name).is_some()
                        || is_own(name);
                    if !keeps {
                        dropped.push(child(path, name));
                    }
                    keeps
                });
                for (name, value) in map.iter_mut().filter(|(name, _)| !is_own(name)) {
                    let path = child(path, name);
                    match self.member(name) {
                        Some(schema) => schema.prune_value(value, schema.embedded_resource, &path, dropped),
                        // Any name may stand there, but nothing is known of what it names.
                        None if self.additional_allowed => prune_unknown(value, &path, dropped),
                        None => {}
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    let path = format!("{path}[{at}]");
                    match &self.items {
                        Some(schema) => schema.prune_value(item, schema.embedded_resource, &path, dropped),
                        None if self.preserve_unknown_fields => {}
                        None => prune_unknown(item, &path, dropped),
                    }
                }
            }
            _ => {}
        }
    }
}

/// Of what has no schema all fields are dropped, at the depth at which they begin.
fn prune_unknown(value: &mut Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            dropped.extend(map.keys().map(|name| child(path, name)));
            map.clear();
        }
        Value::Array(items) => {
            let items = items.iter_mut().enumerate();
            items.for_each(|(at, item)| prune_unknown(item, &format!("{path}[{at}]"), dropped));
        }
        _ => {}
    }
}
