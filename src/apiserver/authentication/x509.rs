//! Client certificates: the common name is the user, the organizations are the groups (`request/x509`).
//!
//! TLS only proves that the client has the certificate's key. Whether anybody whom we trust signed it is
//! asked here, because several authenticators trust different authorities.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use sync::Mutex;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::RequestAuthenticator;
use super::errors::BadCredential;
use super::extra::CREDENTIAL_ID;
use super::first_version::is_signed_first_version;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, PeerCertificates};
use clock::Clock;
use component_base::metrics::Histogram;

golang::text_error! {
    /// Certificates of authorities that cannot be read, and why.
    pub struct BadAuthorities;
}

/// Certificates that were verified before; at the bound all are forgotten and verified again.
const MAX_KNOWN: usize = 1024;
/// The attribute of the subject that holds the user's uid, which Kubernetes has registered for it.
const UID: &str = "1.3.6.1.4.1.57683.2";

/// Authorities whose client certificates one authenticator believes.
#[derive(Clone)]
pub struct ClientAuthorities {
    verifier: Arc<dyn ClientCertVerifier>,
    roots: Vec<CertificateDer<'static>>,
    clock: Clock,
}

impl ClientAuthorities {
    /// From certificates in PEM; `clock` says what has expired.
    ///
    /// # Errors
    /// No certificate at all, or one that cannot be read.
    pub fn new(pems: &[String], clock: &Clock) -> Result<ClientAuthorities, BadAuthorities> {
        let mut store = RootCertStore::empty();
        let mut roots = vec![];
        for pem in pems {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| error.to_string())?;
                store.add(certificate.clone()).map_err(|error| error.to_string())?;
                roots.push(certificate);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider).build();
        let verifier = verifier.map_err(|error| error.to_string())?;
        Ok(ClientAuthorities { verifier, roots, clock: clock.clone() })
    }

    /// Whether the first of the certificates is a client's and leads to one of the authorities.
    pub(super) fn verify(&self, chain: &[Vec<u8>]) -> Result<(), BadCredential> {
        let [leaf, intermediates @ ..] = chain else { return Err("no certificate was presented".into()) };
        let intermediates: Vec<CertificateDer> =
            intermediates.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
        let seconds = u64::try_from(self.clock.now().timestamp()).unwrap_or(0);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let leaf = CertificateDer::from(leaf.as_slice());
        let verified = if self.roots.contains(&leaf) || is_signed_first_version(&leaf, &self.roots) {
            verify_time_and_purpose(&leaf, now)
        } else {
            self.verifier.verify_client_cert(&leaf, &intermediates, now).map(drop)
        };
        verified.map_err(|error| {
            format!("verifying certificate {} failed: {}", identifier(&leaf), words(&error)).into()
        })
    }
}

