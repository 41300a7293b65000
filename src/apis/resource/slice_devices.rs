//! The devices of a ResourceSlice, what they consume and what they have to give (`validateDevice`).

use serde_json::{Value, json};

use super::allocation::binding_conditions;
use super::capacity::request_policy;
use super::devices::{set, taint};
use super::names::qualified_name;
use crate::core::pod::validation::node_selector;
use crate::validation::texts::shown_each;
use crate::validation::{Field, at_most};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain};

const MOST_DEVICES: usize = 128;
/// When some have taints, consume counters or have lists of attributes.
const MOST_COMPLEX_DEVICES: usize = 64;
const MOST_COUNTER_SETS: usize = 8;
const MOST_COUNTERS: usize = 32;
const MOST_CONSUMPTIONS: usize = 2;
const MOST_ATTRIBUTES_AND_CAPACITIES: usize = 32;
const MOST_ATTRIBUTE_VALUES: usize = 48;
const MOST_VALUE_BYTES: usize = 64;
const MOST_TAINTS: usize = 16;
const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];

/// The devices of a slice, and the counters that they share.
pub(super) fn devices(spec: &Field, errors: &mut FieldErrors) {
    let devices = spec.child("devices");
    let has_lists = |device: &Field| {
        let attributes = device.child("attributes").members();
        attributes.iter().any(|(_, value)| LISTS.iter().any(|list| value.child(list).is_set()))
    };
    let is_complex = |device: &Field| {
        ["taints", "consumesCounters"].iter().any(|list| !device.child(list).is_zero()) || has_lists(device)
    };
    let most = if devices.items().iter().any(is_complex) { MOST_COMPLEX_DEVICES } else { MOST_DEVICES };
    let each_says = spec.child("perDeviceNodeSelection").flag();
    set(&devices, most, "name", |device, errors| validate_device(device, each_says, errors), errors);
    let counter_set = |set: &Field, errors: &mut FieldErrors| counters(set, "name", errors);
    set(&spec.child("sharedCounters"), MOST_COUNTER_SETS, "name", counter_set, errors);
}

/// Counters, under the name of their set.
fn counters(of: &Field, name: &str, errors: &mut FieldErrors) {
    of.child(name).must_follow(dns1123_label, errors);
    let counters = of.child("counters");
    let all = counters.members();
    if all.len() > MOST_COUNTERS {
        errors.too_many(counters.path.as_str(), all.len(), MOST_COUNTERS);
    } else if counters.require(errors) {
        for (name, _) in all {
            let name = json!(name);
            let key = Field { path: counters.path.clone(), value: &name };
            key.invalid_each(dns1123_label(key.text()), errors);
        }
    }
}

fn validate_device(device: &Field, each_says: bool, errors: &mut FieldErrors) {
    shown_each(&device.child("name"), dns1123_label, errors);
    let (attributes, capacity) = (device.child("attributes"), device.child("capacity"));
    sizes(device, &attributes, &capacity, errors);
    for (name, value) in attributes.members() {
        qualified_name(name, &attributes.path, errors);
        attribute(&value, errors);
    }
    let shares = device.child("allowMultipleAllocations").flag();
    for (name, amount) in capacity.members() {
        qualified_name(name, &capacity.path, errors);
        let policy = amount.child("requestPolicy");
        if policy.is_set() && shares {
            request_policy(&amount.child("value"), &policy, errors);
        } else if policy.is_set() {
            policy.forbidden("allowMultipleAllocations must be true", errors);
        }
    }
    at_most(&device.child("taints"), MOST_TAINTS, errors).iter().for_each(|one| taint(one, errors));
    let consumption = |one: &Field, errors: &mut FieldErrors| counters(one, "counterSet", errors);
    set(&device.child("consumesCounters"), MOST_CONSUMPTIONS, "counterSet", consumption, errors);
    device_place(device, each_says, errors);
    binding_conditions(device, errors);
}

/// Warned of once: when a part is too large, so is the whole.
fn sizes(device: &Field, attributes: &Field, capacity: &Field, errors: &mut FieldErrors) {
    let values = |(_, attribute): &(&str, Field)| {
        LISTS.iter().map(|list| attribute.child(list).items().len()).sum::<usize>().max(1)
    };
    let limits = [
        (
            attributes.members().len() + capacity.members().len(),
            MOST_ATTRIBUTES_AND_CAPACITIES,
            "attributes and capacities",
        ),
        (attributes.members().iter().map(values).sum(), MOST_ATTRIBUTE_VALUES, "attribute values"),
    ];
    for (count, most, what) in limits.into_iter().filter(|(count, most, _)| count > most) {
        let words = format!("the total number of {what} must not exceed {most}");
        errors.invalid(device.path.as_str(), &json!(count), words);
    }
}

