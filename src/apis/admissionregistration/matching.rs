//! Which requests a webhook or a policy is about, as it may be said: rules, selectors, conditions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::expressions::{check, environment};
use crate::tree::*;
use crate::validation::{Field, labels::label_selector};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{path_segment_name, qualified_name};
use cel::Type;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const MAX_MATCH_CONDITIONS: usize = 64;

/// `SetDefaults_Rule`, for each rule of a list.
pub(super) fn default_rules(tree: &mut Value, list: &str) {
    for rule in items_mut(tree, list) {
        set_if_unset(rule, "scope", "*");
    }
}

/// `SetDefaults_MatchResources`
pub(super) fn default_match_resources(tree: &mut Value, path: &str) {
    change(tree, path, |resources| {
        set_if_unset(resources, "matchPolicy", "Equivalent");
        set_if_unset(resources, "namespaceSelector", json!({}));
        set_if_unset(resources, "objectSelector", json!({}));
        default_rules(resources, "resourceRules");
        default_rules(resources, "excludeResourceRules");
    });
}

/// `validateMatchResources`
pub(super) fn match_resources(resources: &Field, errors: &mut FieldErrors) {
    if !resources.is_set() {
        return;
    }
    resources.child("matchPolicy").one_of(&["Equivalent", "Exact"], errors);
    for selector in ["namespaceSelector", "objectSelector"].map(|name| resources.child(name)) {
        if selector.is_set() { label_selector(&selector, errors) } else { selector.required("", errors) }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.each(list) {
            resource_names(&rule, errors);
            rule_with_operations(&rule, errors);
        }
    }
}

fn resource_names(rule: &Field, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for name in rule.each("resourceNames") {
        name.invalid_each(path_segment_name(name.text()), errors);
        if !seen.insert(name.text().to_owned()) {
            name.duplicate(errors);
        }
    }
}

/// `validateRuleWithOperations`
pub(super) fn rule_with_operations(rule: &Field, errors: &mut FieldErrors) {
    let operations = rule.child("operations");
    operations.require(errors);
    only_wildcard(&operations, "operations", errors);
    for operation in operations.items() {
        if !OPERATIONS.contains(&operation.text()) {
            operation.not_supported(&OPERATIONS, errors);
        }
    }
    let (groups, versions) = (rule.child("apiGroups"), rule.child("apiVersions"));
    groups.require(errors);
    only_wildcard(&groups, "API groups", errors);
    versions.require(errors);
    only_wildcard(&versions, "API versions", errors);
    for version in versions.items() {
        version.require(errors);
    }
    resources(&rule.child("resources"), errors);
    rule.child("scope").one_of_if_set(&SCOPES, errors);
}

fn only_wildcard(list: &Field, what: &str, errors: &mut FieldErrors) {
    let items = list.items();
    if items.len() > 1 && items.iter().any(|item| item.text() == "*") {
        list.invalid(format!("if '*' is present, must not specify other {what}"), errors);
    }
}

/// `validateResources`
fn resources(list: &Field, errors: &mut FieldErrors) {
    list.require(errors);
    let items = list.items();
    let mut with_any_subresource = BTreeSet::new();
    let mut of_any_resource = BTreeSet::new();
    let mut has_plain = false;
    for item in &items {
        if !item.require(errors) {
            continue;
        }
        let Some((resource, subresource)) = item.text().split_once('/') else {
            has_plain = item.text() != "*";
            continue;
        };
        let clash =
            |wildcard: String| format!("if '{wildcard}' is present, must not specify {}", item.text());
        if with_any_subresource.contains(resource) {
            item.invalid(clash(format!("{resource}/*")), errors);
        }
        if of_any_resource.contains(subresource) {
            item.invalid(clash(format!("*/{subresource}")), errors);
        }
        if subresource == "*" {
            with_any_subresource.insert(resource);
        }
        if resource == "*" {
            of_any_resource.insert(subresource);
        }
    }
    let has = |wildcard: &str| items.iter().any(|item| item.text() == wildcard);
    if items.len() > 1 && has("*/*") {
        list.invalid("if '*/*' is present, must not specify other resources", errors);
    }
    if has("*") && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        list.invalid(detail, errors);
    }
}

/// `validateMatchConditions`; whether there is a variable `params` depends on who asks.
pub(super) fn match_conditions(conditions: &Field, has_params: bool, errors: &mut FieldErrors) {
    let list = conditions.items();
    if list.is_empty() {
        return;
    }
    let environment = environment(has_params, true);
    if list.len() > MAX_MATCH_CONDITIONS {
        errors.too_many(conditions.path.as_str(), list.len(), MAX_MATCH_CONDITIONS);
    }
    let mut names = BTreeSet::new();
    for condition in &list {
        let (name, expression) = (condition.child("name"), condition.child("expression"));
        let trimmed = json!(expression.text().trim());
        match trimmed.as_str().unwrap_or_default() {
            "" => expression.required("", errors),
            // It is compiled, and shown, without what is blank around it.
            _ => check(
                &environment,
                &Field { path: expression.path.clone(), value: &trimmed },
                &[Type::Bool],
                errors,
            ),
        }
        if name.require(errors) {
            name.invalid_each(qualified_name(name.text()), errors);
            if !names.insert(name.text().to_owned()) {
                name.duplicate(errors);
            }
        }
    }
}
