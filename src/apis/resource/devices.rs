//! What claims, classes and slices say of devices (`pkg/apis/resource/validation`).

use std::collections::BTreeMap;

use crate::apimachinery::cel::{Environment, Type};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::{dns1123_label, dns1123_subdomain};
use crate::apis::tree::*;
use crate::apis::validation::Field;
use serde_json::Value;

const MOST: usize = 32;
const MOST_SUBREQUESTS: usize = 8;
const MOST_EXPRESSION_BYTES: usize = 10 * 1024;

/// The defaults of a claim's spec at `path`.
pub fn default_claim(tree: &mut Value, path: &str) {
    for request in items_mut(tree, &format!("{path}.devices.requests")) {
        if let Some(exactly) = get_mut(request, "exactly") {
            default_request(exactly);
        }
        items_mut(request, "firstAvailable").iter_mut().for_each(default_request);
    }
}

fn default_request(request: &mut Value) {
    set_if_zero(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        set_if_zero(request, "count", 1);
    }
    for toleration in items_mut(request, "tolerations") {
        set_if_zero(toleration, "operator", "Equal");
    }
}

/// `validateDeviceClaim`
pub fn claim(devices: &Field, errors: &mut FieldErrors) {
    let names = request_names(devices);
    let requests = devices.child("requests");
    for request in set(&requests, MOST, "name", errors) {
        validate_request(&request, errors);
    }
    for constraint in at_most(&devices.child("constraints"), MOST, errors) {
        validate_constraint(&constraint, &names, errors);
    }
    configuration(&devices.child("config"), Some(&names), errors);
}

/// The requests of a claim, and of each its subrequests.
type Names = BTreeMap<String, Vec<String>>;

fn request_names(devices: &Field) -> Names {
    let name = |field: &Field| field.child("name").text().to_owned();
    let of = |request: &Field| request.each("firstAvailable").iter().map(name).collect();
    devices.each("requests").iter().map(|request| (name(request), of(request))).collect()
}

fn is_known(names: &Names, wanted: &str) -> bool {
    match wanted.split_once('/') {
        None => names.contains_key(wanted),
        Some((request, below)) => {
            names.get(request).is_some_and(|subrequests| subrequests.iter().any(|name| name == below))
        }
    }
}

fn validate_request(request: &Field, errors: &mut FieldErrors) {
    request.child("name").must_follow(dns1123_label, errors);
    let (exactly, first) = (request.child("exactly"), request.child("firstAvailable"));
    match (exactly.is_set(), !first.is_zero()) {
        (false, false) => {
            request.required("exactly one of `exactly` or `firstAvailable` is required", errors);
        }
        (true, true) => {
            let words =
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.invalid(request.path.as_str(), &Value::Null, words);
        }
        (true, false) => validate_exact(&exactly, errors),
        (false, true) => {
            for subrequest in set(&first, MOST_SUBREQUESTS, "name", errors) {
                subrequest.child("name").must_follow(dns1123_label, errors);
                validate_exact(&subrequest, errors);
            }
        }
    }
}

fn validate_exact(request: &Field, errors: &mut FieldErrors) {
    request.child("deviceClassName").must_follow(dns1123_subdomain, errors);
    selectors(&request.child("selectors"), errors);
    let (mode, count) = (request.child("allocationMode"), request.child("count"));
    match mode.text() {
        "All" if count.number() != 0 => {
            count.invalid("must not be specified when allocationMode is 'All'", errors);
        }
        "All" => {}
        "ExactCount" if count.number() <= 0 => {
            errors.invalid(count.path.as_str(), &count.number().into(), "must be greater than zero");
        }
        "ExactCount" => {}
        _ => mode.not_supported(&["All", "ExactCount"], errors),
    }
}

/// What an expression may ask of a device (`dynamic-resource-allocation/cel`).
fn device_environment() -> Environment {
    let of_domain = |value: Type| Type::map_of(Type::map_of(value));
    let fields = [
        ("driver", Type::String),
        ("attributes", of_domain(Type::Dyn)),
        ("capacity", of_domain(Type::Opaque("kubernetes.Quantity".into()))),
        ("allowMultipleAllocations", Type::Bool),
    ];
    Environment::new().with_variable("device", Type::object("kubernetes.DRADevice", fields))
}

