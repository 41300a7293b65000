//! What claims and classes say of devices (`pkg/apis/resource/validation`).

use std::collections::BTreeMap;

use super::device_selector::device_environment;
use super::names::{fully_qualified_name, pool_name};
use crate::tree::*;
use crate::validation::resources::extended_resource_name;
use crate::validation::texts::{csi_driver_name, shown_each};
use crate::validation::{Field, at_most, equal};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{dns1123_label, dns1123_subdomain, label_value, qualified_name};
use apimachinery::repeats::repeats;
use cel::{Size, Type};
use serde_json::{Value, json};

const MOST: usize = 32;
const MOST_SUBREQUESTS: usize = 8;
const MOST_EXPRESSION_BYTES: usize = 10 * 1024;
/// `CELSelectorExpressionMaxCost`
const MOST_EXPRESSION_COST: u64 = 1_000_000;
/// Of one domain, and domains.
const MOST_ATTRIBUTES: u64 = 32;
/// Of a driver's name, and of a domain.
const MOST_NAME_LENGTH: u64 = 63;
const MOST_ID_LENGTH: u64 = 32;
const MOST_VALUE_LENGTH: u64 = 64;
const MOST_PARAMETER_BYTES: usize = 10 * 1024;
const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];
const REFERENCE: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The defaults of a claim's spec at `path`.
pub(super) fn default_claim(tree: &mut Value, path: &str) {
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
pub(super) fn claim(devices: &Field, errors: &mut FieldErrors) {
    let names = request_names(devices);
    set(&devices.child("requests"), MOST, "name", validate_request, errors);
    for constraint in at_most(&devices.child("constraints"), MOST, errors) {
        validate_constraint(&constraint, &names, errors);
    }
    for one in at_most(&devices.child("config"), MOST, errors) {
        references(&one.child("requests"), &names, errors);
        configuration(&one, false, errors);
    }
}

/// The requests of a claim, and of each its subrequests.
pub(super) type RequestNames = BTreeMap<String, Vec<String>>;

/// The names that may be referred to.
pub(super) fn request_names(devices: &Field) -> RequestNames {
    let name = |field: &Field| field.child("name").text().to_owned();
    let of = |request: &Field| request.each("firstAvailable").iter().map(name).collect();
    devices.each("requests").iter().map(|request| (name(request), of(request))).collect()
}

fn is_known(names: &RequestNames, wanted: &str) -> bool {
    match wanted.split_once('/') {
        None => names.contains_key(wanted),
        Some((request, below)) => {
            names.get(request).is_some_and(|subrequests| subrequests.iter().any(|name| name == below))
        }
    }
}

fn validate_request(request: &Field, errors: &mut FieldErrors) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    shown_each(&request.child("name"), dns1123_label, errors);
    let (exactly, first) = (request.child("exactly"), request.child("firstAvailable"));
    match (exactly.is_set(), !first.is_zero()) {
        (false, false) => request.required(ONE, errors),
        (true, true) => {
            let words = format!("{ONE}, but multiple fields are set");
            errors.invalid(request.path.as_str(), &Value::Null, words);
        }
        (true, false) => validate_exact(&exactly, errors),
        (false, true) => {
            let subrequest = |subrequest: &Field, errors: &mut FieldErrors| {
                shown_each(&subrequest.child("name"), dns1123_label, errors);
                validate_exact(subrequest, errors);
            };
            set(&first, MOST_SUBREQUESTS, "name", subrequest, errors);
        }
    }
}

fn validate_exact(request: &Field, errors: &mut FieldErrors) {
    request.child("deviceClassName").must_follow(dns1123_subdomain, errors);
    selectors(&request.child("selectors"), false, errors);
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
    tolerations(&request.child("tolerations"), errors);
}

/// `validateDeviceToleration`, of each.
pub(super) fn tolerations(list: &Field, errors: &mut FieldErrors) {
    for toleration in list.items() {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|name| toleration.child(name));
        key.follows(qualified_name, errors);
        match operator.text() {
            "Exists" if !value.is_zero() => value.invalid("must be empty for operator `Exists`", errors),
            "Exists" => {}
            "Equal" => value.follows(label_value, errors),
            _ => operator.one_of(&["Equal", "Exists"], errors),
        }
        if !effect.is_zero() {
            effect.one_of(EFFECTS, errors);
        }
    }
}

