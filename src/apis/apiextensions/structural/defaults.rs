//! Defaulting (`schema/defaulting`): what is absent and has a default is filled in; a null that the schema
//! does not allow is absent.

use serde_json::{Map, Value};

use super::Structural;
use apimachinery::json_bytes::json_bytes;
use apimachinery::status::TooLargeToStore;

/// How many bytes of JSON defaults may add to one object: as many as etcd takes in a whole request. A list of
/// a thousand empty elements would else become a thousand times the default of an element. Beyond it nothing
/// more is filled in, and the object is refused as etcd would refuse it.
pub(super) const MAX_DEFAULTED_BYTES: usize = 1_572_864;

impl Structural {
    /// Drops nulls that are no values, then fills in defaults, at every depth of what is there.
    ///
    /// # Errors
    /// Defaults add more than [`MAX_DEFAULTED_BYTES`]; some of them are there then.
    pub fn apply_defaults(&self, value: &mut Value) -> Result<(), TooLargeToStore> {
        Filler { drops_nulls: true, left: MAX_DEFAULTED_BYTES }.complete(self, value)
    }

    /// Fills in defaults alone: nulls without one stay, and may be refused later.
    ///
    /// # Errors
    /// As [`Structural::apply_defaults`].
    pub fn fill_defaults(&self, value: &mut Value) -> Result<(), TooLargeToStore> {
        Filler { drops_nulls: false, left: MAX_DEFAULTED_BYTES }.complete(self, value)
    }
}

/// Fills in one object.
struct Filler {
    drops_nulls: bool,
    /// What defaults may still add.
    left: usize,
}

impl Filler {
    fn complete(&mut self, schema: &Structural, value: &mut Value) -> Result<(), TooLargeToStore> {
        match value {
            Value::Object(map) => self.complete_object(schema, map),
            Value::Array(items) => self.complete_list(schema, items),
            _ => Ok(()),
        }
    }

    fn complete_object(
        &mut self,
        schema: &Structural,
        map: &mut Map<String, Value>,
    ) -> Result<(), TooLargeToStore> {
        map.retain(|name, value| match (schema.properties.get(name), schema.additional.as_deref()) {
            (Some(of), _) => !self.drops(of, value),
            (None, Some(of)) => of.default.is_some() || !self.drops(of, value),
            (None, None) => true,
        });
        for (name, of) in &schema.properties {
            if let Some(default) = &of.default
                && !map.contains_key(name)
            {
                map.insert(name.clone(), self.copy(default)?);
            }
        }
        let additional = schema.additional.as_deref().and_then(|of| Some((of, of.default.as_ref()?)));
        for (name, value) in map.iter_mut() {
            if let Some((of, default)) = additional
                && of.drops(value)
                && !schema.properties.contains_key(name)
            {
                *value = self.copy(default)?;
            }
            if let Some(of) = schema.member(name) {
                self.complete(of, value)?;
            }
        }
        Ok(())
    }

    fn complete_list(&mut self, schema: &Structural, items: &mut [Value]) -> Result<(), TooLargeToStore> {
        let Some(of) = &schema.items else { return Ok(()) };
        for item in items {
            if let Some(default) = &of.default
                && of.drops(item)
            {
                *item = self.copy(default)?;
            }
            self.complete(of, item)?;
        }
        Ok(())
    }

    fn drops(&self, schema: &Structural, value: &Value) -> bool {
        (self.drops_nulls || schema.default.is_some()) && schema.drops(value)
    }

    /// A default, counted before it is copied.
    fn copy(&mut self, default: &Value) -> Result<Value, TooLargeToStore> {
        self.left = self.left.checked_sub(json_bytes(default)).ok_or(TooLargeToStore)?;
        Ok(default.clone())
    }
}
