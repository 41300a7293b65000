//! The ciphers of encryption at rest, each in upstream's layout: AES-CBC with PKCS#7 (nothing tells when it
//! was tampered with), AES-GCM (bound to the key in etcd), XSalsa20-Poly1305.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyInit as _, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead as _, Payload};
use crypto_secretbox::XSalsa20Poly1305;
use crypto_secretbox::aead::{Aead as _, KeyInit as _};

const AES_BLOCK_BYTES: usize = 16;
const GCM_NONCE_BYTES: usize = 12;
const SECRETBOX_NONCE_BYTES: usize = 24;

/// Which cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// `aescbc`
    AesCbc,
    /// `aesgcm`
    AesGcm,
    /// `secretbox`
    Secretbox,
}

/// A cipher with its key.
pub(super) struct Cipher {
    method: Method,
    secret: Vec<u8>,
}

impl Method {
    /// What its values begin with, before the key's name.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Method::AesCbc => "k8s:enc:aescbc:v1:",
            Method::AesGcm => "k8s:enc:aesgcm:v1:",
            Method::Secretbox => "k8s:enc:secretbox:v1:",
        }
    }

    /// How long its keys may be, in bytes.
    pub(super) fn key_sizes(self) -> &'static [usize] {
        match self {
            Method::AesCbc | Method::AesGcm => &[16, 24, 32],
            Method::Secretbox => &[32],
        }
    }
}

impl Cipher {
    /// `secret` has one of the method's sizes.
    pub(super) fn new(method: Method, secret: Vec<u8>) -> Cipher {
        Cipher { method, secret }
    }

    /// See [`Method::prefix`].
    pub(super) fn prefix(&self) -> &'static str {
        self.method.prefix()
    }

    /// What is said when a value cannot be opened.
    pub(super) fn failure(&self) -> String {
        match self.method {
            Method::AesCbc => "invalid padding on input".into(),
            Method::AesGcm => "cipher: message authentication failed".into(),
            Method::Secretbox => "output array was not large enough for encryption".into(),
        }
    }

    /// What is said of a value that another key of this method wrote.
    pub(super) fn no_key(&self) -> String {
        let name = if self.method == Method::Secretbox { "secretbox" } else { "AES" };
        format!("no matching key was found for the provided {name} transformer")
    }

    /// Nonce and encrypted bytes; none when the system has no random numbers. `context` is bound to the
    /// value where the method can do that.
    pub(super) fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        match self.method {
            Method::AesCbc => {
                let iv: [u8; AES_BLOCK_BYTES] = random()?;
                Some([iv.as_slice(), &self.seal_cbc(&iv, plain)?].concat())
            }
            Method::AesGcm => {
                let nonce: [u8; GCM_NONCE_BYTES] = random()?;
                Some([nonce.as_slice(), &self.seal_gcm(&nonce, context, plain)?].concat())
            }
            Method::Secretbox => {
                let nonce: [u8; SECRETBOX_NONCE_BYTES] = random()?;
                let cipher = XSalsa20Poly1305::new_from_slice(&self.secret).ok()?;
                Some([nonce.as_slice(), &cipher.encrypt(&nonce.into(), plain).ok()?].concat())
            }
        }
    }

    /// What was sealed; none when it was not, or not with this key.
    pub(super) fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        match self.method {
            Method::AesCbc => {
                let (iv, rest) = sealed.split_first_chunk::<AES_BLOCK_BYTES>()?;
                self.open_cbc(iv, rest)
            }
            Method::AesGcm => {
                let (nonce, rest) = sealed.split_first_chunk::<GCM_NONCE_BYTES>()?;
                self.open_gcm(nonce, context, rest)
            }
            Method::Secretbox => {
                let (nonce, rest) = sealed.split_first_chunk::<SECRETBOX_NONCE_BYTES>()?;
                let cipher = XSalsa20Poly1305::new_from_slice(&self.secret).ok()?;
                cipher.decrypt(nonce.into(), rest).ok()
            }
        }
    }

    fn seal_cbc(&self, iv: &[u8; AES_BLOCK_BYTES], plain: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; (plain.len() / AES_BLOCK_BYTES + 1) * AES_BLOCK_BYTES];
        macro_rules! seal {
            ($aes:ty) => {{
                let cipher = cbc::Encryptor::<$aes>::new_from_slices(&self.secret, iv).ok()?;
                cipher.encrypt_padded_b2b::<Pkcs7>(plain, &mut out).ok()?.len()
            }};
        }
        let length = match self.secret.len() {
            16 => seal!(Aes128),
            24 => seal!(Aes192),
            _ => seal!(Aes256),
        };
        out.truncate(length);
        Some(out)
    }

    fn open_cbc(&self, iv: &[u8; AES_BLOCK_BYTES], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; sealed.len()];
        macro_rules! open {
            ($aes:ty) => {{
                let cipher = cbc::Decryptor::<$aes>::new_from_slices(&self.secret, iv).ok()?;
                cipher.decrypt_padded_b2b::<Pkcs7>(sealed, &mut out).ok()?.len()
            }};
        }
        let length = match self.secret.len() {
            16 => open!(Aes128),
            24 => open!(Aes192),
            _ => open!(Aes256),
        };
        out.truncate(length);
        Some(out)
    }

    fn seal_gcm(&self, nonce: &[u8; GCM_NONCE_BYTES], context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let payload = Payload { msg: plain, aad: context };
        match self.secret.len() {
            16 => {
                AesGcm::<Aes128, U12>::new_from_slice(&self.secret).ok()?.encrypt(nonce.into(), payload).ok()
            }
            24 => {
                AesGcm::<Aes192, U12>::new_from_slice(&self.secret).ok()?.encrypt(nonce.into(), payload).ok()
            }
            _ => {
                AesGcm::<Aes256, U12>::new_from_slice(&self.secret).ok()?.encrypt(nonce.into(), payload).ok()
            }
        }
    }

    fn open_gcm(&self, nonce: &[u8; GCM_NONCE_BYTES], context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let payload = Payload { msg: sealed, aad: context };
        match self.secret.len() {
            16 => {
                AesGcm::<Aes128, U12>::new_from_slice(&self.secret).ok()?.decrypt(nonce.into(), payload).ok()
            }
            24 => {
                AesGcm::<Aes192, U12>::new_from_slice(&self.secret).ok()?.decrypt(nonce.into(), payload).ok()
            }
            _ => {
                AesGcm::<Aes256, U12>::new_from_slice(&self.secret).ok()?.decrypt(nonce.into(), payload).ok()
            }
        }
    }
}

/// Nonces come from the system, never from the cluster's own numbers: with the same seed those are the same,
/// and a nonce that is used twice gives the secret away.
fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(bytes)
}
