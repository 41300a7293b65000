//! Bound service account tokens: signature, issuer, audience, time, and whether what they are bound to is
//! still there (`serviceaccount.JWTTokenAuthenticator`).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::super::extra::{CREDENTIAL_ID, NODE_NAME, NODE_UID, POD_NAME, POD_UID};
use super::super::remarks::Remarks;
use super::super::{Response, TokenAuthenticator, jwt};
use super::bound::{Bound, LEEWAY_SECONDS};
use super::claims::{BoundClaims, Kubernetes, PublicClaims};
use super::metadata::PublicKeys;
use super::metrics::{TokenUse, TokenUses};
use super::user;
use crate::authentication::errors::BadCredential;
use crate::registry::Registry;
use clock::Clock;

/// Knows the tokens of its issuers.
pub struct ServiceAccountTokens {
    issuers: Vec<String>,
    audiences: Vec<String>,
    keys: Arc<PublicKeys>,
    bound: Bound,
    uses: Arc<TokenUses>,
}

impl ServiceAccountTokens {
    /// Of these issuers, for these audiences, signed by one of the keys.
    pub fn new(
        issuers: &[String],
        audiences: &[String],
        keys: Arc<PublicKeys>,
        registry: &Registry,
        clock: &Clock,
        uses: Arc<TokenUses>,
    ) -> ServiceAccountTokens {
        let (issuers, audiences) = (issuers.to_vec(), audiences.to_vec());
        ServiceAccountTokens { issuers, audiences, keys, bound: Bound::new(registry, clock), uses }
    }

    async fn known(
        &self,
        token: &str,
        asked: Option<&[String]>,
        remarks: &Remarks,
    ) -> Result<Option<Response>, BadCredential> {
        let claims: Option<BoundClaims> = claims_of(token, &self.issuers, &self.keys)?;
        let Some(claims) = claims else { return Ok(None) };
        let audiences = audiences_of(&claims.public, asked, &self.audiences)?;
        check_time(&claims.public, self.bound.now())?;
        let kubernetes = &claims.kubernetes;
        self.check_bound(kubernetes).await?;
        if let Some(from) = kubernetes.warnafter.filter(|from| *from != 0) {
            self.note_age(&claims.public.sub, self.bound.now() - from, remarks);
        }
        let account = &kubernetes.serviceaccount;
        let extra = extra_of(&claims);
        let user = user(&kubernetes.namespace, &account.name, &account.uid, extra);
        Ok(Some(Response { user, audiences }))
    }

    /// Whether the user of a token that is good for longer than it was asked for
    /// (`--service-account-extend-token-expiration`) should have read it anew by now.
    fn note_age(&self, subject: &str, seconds_after: i64, remarks: &Remarks) {
        if seconds_after <= 0 {
            return self.uses.count(TokenUse::Valid);
        }
        self.uses.count(TokenUse::Stale);
        let text = format!("subject: {subject}, seconds after warning threshold: {seconds_after}");
        remarks.annotate("authentication.k8s.io/stale-token", text);
    }

    async fn check_bound(&self, kubernetes: &Kubernetes) -> Result<(), BadCredential> {
        let namespace = &kubernetes.namespace;
        self.bound.check_account(namespace, &kubernetes.serviceaccount).await?;
        if let Some(secret) = &kubernetes.secret {
            self.bound.check_secret(namespace, secret).await?;
        }
        match (&kubernetes.pod, &kubernetes.node) {
            // The node of a pod is only a word about the pod: the pod's end is what counts.
            (Some(pod), _) => self.bound.check_pod(namespace, pod).await,
            (None, Some(node)) => self.bound.check_node(node).await,
            (None, None) => Ok(()),
        }
    }
}

impl TokenAuthenticator for ServiceAccountTokens {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
        remarks: &'a Remarks,
    ) -> BoxFuture<'a, Result<Option<Response>, BadCredential>> {
        self.known(token, audiences, remarks).boxed()
    }
}

/// Whether a token says that one of these made it. Unproven: only to leave others' tokens to others.
pub(crate) fn has_issuer(token: &str, issuers: &[String]) -> bool {
    #[derive(serde::Deserialize)]
    struct Issuer {
        #[serde(default)]
        iss: String,
    }
    jwt::unverified::<Issuer>(token).is_some_and(|said| issuers.contains(&said.iss))
}

/// What a token claims that one of these issuers made and one of the keys signed.
pub(super) fn claims_of<C: DeserializeOwned>(
    token: &str,
    issuers: &[String],
    keys: &PublicKeys,
) -> Result<Option<C>, BadCredential> {
    if has_issuer(token, issuers) { keys.verified(token) } else { Ok(None) }
}

/// Those of the audiences asked for that the token is meant for.
pub(super) fn audiences_of(
    claims: &PublicClaims,
    asked: Option<&[String]>,
    own: &[String],
) -> Result<Vec<String>, BadCredential> {
    // A token that names nobody is one of a Secret: it is for this server alone.
    let named = if claims.aud.is_empty() { own } else { &claims.aud };
    let asked = asked.unwrap_or(own);
    let common: Vec<String> = named.iter().filter(|audience| asked.contains(audience)).cloned().collect();
    if common.is_empty() && !own.is_empty() {
        let shown = |list: &[String]| {
            let quoted: Vec<String> = list.iter().map(|audience| format!("{audience:?}")).collect();
            format!("[{}]", quoted.join(" "))
        };
        let (named, asked) = (shown(named), shown(asked));
        return Err(format!("token audiences {named} is invalid for the target audiences {asked}").into());
    }
    Ok(common)
}

pub(super) fn check_time(claims: &PublicClaims, now: i64) -> Result<(), BadCredential> {
    if claims.nbf.is_some_and(|start| now + LEEWAY_SECONDS < start) {
        return Err("service account token is not valid yet".into());
    }
    if claims.exp.is_some_and(|end| now - LEEWAY_SECONDS > end) {
        return Err("service account token has expired".into());
    }
    if claims.iat.is_some_and(|made| now + LEEWAY_SECONDS < made) {
        Err("service account token claims could not be validated due to unexpected validation error".into())
    } else {
        Ok(())
    }
}

fn extra_of(claims: &BoundClaims) -> BTreeMap<String, Vec<String>> {
    let mut extra = BTreeMap::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if !claims.public.jti.is_empty() {
        add(CREDENTIAL_ID, &format!("JTI={}", claims.public.jti));
    }
    for (reference, name, uid) in
        [(&claims.kubernetes.pod, POD_NAME, POD_UID), (&claims.kubernetes.node, NODE_NAME, NODE_UID)]
    {
        if let Some(reference) = reference {
            add(name, &reference.name);
            add(uid, &reference.uid);
        }
    }
    extra
}
