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

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::ConfigError;
use super::jwt::Allowed;
use authenticator::Mapping;

pub use authenticator::{JwtAuthenticator, Oidc};
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
    pub(super) fn algorithms(&self) -> Result<Allowed, ConfigError> {
        let failed = |name: &String| ConfigError(format!("oidc: unsupported signing alg: {name:?}"));
        Allowed::named(&self.signing_algorithms).map_err(failed)
    }

    /// What these flags say in the words of a file.
    pub(super) fn authenticator(&self) -> JwtAuthenticator {
        let groups = Mapping::Claim { claim: self.groups_claim.clone(), prefix: self.groups_prefix.clone() };
        JwtAuthenticator {
            issuer: self.issuer_url.clone(),
            audiences: vec![self.client_id.clone()],
            username: Mapping::Claim { claim: self.username_claim.clone(), prefix: self.prefix() },
            groups: (!self.groups_claim.is_empty()).then_some(groups),
            uid: None,
            extra: vec![],
            required_claims: self.required_claims.clone(),
            claim_rules: vec![],
            user_rules: vec![],
        }
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
