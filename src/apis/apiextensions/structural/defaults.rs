//! Defaulting (`schema/defaulting`): what is absent and has a default is filled in; a null that the schema
//! does not allow is absent.

use serde_json::Value;

use super::Structural;

impl Structural {
    /// Drops nulls that are no values, then fills in defaults, at every depth of what is there.
    pub fn apply_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|name, value| !self.member(name).is_some_and(|schema| schema.drops(value)));
                for (name, schema) in &self.properties {
                    if let Some(default) = &schema.default
                        && !map.contains_key(name)
                    {
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = self.member(name) {
                        schema.apply_defaults(value);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    if let Some(default) = &schema.default
                        && schema.drops(item)
                    {
                        *item = default.clone();
                    }
                    schema.apply_defaults(item);
                }
            }
            _ => {}
        }
    }
}
