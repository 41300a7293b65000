//! ES512: ECDSA over P-521 with SHA-512, the one algorithm of RFC 7518 that the library of the others lacks.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p521::ecdsa::signature::{Signer, Verifier};
use p521::ecdsa::{Signature, SigningKey, VerifyingKey};
use serde::Serialize;
use serde_json::{Value, json};

use super::errors::{BadCredential, SigningError};

/// As tokens name it.
pub(super) const NAME: &str = "ES512";
/// Of a coordinate.
const BYTES: usize = 66;

/// The key of two coordinates, as a JWK has them.
pub(super) fn of_jwk(x: &str, y: &str) -> Option<VerifyingKey> {
    let mut point = vec![4];
    for coordinate in [x, y] {
        let bytes = URL_SAFE_NO_PAD.decode(coordinate).ok().filter(|bytes| bytes.len() <= BYTES)?;
        point.extend(std::iter::repeat_n(0, BYTES - bytes.len()).chain(bytes));
    }
    VerifyingKey::from_sec1_bytes(&point).ok()
}

/// Whether the key signed the token.
///
/// # Errors
/// Why not.
pub(super) fn verify(token: &str, key: &VerifyingKey) -> Result<(), BadCredential> {
    let wrong = |why: &str| BadCredential::from(format!("invalid signature: {why}"));
    let (message, signature) = token.rsplit_once('.').ok_or_else(|| wrong("InvalidToken"))?;
    let header = message.split('.').next().and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
    let header: Value =
        serde_json::from_slice(&header.unwrap_or_default()).map_err(|_| wrong("InvalidToken"))?;
    if header["alg"] != NAME {
        return Err(wrong("InvalidAlgorithm"));
    }
    let bytes = URL_SAFE_NO_PAD.decode(signature).map_err(|_| wrong("InvalidSignature"))?;
    let signature = Signature::from_slice(&bytes).map_err(|_| wrong("InvalidSignature"))?;
    key.verify(message.as_bytes(), &signature).map_err(|_| wrong("InvalidSignature"))
}

/// A token that says `claims`; `id` is how others find the key.
///
/// # Errors
/// Claims that are no JSON; a system without random numbers.
pub(super) fn sign(claims: &impl Serialize, id: &str, key: &SigningKey) -> Result<String, SigningError> {
    let claims = serde_json::to_vec(claims).map_err(|error| error.to_string())?;
    let header = json!({"alg": NAME, "kid": id}).to_string();
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature: Signature = key.try_sign(message.as_bytes()).map_err(|error| error.to_string())?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes())))
}
