//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration: servers that are asked before a write.

use std::sync::LazyLock;

use super::match_resources::{failure_policy, match_conditions, rule};
use super::{DEFINITIONS, GROUP};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::names::{dns1123_label, dns1123_subdomain};
use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::name;
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use crate::apis::validation::Field;
use crate::apis::validation::labels::label_selector;
use crate::apis::validation::texts::{in_range, port_number};
use serde_json::{Value, json};

/// `mutatingwebhookconfigurations`
pub static MUTATING_WEBHOOK_CONFIGURATIONS: Builtin = LazyLock::new(|| {
    let kind = kind("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
    kind.defaulted(|configuration| {
        defaults(configuration);
        for webhook in items_mut(configuration, "webhooks") {
            set_if_unset(webhook, "reinvocationPolicy", "Never");
        }
    })
    .into()
});

/// `validatingwebhookconfigurations`
pub static VALIDATING_WEBHOOK_CONFIGURATIONS: Builtin = LazyLock::new(|| {
    kind("ValidatingWebhookConfiguration", "validatingwebhookconfigurations").defaulted(defaults).into()
});

fn kind(kind: &str, plural: &str) -> Kind {
    Kind::builtin(GROUP, "v1", kind, plural, DEFINITIONS)
        .cluster_scoped()
        .in_categories(&["api-extensions"])
        .with_generation()
        .printed(columns(), cells)
        .governed_by(Rules { validate, ..RULES })
}

fn columns() -> Vec<Column> {
    let webhooks = "Webhooks indicates the number of webhooks registered in this configuration";
    vec![Column::name(), Column::new("Webhooks", "integer", webhooks), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), count(&object.to_value(), "webhooks").into(), age(object, now)]
}

fn defaults(configuration: &mut Value) {
    for webhook in items_mut(configuration, "webhooks") {
        set_if_unset(webhook, "failurePolicy", "Fail");
        set_if_unset(webhook, "matchPolicy", "Equivalent");
        set_if_unset(webhook, "namespaceSelector", json!({}));
        set_if_unset(webhook, "objectSelector", json!({}));
        set_if_unset(webhook, "timeoutSeconds", 10);
        if let Some(service) = get_mut(webhook, "clientConfig.service") {
            set_if_unset(service, "port", 443);
        }
        for rule in items_mut(webhook, "rules") {
            set_if_unset(rule, "scope", "*");
        }
    }
}

fn validate(configuration: &Value, errors: &mut FieldErrors) {
    let webhooks = Field { path: "webhooks".into(), value: at(configuration, "webhooks") }.items();
    for (at, webhook) in webhooks.iter().enumerate() {
        validate_webhook(webhook, errors);
        let name = webhook.child("name");
        if webhooks[..at].iter().any(|other| other.child("name").text() == name.text()) {
            name.duplicate(errors);
        }
    }
}

fn validate_webhook(webhook: &Field, errors: &mut FieldErrors) {
    fully_qualified_name(&webhook.child("name"), errors);
    webhook.each("rules").iter().for_each(|one| rule(one, errors));
    failure_policy(&webhook.child("failurePolicy"), errors);
    webhook.child("matchPolicy").one_of_if_set(&["Equivalent", "Exact"], errors);
    let side_effects = webhook.child("sideEffects");
    match side_effects.text() {
        "" => side_effects.required("must specify one of None, NoneOnDryRun", errors),
        "None" | "NoneOnDryRun" => {}
        _ => side_effects.not_supported(&["None", "NoneOnDryRun"], errors),
    }
    let timeout = webhook.child("timeoutSeconds");
    if timeout.is_set() && !in_range(timeout.number(), 1, 30).is_empty() {
        let words = "the timeout value must be between 1 and 30 seconds";
        timeout.invalid(words, errors);
    }
    for selector in ["namespaceSelector", "objectSelector"].map(|name| webhook.child(name)) {
        if selector.is_set() {
            label_selector(&selector, errors);
        }
    }
    client_config(&webhook.child("clientConfig"), errors);
    webhook.child("reinvocationPolicy").one_of_if_set(&["IfNeeded", "Never"], errors);
    review_versions(&webhook.child("admissionReviewVersions"), errors);
    match_conditions(&webhook.child("matchConditions"), errors);
}

