//! Tokens that live in Secrets of type `kubernetes.io/service-account-token` and have no end
//! (`pkg/serviceaccount/legacy.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::{Response, TokenAuthenticator, secrets};
use super::authenticator::{audiences_of, has_issuer};
use super::bound::Bound;
use super::claims::LegacyClaims;
use super::metadata::PublicKeys;
use super::metrics::{TokenUse, TokenUses};
use super::{split_username, user};
use crate::authentication::errors::BadCredential;
use crate::registry::Registry;
use apimachinery::object::Object;
use apis::core::secret::LEGACY_TOKEN_INVALID_SINCE;
use apis::tree::items;
use clock::Clock;

/// The `iss` of such tokens.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// Knows such tokens as long as their Secret holds them.
pub struct LegacyServiceAccountTokens {
    issuers: [String; 1],
    audiences: Vec<String>,
    keys: Arc<PublicKeys>,
    bound: Bound,
    uses: Arc<TokenUses>,
}

impl LegacyServiceAccountTokens {
    /// Signed by one of the keys.
    pub fn new(
        audiences: &[String],
        keys: Arc<PublicKeys>,
        registry: &Registry,
        clock: &Clock,
        uses: Arc<TokenUses>,
    ) -> LegacyServiceAccountTokens {
        let (issuers, audiences) = ([LEGACY_ISSUER.into()], audiences.to_vec());
        LegacyServiceAccountTokens { issuers, audiences, keys, bound: Bound::new(registry, clock), uses }
    }

    async fn known(&self, token: &str, asked: Option<&[String]>) -> Result<Option<Response>, BadCredential> {
        if !has_issuer(token, &self.issuers) {
            return Ok(None);
        }
        let claims: LegacyClaims = match self.keys.verified(token)? {
            Some(claims) => claims,
            None => return Ok(None),
        };
        let audiences = audiences_of(&claims.public, asked, &self.audiences)?;
        check_claims(&claims)?;
        let secret = self.check_secret(&claims, token).await?;
        let account = self.check_account(&claims).await?;
        self.bound.note_use(&secret).await;
        check_validity(&claims, &secret).inspect_err(|_| self.uses.count(TokenUse::InvalidLegacyAuto))?;
        let is_auto =
            items(&account.to_value(), "secrets").iter().any(|it| it["name"] == claims.secret_name.as_str());
        self.uses.count(if is_auto { TokenUse::LegacyAuto } else { TokenUse::LegacyManual });
        self.uses.count(TokenUse::Legacy);
        let LegacyClaims { namespace, account_name, account_uid, .. } = &claims;
        let user = user(namespace, account_name, account_uid, BTreeMap::new());
        Ok(Some(Response { user, audiences }))
    }

    async fn check_secret(&self, claims: &LegacyClaims, token: &str) -> Result<Arc<Object>, BadCredential> {
        let secret = self.bound.secret(&claims.namespace, &claims.secret_name).await;
        let secret = secret.filter(|secret| !secret.is_deleting()).ok_or("Token has been invalidated")?;
        let kept = STANDARD.decode(secret.to_value()["data"]["token"].as_str().unwrap_or_default());
        let kept = kept.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        if secrets::same(&kept, token) {
            Ok(secret)
        } else {
            Err("Token does not match server's copy".into())
        }
    }

    async fn check_account(&self, claims: &LegacyClaims) -> Result<Arc<Object>, BadCredential> {
        let LegacyClaims { namespace, account_name, account_uid, .. } = claims;
        let account = self.bound.account(namespace, account_name).await?;
        if account.is_deleting() {
            return Err(format!("ServiceAccount {namespace}/{account_name} has been deleted").into());
        }
        match &account.metadata.uid {
            uid if uid == account_uid => Ok(account),
            uid => Err(format!("ServiceAccount UID ({uid}) does not match claim ({account_uid})").into()),
        }
    }
}

impl TokenAuthenticator for LegacyServiceAccountTokens {
    fn name(&self) -> &'static str {
        "LegacyServiceAccount"
    }

    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Response>, BadCredential>> {
        self.known(token, audiences).boxed()
    }
}

/// What was out of use for long is declared invalid before it is deleted, so that whoever still needs it
/// can take that back.
fn check_validity(claims: &LegacyClaims, secret: &Object) -> Result<(), BadCredential> {
    let LegacyClaims { namespace, secret_name, account_name, .. } = claims;
    match secret.metadata.labels.get(LEGACY_TOKEN_INVALID_SINCE).map_or("", String::as_str) {
        "" => Ok(()),
        _ => Err(BadCredential::from(format!(
            "the token in secret {namespace}/{secret_name} for service account {namespace}/{account_name} has been \
             marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove \
             the '{LEGACY_TOKEN_INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        ))),
    }
}

fn check_claims(claims: &LegacyClaims) -> Result<(), BadCredential> {
    let needed = [
        (&claims.public.sub, "sub"),
        (&claims.namespace, "namespace"),
        (&claims.secret_name, "secretName"),
        (&claims.account_name, "serviceAccountName"),
        (&claims.account_uid, "serviceAccountUID"),
    ];
    if let Some((_, name)) = needed.iter().find(|(value, _)| value.is_empty()) {
        return Err(format!("{name} claim is missing").into());
    }
    if split_username(&claims.public.sub) == Some((&claims.namespace, &claims.account_name)) {
        Ok(())
    } else {
        Err("sub claim is invalid".into())
    }
}
