//! What TLS asks of a client's certificate: that the client has its key (Go's `tls.RequestClientCert`).
//!
//! Who signed it, and whether it has expired, is asked by the authenticators: a stranger's certificate is
//! answered with 401 and not with a broken handshake.

use std::sync::Arc;

use network::any_client_certificate::AnyClientCertificate;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// Takes any certificate, and none; tells clients the names of these authorities, PEM.
///
/// # Errors
/// A text that holds no certificates.
pub(super) fn asked(
    authorities: &[String],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Arc::new(AnyClientCertificate::new(roots(authorities)?.subjects(), provider.clone())))
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
