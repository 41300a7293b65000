//! ID tokens of an OpenID Connect provider (`--oidc-*`, `plugin/pkg/authenticator/token/oidc`).
//!
//! In comes a signed JWT of the provider, out goes the user that its claims name. Behind service account
//! tokens: those are JWTs too, and whoever does not know a key may go and ask the provider for it.

mod key_set;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use jsonwebtoken::Algorithm;
use serde_json::{Map, Value};

use super::extra::CREDENTIAL_ID;
use super::service_account::authenticator::has_issuer;
use super::{ConfigError, Response, TokenAuthenticator, audience_agnostic, jwt};
use crate::apimachinery::user::UserInfo;
use crate::clock::Clock;

pub use key_set::KeySet;

/// What says that names are not to be prefixed.
const NO_PREFIX: &str = "-";

/// The flags `--oidc-*`.
#[derive(Clone, Debug, Default)]
pub struct OidcConfig {
    /// `--oidc-issuer-url`
    pub issuer_url: String,
    /// `--oidc-client-id`: the audience.
    pub client_id: String,
    /// `--oidc-username-claim`
    pub username_claim: String,
    /// `--oidc-username-prefix`
    pub username_prefix: String,
    /// `--oidc-groups-claim`
    pub groups_claim: String,
    /// `--oidc-groups-prefix`
    pub groups_prefix: String,
    /// `--oidc-required-claim`
    pub required_claims: BTreeMap<String, String>,
    /// `--oidc-signing-algs`
    pub signing_algorithms: Vec<String>,
    /// Who signs the provider's own certificate (`--oidc-ca-file`); those of the system when not given.
    pub ca_file: Option<PathBuf>,
    /// The provider's keys, instead of asking it for them.
    pub jwks_file: Option<PathBuf>,
}

impl OidcConfig {
    /// What is wrong with it.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |text: String| Err(ConfigError(text));
        if self.client_id.is_empty() {
            return wrong(
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
                    .into(),
            );
        }
        if !self.issuer_url.starts_with("https://") {
            return wrong(format!("oidc-issuer-url: {:?} URL scheme must be https", self.issuer_url));
        }
        self.algorithms().map(drop)
    }

    /// The algorithms that tokens may be signed with.
    pub(super) fn algorithms(&self) -> Result<Vec<Algorithm>, ConfigError> {
        let known = |name: &String| match name.parse() {
            Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) | Err(_) => {
                Err(ConfigError(format!("oidc: unsupported signing alg: {name:?}")))
            }
            Ok(algorithm) => Ok(algorithm),
        };
        self.signing_algorithms.iter().map(known).collect()
    }

    /// What stands in front of user names: the issuer, unless something else is said.
    fn prefix(&self) -> String {
        match self.username_prefix.as_str() {
            NO_PREFIX => String::new(),
            "" if self.username_claim != "email" => format!("{}#", self.issuer_url),
            prefix => prefix.to_owned(),
        }
    }
}

/// Knows the tokens of one provider.
pub struct Oidc {
    config: OidcConfig,
    prefix: String,
    issuers: [String; 1],
    audiences: Vec<String>,
    keys: KeySet,
    clock: Clock,
}

impl Oidc {
    /// Tokens that one of the keys signed.
    pub fn new(config: OidcConfig, keys: KeySet, audiences: &[String], clock: &Clock) -> Oidc {
        let (prefix, issuers) = (config.prefix(), [config.issuer_url.clone()]);
        Oidc { config, prefix, issuers, audiences: audiences.to_vec(), keys, clock: clock.clone() }
    }

    async fn known(&self, token: &str, asked: Option<&[String]>) -> Result<Option<Response>, String> {
        if !has_issuer(token, &self.issuers) {
            return Ok(None);
        }
        let Some(audiences) = audience_agnostic(&self.audiences, asked) else { return Ok(None) };
        let claims = self.verified(token).await.map_err(|error| format!("oidc: verify token: {error}"))?;
        self.check(&claims).map_err(|error| format!("oidc: verify token: {error}"))?;
        Ok(Some(Response { user: Arc::new(self.user(&claims)?), audiences }))
    }

