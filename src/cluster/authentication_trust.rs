//! The ConfigMap `kube-system/extension-apiserver-authentication`: whom aggregated servers are to believe
//! (`controlplane/controller/clusterauthenticationtrust`).

use serde_json::{Value, json};

use apimachinery::status::Status;
use apis::core::config_map::CONFIG_MAPS;
use apiserver::aggregator::ProxyIdentity;
use apiserver::authentication::{AuthenticationConfigError, AuthenticationOptions};
use client_go::client::Client;
use pki::{Authority, MadeAt};

const NAMESPACE: &str = "kube-system";
/// The code of the refusal to read what cannot be decoded.
const UNREADABLE: u16 = 500;
const NAME: &str = "extension-apiserver-authentication";

/// As whom this server shows itself to aggregated ones where no flag says it, as kubeadm's does.
const FRONT_PROXY: &str = "front-proxy-client";

/// What this server shows to aggregated ones where no flag names anything: a certificate of the cluster's own
/// authority.
///
/// # Errors
/// That none can be made.
pub(crate) fn front_proxy(
    config: &AuthenticationOptions,
    given: ProxyIdentity,
    authority: &Authority,
    now: MadeAt,
) -> Result<ProxyIdentity, AuthenticationConfigError> {
    if given.0.is_some() || config.request_header.client_ca_file.is_some() {
        return Ok(given);
    }
    let made = authority
        .client(FRONT_PROXY, "", now)
        .map_err(|error| AuthenticationConfigError(error.to_string()))?;
    Ok(ProxyIdentity(Some((made.certificate_pem.into_bytes(), made.key_pem.into_bytes()))))
}

/// What it says: the authorities of clients, and those and the headers of front proxies.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn data(
    config: &AuthenticationOptions,
    authority_pem: &str,
) -> Result<Value, AuthenticationConfigError> {
    let mut data = json!({"client-ca-file": config.client_authority(authority_pem)?});
    let (authority, proxy, names) = match config.proxy_authority()? {
        Some((authority, proxy)) => (authority, proxy, proxy.allowed_names.clone()),
        // That of the cluster signs for others, too: so it is one name that is believed.
        None => (authority_pem.to_owned(), &config.request_header, vec![FRONT_PROXY.to_owned()]),
    };
    let list = |names: &[String]| Value::from(json!(names).to_string());
    data["requestheader-client-ca-file"] = authority.into();
    data["requestheader-allowed-names"] = list(&names);
    data["requestheader-username-headers"] = list(&proxy.username_headers);
    data["requestheader-uid-headers"] = list(&proxy.uid_headers);
    data["requestheader-group-headers"] = list(&proxy.group_headers);
    data["requestheader-extra-headers-prefix"] = list(&proxy.extra_header_prefixes);
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