/// Time and purpose of what webpki does not take and Go does: an authority that shows itself, and a
/// certificate of the first version that one has signed.
fn verify_time_and_purpose(leaf: &CertificateDer, now: UnixTime) -> Result<(), rustls::Error> {
    let refused = |why| Err(rustls::Error::InvalidCertificate(why));
    let Ok((_, certificate)) = X509Certificate::from_der(leaf) else {
        return refused(CertificateError::BadEncoding);
    };
    let (validity, now) = (certificate.validity(), i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    if now < validity.not_before.timestamp() || now > validity.not_after.timestamp() {
        return refused(CertificateError::Expired);
    }
    match certificate.extended_key_usage() {
        Ok(None) => Ok(()),
        Ok(Some(usage)) if usage.value.any || usage.value.client_auth => Ok(()),
        _ => refused(CertificateError::InvalidPurpose),
    }
}

/// Reads the certificate that came with the connection, each one once.
pub struct ClientCertificate {
    authorities: ClientAuthorities,
    known: Mutex<HashMap<Vec<u8>, KnownCertificate, RandomState>>,
    /// How long certificates that are used are good for yet.
    expirations: Arc<Histogram>,
}

struct KnownCertificate {
    user: Arc<UserInfo>,
    /// In seconds since 1970.
    not_after: i64,
}

impl ClientCertificate {
    /// Believes certificates that one of the authorities signed.
    pub fn new(authorities: ClientAuthorities, expirations: Arc<Histogram>) -> ClientCertificate {
        ClientCertificate { authorities, known: Mutex::default(), expirations }
    }

    fn known(&self, leaf: &[u8]) -> Option<Arc<UserInfo>> {
        let known = self.known.lock();
        let now = self.authorities.clock.now().timestamp();
        let known = known.get(leaf).filter(|known| now <= known.not_after)?;
        self.expires(known.not_after - now);
        Some(known.user.clone())
    }

    fn expires(&self, left_seconds: i64) {
        self.expirations.observe(Duration::from_secs(u64::try_from(left_seconds).unwrap_or(0)));
    }

    fn remember(&self, leaf: &[u8], user: Arc<UserInfo>, not_after: i64) {
        let mut known = self.known.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(leaf.to_vec(), KnownCertificate { user, not_after });
    }
}

impl RequestAuthenticator for ClientCertificate {
    fn name(&self) -> &'static str {
        "X509"
    }

    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, BadCredential> {
        let Some(PeerCertificates(chain)) = request.extensions().get::<PeerCertificates>() else {
            return Ok(None);
        };
        let Some(leaf) = chain.first() else { return Ok(None) };
        if let Some(user) = self.known(leaf) {
            return Ok(Some(user));
        }
        self.authorities.verify(chain)?;
        let (_, certificate) = X509Certificate::from_der(leaf).map_err(|error| error.to_string())?;
        let Some(user) = user_of(&certificate, leaf)?.map(Arc::new) else { return Ok(None) };
        let not_after = certificate.validity().not_after.timestamp();
        self.expires(not_after - self.authorities.clock.now().timestamp());
        self.remember(leaf, user.clone(), not_after);
        Ok(Some(user))
    }
}

/// Whom a certificate names (`CommonNameUserConversion`); nobody without a common name.
fn user_of(certificate: &X509Certificate, der: &[u8]) -> Result<Option<UserInfo>, BadCredential> {
    let Some(name) = common_name(certificate) else { return Ok(None) };
    let subject = certificate.subject();
    let groups: Vec<&str> = subject.iter_organization().filter_map(|name| name.as_str().ok()).collect();
    let uids = subject.iter_attributes().filter(|attribute| attribute.attr_type().to_id_string() == UID);
    let uid = match uids.collect::<Vec<_>>()[..] {
        [] => "",
        [uid] => uid.as_str().map_err(|_| "unable to parse UID into a string".to_owned())?,
        _ => return Err("expected 1 UID, but found multiple".into()),
    };
    let digest: String = Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")])]);
    Ok(Some(UserInfo { uid: uid.into(), extra, ..UserInfo::authenticated(name, &groups) }))
}

/// The last common name of the subject, if that says anything.
pub(super) fn common_name<'a>(certificate: &'a X509Certificate) -> Option<&'a str> {
    let names = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    names.last().filter(|name| !name.is_empty())
}

/// As the log calls it: its serial number.
fn identifier(der: &CertificateDer) -> String {
    match X509Certificate::from_der(der) {
        Ok((_, certificate)) => format!("SN={}", certificate.tbs_certificate.raw_serial_as_string()),
        Err(_) => "(unreadable)".into(),
    }
}

