//! How much of a device's capacity may be asked for (`validateRequestPolicy`).

use serde_json::json;

use crate::validation::resources::quantity;
use crate::validation::{Field, at_most};
use apimachinery::field_error::FieldErrors;

const MOST_VALUES: usize = 10;

/// What is wrong with a policy for requests of a capacity of `most`.
pub(super) fn request_policy(most: &Field, policy: &Field, errors: &mut FieldErrors) {
    let [default, values, range] = ["default", "validValues", "validRange"].map(|name| policy.child(name));
    match (!values.is_zero(), range.is_set()) {
        (true, true) => {
            let words = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same \
                time";
            policy.forbidden(words, errors);
        }
        (true, false) if !default.is_set() => {
            default.required("required when validValues is defined", errors)
        }
        (true, false) => valid_values(most, &default, &values, errors),
        (false, true) if !default.is_set() => default.required("required when validRange is defined", errors),
        (false, true) => valid_range(most, &default, &range, errors),
        (false, false) => {}
    }
}

fn valid_values(most: &Field, default: &Field, values: &Field, errors: &mut FieldErrors) {
    let all = values.items();
    for pair in all.windows(2).filter(|pair| quantity(&pair[0]) > quantity(&pair[1])) {
        pair[1].invalid("values must be sorted in ascending order", errors);
    }
    let judged = at_most(values, MOST_VALUES, errors);
    for value in judged.iter().filter(|value| quantity(value) > quantity(most)) {
        value.invalid(format!("option is larger than capacity value: {}", most.text()), errors);
    }
    for (at, value) in judged.iter().enumerate() {
        if judged[..at].iter().any(|earlier| quantity(earlier) == quantity(value)) {
            errors.duplicate(value.path.as_str(), &json!(quantity(value).value().to_string()));
        }
    }
    if !judged.iter().any(|value| quantity(value) == quantity(default)) {
        let words = "default value is not valid according to the requestPolicy";
        default.shown_as(values.path.as_str()).invalid(words, errors);
    }
}

fn valid_range(most: &Field, default: &Field, range: &Field, errors: &mut FieldErrors) {
    let [least, greatest, step] = ["min", "max", "step"].map(|name| range.child(name));
    if !least.is_set() {
        return least.required("required when validRange is defined", errors);
    }
    let at = |name: &str, shown: &Field, words: &str, other: &Field, errors: &mut FieldErrors| {
        let path = format!("{}.{name}", range.path);
        errors.invalid(path, &json!(shown.text()), format!("{words}: {}", other.text()));
    };
    if quantity(&least) > quantity(most) {
        at("min", &least, "min is larger than capacity value", most, errors);
    }
    if quantity(default) < quantity(&least) {
        at("min", default, "default is less than min", &least, errors);
    }
    if greatest.is_set() {
        if quantity(&least) > quantity(&greatest) {
            at("max", &least, "min is larger than max", &greatest, errors);
        }
        if quantity(&greatest) > quantity(most) {
            at("max", &greatest, "max is larger than capacity value", most, errors);
        }
        if quantity(default) > quantity(&greatest) {
            at("max", default, "default is more than max", &greatest, errors);
        }
    }
    if step.is_set() {
        steps(most, &[default, &greatest], &least, &step, errors);
    }
}

/// Whatever may be asked for is a number of steps from the least.
fn steps(most: &Field, values: &[&Field], least: &Field, step: &Field, errors: &mut FieldErrors) {
    if quantity(step).sign() <= 0 {
        return step.invalid("must be greater than zero", errors);
    }
    let mut one = quantity(least);
    one.add(&quantity(step));
    if one > quantity(most) {
        let words = format!("one step {one} is larger than capacity value: {}", most.text());
        step.invalid(words, errors);
    }
    let (from, width) = (quantity(least).value(), quantity(step).value().max(1));
    for value in values.iter().filter(|value| value.is_set()) {
        if quantity(value).value().wrapping_sub(from).checked_rem(width) != Some(0) {
            let words =
                format!("value is not a multiple of a given step ({}) from ({})", step.text(), least.text());
            value.shown_as(step.path.as_str()).invalid(words, errors);
        }
    }
}
