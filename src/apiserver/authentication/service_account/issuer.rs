//! Makes service account tokens (`pkg/serviceaccount.JWTTokenGenerator`, `serviceaccounts/token`).

use std::sync::OnceLock;
use std::time::Duration;

use serde::Serialize;

use super::claims::{BoundClaims, Kubernetes, LegacyClaims, PublicClaims};
use super::keys::{PublicKey, SigningKey};
use super::legacy::LEGACY_ISSUER;
use super::username;
use crate::authentication::errors::SigningError;
use clock::Clock;
use entropy::Entropy;

pub use super::claims::ClaimedObject;

/// A token that asks for exactly so long is one of a pod's projected volume: it lives on for longer, but its
/// use is noted (`WarnOnlyBoundTokenExpirationSeconds`).
pub const WARN_ONLY_EXPIRATION_SECONDS: i64 = 60 * 60 + 7;
/// So long it lives then (`ExpirationExtensionSeconds`).
pub const EXTENDED_EXPIRATION_SECONDS: i64 = 24 * 365 * 60 * 60;

/// What is to be signed.
pub struct TokenRequest {
    /// The account's namespace.
    pub namespace: String,
    /// The account.
    pub account: ClaimedObject,
    /// The pod that the token is bound to.
    pub pod: Option<ClaimedObject>,
    /// The node of that pod, or the node that the token is bound to.
    pub node: Option<ClaimedObject>,
    /// The secret that it is bound to.
    pub secret: Option<ClaimedObject>,
    /// For whom it is meant.
    pub audiences: Vec<String>,
    /// For how long.
    pub expiration_seconds: i64,
}

/// Signs tokens of one issuer.
pub struct TokenIssuer {
    issuer: String,
    /// Text of the key in PEM; read when the first token is asked for.
    key_pem: String,
    key: OnceLock<Result<SigningKey, SigningError>>,
    audiences: Vec<String>,
    max_expiration: Option<Duration>,
    extends_expiration: bool,
    clock: Clock,
    entropy: Entropy,
}

impl TokenIssuer {
    /// Of a private key in PEM.
    pub fn new(issuer: &str, key_pem: &str, audiences: &[String], clock: &Clock, entropy: &Entropy) -> Self {
        TokenIssuer {
            issuer: issuer.into(),
            key_pem: key_pem.into(),
            key: OnceLock::new(),
            audiences: audiences.to_vec(),
            max_expiration: None,
            extends_expiration: true,
            clock: clock.clone(),
            entropy: entropy.clone(),
        }
    }

    /// With `--service-account-max-token-expiration` and `--service-account-extend-token-expiration`.
    pub fn limited(mut self, max_expiration: Option<Duration>, extends_expiration: bool) -> Self {
        (self.max_expiration, self.extends_expiration) = (max_expiration, extends_expiration);
        self
    }

    /// For whom a token is meant that names nobody.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// The longest time that may be asked for, in seconds.
    pub fn max_expiration_seconds(&self) -> Option<i64> {
        self.max_expiration.map(|longest| i64::try_from(longest.as_secs()).unwrap_or(i64::MAX))
    }

    /// The public half of its key.
    pub fn public_key(&self) -> Result<&PublicKey, SigningError> {
        Ok(&self.key()?.public)
    }

    /// A bound token, and its id (`jti`).
    ///
    /// # Errors
    /// A key that does not sign.
    pub fn issue(&self, request: &TokenRequest) -> Result<(String, String), SigningError> {
        let now = self.clock.now().timestamp();
        let id = self.entropy.uid();
        let is_extended = self.is_extended(request);
        let seconds = if is_extended { EXTENDED_EXPIRATION_SECONDS } else { request.expiration_seconds };
        let claims = BoundClaims {
            public: PublicClaims {
                aud: request.audiences.clone(),
                exp: Some(now + seconds),
                iat: Some(now),
                iss: self.issuer.clone(),
                jti: id.clone(),
                nbf: Some(now),
                sub: username(&request.namespace, &request.account.name),
            },
            kubernetes: Kubernetes {
                namespace: request.namespace.clone(),
                node: request.node.clone(),
                pod: request.pod.clone(),
                secret: request.secret.clone(),
                serviceaccount: request.account.clone(),
                warnafter: is_extended.then_some(now + request.expiration_seconds),
            },
        };
        Ok((self.sign(&claims)?, id))
    }

    /// A token without an end for a Secret of type `kubernetes.io/service-account-token`.
    ///
    /// # Errors
    /// A key that does not sign.
    pub fn issue_legacy(
        &self,
        namespace: &str,
        account: &ClaimedObject,
        secret_name: &str,
    ) -> Result<String, SigningError> {
        let sub = username(namespace, &account.name);
        let public = PublicClaims { iss: LEGACY_ISSUER.into(), sub, ..PublicClaims::default() };
        self.sign(&LegacyClaims {
            public,
            namespace: namespace.into(),
            secret_name: secret_name.into(),
            account_name: account.name.clone(),
            account_uid: account.uid.clone(),
        })
    }

    /// Only what pods get without asking: bound to the pod, for this server, with the volume's own duration.
    fn is_extended(&self, request: &TokenRequest) -> bool {
        self.extends_expiration
            && request.pod.is_some()
            && request.expiration_seconds == WARN_ONLY_EXPIRATION_SECONDS
            && request.audiences.iter().all(|audience| self.audiences.contains(audience))
    }

    fn sign(&self, claims: &impl Serialize) -> Result<String, SigningError> {
        self.key()?.sign(claims)
    }

    fn key(&self) -> Result<&SigningKey, SigningError> {
        let read = || SigningKey::read(&self.key_pem).map_err(|why| String::from(why).into());
        self.key.get_or_init(read).as_ref().map_err(Clone::clone)
    }
}
