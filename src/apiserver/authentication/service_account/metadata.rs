//! The public keys, and what is told of them to those who check tokens themselves
//! (`pkg/serviceaccount/openidmetadata.go`).

use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::jwt::{self, VerifyingKey};
use super::keys::{PublicKey, public_keys};
use crate::authentication::errors::BadCredential;

/// Where the discovery document is.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// Where the keys are.
pub const JWKS_PATH: &str = "/openid/v1/jwks";
/// How long both may be kept (`Cache-Control`).
pub const CACHE_CONTROL: &str = "public, max-age=3600";

/// All keys that tokens may be signed with, read when they are first needed.
pub struct PublicKeys {
    pems: Vec<String>,
    keys: OnceLock<Vec<PublicKey>>,
}

impl PublicKeys {
    /// From PEM texts, which were read once already: a broken one is left out.
    pub fn new(pems: Vec<String>) -> PublicKeys {
        PublicKeys { pems, keys: OnceLock::new() }
    }

    /// The keys.
    pub fn all(&self) -> &[PublicKey] {
        self.keys.get_or_init(|| {
            let mut keys: Vec<PublicKey> = Vec::new();
            for key in self.pems.iter().flat_map(|pem| public_keys(pem).unwrap_or_default()) {
                if keys.iter().all(|known| known.verifying.id != key.verifying.id) {
                    keys.push(key);
                }
            }
            keys
        })
    }

    /// What a token says, when one of the keys signed it; nothing when it is no signed JWT.
    pub(super) fn verified<T: DeserializeOwned>(&self, token: &str) -> Result<Option<T>, BadCredential> {
        let Some(id) = jwt::key_id(token) else { return Ok(None) };
        let keys = self.all().iter().map(|key| &key.verifying);
        let fitting: Vec<&VerifyingKey> = keys.filter(|key| id.is_empty() || key.id == id).collect();
        jwt::verified(token, &fitting).map(Some)
    }

    /// The keys as a JWKS.
    pub fn jwks(&self) -> Value {
        json!({"keys": self.all().iter().map(|key| &key.jwk).collect::<Vec<_>>()})
    }

    /// The discovery document of an issuer.
    pub fn configuration(&self, issuer: &str, jwks_uri: &str) -> Value {
        let algorithms = self.all().iter().filter_map(|key| key.jwk["alg"].as_str());
        let algorithms: std::collections::BTreeSet<&str> = algorithms.collect();
        json!({
            "issuer": issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
    }
}

/// Whether an issuer may be discovered: its URL is https, without query and fragment.
pub fn is_discoverable(issuer: &str) -> bool {
    issuer.starts_with("https://") && !issuer.contains(['?', '#'])
}
