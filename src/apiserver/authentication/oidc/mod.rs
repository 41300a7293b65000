//! ID tokens of OpenID Connect providers (`--oidc-*`, `--authentication-config`,
//! `plugin/pkg/authenticator/token/oidc`).
//!
//! In comes a signed JWT of a provider, out goes the user that its claims name. Behind service account
//! tokens: those are JWTs too, and whoever does not know a key may go and ask the provider for it.

pub mod configuration;
mod types;
mod validation;

pub mod structured;

mod authenticator;
mod claims;
mod distributed;
mod expression;
mod key_set;

use std::path::PathBuf;

use clap::Args;

use super::AuthenticationConfigError;
use super::jwt::AllowedAlgorithms;
use authenticator::ClaimMapping;
use component_base::flags::defaults;

pub use authenticator::{JwtAuthenticator, Oidc};
pub use key_set::KeySet;

/// What says that names are not to be prefixed.
const NO_PREFIX: &str = "-";

/// The flags `--oidc-*`.
#[derive(Args, Clone, Debug)]
pub struct OidcOptions {
    /// The OpenID Connect provider whose ID tokens are believed; https.
    #[arg(id = "oidc-issuer-url", long, value_name = "URL")]
    pub issuer_url: Option<String>,
    /// The client that its tokens must be for.
    #[arg(id = "oidc-client-id", long, default_value = "", hide_default_value = true)]
    pub client_id: String,
    /// The claim that is the user's name.
    #[arg(id = "oidc-username-claim", long, default_value = "sub")]
    pub username_claim: String,
    /// What goes in front of the name; the issuer's URL when not given (but for email), - for nothing.
    #[arg(id = "oidc-username-prefix", long, default_value = "", hide_default_value = true)]
    pub username_prefix: String,
    /// The claim that is the user's groups.
    #[arg(id = "oidc-groups-claim", long, default_value = "", hide_default_value = true)]
    pub groups_claim: String,
    /// What goes in front of groups.
    #[arg(id = "oidc-groups-prefix", long, default_value = "", hide_default_value = true)]
    pub groups_prefix: String,
    /// A claim that a token must have, as key=value; may be given several times.
    #[arg(id = "oidc-required-claim", long, value_parser = pair, value_name = "KEY=VALUE")]
    pub required_claims: Vec<(String, String)>,
    /// The algorithms that tokens may be signed with.
    #[arg(id = "oidc-signing-algs", long, value_delimiter = ',', default_value = "RS256")]
    pub signing_algorithms: Vec<String>,
    /// Authorities that may have signed the provider's certificate; those of the system when not given.
    #[arg(id = "oidc-ca-file", long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The provider's keys as a JWKS, instead of asking it for them (kubarium's own flag).
    #[arg(id = "oidc-jwks-file", long, value_name = "FILE")]
    pub jwks_file: Option<PathBuf>,
}

impl Default for OidcOptions {
    fn default() -> OidcOptions {
        defaults()
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not key=value"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

impl OidcOptions {
    /// The provider; empty when there is none.
    pub fn issuer(&self) -> &str {
        self.issuer_url.as_deref().unwrap_or_default()
    }

    /// What is wrong with it.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn validate(&self) -> Result<(), AuthenticationConfigError> {
        let wrong = |text: String| Err(AuthenticationConfigError(text));
        if self.client_id.is_empty() {
            return wrong(
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
                    .into(),
            );
        }
        if !self.issuer().starts_with("https://") {
            return wrong(format!("oidc-issuer-url: {:?} URL scheme must be https", self.issuer()));
        }
        self.algorithms().map(drop)
    }

    /// The algorithms that tokens may be signed with.
    pub(super) fn algorithms(&self) -> Result<AllowedAlgorithms, AuthenticationConfigError> {
        let failed =
            |name: &String| AuthenticationConfigError(format!("oidc: unsupported signing alg: {name:?}"));
        AllowedAlgorithms::named(&self.signing_algorithms).map_err(failed)
    }

    /// What these flags say in the words of a file.
    pub(super) fn authenticator(&self) -> JwtAuthenticator {
        let groups =
            ClaimMapping::Claim { claim: self.groups_claim.clone(), prefix: self.groups_prefix.clone() };
        JwtAuthenticator {
            issuer: self.issuer().to_owned(),
            audiences: vec![self.client_id.clone()],
            username: ClaimMapping::Claim { claim: self.username_claim.clone(), prefix: self.prefix() },
            groups: (!self.groups_claim.is_empty()).then_some(groups),
            uid: None,
            extra: vec![],
            required_claims: self.required_claims.iter().cloned().collect(),
            claim_rules: vec![],
            user_rules: vec![],
        }
    }

    /// What stands in front of user names: the issuer, unless something else is said.
    fn prefix(&self) -> String {
        match self.username_prefix.as_str() {
            NO_PREFIX => String::new(),
            "" if self.username_claim != "email" => format!("{}#", self.issuer()),
            prefix => prefix.to_owned(),
        }
    }
}
