//! What TLS asks of a client's certificate: that the client has its key (Go's
//! `tls.RequestClientCert`).
//!
//! Who signed it, and whether it has expired, is for those who are asked: a stranger's certificate is
//! answered by their words and not with a broken handshake.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// Takes any certificate, and none.
#[derive(Debug)]
pub struct AnyClientCertificate {
    /// The names of authorities: a client with several certificates chooses by them.
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl AnyClientCertificate {
    /// Tells clients the names of these authorities.
    pub fn new(hints: Vec<DistinguishedName>, provider: Arc<CryptoProvider>) -> AnyClientCertificate {
        AnyClientCertificate { hints, provider }
    }
}

/// The key of a certificate of X.509 version 1, which webpki does not read and Go does.
fn key_of_first_version(certificate: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let is_first = certificate.version() == X509Version::V1;
    is_first.then(|| SubjectPublicKeyInfoDer::from(certificate.public_key().raw.to_vec()))
}

impl ClientCertVerifier for AnyClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match key_of_first_version(certificate) {
            Some(key) => verify_tls13_signature_with_raw_key(message, &key, signature, algorithms),
            None => verify_tls13_signature(message, certificate, signature, algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
