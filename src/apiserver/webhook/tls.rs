//! TLS to the outside: rustls with the given authorities, or the system's (`rest.TLSConfigFor`).

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, ClientConfig as TlsConfig, DigitallySignedStruct, Error, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::config::{ClientConfig, WebhookTarget};

/// Where systems keep the authorities that they trust (the list of Go's `crypto/x509`).
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

golang::text_error! {
    /// Files of certificates that cannot be used, and why.
    pub struct TlsFilesError;
}

/// The TLS side of a client that speaks HTTP/2 to somebody outside: authorities to trust, PEM, or those of
/// the system; a certificate of our own and its key, PEM.
///
/// # Errors
/// What is wrong with the given certificates.
pub fn http2_tls(
    authorities: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<TlsConfig, TlsFilesError> {
    let mut config = ClientConfig::new(WebhookTarget::Url(String::new()));
    config.ca_bundle = authorities.unwrap_or_default();
    config.identity = identity;
    let mut tls = tls_config(&config)?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    Ok(tls)
}

/// The TLS side of a client.
///
/// # Errors
/// What is wrong with the given certificates.
pub(super) fn tls_config(config: &ClientConfig) -> Result<TlsConfig, TlsFilesError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = TlsConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let schemes = provider.signature_verification_algorithms;
    let verifier: Arc<dyn ServerCertVerifier> = if config.insecure_skip_tls_verify {
        Arc::new(Anybody { schemes })
    } else {
        let trusted = trusted(config)?;
        let mut roots = RootCertStore::empty();
        let taken = trusted.iter().filter(|der| roots.add((*der).clone()).is_ok()).count();
        match taken {
            0 => Arc::new(Nobody { schemes }),
            _ => Arc::new(Trusting {
                chain: WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| error.to_string())?,
                trusted,
            }),
        }
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let Some((certificate, key)) = &config.identity else { return Ok(builder.with_no_client_auth()) };
    let fault = |_| "the client certificate or its key is not PEM".to_owned();
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(fault)?;
    builder.with_client_auth_cert(chain.map_err(fault)?, key).map_err(|error| format!("tls: {error}").into())
}

fn trusted(config: &ClientConfig) -> Result<Vec<CertificateDer<'static>>, String> {
    let system = || SYSTEM_BUNDLES.iter().find_map(|path| std::fs::read(path).ok()).unwrap_or_default();
    let (pem, is_given) =
        if config.ca_bundle.is_empty() { (system(), false) } else { (config.ca_bundle.clone(), true) };
    let read: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if read.is_empty() && is_given {
        Err("unable to load root certificates: unable to parse bytes as PEM block".into())
    } else {
        Ok(read)
    }
}

impl ClientConfig {
    /// Whose word is taken for who answers, in words.
    pub fn trust(&self) -> String {
        if self.insecure_skip_tls_verify {
            return "TLS not verified (insecureSkipTLSVerify)".into();
        }
        if self.ca_bundle.is_empty() {
            return "TLS verified by the system's authorities".into();
        }
        let names = authority_names(&self.ca_bundle);
        let more = names.len().saturating_sub(1);
        let first = names.into_iter().next().unwrap_or_else(|| "which cannot be read".into());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("TLS verified by the caBundle: {first}{more}")
    }
}

/// The authorities in a bundle, as `CN=agg-ca`.
fn authority_names(pem: &[u8]) -> Vec<String> {
    let read = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let name = |der: CertificateDer<'_>| Some(X509Certificate::from_der(&der).ok()?.1.subject().to_string());
    read.filter_map(name).collect()
}

/// Believes chains to the roots, and a root that shows itself: Go takes a self-signed certificate that is
/// its own authority, which webpki does not.
#[derive(Debug)]
struct Trusting {
    chain: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(_) if self.trusted.iter().any(|trusted| **trusted == **end_entity) => {
                verify_itself(end_entity, server_name, now)
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Name and time of a certificate that is trusted as it is.
fn verify_itself(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let refused = Error::InvalidCertificate;
    let (_, parsed) =
        X509Certificate::from_der(certificate).map_err(|_| refused(CertificateError::BadEncoding))?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if !(validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&seconds) {
        return Err(refused(CertificateError::Expired));
    }
    let names = parsed.subject_alternative_name().ok().flatten();
    let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
    let presented: Vec<String> = names.iter().filter_map(shown).collect();
    let wanted = server_name.to_str().to_ascii_lowercase();
    let parent = wanted.split_once('.').map(|(_, parent)| format!("*.{parent}"));
    let fits = |name: &String| *name == wanted || Some(name) == parent.as_ref();
    if presented.iter().any(fits) {
        return Ok(ServerCertVerified::assertion());
    }
    let expected = server_name.to_owned();
    Err(refused(CertificateError::NotValidForNameContext { expected, presented }))
}

fn shown(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(std::net::IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
            16 => Some(std::net::IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Without any authority nobody is believed.
#[derive(Debug)]
struct Nobody {
    schemes: rustls::crypto::WebPkiSupportedAlgorithms,
}

/// `insecure-skip-tls-verify`
#[derive(Debug)]
struct Anybody {
    schemes: rustls::crypto::WebPkiSupportedAlgorithms,
}

macro_rules! verifies_signatures {
    ($verifier:ident, $outcome:expr) => {
        impl ServerCertVerifier for $verifier {
            fn verify_server_cert(
                &self,
                _: &CertificateDer<'_>,
                _: &[CertificateDer<'_>],
                _: &ServerName<'_>,
                _: &[u8],
                _: UnixTime,
            ) -> Result<ServerCertVerified, Error> {
                $outcome
            }

            fn verify_tls12_signature(
                &self,
                message: &[u8],
                cert: &CertificateDer<'_>,
                dss: &DigitallySignedStruct,
            ) -> Result<HandshakeSignatureValid, Error> {
                rustls::crypto::verify_tls12_signature(message, cert, dss, &self.schemes)
            }

            fn verify_tls13_signature(
                &self,
                message: &[u8],
                cert: &CertificateDer<'_>,
                dss: &DigitallySignedStruct,
            ) -> Result<HandshakeSignatureValid, Error> {
                rustls::crypto::verify_tls13_signature(message, cert, dss, &self.schemes)
            }

            fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
                self.schemes.supported_schemes()
            }
        }
    };
}

verifies_signatures!(Nobody, Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)));
verifies_signatures!(Anybody, Ok(ServerCertVerified::assertion()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_word_is_taken_is_said() {
        let with = |ca_bundle: &str, insecure_skip_tls_verify| {
            let (target, ca_bundle) = (WebhookTarget::Url(String::new()), ca_bundle.into());
            ClientConfig { ca_bundle, insecure_skip_tls_verify, ..ClientConfig::new(target) }.trust()
        };
        assert_eq!(with("", true), "TLS not verified (insecureSkipTLSVerify)");
        assert_eq!(with("", false), "TLS verified by the system's authorities");
        assert_eq!(with("odd", false), "TLS verified by the caBundle: which cannot be read");
        let authority = pki::Authority::generate(clock::Clock::real().now()).unwrap();
        let said = with(authority.certificate_pem(), false);
        assert!(said.starts_with("TLS verified by the caBundle: CN="), "{said}");
        let two = with(&authority.certificate_pem().repeat(2), false);
        assert_eq!(two, format!("{said} and 1 more"));
    }
}
