//! Signed JWTs: read, and checked against public keys. A key is only ever tried with the algorithms that fit
//! it, whatever the token asks for.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::errors::BadCredential;
use super::es512;

/// A public key and what it may be used for.
#[derive(Clone)]
pub struct VerifyingKey {
    /// The `kid` that tokens name it by; empty when it has none.
    pub id: String,
    /// The key.
    pub key: JwtKey,
}

/// A key, with all that may be checked with it.
#[derive(Clone)]
pub enum JwtKey {
    /// By one of these algorithms.
    Common(DecodingKey, Vec<Algorithm>),
    /// By ES512.
    P521(p521::ecdsa::VerifyingKey),
}

/// The algorithms that tokens may be signed with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedAlgorithms {
    /// Those that there is a library for.
    pub common: Vec<Algorithm>,
    /// Whether ES512 is among them.
    pub es512: bool,
}

impl AllowedAlgorithms {
    /// All that are asymmetric (`oidc.AllValidSigningAlgorithms`).
    pub fn all() -> AllowedAlgorithms {
        use Algorithm::{ES256, ES384, PS256, PS384, PS512, RS256, RS384, RS512};
        AllowedAlgorithms {
            common: vec![ES256, ES384, PS256, PS384, PS512, RS256, RS384, RS512],
            es512: true,
        }
    }

    /// Those with these names.
    ///
    /// # Errors
    /// The first name that is none of [`AllowedAlgorithms::all`].
    pub fn named(names: &[String]) -> Result<AllowedAlgorithms, &String> {
        let all = AllowedAlgorithms::all();
        let mut allowed = AllowedAlgorithms::default();
        for name in names {
            match name.parse::<Algorithm>() {
                Ok(algorithm) if all.common.contains(&algorithm) => allowed.common.push(algorithm),
                _ if name == es512::NAME => allowed.es512 = true,
                _ => return Err(name),
            }
        }
        Ok(allowed)
    }
}

/// What a token says, unproven: only to find out whose business it is.
pub(super) fn unverified<T: DeserializeOwned>(token: &str) -> Option<T> {
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// The `kid` that a token names; empty when it names none.
pub(super) fn key_id(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Header {
        #[serde(rename = "alg")]
        _algorithm: String,
        #[serde(default)]
        kid: Option<String>,
    }
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next()?).ok()?;
    serde_json::from_slice::<Header>(&header).ok().map(|header| header.kid.unwrap_or_default())
}

/// What a token says, when one of the keys signed it. Times, audiences and issuer are the caller's to check.
///
/// # Errors
/// What is wrong with the last key that was tried.
pub(super) fn verified<T: DeserializeOwned>(token: &str, keys: &[&VerifyingKey]) -> Result<T, BadCredential> {
    let mut last = BadCredential::from("invalid signature, no keys found");
    for key in keys {
        let outcome = match &key.key {
            JwtKey::Common(key, algorithms) => by_library(token, key, algorithms),
            JwtKey::P521(key) => es512::verify(token, key)
                .and_then(|()| unverified(token).ok_or_else(|| "invalid signature: InvalidToken".into())),
        };
        match outcome {
            Ok(claims) => return Ok(claims),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn by_library<T: DeserializeOwned>(
    token: &str,
    key: &DecodingKey,
    algorithms: &[Algorithm],
) -> Result<T, BadCredential> {
    let mut validation = Validation::new(algorithms.first().copied().unwrap_or(Algorithm::ES256));
    validation.algorithms = algorithms.to_vec();
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
    let data = jsonwebtoken::decode(token, key, &validation);
    data.map(|data| data.claims).map_err(|error| format!("invalid signature: {error}").into())
}
