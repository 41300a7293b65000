//! Defaulting (`schema/defaulting`): what is absent and has a default is filled in; a null that the schema
//! does not allow is absent.

use serde_json::Value;

use super::Structural;

impl Structural {
    /// Drops nulls that are no values, then fills in defaults, at every depth of what is there.
    pub fn apply_defaults(&self, value: &mut Value) {
        self.complete(value, true);
    }

    /// Fills in defaults alone: nulls without one stay, and may be refused later.
    pub fn fill_defaults(&self, value: &mut Value) {
        self.complete(value, false);
    }

    fn complete(&self, value: &mut Value, drops_nulls: bool) {
        match value {
            Value::Object(map) => {
                let drops = |schema: &Structural, value: &Value| {
                    (drops_nulls || schema.default.is_some()) && schema.drops(value)
                };
                map.retain(|name, value| match (self.properties.get(name), self.additional.as_deref()) {
                    (Some(schema), _) => !drops(schema, value),
                    (None, Some(schema)) => schema.default.is_some() || !drops(schema, value),
                    (None, None) => true,
                });
                for (name, schema) in &self.properties {
                    if let Some(default) = &schema.default
                        && !map.contains_key(name)
                    {
                        map.insert(name.clone(), default.clone());
                    }
                }
                let additional = self.additional.as_deref().and_then(|of| Some((of, of.default.as_ref()?)));
                for (name, value) in map.iter_mut() {
                    if let Some((of, default)) = additional
                        && of.drops(value)
                        && !self.properties.contains_key(name)
                    {
                        *value = default.clone();
                    }
                    if let Some(schema) = self.member(name) {
                        schema.complete(value, drops_nulls);
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
                    schema.complete(item, drops_nulls);
                }
            }
            _ => {}
        }
    }
}
