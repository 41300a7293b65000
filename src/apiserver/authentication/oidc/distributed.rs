//! Distributed claims: groups that a token leaves to somebody else to tell (OpenID Connect Core 5.6.2,
//! upstream's `claimResolver`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use sync::{Mutex, MutexGuard};

use super::super::jwt;
use super::claims::check;
use super::key_set::{KeyProvider, KeySet};
use crate::authentication::errors::BadCredential;

/// Issuers of claims whose keys are remembered; at the bound all are forgotten.
const MAX_ISSUERS: usize = 32;

/// Asks for one claim where a token says that it is.
pub(super) struct ClaimResolver {
    claim: String,
    audiences: Vec<String>,
    provider: KeyProvider,
    /// By issuer of the claims' own tokens.
    issuers: Mutex<BTreeMap<String, Arc<KeySet>>>,
}

/// Where a claim is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DistributedSource {
    endpoint: String,
    access_token: String,
}

impl ClaimResolver {
    /// Asks in the same way as the token's own issuer is asked; the claim's token is for the same audiences.
    pub(super) fn new(claim: &str, audiences: &[String], provider: KeyProvider) -> ClaimResolver {
        let (claim, audiences) = (claim.to_owned(), audiences.to_vec());
        ClaimResolver { claim, audiences, provider, issuers: Mutex::default() }
    }

    /// Puts the claim among the others, unless it is there or nobody is named for it.
    ///
    /// # Errors
    /// Upstream's words for sources that are none, and for claims that cannot be believed.
    pub(super) async fn expand(&self, claims: &mut Map<String, Value>) -> Result<(), BadCredential> {
        let Some(source) = self.source(claims)? else { return Ok(()) };
        let value = self.resolve(&source).await?;
        claims.insert(self.claim.clone(), value);
        Ok(())
    }

    fn source(&self, claims: &Map<String, Value>) -> Result<Option<DistributedSource>, BadCredential> {
        if claims.contains_key(&self.claim) {
            return Ok(None);
        }
        let Some(names) = claims.get("_claim_names") else { return Ok(None) };
        let names = BTreeMap::<String, String>::deserialize(names)
            .map_err(|error| format!("oidc: error parsing distributed claim names: {error}"))?;
        let sources = claims.get("_claim_sources").ok_or("oidc: no claim sources")?;
        let mut sources = BTreeMap::<String, DistributedSource>::deserialize(sources)
            .map_err(|error| format!("oidc: could not parse claim sources: {error}"))?;
        let Some(name) = names.get(&self.claim) else { return Ok(None) };
        let source = sources.remove(name).ok_or_else(|| {
            format!("id token _claim_names contained a source {name} missing in _claims_sources")
        })?;
        // Without an endpoint it may be aggregated: that is left alone.
        Ok(Some(source).filter(|source| !source.endpoint.is_empty()))
    }

    async fn resolve(&self, source: &DistributedSource) -> Result<Value, BadCredential> {
        let DistributedSource { endpoint, access_token } = source;
        let claim = &self.claim;
        let answer =
            self.provider.get(endpoint, Some(access_token.as_str()).filter(|token| !token.is_empty()));
        let answer =
            answer.await.map_err(|error| format!("while getting distributed claim {claim:?}: {error}"))?;
        let token = String::from_utf8_lossy(&answer).trim().to_owned();
        let issuer = issuer_of(&token).ok_or_else(|| {
            format!(
                "getting untrusted issuer from endpoint {endpoint} failed for claim {claim:?}: malformed jwt"
            )
        })?;
        let mut claims = self
            .verified(&issuer, &token)
            .await
            .map_err(|error| format!("verify distributed claim token: {error}"))?;
        claims.remove(claim).ok_or_else(|| {
            format!("jwt returned by distributed claim endpoint {endpoint:?} did not contain claim: {claim}")
                .into()
        })
    }

    async fn verified(&self, issuer: &str, token: &str) -> Result<Map<String, Value>, BadCredential> {
        let id = jwt::key_id(token).ok_or("malformed jwt")?;
        let keys = self.keys_of(issuer).find(&id).await?;
        let claims: Map<String, Value> = jwt::verified(token, &keys.iter().collect::<Vec<_>>())?;
        check(&claims, &self.audiences, self.provider.now())?;
        Ok(claims)
    }

    fn keys_of(&self, issuer: &str) -> Arc<KeySet> {
        let mut issuers = self.lock();
        if issuers.len() >= MAX_ISSUERS && !issuers.contains_key(issuer) {
            issuers.clear();
        }
        let keys = || Arc::new(self.provider.key_set(issuer));
        issuers.entry(issuer.to_owned()).or_insert_with(keys).clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<KeySet>>> {
        self.issuers.lock()
    }
}

fn issuer_of(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    jwt::unverified::<Issuer>(token).map(|said| said.iss)
}