/// `validateDeviceTaint`
pub(super) fn taint(taint: &Field, errors: &mut FieldErrors) {
    shown_each(&taint.child("key"), qualified_name, errors);
    taint.child("value").follows(label_value, errors);
    taint.child("effect").one_of(EFFECTS, errors);
}

/// How large what it asks for can be.
fn device_size() -> Size {
    let keyed = |key: u64, element: Size, is_open: bool| Size::Keyed {
        most: MOST_ATTRIBUTES,
        key: Box::new(Size::Text(key)),
        element: Box::new(element),
        is_open,
    };
    let of_domain = |element: Size, is_open: bool| {
        keyed(MOST_NAME_LENGTH, keyed(MOST_ID_LENGTH, element, is_open), false)
    };
    let fields = [
        ("driver", Size::Text(MOST_NAME_LENGTH)),
        ("attributes", of_domain(Size::Text(MOST_VALUE_LENGTH), true)),
        ("capacity", of_domain(Size::Scalar, false)),
        ("allowMultipleAllocations", Size::Scalar),
    ];
    Size::Fields(fields.map(|(name, size)| (name.to_owned(), size)).into())
}

/// `validateCELSelector`
fn validate_expression(expression: &Field, errors: &mut FieldErrors) {
    if expression.text().trim().is_empty() {
        return expression.required("", errors);
    }
    match device_environment().compile(expression.text()) {
        Err(error) if error.is_instantiation() => {
            errors.push(
                expression.path.as_str(),
                ErrorType::InternalError,
                String::new(),
                &error.described(),
            );
        }
        Err(error) => expression.invalid(error.described(), errors),
        Ok(program) if !matches!(program.result_type(), Type::Bool | Type::Dyn) => {
            let given = program.result_type().declared_name();
            expression.invalid(format!("must evaluate to bool or the unknown type, not {given}"), errors);
        }
        Ok(program) if program.estimate(&device_size(), false) > MOST_EXPRESSION_COST => {
            expression.forbidden("too complex, exceeds cost limit", errors);
        }
        Ok(_) => {}
    }
}

/// `validateSelectorSlice`; expressions that are stored were judged before.
pub(super) fn selectors(selectors: &Field, is_stored: bool, errors: &mut FieldErrors) {
    for selector in at_most(selectors, MOST, errors) {
        let cel = selector.child("cel");
        let expression = cel.child("expression");
        if !cel.is_set() {
            cel.required("", errors);
        } else if is_stored {
            continue;
        } else if expression.text().len() > MOST_EXPRESSION_BYTES {
            errors.too_long(expression.path.as_str(), MOST_EXPRESSION_BYTES);
        } else {
            validate_expression(&expression, errors);
        }
    }
}

/// `validateDeviceClassSpec`
pub(super) fn class(spec: &Field, old: Option<&Field>, errors: &mut FieldErrors) {
    let is_stored = |list: &str| old.is_some_and(|old| equal(old.child(list).value, spec.child(list).value));
    selectors(&spec.child("selectors"), is_stored("selectors"), errors);
    for one in at_most(&spec.child("config"), MOST, errors) {
        configuration(&one, is_stored("config"), errors);
    }
    let extended = spec.child("extendedResourceName");
    if extended.is_set() {
        extended_resource_name(&extended, errors);
    }
}

/// `validateDeviceConfiguration`: what a driver is told.
pub(super) fn configuration(one: &Field, is_stored: bool, errors: &mut FieldErrors) {
    let opaque = one.child("opaque");
    if !opaque.is_set() {
        opaque.required("", errors);
    } else {
        csi_driver_name(&opaque.child("driver"), errors);
        raw_object(&opaque.child("parameters"), is_stored, MOST_PARAMETER_BYTES, errors);
    }
}

/// `validateRawExtension`
pub(super) fn raw_object(field: &Field, is_stored: bool, most_bytes: usize, errors: &mut FieldErrors) {
    match field.value {
        Value::Null => field.required("", errors),
        value if !is_stored && value.to_string().len() > most_bytes => {
            errors.too_long(field.path.as_str(), most_bytes);
        }
        Value::Object(_) => {}
        _ => errors.invalid(field.path.as_str(), &json!("<value omitted>"), "must be a valid JSON object"),
    }
}

/// The requests that a part of a claim is about: each once.
pub(super) fn references(list: &Field, names: &RequestNames, errors: &mut FieldErrors) {
    let given = at_most(list, MOST, errors);
    given.iter().for_each(|name| reference(name, names, errors));
    let is_again = repeats(given.iter().map(|one| one.text()));
    for (at, name) in given.iter().enumerate() {
        if is_again[at] {
            name.duplicate(errors);
        }
    }
}