/// `utilvalidation.IsFullyQualifiedName`
fn fully_qualified_name(name: &Field, errors: &mut FieldErrors) {
    if name.is_zero() {
        return name.required("", errors);
    }
    let wrong = dns1123_subdomain(name.text());
    if !wrong.is_empty() {
        return name.invalid(wrong.join(","), errors);
    }
    if name.text().split('.').count() < 3 {
        name.invalid("should be a domain with at least three segments separated by dots", errors);
    }
}

fn client_config(config: &Field, errors: &mut FieldErrors) {
    let (url, service) = (config.child("url"), config.child("service"));
    if url.is_set() == service.is_set() {
        let shown = config.shown_as(config.path.as_str());
        return shown.required("exactly one of url or service is required", errors);
    }
    if url.is_set() {
        validate_url(&url, errors);
        return;
    }
    for field in ["name", "namespace"].map(|name| service.child(name)) {
        if field.is_zero() {
            let what = field.path.rsplit('.').next().unwrap_or_default().to_owned();
            field.required(&format!("service {what} is required"), errors);
        }
    }
    let port = service.child("port");
    if port.is_set() && !port_number(port.number()).is_empty() {
        port.invalid("port is not valid: must be between 1 and 65535, inclusive", errors);
    }
    let path = service.child("path");
    if path.is_set() {
        validate_path(&path, errors);
    }
}

/// `webhook.ValidateWebhookURL`
fn validate_url(url: &Field, errors: &mut FieldErrors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = url.text();
    let parsed = text.split_once("://");
    let Some((scheme, rest)) = parsed else {
        return url.invalid(format!("'https' is the only allowed URL scheme{FORM}"), errors);
    };
    if scheme != "https" {
        url.invalid(format!("'https' is the only allowed URL scheme{FORM}"), errors);
    }
    let (host, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if host.is_empty() {
        url.invalid(format!("host must be specified{FORM}"), errors);
    }
    if host.contains('@') {
        url.invalid("user information is not permitted in the URL", errors);
    }
    if tail.contains('#') {
        url.invalid("fragments are not permitted in the URL", errors);
    }
    if tail.split('#').next().is_some_and(|tail| tail.contains('?')) {
        url.invalid("query parameters are not permitted in the URL", errors);
    }
}

/// `webhook.ValidateWebhookService`'s path: an absolute one of DNS labels.
fn validate_path(path: &Field, errors: &mut FieldErrors) {
    let text = path.text();
    if text == "/" {
        return;
    }
    if !text.starts_with('/') {
        path.invalid("must start with a '/'", errors);
    }
    let steps: Vec<&str> = text.trim_start_matches('/').split('/').collect();
    for (at, step) in steps.iter().enumerate() {
        if step.is_empty() && at + 1 < steps.len() {
            path.invalid(format!("segment[{at}] may not be empty"), errors);
        } else if !step.is_empty() {
            for wrong in dns1123_subdomain(step) {
                path.invalid(format!("segment[{at}]: {wrong}"), errors);
            }
        }
    }
}

fn review_versions(versions: &Field, errors: &mut FieldErrors) {
    let given = versions.items();
    if given.is_empty() {
        return versions.required("must specify one of v1, v1beta1", errors);
    }
    let mut is_known = false;
    for (at, version) in given.iter().enumerate() {
        if given[..at].iter().any(|earlier| earlier.text() == version.text()) {
            version.invalid("duplicate version", errors);
        }
        for wrong in dns1123_label(version.text()) {
            version.invalid(wrong, errors);
        }
        is_known |= matches!(version.text(), "v1" | "v1beta1");
    }
    if !is_known {
        versions.invalid("must include at least one of v1, v1beta1", errors);
    }
}
