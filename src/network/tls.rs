//! TLS over a connection: who serves shows a certificate, who asks says whom he trusts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::any_client_certificate::AnyClientCertificate;
use crate::plain_http::expect_tls;
use crate::rewound::Rewound;

/// Who serves over TLS. Cloning shares it.
#[derive(Clone)]
pub struct TlsIdentity(Arc<ServerConfig>);

/// Whom a client trusts, and who it is itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerTrust {
    /// Whoever it is.
    pub everybody: bool,
    /// Otherwise those for whom these certificates, as PEM, vouch, and these themselves.
    pub authorities: String,
    /// Its own certificates and their key, as PEM, for servers that ask for them; nothing shows none.
    pub own: String,
}

/// What a server speaks over TLS, and whether it wants to know who asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedOverTls {
    /// HTTP/2, as gRPC has it.
    pub is_grpc: bool,
    /// Clients may show certificates, whoever vouches for them ([`client_chain`]).
    pub asks_clients: bool,
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

/// What HTTP/2 is called where it is agreed on (RFC 9113).
const HTTP2: &[u8] = b"h2";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl TlsIdentity {
    /// A chain of certificates and the key of the first, as PEM.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(chain: &[u8], key: &[u8]) -> Result<TlsIdentity, BadIdentity> {
        TlsIdentity::serving(chain, key, ServedOverTls::default())
    }

    /// [`TlsIdentity::new`], for a server that says more of itself.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn serving(chain: &[u8], key: &[u8], served: ServedOverTls) -> Result<TlsIdentity, BadIdentity> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain
            .ok_or_else(|| BadIdentity("tls: failed to find any PEM data in certificate input".into()))?;
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|_| BadIdentity("tls: failed to find any PEM data in key input".into()))?;
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(bad)?;
        let builder = if served.asks_clients {
            builder.with_client_cert_verifier(Arc::new(AnyClientCertificate::new(vec![], provider())))
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(chain, key).map_err(bad)?;
        if served.is_grpc {
            config.alpn_protocols = vec![HTTP2.to_vec()];
        }
        Ok(TlsIdentity(Arc::new(config)))
    }

    /// Takes a connection. Who speaks HTTP is told so, as Go's servers do.
    ///
    /// # Errors
    /// That who asks does not speak TLS, or does not trust this one.
    pub async fn accept<Io>(&self, io: Io) -> io::Result<server::TlsStream<Rewound<Io>>>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        let io = expect_tls(io).await?;
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

/// The certificates that a client has shown, as DER, its own first; none where it has none, or was not
/// asked.
pub fn client_chain<Io>(stream: &server::TlsStream<Io>) -> Vec<Vec<u8>> {
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    chain.iter().map(|der| der.to_vec()).collect()
}

/// Whether authorities, as PEM, vouch for a client that has shown these certificates, at a time in seconds
/// since 1970.
pub fn vouches_for(authorities: &str, chain: &[Vec<u8>], now: u64) -> bool {
    let mut roots = RootCertStore::empty();
    let read = CertificateDer::pem_slice_iter(authorities.as_bytes());
    roots.add_parsable_certificates(read.filter_map(Result::ok));
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let chain: Vec<CertificateDer<'_>> =
        chain.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
    let (Ok(verifier), Some((own, others))) = (verifier, chain.split_first()) else { return false };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    verifier.verify_client_cert(own, others, now).is_ok()
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
    let builder = builder.ok()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    if trust.own.is_empty() {
        return Some(builder.with_no_client_auth());
    }
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(trust.own.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(trust.own.as_bytes());
    builder.with_client_auth_cert(chain.ok()?, key.ok()?).ok()
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
    async fn a_client_that_speaks_http_is_told_so() {
        let (identity, _) = identity();
        let (mut near, far) = connection();
        let taken = tokio::spawn(async move { identity.accept(far).await.err().unwrap().to_string() });
        near.write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n").await.unwrap();
        let mut heard = String::new();
        near.read_to_string(&mut heard).await.unwrap();
        let said = "Client sent an HTTP request to an HTTPS server.\n";
        assert_eq!(heard, format!("HTTP/1.0 400 Bad Request\r\n\r\n{said}"));
        assert_eq!(taken.await.unwrap(), "client sent an HTTP request to an HTTPS server");
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
        let trusting = PeerTrust { authorities, ..PeerTrust::default() };
        assert_eq!(ask("web.default.svc", trusting.clone()).await, Ok("hello".to_owned()));
        assert_eq!(ask("other.default.svc", trusting).await, Err(TlsFailure::Untrusted));
        assert_eq!(ask("web.default.svc", PeerTrust::default()).await, Err(TlsFailure::Untrusted));
        let everybody = PeerTrust { everybody: true, ..PeerTrust::default() };
        assert_eq!(ask("10.0.0.1", everybody).await, Ok("hello".to_owned()));
    }

    #[tokio::test]
    async fn a_server_that_asks_learns_who_its_client_is() {
        let made = rcgen::generate_simple_self_signed(vec!["client".into()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let served = ServedOverTls { asks_clients: true, ..ServedOverTls::default() };
        let server = TlsIdentity::serving(certificate.as_bytes(), key.as_bytes(), served).unwrap();
        let seen = async |own: String| {
            let (near, far) = connection();
            let trust = PeerTrust { everybody: true, own, ..PeerTrust::default() };
            let (client, taken) = tokio::join!(connect(near, "10.0.0.1", &trust), server.accept(far));
            drop(client);
            client_chain(&taken.unwrap())
        };
        assert!(seen(String::new()).await.is_empty());
        let chain = seen(format!("{certificate}{key}")).await;
        assert_eq!(chain, [made.cert.der().to_vec()]);
        assert!(!vouches_for(&identity().1, &chain, 0) && !vouches_for("", &chain, 0));
    }

    #[test]
    fn authorities_vouch_for_whom_they_have_signed() {
        let mut authority = rcgen::CertificateParams::new(vec![]).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let root = authority.self_signed(&key).unwrap();
        let issuer = rcgen::Issuer::new(authority, key);
        let mut client = rcgen::CertificateParams::new(vec![]).unwrap();
        client.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let own = client.signed_by(&rcgen::KeyPair::generate().unwrap(), &issuer).unwrap();
        let now = 1_800_000_000;
        assert!(vouches_for(&root.pem(), &[own.der().to_vec()], now));
        assert!(!vouches_for(&identity().1, &[own.der().to_vec()], now));
        assert!(!vouches_for(&root.pem(), &[], now));
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
