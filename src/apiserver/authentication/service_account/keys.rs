//! The keys that service account tokens are signed and checked with
//! (`k8s.io/client-go/util/keyutil`, `pkg/serviceaccount/jwt.go`).
//!
//! RSA and ECDSA (P-256, P-384, P-521), in the PEM forms that openssl, kubeadm and Go write.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use rustls_pki_types::pem::{PemObject, SectionKind};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::super::es512;
use super::super::jwt::{JwtKey, VerifyingKey};
use crate::authentication::errors::SigningError;
use apimachinery::der;

golang::text_error! {
    /// A text without a key that can be used.
    pub struct BadKey;
}

/// `1.2.840.10045.2.1`, id-ecPublicKey, as DER.
const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// `1.2.840.113549.1.1.1`, rsaEncryption, as DER.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const NULL: &[u8] = &[0x05, 0x00];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
const UNUSABLE: &str = "it is neither an RSA nor an ECDSA key (P-256, P-384, P-521)";

/// A public key.
#[derive(Clone)]
pub struct PublicKey {
    /// For verification; its id is the digest of the key, by which tokens name it.
    pub verifying: VerifyingKey,
    /// As in a JWKS.
    pub jwk: Value,
}

/// The private key that tokens are signed with.
pub struct SigningKey {
    /// Its public half.
    pub public: PublicKey,
    method: SigningMethod,
}

/// How it signs.
enum SigningMethod {
    Common(Algorithm, EncodingKey),
    Es512(p521::ecdsa::SigningKey),
}

/// All public keys in a PEM text; of private keys and certificates their public halves.
///
/// # Errors
/// No key, or one of another sort.
pub fn public_keys(text: &str) -> Result<Vec<PublicKey>, BadKey> {
    let mut keys = Vec::new();
    for (kind, bytes) in sections(text)? {
        let info = match kind {
            SectionKind::PublicKey => bytes,
            SectionKind::Certificate => {
                let (_, certificate) =
                    X509Certificate::from_der(&bytes).map_err(|error| error.to_string())?;
                certificate.public_key().raw.to_vec()
            }
            kind => Private::read(kind, &bytes).ok_or(UNUSABLE)?.public_info(),
        };
        keys.push(PublicKey::new(&info).ok_or(UNUSABLE)?);
    }
    if keys.is_empty() { Err("it has no PEM-encoded key".into()) } else { Ok(keys) }
}

impl SigningKey {
    /// The first private key in a PEM text.
    ///
    /// # Errors
    /// No private key, or one of another sort.
    pub fn read(text: &str) -> Result<SigningKey, BadKey> {
        let mut private = sections(text)?.into_iter().filter_map(|(kind, der)| Private::read(kind, &der));
        let private = private.next().ok_or(UNUSABLE)?;
        let public = PublicKey::new(&private.public_info()).ok_or(UNUSABLE)?;
        let method = match (&public.verifying.key, &private) {
            (JwtKey::Common(_, algorithms), private) => {
                let algorithm = *algorithms.first().ok_or(UNUSABLE)?;
                SigningMethod::Common(algorithm, private.encoding_key())
            }
            (JwtKey::P521(_), Private::Ec { number, .. }) => {
                let key = p521::ecdsa::SigningKey::from_slice(number);
                SigningMethod::Es512(key.map_err(|_| UNUSABLE)?)
            }
            (JwtKey::P521(_), Private::Rsa { .. }) => return Err(UNUSABLE.into()),
        };
        Ok(SigningKey { public, method })
    }

    /// A token that says `claims`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, SigningError> {
        let id = &self.public.verifying.id;
        match &self.method {
            SigningMethod::Es512(key) => es512::sign(claims, id, key),
            SigningMethod::Common(algorithm, key) => {
                let header = Header { typ: None, kid: Some(id.clone()), ..Header::new(*algorithm) };
                jsonwebtoken::encode(&header, claims, key).map_err(|error| error.to_string().into())
            }
        }
    }
}

