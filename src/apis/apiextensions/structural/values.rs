//! Validation of values (`kube-openapi/pkg/validation/validate`), in its words.
//!
//! On an update, what did not change is not held against the object (KEP-4008): `old` is the value that stood
//! in the same place, where that can be told.

use serde_json::{Map, Value};

use super::{Bounds, Structural, child, formats, shown};
use crate::apimachinery::field_error::{ErrorType, FieldErrors};

impl Structural {
    /// What is wrong with a value; `path` of the root is empty.
    pub fn validate_value(&self, path: &str, value: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
        if old == Some(value) {
            return;
        }
        if !self.validate_type(path, value, errors) {
            return;
        }
        self.validate_quantifiers(path, value, errors);
        self.validate_enumeration(path, value, errors);
        match value {
            Value::String(text) => self.validate_text(path, text, errors),
            Value::Number(number) => {
                self.bounds.validate_number(path, value, number.as_f64().unwrap_or_default(), errors);
            }
            Value::Array(items) => self.validate_array(path, items, old, errors),
            Value::Object(map) => self.validate_object(path, map, old, errors),
            _ => {}
        }
    }

    /// A value of another type is not looked at any further.
    fn validate_type(&self, path: &str, value: &Value, errors: &mut FieldErrors) -> bool {
        let (given, wanted) = (type_of(value), self.type_name.as_str());
        if value.is_null() && self.nullable {
            return false;
        }
        let fits = match (wanted, value) {
            _ if self.int_or_string => {
                if matches!(given, "integer" | "string") {
                    return true;
                }
                // Two alternatives, neither of which fits.
                wrong_type(path, "integer,string", given, errors);
                return false;
            }
            ("", _) => true,
            ("number", Value::Number(_)) => true,
            ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
            (wanted, _) => wanted == given,
        };
        if !fits {
            wrong_type(path, wanted, given, errors);
        }
        fits && !value.is_null()
    }

    fn validate_enumeration(&self, path: &str, value: &Value, errors: &mut FieldErrors) {
        if self.enumeration.is_empty() || self.enumeration.contains(value) {
            return;
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let supported: Vec<String> = self.enumeration.iter().map(text).collect();
        let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
        errors.not_supported(shown(path), value, &supported);
    }

    fn validate_text(&self, path: &str, text: &str, errors: &mut FieldErrors) {
        self.bounds.validate_text(path, text, errors);
        if !self.format.is_empty() && !formats::fits(&self.format, text) {
            let detail = format!("{path} in body must be of type {}: {text:?}", self.format);
            errors.push(shown(path), ErrorType::TypeInvalid, format!("{text:?}"), &detail);
        }
    }

    fn validate_array(&self, path: &str, items: &[Value], old: Option<&Value>, errors: &mut FieldErrors) {
        self.bounds.validate_array(path, items, errors);
        let Some(schema) = &self.items else { return };
        for (at, item) in items.iter().enumerate() {
            let before = self.correlated(item, old);
            schema.validate_value(&format!("{path}[{at}]"), item, before, errors);
        }
    }

    /// The element of an old list that has the same keys.
    pub(super) fn correlated<'a>(&self, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
        let old = old?.as_array()?;
        match self.list_type.as_str() {
            "map" => {
                let keys = self.keys_of(item);
                old.iter().find(|other| self.keys_of(other) == keys)
            }
            _ => None,
        }
    }

    fn validate_object(
        &self,
        path: &str,
        map: &Map<String, Value>,
        old: Option<&Value>,
        errors: &mut FieldErrors,
    ) {
        for name in self.required.iter().filter(|name| !map.contains_key(*name)) {
            errors.required(child(path, name), "");
        }
        self.bounds.validate_object(path, map, errors);
        for (name, value) in map {
            if let Some(schema) = self.member(name) {
                let before = old.and_then(|old| old.get(name));
                schema.validate_value(&child(path, name), value, before, errors);
            }
        }
    }
}

impl Bounds {
    fn validate_number(&self, path: &str, value: &Value, number: f64, errors: &mut FieldErrors) {
        let mut refuse = |what: String| errors.invalid(shown(path), value, format!("{path} in body {what}"));
        if let Some(multiple_of) = self.multiple_of {
            let times = number / multiple_of;
            if (times - times.round()).abs() > 1e-9 {
                refuse(format!("should be a multiple of {multiple_of}"));
            }
        }
        match self.maximum {
            Some(maximum) if self.exclusive_maximum && number >= maximum => {
                refuse(format!("should be less than {maximum}"));
            }
            Some(maximum) if number > maximum => {
                refuse(format!("should be less than or equal to {maximum}"));
            }
            _ => {}
        }
        match self.minimum {
            Some(minimum) if self.exclusive_minimum && number <= minimum => {
                refuse(format!("should be greater than {minimum}"));
            }
            Some(minimum) if number < minimum => {
                refuse(format!("should be greater than or equal to {minimum}"));
            }
            _ => {}
        }
    }

    fn validate_text(&self, path: &str, text: &str, errors: &mut FieldErrors) {
        let length = text.chars().count() as u64;
        if let Some(most) = self.max_length.filter(|most| length > *most) {
            errors.too_long(shown(path), most as usize);
        }
        let mut refuse =
            |what: String| errors.invalid(shown(path), &text.into(), format!("{path} in body {what}"));
        if let Some(least) = self.min_length.filter(|least| length < *least) {
            refuse(format!("should be at least {least} chars long"));
        }
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            refuse(format!("should match '{pattern}'"));
        }
    }

    fn validate_array(&self, path: &str, items: &[Value], errors: &mut FieldErrors) {
        let count = items.len() as u64;
        if let Some(least) = self.min_items.filter(|least| count < *least) {
            let what = format!("{path} in body should have at least {least} items");
            errors.invalid(shown(path), &count.into(), what);
        }
        if let Some(most) = self.max_items.filter(|most| count > *most) {
            errors.too_many(shown(path), items.len(), most as usize);
        }
        let stands_twice = |(at, item): (usize, &Value)| items[..at].contains(item);
        if self.unique_items && items.iter().enumerate().any(stands_twice) {
            let what = format!("{path} in body shouldn't contain duplicates");
            errors.invalid(shown(path), &"".into(), what);
        }
    }

    fn validate_object(&self, path: &str, map: &Map<String, Value>, errors: &mut FieldErrors) {
        let count = map.len() as u64;
        if let Some(least) = self.min_properties.filter(|least| count < *least) {
            let what = format!("{path} in body should have at least {least} properties");
            errors.invalid(shown(path), &count.into(), what);
        }
        if let Some(most) = self.max_properties.filter(|most| count > *most) {
            errors.too_many(shown(path), map.len(), most as usize);
        }
    }
}

fn wrong_type(path: &str, wanted: &str, given: &str, errors: &mut FieldErrors) {
    let detail = format!("{path} in body must be of type {wanted}: {given:?}");
    errors.push(shown(path), ErrorType::TypeInvalid, format!("{given:?}"), &detail);
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
