//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration: webhooks that are asked before a write.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::client_config;
use super::group::{DEFINITION, GROUP};
use super::matching::{default_rules, match_conditions, rule_with_operations};
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::{Field, equal, labels::label_selector};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1035_label, dns1123_subdomain};
use apimachinery::object::Object;
use apimachinery::time::Time;

/// `mutatingwebhookconfigurations`
pub static MUTATING_WEBHOOK_CONFIGURATIONS: Builtin = LazyLock::new(|| {
    let kind = "MutatingWebhookConfiguration";
    Kind::builtin(GROUP, "v1", kind, "mutatingwebhookconfigurations", DEFINITION)
        .cluster_scoped()
        .in_categories(&["api-extensions"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(|tree| default_webhooks(tree, true))
        .governed_by(rules())
        .into()
});

/// `validatingwebhookconfigurations`
pub static VALIDATING_WEBHOOK_CONFIGURATIONS: Builtin = LazyLock::new(|| {
    let kind = "ValidatingWebhookConfiguration";
    Kind::builtin(GROUP, "v1", kind, "validatingwebhookconfigurations", DEFINITION)
        .cluster_scoped()
        .in_categories(&["api-extensions"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(|tree| default_webhooks(tree, false))
        .governed_by(rules())
        .into()
});

/// Versions of AdmissionReview that upstream's server understands; this one speaks them both.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const ANY_SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

fn rules() -> Rules {
    Rules {
        validate_create: |tree, errors| validate(tree, None, errors),
        validate_update: |new, old, errors| validate(new, Some(old), errors),
        allow_unconditional_update: false,
        ..RULES
    }
}

fn columns() -> Vec<Column> {
    let words = "Webhooks indicates the number of webhooks registered in this configuration";
    vec![Column::name(), Column::new("Webhooks", "integer", words), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), json!(count(&object.to_value(), "webhooks")), age(object, now)]
}

fn default_webhooks(tree: &mut Value, is_mutating: bool) {
    for webhook in items_mut(tree, "webhooks") {
        set_if_unset(webhook, "failurePolicy", "Fail");
        set_if_unset(webhook, "matchPolicy", "Equivalent");
        set_if_unset(webhook, "namespaceSelector", json!({}));
        set_if_unset(webhook, "objectSelector", json!({}));
        set_if_unset(webhook, "timeoutSeconds", 10);
        if is_mutating {
            set_if_unset(webhook, "reinvocationPolicy", "Never");
        }
        default_rules(webhook, "rules");
        change(webhook, "clientConfig.service", |service| set_if_unset(service, "port", 443));
    }
}

/// What an old object lacks is not asked of a new one either.
struct Leniency {
    any_side_effects: bool,
    any_review_version: bool,
    repeated_names: bool,
    ignore_match_conditions: bool,
}

impl Leniency {
    fn of(old: Option<&Value>, new: &Value) -> Leniency {
        let Some(old) = old else {
            return Leniency {
                any_side_effects: false,
                any_review_version: false,
                repeated_names: false,
                ignore_match_conditions: false,
            };
        };
        let (hooks, news) = (items(old, "webhooks"), items(new, "webhooks"));
        let lacks = |webhook: &Value| {
            let versions = texts(webhook, "admissionReviewVersions");
            !versions.is_empty() && !versions.iter().any(|version| REVIEW_VERSIONS.contains(version))
        };
        let conditions = |webhook: &Value| at(webhook, "matchConditions").clone();
        let names: BTreeSet<&str> = hooks.iter().map(|webhook| text(webhook, "name")).collect();
        Leniency {
            any_side_effects: hooks.iter().any(|hook| !NO_SIDE_EFFECTS.contains(&text(hook, "sideEffects"))),
            any_review_version: hooks.iter().any(lacks),
            repeated_names: names.len() != hooks.len(),
            ignore_match_conditions: hooks.len() == news.len()
                && hooks.iter().zip(news).all(|(old, new)| equal(&conditions(old), &conditions(new))),
        }
    }
}

fn validate(tree: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let leniency = Leniency::of(old, tree);
    let mut names = BTreeSet::new();
    let webhooks = Field { path: "webhooks".into(), value: at(tree, "webhooks") };
    for webhook in webhooks.items() {
        validate_webhook(&webhook, &leniency, errors);
        review_versions(&webhook.child("admissionReviewVersions"), &leniency, errors);
        let name = webhook.child("name");
        if !leniency.repeated_names && !name.is_zero() && !names.insert(name.text().to_owned()) {
            name.duplicate(errors);
        }
    }
}

fn validate_webhook(webhook: &Field, leniency: &Leniency, errors: &mut FieldErrors) {
    fully_qualified_name(&webhook.child("name"), errors);
    webhook.each("rules").iter().for_each(|rule| rule_with_operations(rule, errors));
    webhook.child("failurePolicy").one_of_if_set(&["Fail", "Ignore"], errors);
    webhook.child("matchPolicy").one_of_if_set(&["Equivalent", "Exact"], errors);
    let allowed: &[&str] = if leniency.any_side_effects { &ANY_SIDE_EFFECTS } else { &NO_SIDE_EFFECTS };
    let side_effects = webhook.child("sideEffects");
    if !side_effects.is_set() {
        side_effects.required(&format!("must specify one of {}", allowed.join(", ")), errors);
    }
    side_effects.one_of_if_set(allowed, errors);
    let timeout = webhook.child("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.number()) {
        timeout.invalid("the timeout value must be between 1 and 30 seconds", errors);
    }
    for selector in ["namespaceSelector", "objectSelector"].map(|name| webhook.child(name)) {
        label_selector(&selector, errors);
    }
    webhook.child("reinvocationPolicy").one_of_if_set(&["IfNeeded", "Never"], errors);
    client_config::validate(&webhook.child("clientConfig"), errors);
    if !leniency.ignore_match_conditions {
        match_conditions(&webhook.child("matchConditions"), false, errors);
    }
}

/// `IsFullyQualifiedName`
fn fully_qualified_name(name: &Field, errors: &mut FieldErrors) {
    if !name.require(errors) {
        return;
    }
    let wrong = dns1123_subdomain(name.text());
    if !wrong.is_empty() {
        name.invalid(wrong.join(","), errors);
    } else if name.text().split('.').count() < 3 {
        name.invalid("should be a domain with at least three segments separated by dots", errors);
    }
}

fn review_versions(versions: &Field, leniency: &Leniency, errors: &mut FieldErrors) {
    let known = REVIEW_VERSIONS.join(", ");
    if versions.is_zero() {
        return versions.required(&format!("must specify one of {known}"), errors);
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if seen.insert(version.text()) {
            version.invalid_each(dns1035_label(version.text()), errors)
        } else {
            version.invalid("duplicate version", errors)
        }
    }
    if !leniency.any_review_version && !seen.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        versions.invalid(format!("must include at least one of {known}"), errors);
    }
}