    async fn verified(&self, token: &str) -> Result<Map<String, Value>, String> {
        let id = jwt::key_id(token).ok_or("malformed jwt")?;
        let keys = self.keys.find(&id).await?;
        jwt::verified(token, &keys.iter().collect::<Vec<_>>())
    }

    /// Audience and time. The leeway is for clocks that differ.
    fn check(&self, claims: &Map<String, Value>) -> Result<(), String> {
        let (client, now) = (&self.config.client_id, self.clock.now().timestamp());
        let audience = claims.get("aud").unwrap_or(&Value::Null);
        let is_ours = match audience {
            Value::String(one) => one == client,
            Value::Array(many) => many.iter().any(|one| *one == **client),
            _ => false,
        };
        if !is_ours {
            return Err(format!("oidc: expected audience {client:?} got {audience}"));
        }
        let seconds = |claim: &str| claims.get(claim).and_then(Value::as_f64);
        #[expect(clippy::cast_precision_loss, reason = "seconds fit for millions of years")]
        let now = now as f64;
        if seconds("exp").is_none_or(|end| end < now) {
            return Err("oidc: token is expired".into());
        }
        match seconds("nbf").is_some_and(|start| start > now + 300.0) {
            true => Err("oidc: current time is before the nbf (not before) time".into()),
            false => Ok(()),
        }
    }

    fn user(&self, claims: &Map<String, Value>) -> Result<UserInfo, String> {
        let config = &self.config;
        let name = text_claim(claims, &config.username_claim)
            .map_err(|error| format!("oidc: parse username claims {:?}: {error}", config.username_claim))?;
        if config.username_claim == "email" {
            check_email(claims)?;
        }
        let groups = self.groups(claims)?;
        for (claim, wanted) in &config.required_claims {
            let value = claims
                .get(claim)
                .ok_or_else(|| format!("oidc: required claim {claim} not present in ID token"))?;
            let value =
                value.as_str().ok_or_else(|| format!("oidc: parse claim {claim}: it is no string"))?;
            if value != wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {value}, want = {wanted}"
                ));
            }
        }
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let user = UserInfo::authenticated(&format!("{}{name}", self.prefix), &groups);
        let id = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty());
        let extra = id.map(|id| (CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]));
        Ok(UserInfo { extra: extra.into_iter().collect(), ..user })
    }

    fn groups(&self, claims: &Map<String, Value>) -> Result<Vec<String>, String> {
        let (claim, prefix) = (&self.config.groups_claim, &self.config.groups_prefix);
        let Some(value) = claims.get(claim).filter(|value| !claim.is_empty() && !value.is_null()) else {
            return Ok(vec![]);
        };
        let names: Option<Vec<&str>> = match value {
            Value::String(one) => Some(vec![one]),
            Value::Array(many) => many.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let names = names.ok_or_else(|| {
            format!("oidc: parse groups claim {claim:?}: it is no string and no list of strings")
        })?;
        Ok(names.into_iter().map(|name| format!("{prefix}{name}")).collect())
    }
}

impl TokenAuthenticator for Oidc {
    fn name(&self) -> &'static str {
        "OIDC"
    }

    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Response>, String>> {
        self.known(token, audiences).boxed()
    }
}

fn text_claim<'a>(claims: &'a Map<String, Value>, claim: &str) -> Result<&'a str, &'static str> {
    claims.get(claim).ok_or("claim not present")?.as_str().ok_or("it is no string")
}

/// An address that says of itself that nobody checked it is no name.
fn check_email(claims: &Map<String, Value>) -> Result<(), String> {
    match claims.get("email_verified") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) => Err("oidc: email not verified".into()),
        Some(_) => Err("oidc: parse 'email_verified' claim: it is no boolean".into()),
    }
}