/// `validateCELSelector`
fn validate_expression(expression: &Field, errors: &mut FieldErrors) {
    if expression.text().trim().is_empty() {
        return expression.required("", errors);
    }
    match device_environment().compile(expression.text()) {
        Err(error) => expression.invalid(format!("compilation failed: {error}"), errors),
        Ok(program) if !matches!(program.result_type(), Type::Bool | Type::Dyn) => {
            let given = program.result_type();
            expression.invalid(format!("must evaluate to bool or the unknown type, not {given}"), errors);
        }
        Ok(_) => {}
    }
}

/// `validateSelectorSlice`
pub fn selectors(selectors: &Field, errors: &mut FieldErrors) {
    for selector in at_most(selectors, MOST, errors) {
        let cel = selector.child("cel");
        let expression = cel.child("expression");
        if !cel.is_set() {
            cel.required("", errors);
        } else if expression.text().len() > MOST_EXPRESSION_BYTES {
            errors.too_long(expression.path.as_str(), MOST_EXPRESSION_BYTES);
        } else {
            validate_expression(&expression, errors);
        }
    }
}

/// Configuration for drivers; only that of a claim names requests.
pub fn configuration(list: &Field, names: Option<&Names>, errors: &mut FieldErrors) {
    for one in at_most(list, MOST, errors) {
        if let Some(names) = names {
            validate_references(&one.child("requests"), names, errors);
        }
        let opaque = one.child("opaque");
        if !opaque.is_set() {
            one.required("exactly one of opaque is required", errors);
            continue;
        }
        driver(&opaque.child("driver"), errors);
        let parameters = opaque.child("parameters");
        match parameters.value {
            Value::Null => parameters.required("", errors),
            Value::Object(_) => {}
            _ => parameters.invalid("must be a valid JSON object", errors),
        }
    }
}

fn validate_references(list: &Field, names: &Names, errors: &mut FieldErrors) {
    let given = at_most(list, MOST, errors);
    for (at, name) in given.iter().enumerate() {
        if !is_known(names, name.text()) {
            name.invalid(
                "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
                errors,
            );
        }
        if given[..at].iter().any(|earlier| earlier.text() == name.text()) {
            name.duplicate(errors);
        }
    }
}

fn validate_constraint(constraint: &Field, names: &Names, errors: &mut FieldErrors) {
    validate_references(&constraint.child("requests"), names, errors);
    let attributes = ["matchAttribute", "distinctAttribute"].map(|name| constraint.child(name));
    if !attributes.iter().any(Field::is_set) {
        constraint.required("exactly one of matchAttribute or distinctAttribute is required", errors);
    }
    for attribute in attributes.iter().filter(|attribute| attribute.is_set()) {
        let Some((domain, name)) = attribute.text().split_once('/') else {
            attribute.invalid("must include a domain", errors);
            continue;
        };
        attribute.invalid_each(dns1123_subdomain(domain), errors);
        if name.is_empty() {
            attribute.required("the name must not be empty", errors);
        }
    }
}

/// `ValidateCSIDriverName`: of a DRA driver, too.
pub fn driver(name: &Field, errors: &mut FieldErrors) {
    const MOST_BYTES: usize = 63;
    if name.is_zero() {
        return name.required("", errors);
    }
    if name.text().len() > MOST_BYTES {
        errors.too_long(name.path.as_str(), MOST_BYTES);
    }
    name.invalid_each(dns1123_subdomain(&name.text().to_lowercase()), errors);
}

/// The items of a list that may hold `most`.
pub fn at_most<'a>(list: &Field<'a>, most: usize, errors: &mut FieldErrors) -> Vec<Field<'a>> {
    let items = list.items();
    if items.len() > most {
        errors.too_many(list.path.as_str(), items.len(), most);
    }
    items
}

/// The same of a list whose items differ in `key`.
pub fn set<'a>(list: &Field<'a>, most: usize, key: &str, errors: &mut FieldErrors) -> Vec<Field<'a>> {
    let items = at_most(list, most, errors);
    for (at, item) in items.iter().enumerate() {
        let own = item.child(key);
        if items[..at].iter().any(|earlier| earlier.child(key).text() == own.text()) {
            own.shown_as(item.path.as_str()).duplicate(errors);
        }
    }
    items
}
