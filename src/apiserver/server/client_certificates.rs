//! What TLS asks of a client's certificate: that the client has its key (Go's `tls.RequestClientCert`).
//!
//! Who signed it, and whether it has expired, is asked by the authenticators: a stranger's certificate is
//! answered with 401 and not with a broken handshake.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};

/// Takes any certificate, and none.
#[derive(Debug)]
pub(super) struct AnyClientCertificate {
    /// The names of the authorities: a client with several certificates chooses by them.
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl AnyClientCertificate {
    /// Tells clients the names of these authorities, PEM.
    ///
    /// # Errors
    /// A text that holds no certificates.
    pub(super) fn new(
        authorities: &[String],
        provider: &Arc<CryptoProvider>,
    ) -> Result<AnyClientCertificate, Box<dyn std::error::Error + Send + Sync>> {
        Ok(AnyClientCertificate { hints: roots(authorities)?.subjects(), provider: provider.clone() })
    }
}

/// Takes only certificates that these authorities, PEM, have signed (Go's `tls.RequireAndVerifyClientCert`).
///
/// # Errors
/// A text that holds no certificates.
pub(super) fn demanded(
    authorities: &[String],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Box<dyn std::error::Error + Send + Sync>> {
    let roots = Arc::new(roots(authorities)?);
    Ok(WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build()?)
}

fn roots(authorities: &[String]) -> Result<RootCertStore, Box<dyn std::error::Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    for pem in authorities {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate?)?;
        }
    }
    Ok(roots)
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
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
