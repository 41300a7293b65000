//! The cluster's certificates: its own authority, and the leaves that it signs (kubeadm's
//! `/etc/kubernetes/pki`).
//!
//! With a data dir the authority is kept in `DIR/pki` (`ca.crt`, `ca.key`, and `sa.key` for service account
//! tokens, all with mode 0600), so that a kubeconfig and tokens go on working over a restart; without, they
//! live as long as the process.

mod certificate_request;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::files::write_private;

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files in the data dir.
    #[error("cannot keep the certificate authority in {0}: {1}")]
    Io(String, io::Error),
    /// What is in them.
    #[error(
        "the certificate authority in {0} cannot be used: {1}; move the folder away to have a new one made"
    )]
    Invalid(String, String),
    /// A certificate that could not be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A request for one that cannot be followed.
    #[error("cannot sign the request: {0}")]
    Request(String),
}

/// A certificate with its private key, both PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate_pem: String,
    /// Its key.
    pub key_pem: String,
}

/// A private key for service account tokens, in PEM (kubeadm's `sa.key`), kept nowhere.
///
/// # Errors
/// [`Error::Make`].
pub fn generate_signing_key() -> Result<String, Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

/// The one that is kept in `dir` as `sa.key`, made when there is none.
///
/// # Errors
/// [`Error::Io`].
pub fn load_or_generate_signing_key(dir: &Path) -> Result<String, Error> {
    let (path, shown) = (dir.join("sa.key"), dir.display().to_string());
    let failed = |error| Error::Io(shown.clone(), error);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = generate_signing_key()?;
            write_private(&path, key.as_bytes()).map_err(failed)?;
            Ok(key)
        }
        read => read.map_err(failed),
    }
}

/// The certificate authority of one cluster.
pub struct Authority {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, kept nowhere.
    ///
    /// # Errors
    /// [`Error::Make`].
    pub fn generate(now: DateTime<Utc>) -> Result<Authority, Error> {
        Ok(Authority::make(now)?.0)
    }

    /// The one that is kept in `dir`, made when there is none.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Invalid`].
    pub fn load_or_generate(dir: &Path, now: DateTime<Utc>) -> Result<Authority, Error> {
        let shown = dir.display().to_string();
        let failed = |error| Error::Io(shown.clone(), error);
        let (certificate, key) = (dir.join("ca.crt"), dir.join("ca.key"));
        if !certificate.exists() {
            fs::create_dir_all(dir).map_err(failed)?;
            let (authority, key_pem) = Authority::make(now)?;
            write_private(&key, key_pem.as_bytes()).map_err(failed)?;
            write_private(&certificate, authority.certificate_pem.as_bytes()).map_err(failed)?;
            return Ok(authority);
        }
        let certificate_pem = fs::read_to_string(&certificate).map_err(failed)?;
        let key_pem = fs::read_to_string(&key).map_err(failed)?;
        let invalid = |error: rcgen::Error| Error::Invalid(shown.clone(), error.to_string());
        let issuer = KeyPair::from_pem(&key_pem)
            .and_then(|key| Issuer::from_ca_cert_pem(&certificate_pem, key))
            .map_err(invalid)?;
        Ok(Authority { certificate_pem, issuer })
    }

    /// The authority's certificate: what clients trust.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The same in DER.
    fn certificate_der(&self) -> Result<CertificateDer<'static>, Error> {
        let der = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes());
        der.map_err(|error| Error::Request(error.to_string()))
    }

    /// A server's certificate for these host names and addresses.
    ///
    /// # Errors
    /// [`Error::Make`].
    pub fn server(
        &self,
        names: &[&str],
        addresses: &[IpAddr],
        now: DateTime<Utc>,
    ) -> Result<Identity, Error> {
        let mut params = leaf("kube-apiserver", now);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in names {
            params.subject_alt_names.push(SanType::DnsName((*name).try_into()?));
        }
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        self.sign(params)
    }

    /// A client's certificate: `user` is its common name, `group` its organization.
    ///
    /// # Errors
    /// [`Error::Make`].
    pub fn client(&self, user: &str, group: &str, now: DateTime<Utc>) -> Result<Identity, Error> {
        let mut params = leaf(user, now);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name.push(DnType::OrganizationName, group);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Result<Identity, Error> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    fn make(now: DateTime<Utc>) -> Result<(Authority, String), Error> {
        let mut params = leaf("kubernetes", now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_validity(&mut params, now, 3650);
        let key = KeyPair::generate()?;
        let certificate_pem = params.self_signed(&key)?.pem();
        let key_pem = key.serialize_pem();
        Ok((Authority { certificate_pem, issuer: Issuer::new(params, key) }, key_pem))
    }
}

impl Identity {
    /// As rustls takes it.
    pub(crate) fn to_der(&self) -> Option<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes()).ok()?;
        Some((certificate, PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).ok()?))
    }
}

/// A year, for what is made at each start; from a day back, for clocks that disagree.
fn leaf(common_name: &str, now: DateTime<Utc>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    set_validity(&mut params, now, 366);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params
}

fn set_validity(params: &mut CertificateParams, now: DateTime<Utc>, days: i64) {
    let number = |n: u32| u8::try_from(n).unwrap_or(1);
    let day = |at: DateTime<Utc>| date_time_ymd(at.year(), number(at.month()), number(at.day()));
    params.not_before = day(now - TimeDelta::days(1));
    params.not_after = day(now + TimeDelta::days(days));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_kept_and_loaded_again() {
        let dir = tempfile::tempdir().unwrap();
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let first = Authority::load_or_generate(dir.path(), now).unwrap();
        let second = Authority::load_or_generate(dir.path(), now).unwrap();
        assert_eq!(first.certificate_pem(), second.certificate_pem());
        let leaf = second.client("kubernetes-admin", "system:masters", now).unwrap();
        let (der, _) = leaf.to_der().unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
        assert_eq!(parsed.subject().to_string(), "CN=kubernetes-admin, O=system:masters");
        assert_eq!(parsed.issuer().to_string(), "CN=kubernetes");
        fs::write(dir.path().join("ca.crt"), "garbage").unwrap();
        let text = Authority::load_or_generate(dir.path(), now).err().unwrap().to_string();
        assert!(text.contains("move the folder away"), "{text}");
    }
}
