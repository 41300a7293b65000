//! LimitRange: what one object in a namespace may ask for.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::rules::{RULES, Rules};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::resources::{ResourcePlace, may_overcommit, quantity, resource_name};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::qualified_name;
use apimachinery::quantity::{Format, Quantity};
use serde_json::Value;
use std::collections::BTreeSet;

/// `limitranges`
pub static LIMIT_RANGES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "LimitRange", "limitranges", "io.k8s.api.core.v1")
        .short(&["limits"])
        .defaulted(defaults)
        .governed_by(Rules { allow_create_on_update: true, validate, ..RULES })
        .into()
});

/// For containers: the default limit is the maximum, the default request is the default limit, else the
/// minimum.
fn defaults(range: &mut Value) {
    for item in items_mut(range, "spec.limits").iter_mut().filter(|item| text(item, "type") == "Container") {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            for (name, quantity) in at(item, from).as_object().cloned().unwrap_or_default() {
                object_mut(item, to).entry(name).or_insert(quantity);
            }
        }
    }
}

const LISTS: [&str; 4] = ["max", "min", "default", "defaultRequest"];

fn validate(range: &Value, errors: &mut FieldErrors) {
    let mut types = BTreeSet::new();
    for item in Field::of(range, "spec.limits").items() {
        let kind = item.child("type");
        item_type(&kind, errors);
        if !types.insert(kind.text()) {
            kind.duplicate(errors);
        }
        let place = if matches!(kind.text(), "Pod" | "Container") {
            ResourcePlace::Container
        } else {
            ResourcePlace::Any
        };
        let is_pod = kind.text() == "Pod";
        for name in LISTS.iter().chain(&["maxLimitRequestRatio"]) {
            let list = item.child(name);
            if is_pod && name.starts_with("default") {
                if !list.is_zero() {
                    list.forbidden("may not be specified when `type` is 'Pod'", errors);
                }
                continue;
            }
            for (name, quantity) in list.members() {
                resource_name(name, &quantity, place, errors);
            }
        }
        if kind.text() == "PersistentVolumeClaim"
            && !item.child("min.storage").is_set()
            && !item.child("max.storage").is_set()
        {
            let words = "either minimum or maximum storage value is required, but neither was provided";
            item.child("limits").required(words, errors);
        }
        consistent(&item, errors);
    }
}

fn item_type(kind: &Field, errors: &mut FieldErrors) {
    let wrong = qualified_name(kind.text());
    let is_standard = matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim");
    if wrong.is_empty() && !kind.text().contains('/') && !is_standard {
        kind.invalid("must be a standard limit type or fully qualified", errors);
    }
    kind.invalid_each(wrong, errors);
}

/// What must not be greater than what: the lesser, the greater, the one at fault, and their names.
const ORDER: [(&str, &str, &str, &str, &str); 6] = [
    ("min", "max", "min", "min", "max"),
    ("min", "defaultRequest", "defaultRequest", "min", "default request"),
    ("defaultRequest", "max", "defaultRequest", "default request", "max"),
    ("defaultRequest", "default", "defaultRequest", "default request", "default limit"),
    ("min", "default", "default", "min", "default"),
    ("default", "max", "default", "default", "max"),
];

fn consistent(item: &Field, errors: &mut FieldErrors) {
    let names: BTreeSet<&str> =
        LISTS.iter().flat_map(|list| item.child(list).members()).map(|(name, _)| name).collect();
    let of = |list: &str, name: &str| {
        let value = item.child(list).value.get(name)?;
        Some(Field { path: format!("{}.{list}[{name}]", item.path), value })
    };
    for name in names {
        for (lesser, greater, fault, lesser_name, greater_name) in ORDER {
            let (Some(a), Some(b), Some(fault)) = (of(lesser, name), of(greater, name), of(fault, name))
            else {
                continue;
            };
            if quantity(&a) > quantity(&b) {
                let words = format!(
                    "{lesser_name} value {} is greater than {greater_name} value {}",
                    a.text(),
                    b.text()
                );
                fault.invalid(words, errors);
            }
        }
    }
    for (name, ratio) in item.child("maxLimitRequestRatio").members() {
        if quantity(&ratio) < Quantity::new(1, Format::DecimalSi) {
            ratio.invalid(format!("ratio {} is less than 1", ratio.text()), errors);
        }
        let bounds = of("max", name).zip(of("min", name));
        let most = bounds.map(|(max, min)| as_number(&max) / as_number(&min));
        if let Some(most) = most.filter(|most| as_number(&ratio) > *most) {
            ratio.invalid(format!("ratio {} is greater than max/min = {most:.6}", ratio.text()), errors);
        }
    }
    for (name, asked) in item.child("defaultRequest").members() {
        let given = of("default", name).filter(|given| quantity(given) != quantity(&asked));
        if let Some(given) = given.filter(|_| !may_overcommit(name)) {
            let (given, asked_for) = (given.text(), asked.text());
            let words =
                format!("default value {given} must equal to defaultRequest value {asked_for} in {name}");
            asked.invalid(words, errors);
        }
    }
}

fn as_number(field: &Field) -> f64 {
    quantity(field).as_approximate_f64()
}
