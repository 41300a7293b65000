//! `spec.conversion`.

use serde_json::{Value, json};

use crate::apiextensions::view::CustomResourceDefinition;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1035_label;

/// `ValidateCustomResourceConversion`
pub(super) fn validate(crd: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let conversion = &crd.spec.conversion;
    let webhook = &conversion.webhook;
    match conversion.strategy.as_str() {
        "None" => {
            if !webhook["clientConfig"].is_null() {
                let detail = "should not be set when strategy is not set to Webhook";
                errors.forbidden("spec.conversion.webhookClientConfig", detail);
            }
            if !webhook["conversionReviewVersions"].is_null() {
                let detail = "should not be set when strategy is not set to Webhook";
                errors.forbidden("spec.conversion.conversionReviewVersions", detail);
            }
        }
        "Webhook" => {
            client_config(&webhook["clientConfig"], errors);
            review_versions(&webhook["conversionReviewVersions"], errors);
        }
        "" => errors.required("spec.conversion.strategy", ""),
        other => errors.not_supported("spec.conversion.strategy", &json!(other), &["None", "Webhook"]),
    }
}

fn client_config(config: &Value, errors: &mut FieldErrors) {
    let path = "spec.conversion.webhookClientConfig";
    if config.is_null() {
        errors.required(path, "required when strategy is set to Webhook");
        return;
    }
    match (config["url"].as_str(), config["service"].is_null()) {
        (None, true) | (Some(_), false) => {
            errors.required(path, "exactly one of url or service is required");
        }
        (Some(url), true) if !url.starts_with("https://") => {
            let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
            errors.invalid(format!("{path}.url"), &json!(url.split("://").next()), detail);
        }
        (Some(_), true) => {}
        (None, false) => {
            let service = &config["service"];
            for field in ["name", "namespace"] {
                if service[field].as_str().unwrap_or_default().is_empty() {
                    let detail = format!("service {field} is required");
                    errors.required(format!("{path}.service.{field}"), &detail);
                }
            }
            let port = service["port"].as_i64().unwrap_or(443);
            if !(1..=65535).contains(&port) {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                errors.invalid(format!("{path}.service.port"), &json!(port), detail);
            }
        }
    }
}

fn review_versions(versions: &Value, errors: &mut FieldErrors) {
    let path = "spec.conversion.conversionReviewVersions";
    let versions: Vec<&str> = versions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if versions.is_empty() {
        errors.required(path, "");
        return;
    }
    for (at, version) in versions.iter().enumerate() {
        if versions[..at].contains(version) {
            errors.invalid(format!("{path}[{at}]"), &json!(version), "duplicate version");
        }
        for detail in dns1035_label(version) {
            errors.invalid(format!("{path}[{at}]"), &json!(version), detail);
        }
    }
    if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        let detail = "must include at least one of v1, v1beta1";
        errors.invalid(path, &json!(versions), detail);
    }
}
