//! A provider's public keys: out of a file, or fetched from where its discovery document says
//! (go-oidc's `RemoteKeySet`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt, Limited};
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use sync::RwLock;

use super::super::AuthenticationConfigError;
use super::super::es512;
use super::super::jwt::{AllowedAlgorithms, JwtKey, VerifyingKey};
use crate::authentication::errors::BadCredential;
use crate::webhook::{Journey, Transport};
use clock::Clock;

/// How long the provider may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What is read of an answer.
const MAX_BYTES: usize = 1024 * 1024;
/// How long the provider is left alone after it was asked: unknown keys cost an attacker nothing.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The keys of one provider.
pub struct KeySet {
    algorithms: AllowedAlgorithms,
    remote: Option<RemoteKeySet>,
    known: RwLock<KnownKeys>,
}

struct RemoteKeySet {
    issuer: String,
    /// Where its discovery document is.
    discovery: String,
    provider: KeyProvider,
}

/// How providers are asked.
#[derive(Clone)]
pub(super) struct KeyProvider {
    transport: Transport,
    algorithms: AllowedAlgorithms,
    clock: Clock,
}

#[derive(Default)]
struct KnownKeys {
    keys: Arc<[VerifyingKey]>,
    /// When the provider was asked last.
    asked: Option<Duration>,
}

impl KeySet {
    /// Keys that do not change, out of a JWKS file.
    ///
    /// # Errors
    /// A file that is none.
    pub fn of_file(path: &Path, algorithms: AllowedAlgorithms) -> Result<KeySet, AuthenticationConfigError> {
        let text = std::fs::read(path).map_err(|error| AuthenticationConfigError::file(path, error))?;
        let keys = read(&text, &algorithms).map_err(|error| AuthenticationConfigError::file(path, error))?;
        Ok(KeySet { algorithms, remote: None, known: RwLock::new(KnownKeys { keys, asked: None }) })
    }

    /// Keys of a provider that is asked when the first token comes, and when a token names a key that is not
    /// known.
    pub fn of_issuer(
        issuer: &str,
        discovery_url: Option<&str>,
        transport: Transport,
        algorithms: AllowedAlgorithms,
        clock: &Clock,
    ) -> KeySet {
        let well_known = || format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let discovery = discovery_url.map_or_else(well_known, str::to_owned);
        let provider = KeyProvider { transport, algorithms: algorithms.clone(), clock: clock.clone() };
        let remote = RemoteKeySet { issuer: issuer.into(), discovery, provider };
        KeySet { algorithms, remote: Some(remote), known: RwLock::default() }
    }

    /// How the provider is asked; nothing where the keys are in a file.
    pub(super) fn provider(&self) -> Option<&KeyProvider> {
        self.remote.as_ref().map(|remote| &remote.provider)
    }

    /// The keys that a token may be signed with, which names `id` or nothing.
    pub(super) async fn find(&self, id: &str) -> Result<Vec<VerifyingKey>, BadCredential> {
        let found = self.among_known(id);
        let Some(remote) = self.remote.as_ref().filter(|_| found.is_empty()) else { return Ok(found) };
        if !self.may_ask(remote.provider.clock.elapsed()) {
            return Ok(found);
        }
        let keys = remote.fetch(&self.algorithms).await.map_err(|error| format!("fetching keys {error}"))?;
        self.known.write().keys = keys;
        Ok(self.among_known(id))
    }

    fn among_known(&self, id: &str) -> Vec<VerifyingKey> {
        let known = self.known.read().keys.clone();
        known.iter().filter(|key| id.is_empty() || key.id.is_empty() || key.id == id).cloned().collect()
    }

    fn may_ask(&self, now: Duration) -> bool {
        let mut known = self.known.write();
        let may = known.asked.is_none_or(|asked| now >= asked + MIN_INTERVAL);
        if may {
            known.asked = Some(now);
        }
        may
    }
}

impl RemoteKeySet {
    async fn fetch(&self, algorithms: &AllowedAlgorithms) -> Result<Arc<[VerifyingKey]>, BadCredential> {
        let document = self.provider.get(&self.discovery, None).await?;
        let document: Value = serde_json::from_slice(&document)
            .map_err(|error| format!("oidc: failed to decode provider discovery object: {error}"))?;
        let issuer = document["issuer"].as_str().unwrap_or_default();
        if issuer != self.issuer {
            let ours = &self.issuer;
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {ours:?} got {issuer:?}"
            )
            .into());
        }
        let uri = document["jwks_uri"].as_str().ok_or("oidc: the provider names no jwks_uri")?;
        Ok(read(&self.provider.get(uri, None).await?, algorithms)?)
    }
}

impl KeyProvider {
    /// The keys of another issuer, asked in the same way.
    pub(super) fn key_set(&self, issuer: &str) -> KeySet {
        let (transport, algorithms) = (self.transport.clone(), self.algorithms.clone());
        KeySet::of_issuer(issuer, None, transport, algorithms, &self.clock)
    }

    /// In seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.clock.now().timestamp()
    }

    /// What is there, for whoever has the token.
    pub(super) async fn get(&self, url: &str, access_token: Option<&str>) -> Result<Vec<u8>, BadCredential> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = access_token {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
            headers.insert(AUTHORIZATION, bearer.map_err(|error| error.to_string())?);
        }
        let journey = Journey::new(Method::GET, url, headers, Bytes::new());
        let journey = journey.map_err(|error| error.message)?;
        let exchange = async {
            let response = self.transport.send_all_the_way(journey).await.map_err(|error| error.message)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes().to_vec();
            if status.is_success() { Ok(body) } else { Err(format!("{url} answered {status}").into()) }
        };
        self.clock.timeout_outside(TIMEOUT, exchange).await.map_err(|error| format!("{url}: {error}"))?
    }
}

/// Keys that cannot be used are left out: a provider may have more than those for signatures.
fn read(text: &[u8], allowed: &AllowedAlgorithms) -> Result<Arc<[VerifyingKey]>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set = serde_json::from_slice(text).map_err(|error| format!("it is no JWKS: {error}"))?;
    Ok(set.keys.iter().filter_map(|key| verifying_key(key, allowed)).collect())
}

/// A key with the algorithms that are allowed and fit it; nothing for keys that are not for signatures.
fn verifying_key(tree: &Value, allowed: &AllowedAlgorithms) -> Option<VerifyingKey> {
    let text = |field: &str| tree[field].as_str().unwrap_or_default();
    if text("use") == "enc" {
        return None;
    }
    let id = text("kid").to_owned();
    if text("crv") == "P-521" {
        let is_named = matches!(text("alg"), "" | es512::NAME);
        let key = es512::of_jwk(text("x"), text("y")).filter(|_| is_named && allowed.es512)?;
        return Some(VerifyingKey { id, key: JwtKey::P521(key) });
    }
    let jwk = Jwk::deserialize(tree).ok()?;
    let family = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa,
        AlgorithmParameters::EllipticCurve(_) => AlgorithmFamily::Ec,
        _ => return None,
    };
    let named = text("alg").parse::<Algorithm>().ok();
    let fits = |algorithm: &&Algorithm| {
        family.algorithms().contains(algorithm) && named.is_none_or(|named| named == **algorithm)
    };
    let algorithms: Vec<Algorithm> = allowed.common.iter().filter(fits).copied().collect();
    let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| !algorithms.is_empty())?;
    Some(VerifyingKey { id, key: JwtKey::Common(key, algorithms) })
}
