//! Whether the webhooks are there that a fault is to silence. They may come later: then it is only said.

use apimachinery::options::ListOptions;
use apis::admissionregistration::webhook_configuration::{
    MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS,
};
use apis::tree::{items, text};
use client_go::client::Client;
use faults::Fault;

/// What to say of a fault that silences nobody yet.
pub(super) async fn warning(fault: &Fault, client: &Client) -> Option<String> {
    if fault.silent_webhooks.is_empty() {
        return None;
    }
    let mut names = vec![];
    for kind in [&MUTATING_WEBHOOK_CONFIGURATIONS, &VALIDATING_WEBHOOK_CONFIGURATIONS] {
        for configuration in client.list(kind, "", &ListOptions::default()).await.ok()?.items.iter() {
            let configuration = configuration.to_value();
            names.extend(items(&configuration, "webhooks").iter().map(|hook| text(hook, "name").to_owned()));
        }
    }
    let missing = fault.webhooks_beyond(&names);
    (!missing.is_empty()).then(|| format!("there is no webhook {} yet", missing.join(", ")))
}
