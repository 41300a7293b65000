//! The ConfigMap `kube-system/kube-apiserver-legacy-service-account-token-tracking`: since when the server
//! notes who uses tokens that are kept in Secrets (`controlplane/controller/legacytokentracking`).

use chrono::NaiveDate;
use serde_json::{Value, json};

use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::secret::LEGACY_TOKEN_TRACKING;
use client_go::client::Client;

pub(super) const NAMESPACE: &str = "kube-system";

/// Writes it down, unless a day is there already.
///
/// # Errors
/// The server's refusal.
pub(crate) async fn publish(client: &Client, now: Time) -> Result<(), Status> {
    let day = now.date_naive().to_string();
    let config_map =
        json!({"metadata": {"name": LEGACY_TOKEN_TRACKING, "namespace": NAMESPACE}, "data": {"since": day}});
    match client.create(&CONFIG_MAPS, NAMESPACE, config_map).await {
        Err(status) if status.is_already_exists() => mend(client, &day).await,
        created => created.map(drop),
    }
}

async fn mend(client: &Client, day: &str) -> Result<(), Status> {
    let mut found = client.get(&CONFIG_MAPS, NAMESPACE, LEGACY_TOKEN_TRACKING).await?.to_value();
    if has_day(&found) {
        return Ok(());
    }
    if !found["data"].is_object() {
        found["data"] = json!({});
    }
    found["data"]["since"] = day.into();
    client.update(&CONFIG_MAPS, NAMESPACE, LEGACY_TOKEN_TRACKING, found).await.map(drop)
}

fn has_day(config_map: &Value) -> bool {
    let since = config_map["data"]["since"].as_str();
    since.is_some_and(|since| NaiveDate::parse_from_str(since, "%Y-%m-%d").is_ok())
}
