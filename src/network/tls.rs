//! TLS over a connection: who serves shows a certificate, who asks says whom he trusts.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// Who serves over TLS. Cloning shares it.
#[derive(Clone)]
pub struct TlsIdentity(Arc<ServerConfig>);

/// Whom a client trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerTrust {
    /// Whoever it is.
    pub everybody: bool,
    /// Otherwise those for whom these certificates, as PEM, vouch, and these themselves.
    pub authorities: String,
}

/// A certificate or a key that is none, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadIdentity(pub String);

/// Why there is no TLS on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// Who is there speaks something else.
    NoTls,
    /// Nobody vouches for who is there.
    Untrusted,
    /// The connection ended.
    Ended,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl TlsIdentity {
    /// A chain of certificates and the key of the first, as PEM.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(chain: &[u8], key: &[u8]) -> Result<TlsIdentity, BadIdentity> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain
            .ok_or_else(|| BadIdentity("tls: failed to find any PEM data in certificate input".into()))?;
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|_| BadIdentity("tls: failed to find any PEM data in key input".into()))?;
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(bad)?.with_no_client_auth();
        let config = builder.with_single_cert(chain, key).map_err(bad)?;
        Ok(TlsIdentity(Arc::new(config)))
    }

    /// Takes a connection.
    ///
    /// # Errors
    /// That who asks does not speak TLS, or does not trust this one.
    pub async fn accept<Io>(&self, io: Io) -> io::Result<server::TlsStream<Io>>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.0.clone()).accept(io).await
    }
}

/// Speaks TLS from now on with who must be `name`: a host's name or an address.
///
/// # Errors
/// [`TlsFailure`]
pub async fn connect<Io>(io: Io, name: &str, trust: &PeerTrust) -> Result<client::TlsStream<Io>, TlsFailure>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsFailure::Untrusted)?;
    let config = client_config(trust).ok_or(TlsFailure::Untrusted)?;
    TlsConnector::from(Arc::new(config)).connect(name, io).await.map_err(|error| failure(&error))
}

/// What who is at the other end has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownIdentity {
    /// Its certificates, as DER, its own first.
    pub chain: Vec<Vec<u8>>,
    /// As `TLSv1.3`.
    pub protocol: String,
    /// As `TLS_AES_256_GCM_SHA384`, in OpenSSL's words.
    pub cipher: String,
}

/// What was agreed on with who is at the other end.
pub fn shown<Io>(stream: &client::TlsStream<Io>) -> ShownIdentity {
    let connection = stream.get_ref().1;
    let chain = connection.peer_certificates().unwrap_or_default();
    let protocol = connection.protocol_version().map(|version| format!("{version:?}")).unwrap_or_default();
    let suite = connection.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()));
    ShownIdentity {
        chain: chain.iter().map(|der| der.to_vec()).collect(),
        protocol: protocol.replace("v1_", "v1."),
        cipher: suite.unwrap_or_default().replace("TLS13_", "TLS_"),
    }
}

fn bad(error: Error) -> BadIdentity {
    BadIdentity(format!("tls: {error}"))
}

fn failure(error: &io::Error) -> TlsFailure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(_)) => TlsFailure::Untrusted,
        Some(_) => TlsFailure::NoTls,
        None => TlsFailure::Ended,
    }
}

fn client_config(trust: &PeerTrust) -> Option<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let verifier = Believing::new(trust);
    Some(builder.ok()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Believes everybody, or those whom it is told to and whom they vouch for. One that is its own authority is
/// believed when it shows itself, as OpenSSL and Go do and webpki does not.
#[derive(Debug)]
struct Believing {
    everybody: bool,
    trusted: Vec<CertificateDer<'static>>,
    /// None where nobody vouches for anybody.
    chain: Option<Arc<WebPkiServerVerifier>>,
    schemes: WebPkiSupportedAlgorithms,
}

impl Believing {
    fn new(trust: &PeerTrust) -> Believing {
        let provider = provider();
        let schemes = provider.signature_verification_algorithms;
        let read = CertificateDer::pem_slice_iter(trust.authorities.as_bytes());
        let trusted: Vec<_> = read.filter_map(Result::ok).collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok();
        Believing { everybody: trust.everybody, trusted, chain, schemes }
    }

    fn is_believed(&self, certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
        let is_named = || {
            let parsed = ParsedCertificate::try_from(certificate);
            parsed.is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
        };
        self.everybody || self.trusted.iter().any(|trusted| **trusted == **certificate) && is_named()
    }
}

impl ServerCertVerifier for Believing {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.is_believed(end_entity, server_name) {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let chain = self.chain.as_ref().ok_or(unknown)?;
        chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::connection;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn identity() -> (TlsIdentity, String) {
        let made = rcgen::generate_simple_self_signed(vec!["web.default.svc".into()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        (TlsIdentity::new(chain.as_bytes(), key.as_bytes()).unwrap(), chain)
    }

    #[tokio::test]
    async fn a_client_hears_whom_it_trusts() {
        let (identity, authorities) = identity();
        let ask = async |name: &str, trust: PeerTrust| {
            let (near, far) = connection();
            let identity = identity.clone();
            tokio::spawn(async move {
                let Ok(mut io) = identity.accept(far).await else { return };
                let _ = io.write_all(b"hello").await.and(io.shutdown().await);
            });
            let mut heard = String::new();
            let mut io = connect(near, name, &trust).await?;
            let _ = io.read_to_string(&mut heard).await;
            Ok(heard)
        };
        let trusting = PeerTrust { everybody: false, authorities };
        assert_eq!(ask("web.default.svc", trusting.clone()).await, Ok("hello".to_owned()));
        assert_eq!(ask("other.default.svc", trusting).await, Err(TlsFailure::Untrusted));
        assert_eq!(ask("web.default.svc", PeerTrust::default()).await, Err(TlsFailure::Untrusted));
        let everybody = PeerTrust { everybody: true, ..PeerTrust::default() };
        assert_eq!(ask("10.0.0.1", everybody).await, Ok("hello".to_owned()));
    }

    #[tokio::test]
    async fn who_speaks_no_tls_is_found_out() {
        let (near, mut far) = connection();
        far.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let everybody = PeerTrust { everybody: true, ..PeerTrust::default() };
        assert_eq!(connect(near, "10.0.0.1", &everybody).await.err(), Some(TlsFailure::NoTls));
        let (near, far) = connection();
        drop(far);
        assert_eq!(connect(near, "10.0.0.1", &everybody).await.err(), Some(TlsFailure::Ended));
        assert!(TlsIdentity::new(b"", b"").is_err());
    }
}
