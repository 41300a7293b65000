//! What webhooks and policies have in common: rules, match resources, match conditions
//! (`pkg/apis/admissionregistration/validation`).

use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::qualified_name;
use crate::apis::tree::*;
use crate::apis::validation::Field;
use crate::apis::validation::labels::label_selector;
use serde_json::{Value, json};

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
const MOST_CONDITIONS: usize = 64;

/// The defaults of `MatchResources` at `path`.
pub fn default_match_resources(tree: &mut Value, path: &str) {
    let Some(resources) = get_mut(tree, path) else { return };
    set_if_unset(resources, "matchPolicy", "Equivalent");
    set_if_unset(resources, "namespaceSelector", json!({}));
    set_if_unset(resources, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in items_mut(resources, rules) {
            set_if_unset(rule, "scope", "*");
        }
    }
}

/// `validateMatchResources`
pub fn match_resources(resources: &Field, errors: &mut FieldErrors) {
    resources.child("matchPolicy").one_of_if_set(&["Equivalent", "Exact"], errors);
    for selector in ["namespaceSelector", "objectSelector"].map(|name| resources.child(name)) {
        match selector.is_set() {
            true => label_selector(&selector, errors),
            false => selector.required("", errors),
        }
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for named in resources.each(rules) {
            rule(&named, errors);
            validate_names(&named.child("resourceNames"), errors);
        }
    }
}

/// `validateRuleWithOperations`
pub fn rule(rule: &Field, errors: &mut FieldErrors) {
    let operations = rule.child("operations");
    all_or_some(&operations, false, errors);
    for operation in operations.items() {
        if !OPERATIONS.contains(&operation.text()) {
            operation.not_supported(OPERATIONS, errors);
        }
    }
    all_or_some(&rule.child("apiGroups"), true, errors);
    all_or_some(&rule.child("apiVersions"), false, errors);
    let resources = rule.child("resources");
    all_or_some(&resources, false, errors);
    let wild_parents: Vec<&str> =
        resources.items().iter().filter_map(|one| one.text().strip_suffix("/*")).collect();
    for resource in resources.items() {
        let (parent, below) = resource.text().split_once('/').unwrap_or((resource.text(), ""));
        if !below.is_empty() && below != "*" && wild_parents.contains(&parent) {
            let words = format!("if '{parent}/*' is present, must not specify {}", resource.text());
            resource.invalid(words, errors);
        }
    }
    let scope = rule.child("scope");
    if scope.is_set() && !SCOPES.contains(&scope.text()) {
        scope.not_supported(SCOPES, errors);
    }
}

/// A list that is not empty, and in which `*` stands alone.
fn all_or_some(list: &Field, empty_items: bool, errors: &mut FieldErrors) {
    let given = list.items();
    if given.is_empty() {
        return list.required("", errors);
    }
    if given.len() > 1 && given.iter().any(|item| item.text() == "*") {
        list.invalid("if '*' is present, must not specify other elements", errors);
    }
    if !empty_items {
        given.iter().filter(|item| item.is_zero()).for_each(|item| item.required("", errors));
    }
}

fn validate_names(names: &Field, errors: &mut FieldErrors) {
    let given = names.items();
    for (at, name) in given.iter().enumerate() {
        if given[..at].iter().any(|earlier| earlier.text() == name.text()) {
            name.duplicate(errors);
        }
    }
}

/// `validateMatchConditions`, without compiling the expressions.
pub fn match_conditions(conditions: &Field, errors: &mut FieldErrors) {
    let given = conditions.items();
    if given.len() > MOST_CONDITIONS {
        errors.too_many(conditions.path.as_str(), given.len(), MOST_CONDITIONS);
    }
    for (at, condition) in given.iter().enumerate() {
        let (name, expression) = (condition.child("name"), condition.child("expression"));
        if expression.text().trim().is_empty() {
            expression.required("", errors);
        }
        match name.text() {
            "" => name.required("", errors),
            text => name.invalid_each(qualified_name(text), errors),
        }
        let is_same = |other: &Field| !name.is_zero() && other.child("name").text() == name.text();
        if given[..at].iter().any(is_same) {
            name.duplicate(errors);
        }
    }
}

/// `validateFailurePolicy`
pub fn failure_policy(policy: &Field, errors: &mut FieldErrors) {
    if policy.is_set() && !matches!(policy.text(), "Fail" | "Ignore") {
        policy.not_supported(&["Fail", "Ignore"], errors);
    }
}
