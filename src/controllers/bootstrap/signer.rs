//! Signs the ConfigMap `kube-public/cluster-info` with each bootstrap token, so that who holds one may
//! believe it (`bootstrap.Signer`).

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Map, Value};

use super::super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use apimachinery::labels::Selector;
use apimachinery::status::Status;
use apis::core::bootstrap_token::{NAME_PREFIX, NAMESPACE, signing_token};
use apis::core::config_map::CONFIG_MAPS;
use apis::core::secret::SECRETS;
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use clock::Clock;

const CONFIG_MAP_NAMESPACE: &str = "kube-public";
const CONFIG_MAP: &str = "cluster-info";
/// What is signed.
const CONTENT: &str = "kubeconfig";
/// Under what signatures stand; the token's id follows.
const SIGNATURE_PREFIX: &str = "jws-kubeconfig-";

/// Keeps the signatures.
pub(crate) struct BootstrapSigner {
    secrets: Lister,
    config_maps: Lister,
}

impl BootstrapSigner {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> BootstrapSigner {
        let secrets = ctx.informers.informer(&SECRETS).lister();
        BootstrapSigner { secrets, config_maps: ctx.informers.informer(&CONFIG_MAPS).lister() }
    }

    /// By id.
    fn tokens(&self, clock: &Clock) -> BTreeMap<String, String> {
        let secrets = self.secrets.list(NAMESPACE, &Selector::everything());
        let named = secrets.iter().filter(|secret| secret.metadata.name.starts_with(NAME_PREFIX));
        named
            .filter_map(|secret| signing_token(&secret.metadata.name, &secret.to_value(), clock.now()))
            .collect()
    }
}

impl Controller for BootstrapSigner {
    const NAME: &'static str = "bootstrap_signer_queue";
    const EVENT_SOURCE: &'static str = "bootstrap-signer";
    const SERVICE_ACCOUNT: &'static str = "bootstrap-signer";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let of = |namespace: &'static str, prefix: &'static str| {
            move |change: &Change<'_>, enqueue: &Enqueue| {
                let metadata = &change.object().metadata;
                if metadata.namespace == namespace && metadata.name.starts_with(prefix) {
                    enqueue.now(CONFIG_MAP.into());
                }
            }
        };
        let config_map = of(CONFIG_MAP_NAMESPACE, CONFIG_MAP);
        Watches::none().maps(&CONFIG_MAPS, config_map).maps(&SECRETS, of(NAMESPACE, NAME_PREFIX))
    }

    async fn reconcile(&self, ctx: &Reconcile, _key: &Key) -> Result<Action, Status> {
        let Some(object) = self.config_maps.get(CONFIG_MAP_NAMESPACE, CONFIG_MAP) else {
            return Ok(Action::Done);
        };
        let mut config_map = object.to_value();
        let Some(data) = config_map["data"].as_object_mut() else { return Ok(Action::Done) };
        if !sign(data, &self.tokens(&ctx.clock))? {
            return Ok(Action::Done);
        }
        match ctx.client.update(&CONFIG_MAPS, CONFIG_MAP_NAMESPACE, CONFIG_MAP, config_map).await {
            // Whoever was faster makes another event.
            Err(status) if !status.is_conflict() && !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

/// Brings the signatures up to date; says whether anything changed. Nothing is signed that is not there.
fn sign(data: &mut Map<String, Value>, tokens: &BTreeMap<String, String>) -> Result<bool, Status> {
    let Some(content) = data.get(CONTENT).and_then(Value::as_str).map(str::to_owned) else {
        return Ok(false);
    };
    let before = data.clone();
    data.retain(|key, _| !key.starts_with(SIGNATURE_PREFIX));
    for (id, secret) in tokens {
        let signature = detached_signature(&content, id, secret).map_err(Status::internal)?;
        data.insert(format!("{SIGNATURE_PREFIX}{id}"), signature.into());
    }
    Ok(*data != before)
}

/// A JWS without what it signs (`jws.ComputeDetachedSignature`).
fn detached_signature(content: &str, id: &str, secret: &str) -> Result<String, String> {
    let header = serde_json::json!({"alg": "HS256", "kid": id}).to_string();
    let (header, payload) = (URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(content));
    let key = EncodingKey::from_secret(secret.as_bytes());
    let signature =
        jsonwebtoken::crypto::sign(format!("{header}.{payload}").as_bytes(), &key, Algorithm::HS256);
    Ok(format!("{header}..{}", signature.map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn signatures_are_upstreams() {
        let content = "Hello from the other side. I must have called a thousand times.";
        let signature = detached_signature(content, "joshua", "my voice is my passcode").unwrap();
        let wanted = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";
        assert_eq!(signature, wanted);
    }

    #[test]
    fn there_is_one_for_each_token() {
        let mut data = json!({"kubeconfig": "k", "jws-kubeconfig-old": "x", "other": "o"});
        let data = data.as_object_mut().unwrap();
        let tokens = BTreeMap::from([("abcdef".to_owned(), "s".to_owned())]);
        assert!(sign(data, &tokens).unwrap());
        let keys: Vec<&str> = data.keys().map(String::as_str).collect();
        assert_eq!(keys, ["jws-kubeconfig-abcdef", "kubeconfig", "other"]);
        assert!(!sign(data, &tokens).unwrap());
        data.remove("kubeconfig");
        assert!(!sign(data, &BTreeMap::new()).unwrap());
    }
}