/// Go's words.
fn words(error: &rustls::Error) -> String {
    use CertificateError::*;
    match error {
        rustls::Error::InvalidCertificate(
            Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
        ) => "x509: certificate has expired or is not yet valid".into(),
        rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature) => {
            "x509: certificate signed by unknown authority".into()
        }
        rustls::Error::InvalidCertificate(InvalidPurpose | InvalidPurposeContext { .. }) => {
            "x509: certificate specifies an incompatible key usage".into()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, TimeDelta};
    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType,
        ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };

    struct Signer {
        issuer: Issuer<'static, KeyPair>,
        pem: String,
    }

    fn signer() -> Signer {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Signer { issuer: Issuer::new(params, key), pem }
    }

    impl Signer {
        fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> ApiRequest {
            let mut params = CertificateParams::default();
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, "jane");
            params.distinguished_name.push(DnType::OrganizationName, "dev");
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            (params.not_before, params.not_after) =
                (rcgen::date_time_ymd(2026, 1, 1), rcgen::date_time_ymd(2027, 1, 1));
            change(&mut params);
            let key = KeyPair::generate().unwrap();
            let der = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
            let mut request = ApiRequest::default();
            request.extensions_mut().insert(PeerCertificates([der].into()));
            request
        }
    }

    #[test]
    fn the_subject_is_the_user_when_somebody_known_signed_it() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH + TimeDelta::days(20_600));
        let ours = signer();
        let authorities = ClientAuthorities::new(std::slice::from_ref(&ours.pem), &clock).unwrap();
        let expirations = crate::authentication::metrics::AuthenticationMetrics::default().expirations();
        let authenticator = ClientCertificate::new(authorities, expirations);
        let good = ours.sign(|params| {
            let uid = vec![1, 3, 6, 1, 4, 1, 57683, 2];
            params.distinguished_name.push(DnType::CustomDnType(uid), "1234");
        });
        for _ in 0..2 {
            let user = authenticator.authenticate(&good).unwrap().unwrap();
            assert_eq!((&*user.name, &*user.uid), ("jane", "1234"));
            assert!(user.is_member_of("dev") && user.is_member_of("system:authenticated"));
            assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
        }
        let nobody = ours.sign(|params| params.distinguished_name = DistinguishedName::new());
        assert_eq!(authenticator.authenticate(&nobody), Ok(None));
        clock.advance(Duration::from_secs(86_400 * 366));
        assert!(authenticator.authenticate(&good).is_err(), "what was known expires");
    }

    /// As who makes one with `openssl req -x509` and gives it to `--client-ca-file`, too.
    #[test]
    fn an_authority_that_shows_itself_is_believed() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH + TimeDelta::days(20_600));
        let verified = |change: fn(&mut CertificateParams)| {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            change(&mut params);
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let authorities = ClientAuthorities::new(&[certificate.pem()], &clock).unwrap();
            let verified = authorities.verify(&[certificate.der().to_vec()]);
            verified.map_err(|error| error.to_string())
        };
        assert_eq!(verified(|_| ()), Ok(()));
        assert_eq!(verified(|params| params.is_ca = IsCa::NoCa), Ok(()));
        let server =
            verified(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
        assert!(server.unwrap_err().ends_with("specifies an incompatible key usage"));
        let old = verified(|params| params.not_after = rcgen::date_time_ymd(2026, 2, 1));
        assert!(old.unwrap_err().ends_with("has expired or is not yet valid"));
    }

    #[test]
    fn a_certificate_of_a_stranger_or_of_another_time_is_refused() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH + TimeDelta::days(20_600));
        let ours = signer();
        let authorities = ClientAuthorities::new(std::slice::from_ref(&ours.pem), &clock).unwrap();
        let expirations = crate::authentication::metrics::AuthenticationMetrics::default().expirations();
        let authenticator = ClientCertificate::new(authorities, expirations);
        let unreadable = CustomExtension::from_oid_content(&[1, 2, 3], vec![1]);
        let cases = [
            (signer().sign(|_| ()), "x509: certificate signed by unknown authority"),
            (
                ours.sign(|params| params.not_after = rcgen::date_time_ymd(2026, 2, 1)),
                "x509: certificate has expired or is not yet valid",
            ),
            (
                ours.sign(|params| params.not_before = rcgen::date_time_ymd(2026, 12, 1)),
                "x509: certificate has expired or is not yet valid",
            ),
            (
                ours.sign(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
                "x509: certificate specifies an incompatible key usage",
            ),
        ];
        for (request, words) in cases {
            let error = authenticator.authenticate(&request).unwrap_err().to_string();
            assert!(error.starts_with("verifying certificate SN=") && error.ends_with(words), "{error}");
        }
        let with_extension = ours.sign(|params| params.custom_extensions = vec![unreadable]);
        assert!(authenticator.authenticate(&with_extension).is_ok());
        let mut garbage = ApiRequest::default();
        garbage.extensions_mut().insert(PeerCertificates([b"garbage".to_vec()].into()));
        assert!(authenticator.authenticate(&garbage).is_err());
    }
}