/// `validateRequestNameRef`
pub(super) fn reference(name: &Field, names: &RequestNames, errors: &mut FieldErrors) {
    let parts: Vec<&str> = name.text().split('/').collect();
    if parts.len() <= 2 {
        for part in parts {
            for detail in dns1123_label(part) {
                errors.invalid(name.path.as_str(), &json!(part), detail);
            }
        }
    }
    if !is_known(names, name.text()) {
        errors.invalid(name.path.as_str(), &json!(name.text()), REFERENCE);
    }
}

fn validate_constraint(constraint: &Field, names: &RequestNames, errors: &mut FieldErrors) {
    references(&constraint.child("requests"), names, errors);
    let attributes = ["matchAttribute", "distinctAttribute"].map(|name| constraint.child(name));
    match attributes.iter().find(|attribute| attribute.is_set()) {
        Some(attribute) => fully_qualified_name(attribute, errors),
        None => {
            let words = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields \
                are set";
            constraint.required(words, errors);
        }
    }
}

/// What names a device: its driver, its pool, its own name.
pub(super) fn device_id(device: &Field, errors: &mut FieldErrors) {
    csi_driver_name(&device.child("driver"), errors);
    pool_name(&device.child("pool"), errors);
    shown_each(&device.child("device"), dns1123_label, errors);
}

/// A list of at most `most` items, each of which follows `rule`, and which differ in `key`.
pub(super) fn set(
    list: &Field,
    most: usize,
    key: &str,
    rule: impl Fn(&Field, &mut FieldErrors),
    errors: &mut FieldErrors,
) {
    let items = at_most(list, most, errors);
    items.iter().for_each(|item| rule(item, errors));
    let is_again = repeats(items.iter().map(|one| one.child(key).text()));
    for (at, item) in items.iter().enumerate() {
        let own = item.child(key);
        if is_again[at] {
            own.shown_as(item.path.as_str()).duplicate(errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_thought_to_cost_what_it_is_upstream() {
        let cases = [
            (4, r#"device.driver == "gpu.example.com""#),
            (5, r#"device.attributes["gpu.example.com"].model == "x""#),
            (7, r#"device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) >= 0"#),
            (17, r#"cel.bind(dra, device.attributes["dra.example.com"], dra.oneBool && dra.anotherBool)"#),
            (18, r#"device.attributes["gpu.example.com"].model.matches("^a.*b$")"#),
            (18, r#"device.attributes["dra.example.com"].services.matches("[a-z]+")"#),
            (12, r#"device.attributes["gpu.example.com"].model.lowerAscii() == "x""#),
            (6_403, r#"device.attributes.all(d, device.attributes[d].all(k, k.size() > 0))"#),
            (622, r#"device.attributes.map(d, d).exists(d, d.startsWith("gpu"))"#),
            (394, r#"device.driver.split(".").exists(p, p == "gpu")"#),
            (11, r#"device.driver.contains("gpu") && device.allowMultipleAllocations"#),
            (
                u64::MAX,
                r#"cel.bind(x, device.driver.split(""), x.all(a, x.all(b, x.all(c, a + b + c != "gpu"))))"#,
            ),
            (6, r#"device.attributes["gpu"].version.isGreaterThan(semver("1.2.3"))"#),
            (6, r#"device.attributes["gpu"].?x.orValue("z") == "z""#),
            (199, r#""gpu" in device.attributes && device.attributes["gpu"].exists(k, k == "x")"#),
            (7, r#"has(device.attributes.foo) && device.attributes.foo.bar > 3"#),
            (107, r#"[1,2,3].all(i, [1,2,3].all(j, i != j))"#),
            (22, r#"device.attributes["a"].x + device.attributes["b"].y == "q""#),
            (19, r#"device.attributes["a"].x.replace("a", "bb").size() > 3"#),
            (18, r#"cel.bind(c, device.capacity["a"], c.x.isGreaterThan(c.y))"#),
            (15, r#"device.attributes["a"].x == device.attributes["b"].y"#),
            (10, r#"device.attributes["a"] == device.attributes["b"]"#),
        ];
        for (cost, expression) in cases {
            let program = device_environment().compile(expression).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(program.estimate(&device_size(), false), cost, "{expression}");
        }
    }
}
