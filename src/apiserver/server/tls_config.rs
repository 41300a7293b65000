//! TLS of a server: what it shows, and whose clients it believes (`SecureServingInfo.tlsConfig`).

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::server::danger::ClientCertVerifier;

use super::cipher_suites::cipher_suites;
use super::client_certificates;
use pki::Identity;

/// What the server shows and trusts.
pub struct Tls {
    /// Its own certificate.
    pub identity: Identity,
    /// Authorities whose client certificates may be believed, PEM: what clients are told to choose by.
    pub client_authorities: Vec<String>,
    /// Whether a client without a certificate that these have signed is refused: the handshake fails.
    pub demands_client_certificates: bool,
}

/// What rustls is told of it.
///
/// # Errors
/// Certificates that rustls does not take.
pub(super) fn server_config(tls: &Tls) -> Result<ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
    let provider = Arc::new(CryptoProvider { cipher_suites: cipher_suites(), ..default_provider() });
    let verifier: Arc<dyn ClientCertVerifier> = if tls.demands_client_certificates {
        client_certificates::demanded(&tls.client_authorities, &provider)?
    } else {
        client_certificates::asked(&tls.client_authorities, &provider)?
    };
    let (chain, key) = tls.identity.chain_to_der().ok_or("the server's certificate is not PEM")?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.ignore_client_order = true;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