/// `validateDeviceAttribute`
fn attribute(attribute: &Field, errors: &mut FieldErrors) {
    let bound = |value: &Field, errors: &mut FieldErrors| {
        if value.text().len() > MOST_VALUE_BYTES {
            errors.too_long(value.path.as_str(), MOST_VALUE_BYTES);
        }
    };
    let version = |value: &Field, errors: &mut FieldErrors| {
        if !is_semantic_version(value.text()) {
            value.invalid("must be a string compatible with semver.org spec 2.0.0", errors);
        }
        bound(value, errors);
    };
    bound(&attribute.child("string"), errors);
    if attribute.child("version").is_set() {
        version(&attribute.child("version"), errors);
    }
    for list in LISTS.map(|list| attribute.child(list)) {
        if list.is_set() && list.is_zero() {
            list.invalid("must not be empty if specified", errors);
        }
    }
    attribute.each("strings").iter().for_each(|value| bound(value, errors));
    attribute.each("versions").iter().for_each(|value| version(value, errors));
    let one = ["bool", "int", "string", "version"];
    let given = one.iter().chain(&LISTS).filter(|kind| attribute.child(kind).is_set()).count();
    if given == 0 {
        errors.invalid(attribute.path.as_str(), &json!(""), "exactly one value must be specified");
    } else if given > 1 {
        attribute.invalid("exactly one value must be specified", errors);
    }
}

/// `1.2.3-alpha.1+build`
fn is_semantic_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    let is_number = |part: &str| {
        let is_digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_digits && (part == "0" || !part.starts_with('0'))
    };
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mut release = core.split('.');
    release.clone().count() == 3
        && release.all(is_number)
        && before.is_none_or(|parts| {
            parts.split('.').all(|part| is_number(part) || is_word(part) && !is_digits(part))
        })
        && build.is_none_or(|parts| parts.split('.').all(is_word))
}

/// Where a device is, when each says so itself.
fn device_place(device: &Field, each_says: bool, errors: &mut FieldErrors) {
    let [node, selector, all] = ["nodeName", "nodeSelector", "allNodes"].map(|name| device.child(name));
    if !each_says {
        if [node, selector, all].iter().any(Field::is_set) {
            let words = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                true in the ResourceSlice spec";
            errors.invalid(device.path.as_str(), &Value::Null, words);
        }
        return;
    }
    let ways = ways(&node, &selector, &all, None, "must not be empty", errors);
    let words = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set \
        to true in the ResourceSlice spec";
    match ways.len() {
        0 => device.required(words, errors),
        1 => {}
        _ => errors.invalid(device.path.as_str(), &json!(format!("{{{}}}", ways.join(", "))), words),
    }
}

/// In which ways it is said where devices are.
pub(super) fn ways(
    node: &Field,
    selector: &Field,
    all: &Field,
    each: Option<&Field>,
    empty: &str,
    errors: &mut FieldErrors,
) -> Vec<&'static str> {
    let mut ways = vec![];
    if node.is_set() {
        if node.is_zero() {
            node.invalid(empty, errors)
        } else {
            ways.push("`nodeName`");
            node.invalid_each(dns1123_subdomain(node.text()), errors);
        }
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        node_selector(selector, errors);
        if each.is_some() && selector.each("nodeSelectorTerms").len() != 1 {
            let terms = selector.child("nodeSelectorTerms");
            terms.invalid("must have exactly one node selector term", errors);
        }
    }
    for (flag, name) in [(Some(all), "`allNodes`"), (each, "`perDeviceNodeSelection`")] {
        match flag.filter(|flag| flag.is_set()) {
            Some(flag) if flag.flag() => ways.push(name),
            Some(flag) => flag.invalid("must be either unset or set to true", errors),
            None => {}
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::is_semantic_version;

    #[test]
    fn versions() {
        for right in ["1.2.3", "0.0.0", "1.2.3-alpha.1", "1.2.3-0a+b.01"] {
            assert!(is_semantic_version(right), "{right}");
        }
        for wrong in ["1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3", "1.2.3.4"] {
            assert!(!is_semantic_version(wrong), "{wrong}");
        }
    }
}