impl PublicKey {
    /// Of a SubjectPublicKeyInfo in DER.
    fn new(info: &[u8]) -> Option<PublicKey> {
        let elements = der::read_sequence(info)?;
        let algorithm = der::read_all(elements.first()?.content)?;
        // The first byte says how many bits of the last one do not count: none.
        let bits = elements.get(1)?.content.strip_prefix(&[0])?;
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(info));
        match algorithm.first()?.whole {
            RSA => PublicKey::rsa(id, bits),
            EC => PublicKey::ec(id, algorithm.get(1)?.content, bits),
            _ => None,
        }
    }

    fn rsa(id: String, pkcs1: &[u8]) -> Option<PublicKey> {
        let numbers = der::read_sequence(pkcs1)?;
        let number = |at: usize| -> Option<String> {
            let bytes = numbers.get(at)?.content;
            Some(URL_SAFE_NO_PAD.encode(bytes.strip_prefix(&[0]).unwrap_or(bytes)))
        };
        let (n, e) = (number(0)?, number(1)?);
        let algorithms = vec![Algorithm::RS256, Algorithm::RS384, Algorithm::RS512];
        let jwk = json!({"use": "sig", "kty": "RSA", "kid": id, "alg": "RS256", "n": n, "e": e});
        let key = DecodingKey::from_rsa_components(&n, &e).ok()?;
        Some(PublicKey { verifying: VerifyingKey { id, key: JwtKey::Common(key, algorithms) }, jwk })
    }

    fn ec(id: String, curve: &[u8], point: &[u8]) -> Option<PublicKey> {
        let common = |algorithm| JwtKey::Common(DecodingKey::from_ec_der(point), vec![algorithm]);
        let (key, algorithm, curve, length) = match curve {
            P256 => (common(Algorithm::ES256), "ES256", "P-256", 32),
            P384 => (common(Algorithm::ES384), "ES384", "P-384", 48),
            P521 => {
                let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
                (JwtKey::P521(key), es512::NAME, "P-521", 66)
            }
            _ => return None,
        };
        // Only uncompressed points, as everybody writes them.
        let (x, y) = point.strip_prefix(&[4])?.split_at_checked(length)?;
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let jwk = json!({
            "use": "sig", "kty": "EC", "kid": id, "crv": curve, "alg": algorithm, "x": x, "y": y,
        });
        Some(PublicKey { verifying: VerifyingKey { id, key }, jwk })
    }
}

/// A private key, in the form in which its public half can be told.
enum Private {
    Rsa { pkcs1: Vec<u8> },
    Ec { pkcs8: Vec<u8>, algorithm: Vec<u8>, point: Vec<u8>, number: Vec<u8> },
}

