//! Validation of values (`kube-openapi/pkg/validation/validate`), in its words.
//!
//! On an update, what did not change is not held against the object (KEP-4008): `old` is the value that stood
//! in the same place, where that can be told.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::{Bounds, Structural, child, formats, shown};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::repeats::repeats;
use golang::go_print::go_type;

/// An old list map, its first element of each set of keys: looked up, because lists may be long.
pub(super) struct Correlation<'a> {
    schema: &'a Structural,
    by_keys: HashMap<Map<String, Value>, &'a Value>,
}

impl<'a> Correlation<'a> {
    /// The old element that has the same keys.
    pub(super) fn find(&self, item: &Value) -> Option<&'a Value> {
        if self.by_keys.is_empty() {
            return None;
        }
        self.by_keys.get(&self.schema.keys_of(item)).copied()
    }
}

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
        match value {
            Value::String(text) => self.validate_text(path, text, errors),
            Value::Number(number) => self.validate_number(path, number, errors),
            Value::Array(items) => self.validate_array(path, items, old, errors),
            _ => {}
        }
        self.validate_enumeration(path, value, errors);
        if let Value::Object(map) = value {
            self.validate_object(path, map, old, errors);
        }
    }

    /// Validates a value that stands at `base`, whose errors say where they are from there: of a default,
    /// and of a status.
    pub fn validate_part(&self, base: &str, value: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
        let mut own = FieldErrors::default();
        self.validate_value("", value, old, &mut own);
        for mut error in own.0 {
            error.path = if error.path == shown("") { base.to_owned() } else { child(base, &error.path) };
            errors.0.push(error);
        }
    }

    /// Whether there is more to look at: a value of another type is held to whatever suits its own.
    fn validate_type(&self, path: &str, value: &Value, errors: &mut FieldErrors) -> bool {
        let (given, wanted) = (type_of(value), self.type_name.as_str());
        if value.is_null() {
            let wanted = if self.int_or_string { "integer,string" } else { wanted };
            if !self.nullable && !wanted.is_empty() {
                wrong_type(path, wanted, given, errors);
            }
            self.validate_enumeration(path, value, errors);
            return false;
        }
        if self.int_or_string && !matches!(given, "integer" | "string") {
            // Two alternatives, neither of which fits.
            wrong_type(path, "integer,string", given, errors);
            return false;
        }
        if self.int_or_string || wanted.is_empty() || self.is_of_type(value) {
            return true;
        }
        let is_text_or_list = value.is_string() || value.is_array();
        match wanted {
            _ if self.format.is_empty() => wrong_type(path, wanted, given, errors),
            "number" | "integer" if is_text_or_list => wrong_type(path, wanted, given, errors),
            // A list is never told that it is not of a text's format.
            _ if is_text_or_list => {}
            _ => {
                let given = if value.is_number() { go_type(value) } else { "" };
                wrong_type(path, &self.format, given, errors);
            }
        }
        true
    }

    fn is_of_type(&self, value: &Value) -> bool {
        match (self.type_name.as_str(), value) {
            ("number", Value::Number(_)) => true,
            ("integer", Value::Number(number)) => number.as_i64().is_some() || is_whole(number),
            (wanted, value) => wanted == type_of(value),
        }
    }

    fn validate_number(&self, path: &str, number: &Number, errors: &mut FieldErrors) {
        let wanted = match (self.type_name.as_str(), self.format.as_str()) {
            ("integer", "int32") if !is_whole(number) || number.as_f64().is_none_or(|n| !fits_int32(n)) => {
                Some("integer with format int32")
            }
            ("integer", "int64") if number.as_i64().is_none() && !is_whole(number) => {
                Some("integer with format int64")
            }
            ("integer", "") if number.as_i64().is_none() && !is_whole(number) => {
                Some("integer (default format)")
            }
            _ => None,
        };
        if let Some(wanted) = wanted {
            let detail = format!("Checked value must be of type {wanted} in {path}");
            errors.invalid(shown(""), &"".into(), detail);
        }
        self.bounds.validate_number(path, number, errors);
    }

    fn validate_enumeration(&self, path: &str, value: &Value, errors: &mut FieldErrors) {
        if self.enumeration.is_empty() || self.enumeration.iter().any(|listed| is_listed(value, listed)) {
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
        let correlation = self.correlation(old);
        for (at, item) in items.iter().enumerate() {
            let Some(schema) = &self.items else { break };
            let before = correlation.find(item);
            schema.validate_value(&format!("{path}[{at}]"), item, before, errors);
        }
        self.bounds.validate_array(path, items, errors);
    }

    /// The elements of an old list map, to be found by their keys.
    pub(super) fn correlation<'a>(&'a self, old: Option<&'a Value>) -> Correlation<'a> {
        let old = old.and_then(Value::as_array).filter(|_| self.list_type == "map");
        let mut by_keys = HashMap::new();
        for item in old.into_iter().flatten() {
            by_keys.entry(self.keys_of(item)).or_insert(item);
        }
        Correlation { schema: self, by_keys }
    }

    fn validate_object(
        &self,
        path: &str,
        map: &Map<String, Value>,
        old: Option<&Value>,
        errors: &mut FieldErrors,
    ) {
        self.bounds.validate_object(path, map, errors);
        for (name, value) in map {
            if let Some(schema) = self.member(name) {
                let before = old.and_then(|old| old.get(name));
                schema.validate_value(&child(path, name), value, before, errors);
            }
        }
        for name in self.required.iter().filter(|name| !map.contains_key(*name)) {
            errors.required(child(path, name), "");
        }
    }
}

impl Bounds {
    fn validate_number(&self, path: &str, given: &Number, errors: &mut FieldErrors) {
        let (value, number) = (Value::Number(given.clone()), given.as_f64().unwrap_or_default());
        match self.multiple_of {
            // Of a whole number the factor is taken as one, too.
            Some(multiple_of) if given.is_i64() && multiple_of < 1.0 => {
                let detail = format!("factor MultipleOf declared for {path} must be positive: 0");
                errors.invalid(shown(path), &0.into(), detail);
            }
            Some(multiple_of) if (number / multiple_of - (number / multiple_of).round()).abs() > 1e-9 => {
                let detail = format!("{path} in body should be a multiple of {multiple_of}");
                errors.invalid(shown(path), &value, detail);
            }
            _ => {}
        }
        let mut refuse = |what: String| errors.invalid(shown(path), &value, format!("{path} in body {what}"));
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
        let mut refuse =
            |what: String| errors.invalid(shown(path), &text.into(), format!("{path} in body {what}"));
        // The first that does not hold is told.
        if let Some(most) = self.max_length.filter(|most| length > *most) {
            errors.too_long(shown(path), most as usize);
        } else if let Some(least) = self.min_length.filter(|least| length < *least) {
            refuse(format!("should be at least {least} chars long"));
        } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            refuse(format!("should match '{}'", pattern.text()));
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
        if self.unique_items && repeats(items).contains(&true) {
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

/// `EnumCase`: a number is converted to the type of what is listed, which cuts off what is behind the point.
fn is_listed(value: &Value, listed: &Value) -> bool {
    let cut = |value: &Value| value.as_f64().filter(|_| value.is_f64()).map(f64::trunc);
    value == listed || (listed.is_i64() && cut(value).is_some_and(|cut| listed.as_f64() == Some(cut)))
}

fn fits_int32(number: f64) -> bool {
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
}

/// A whole number that JSON's numbers of 53 bits hold (`swag.IsFloat64AJSONInteger`).
fn is_whole(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_991.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
