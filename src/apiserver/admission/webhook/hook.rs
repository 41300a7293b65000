//! One webhook of a configuration, ready to be asked (`plugin/webhook.WebhookAccessor`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::matcher::Criteria;
use crate::admission::cel::MatchConditions;
use crate::webhook::{ClientConfig, NoTarget, ServiceResolver, WebhookClient};
use apimachinery::object::Object;
use apis::tree::{at, items, number, text, texts};
use clock::Clock;

/// A webhook.
pub(super) struct AdmissionHook {
    /// As `check.example.com`.
    pub name: String,
    /// The configuration that it is in.
    pub configuration: String,
    /// Which requests it is about.
    pub criteria: Criteria,
    /// `matchConditions`
    pub conditions: MatchConditions,
    /// A webhook that cannot be asked is left out (`failurePolicy: Ignore`).
    pub fails_open: bool,
    /// It may be asked about dry runs.
    pub allows_dry_run: bool,
    /// It is asked again when somebody behind it has changed the object.
    pub is_reinvoked: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// The version of AdmissionReview that it is sent.
    pub review_version: &'static str,
    /// How it is reached, or why it is not.
    pub client: Result<WebhookClient, NoTarget>,
}

/// The webhooks of a configuration, in its order.
pub(super) fn hooks(object: &Object, resolver: &ServiceResolver, clock: &Clock) -> Vec<Arc<AdmissionHook>> {
    let tree = object.to_value();
    let hook = |webhook| Arc::new(AdmissionHook::new(webhook, &object.metadata.name, resolver, clock));
    items(&tree, "webhooks").iter().map(hook).collect()
}

impl AdmissionHook {
    fn new(webhook: &Value, configuration: &str, resolver: &ServiceResolver, clock: &Clock) -> AdmissionHook {
        let client = ClientConfig::from_tree(at(webhook, "clientConfig")).map(|mut config| {
            config.user_agent = "kube-apiserver-admission";
            WebhookClient::new(config, resolver, clock)
        });
        let seconds = u64::try_from(number(webhook, "timeoutSeconds")).unwrap_or(0);
        let fails_open = text(webhook, "failurePolicy") == "Ignore";
        let versions = texts(webhook, "admissionReviewVersions");
        let known = versions.iter().find_map(|version| match *version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        AdmissionHook {
            name: text(webhook, "name").into(),
            configuration: configuration.into(),
            criteria: Criteria::of_webhook(webhook),
            conditions: MatchConditions::new(items(webhook, "matchConditions"), fails_open, false),
            fails_open,
            allows_dry_run: matches!(text(webhook, "sideEffects"), "None" | "NoneOnDryRun"),
            is_reinvoked: text(webhook, "reinvocationPolicy") == "IfNeeded",
            timeout: Duration::from_secs(if seconds == 0 { 10 } else { seconds }),
            review_version: known.unwrap_or("v1"),
            client,
        }
    }
}
