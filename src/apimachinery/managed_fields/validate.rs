//! Whether a value is one of its type (`typed.AsTyped`): what an applied configuration has to be.

use std::fmt;

use serde_json::Value;

use super::atom::{Form, ListAtom, MapAtom, Scalar, SchemaType};
use super::element::identify;
use super::path::{Path, PathElement, print_path};
use golang::go_print;

/// What does not fit, in upstream's words (`typed.ValidationErrors`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<String>);

impl ValidationErrors {
    pub(super) fn one(error: String) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [one] => f.write_str(one),
            several => {
                f.write_str("errors:")?;
                several.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

/// Checks a whole configuration: unknown fields, mistyped values, elements without keys or with the same.
///
/// # Errors
/// All that is wrong; of unknown fields the first of each object.
pub fn validate(kind: SchemaType, value: &Value) -> Result<(), ValidationErrors> {
    walk(kind, value, false)
}

/// Validates an object that is there: an element may stand twice (`typed.AllowDuplicates`).
///
/// # Errors
/// As [`validate`].
pub(super) fn validate_live(kind: SchemaType, value: &Value) -> Result<(), ValidationErrors> {
    walk(kind, value, true)
}

fn walk(kind: SchemaType, value: &Value, allow_duplicates: bool) -> Result<(), ValidationErrors> {
    let mut walker =
        ValidationWalker { allow_duplicates, path: Path::new(), errors: ValidationErrors::default() };
    walker.visit(kind, value);
    if walker.errors.0.is_empty() { Ok(()) } else { Err(walker.errors) }
}

struct ValidationWalker {
    allow_duplicates: bool,
    path: Path,
    errors: ValidationErrors,
}

impl ValidationWalker {
    fn visit(&mut self, kind: SchemaType, value: &Value) {
        match (kind.atom().form(Some(value)), value) {
            (_, Value::Null) => {}
            (Form::Map(map), Value::Object(fields)) => self.visit_map(map, fields),
            (Form::List(list), Value::Array(items)) => self.visit_list(list, items),
            (Form::Scalar(scalar), value) => self.visit_scalar(scalar, value),
            (Form::Map(_), other) => self.refuse(format!("expected map, got {}", go_pointer(other))),
            (Form::List(_), other) => self.refuse(format!("expected list, got {}", go_pointer(other))),
        }
    }

    fn visit_map(&mut self, map: MapAtom, fields: &serde_json::Map<String, Value>) {
        for (name, value) in fields {
            let child = map.child(name);
            self.path.push(PathElement::field(name));
            match child {
                Some(kind) => self.visit(kind, value),
                None => self.refuse("field not declared in schema".into()),
            }
            self.path.pop();
            if child.is_none() {
                return;
            }
        }
    }

    fn visit_list(&mut self, list: ListAtom, items: &[Value]) {
        let mut seen = std::collections::BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let element =
                if list.is_atomic { Ok(PathElement::Index(at as i64)) } else { identify(&list, item) };
            let element = match element {
                Ok(element) => element,
                Err(error) => return self.refuse(format!("element {at}: {error}")),
            };
            if !list.is_atomic && !seen.insert(element.clone()) && !self.allow_duplicates {
                self.refuse(format!("duplicate entries for key {element}"));
            }
            self.path.push(element);
            self.visit(list.element, item);
            self.path.pop();
        }
    }

    fn visit_scalar(&mut self, scalar: Scalar, value: &Value) {
        let is_scalar = !value.is_array() && !value.is_object();
        match scalar {
            Scalar::Numeric if !value.is_number() => {
                self.refuse(format!("expected numeric (int or float), got {}", go_print::go_type(value)))
            }
            Scalar::Text if !value.is_string() => {
                let shown = go_print::go_syntax(value);
                self.refuse(format!("expected string, got &value.valueUnstructured{{Value:{shown}}}"))
            }
            Scalar::Boolean if !value.is_boolean() => {
                self.refuse(format!("expected boolean, got {}", go_pointer(value)))
            }
            Scalar::Untyped if !is_scalar => {
                self.refuse(format!("expected any scalar, got {}", go_pointer(value)))
            }
            _ => {}
        }
    }

    fn refuse(&mut self, why: String) {
        let path = print_path(&self.path);
        self.errors.0.push(if path.is_empty() { why } else { format!("{path}: {why}") });
    }
}

/// A value where upstream prints the pointer to its wrapping.
fn go_pointer(value: &Value) -> String {
    format!("&{{{}}}", go_print::go_print(value))
}
