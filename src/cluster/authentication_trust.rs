//! The ConfigMap `kube-system/extension-apiserver-authentication`: whom aggregated servers are to believe
//! (`controlplane/controller/clusterauthenticationtrust`).

use serde_json::{Value, json};

use apimachinery::status::Status;
use apis::core::config_map::CONFIG_MAPS;
use apiserver::authentication::{AuthenticationOptions, ConfigError};
use client_go::client::Client;

const NAMESPACE: &str = "kube-system";
/// The code of the refusal to read what cannot be decoded.
const UNREADABLE: u16 = 500;
const NAME: &str = "extension-apiserver-authentication";

/// What it says: the authorities of clients, and those and the headers of front proxies, if there are any.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn data(config: &AuthenticationOptions, authority_pem: &str) -> Result<Value, ConfigError> {
    let mut data = json!({"client-ca-file": config.client_authority(authority_pem)?});
    if let Some((authority, proxy)) = config.proxy_authority()? {
        let list = |names: &[String]| Value::from(json!(names).to_string());
        data["requestheader-client-ca-file"] = authority.into();
        data["requestheader-allowed-names"] = list(&proxy.allowed_names);
        data["requestheader-username-headers"] = list(&proxy.username_headers);
        data["requestheader-uid-headers"] = list(&proxy.uid_headers);
        data["requestheader-group-headers"] = list(&proxy.group_headers);
        data["requestheader-extra-headers-prefix"] = list(&proxy.extra_header_prefixes);
    }
    Ok(data)
}

/// Writes it down; what is there from an earlier start is replaced, unless nobody can read it (its key is
/// missing from `--encryption-provider-config`): then all else is served nevertheless.
///
/// # Errors
/// The server's refusal.
pub(crate) async fn publish(client: &Client, data: Value) -> Result<(), Status> {
    let config_map = json!({"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data});
    match client.create(&CONFIG_MAPS, NAMESPACE, config_map.clone()).await {
        Err(status) if status.is_already_exists() => {
            match client.update(&CONFIG_MAPS, NAMESPACE, NAME, config_map).await {
                Err(status) if status.code == UNREADABLE => {
                    tracing::warn!("{NAMESPACE}/{NAME} is left as it is: {}", status.message);
                    Ok(())
                }
                updated => updated.map(drop),
            }
        }
        created => created.map(drop),
    }
}