impl Private {
    fn read(kind: SectionKind, bytes: &[u8]) -> Option<Private> {
        match kind {
            SectionKind::RsaPrivateKey => Some(Private::Rsa { pkcs1: bytes.to_vec() }),
            SectionKind::EcPrivateKey => {
                let elements = der::read_sequence(bytes)?;
                let curve = elements.iter().find(|element| element.tag == 0xa0)?.content;
                Private::ec(bytes, &der::write_sequence(&[EC, curve]))
            }
            SectionKind::PrivateKey => {
                let elements = der::read_sequence(bytes)?;
                let (algorithm, inner) = (elements.get(1)?, elements.get(2)?.content);
                match der::read_all(algorithm.content)?.first()?.whole {
                    RSA => Some(Private::Rsa { pkcs1: inner.to_vec() }),
                    EC => Private::ec(inner, algorithm.whole),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Of an ECPrivateKey (SEC 1) that says its public half.
    fn ec(sec1: &[u8], algorithm: &[u8]) -> Option<Private> {
        let elements = der::read_sequence(sec1)?;
        let public = elements.iter().find(|element| element.tag == 0xa1)?.content;
        let point = der::read(public)?.0.content.strip_prefix(&[0])?.to_vec();
        let version = der::write(der::INTEGER, &[0]);
        let pkcs8 = der::write_sequence(&[&version, algorithm, &der::write(der::OCTET_STRING, sec1)]);
        let number = elements.get(1)?.content.to_vec();
        Some(Private::Ec { pkcs8, algorithm: algorithm.to_vec(), point, number })
    }

    fn encoding_key(&self) -> EncodingKey {
        match self {
            Private::Rsa { pkcs1, .. } => EncodingKey::from_rsa_der(pkcs1),
            Private::Ec { pkcs8, .. } => EncodingKey::from_ec_der(pkcs8),
        }
    }

    /// The SubjectPublicKeyInfo.
    fn public_info(&self) -> Vec<u8> {
        match self {
            Private::Ec { algorithm, point, .. } => {
                der::write_sequence(&[algorithm, &der::write_bits(point)])
            }
            Private::Rsa { pkcs1 } => {
                let numbers = der::read_sequence(pkcs1).unwrap_or_default();
                let number = |at: usize| numbers.get(at).map_or(&[][..], |element| element.whole);
                // A version, then modulus and public exponent.
                let public = der::write_sequence(&[number(1), number(2)]);
                der::write_sequence(&[&der::write_sequence(&[RSA, NULL]), &der::write_bits(&public)])
            }
        }
    }
}

fn sections(text: &str) -> Result<Vec<(SectionKind, Vec<u8>)>, String> {
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes());
    sections.collect::<Result<_, _>>().map_err(|error| format!("{error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

    const RSA_PRIVATE: &str = include_str!("testdata/rsa-private.pem");
    const RSA_PKCS1: &str = include_str!("testdata/rsa-pkcs1.pem");
    const RSA_PUBLIC: &str = include_str!("testdata/rsa-public.pem");
    const EC_SEC1: &str = include_str!("testdata/ec-sec1.pem");
    const P521_SEC1: &str = include_str!("testdata/p521-sec1.pem");
    const EC_PUBLIC: &str = include_str!("testdata/ec-public.pem");

    #[test]
    fn every_form_of_a_key_is_the_same_key() {
        let id = |text: &str| public_keys(text).unwrap()[0].verifying.id.clone();
        assert_eq!(id(RSA_PRIVATE), id(RSA_PUBLIC));
        assert_eq!(id(RSA_PKCS1), id(RSA_PUBLIC));
        assert_eq!(id(EC_SEC1), id(EC_PUBLIC));
        assert_eq!(public_keys(&[RSA_PUBLIC, EC_PUBLIC].concat()).unwrap().len(), 2);
        for broken in ["", "garbage", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
            assert!(public_keys(broken).is_err());
            assert!(SigningKey::read(broken).is_err());
        }
        assert!(SigningKey::read(RSA_PUBLIC).is_err());
    }

    #[test]
    fn what_a_key_signs_its_public_half_believes_and_no_other() {
        let [p256, p384] = [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384]
            .map(|algorithm| KeyPair::generate_for(algorithm).unwrap().serialize_pem());
        let texts = [&*p256, &*p384, RSA_PRIVATE, RSA_PKCS1, EC_SEC1, P521_SEC1];
        let signers: Vec<SigningKey> = texts.iter().map(|text| SigningKey::read(text).unwrap()).collect();
        for (at, signer) in signers.iter().enumerate() {
            let token = signer.sign(&json!({"sub": "a"})).unwrap();
            for (other, public) in texts.iter().enumerate() {
                let public = &public_keys(public).unwrap()[0];
                let claims = super::super::super::jwt::verified::<Value>(&token, &[&public.verifying]);
                let same = public.verifying.id == signer.public.verifying.id;
                assert_eq!(claims.is_ok(), same, "{at} {other} {claims:?}");
            }
        }
    }
}
