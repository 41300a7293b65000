//! The cluster's certificates: its own authority, and the leaves that it signs (kubeadm's
//! `/etc/kubernetes/pki`).
//!
//! With a data dir the authority is kept in `DIR/pki` (`ca.crt`, `ca.key`, and `sa.key` for service account
//! tokens, all with mode 0600; beside it `sa.pub` for other programs), so that a kubeconfig and tokens go on
//! working over a restart; without, they live as long as the process.

#![warn(missing_docs, unreachable_pub)]

mod certificate_request;
mod made_at;

pub use made_at::MadeAt;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use files::write_private;

/// The files in the folder of a data dir.
const CERTIFICATE: &str = "ca.crt";
const KEY: &str = "ca.key";
const SIGNING_KEY: &str = "sa.key";
/// Its public half, for kube-apiservers that check tokens with it: of a private key they take fewer forms.
const PUBLIC_KEY: &str = "sa.pub";

/// The length in bytes of every second ECDSA signature on P-256 in DER; others have one more or some less.
const USUAL_SIGNATURE: usize = 71;

/// Ten years, as kubeadm's.
const AUTHORITY_DAYS: i64 = 3650;
/// A year.
const LEAF_DAYS: i64 = 366;

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The files in the data dir.
    #[error("cannot keep the certificate authority in {0}: {1}")]
    Io(String, io::Error),
    /// What is in them.
    #[error(
        "the certificate authority in {0} cannot be used: {1}; move the folder away to have a new one made"
    )]
    Invalid(String, String),
    /// A file that belongs to the others, and is empty or not there.
    #[error(
        "{0} is {1}, and what is signed with it would be void if another took its place; put it back from a \
         backup, or move {2} away: then everything in it is made anew, and kubeconfigs and tokens of before \
         count no more"
    )]
    Missing(String, &'static str, String),
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
/// [`PkiError::Make`].
pub fn generate_signing_key() -> Result<String, PkiError> {
    Ok(KeyPair::generate()?.serialize_pem())
}

/// The one that is kept in `dir` as `sa.key`, beside the authority.
///
/// # Errors
/// [`PkiError::Io`], [`PkiError::Missing`], [`PkiError::Invalid`].
pub fn load_signing_key(dir: &Path) -> Result<String, PkiError> {
    let key = load(dir, SIGNING_KEY)?;
    match PrivateKeyDer::from_pem_slice(key.as_bytes()) {
        Ok(_) => Ok(key),
        Err(error) => Err(PkiError::Invalid(dir.display().to_string(), format!("{SIGNING_KEY}: {error}"))),
    }
}

/// A file of `dir` that must be there.
fn load(dir: &Path, name: &str) -> Result<String, PkiError> {
    let path = dir.join(name);
    let (file, folder) = (path.display().to_string(), dir.display().to_string());
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(PkiError::Missing(file, "missing", folder))
        }
        Err(error) => Err(PkiError::Io(file, error)),
        Ok(text) if text.trim().is_empty() => Err(PkiError::Missing(file, "empty", folder)),
        Ok(text) => Ok(text),
    }
}

/// What the folder of a data dir holds, as PEM: with it, another cluster trusts, and is trusted, as this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityKeys {
    /// The authority's certificate.
    pub certificate_pem: String,
    /// Its key.
    pub key_pem: String,
    /// The key for service account tokens.
    pub signing_key_pem: String,
}

impl AuthorityKeys {
    /// Makes `dir` with them, whole or not at all.
    ///
    /// # Errors
    /// [`PkiError::Io`].
    pub fn write(&self, dir: &Path) -> Result<(), PkiError> {
        let failed = |error| PkiError::Io(dir.display().to_string(), error);
        let unfinished = dir.with_extension("new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(failed)?;
        }
        let mut files = vec![
            (KEY, self.key_pem.clone()),
            (CERTIFICATE, self.certificate_pem.clone()),
            (SIGNING_KEY, self.signing_key_pem.clone()),
        ];
        // A key that somebody brought may be of a sort that is not read here.
        let public = KeyPair::from_pem(&self.signing_key_pem).map(|pair| pair.public_key_pem());
        files.extend(public.ok().map(|text| (PUBLIC_KEY, text)));
        for (name, text) in files {
            write_private(&unfinished.join(name), text.as_bytes()).map_err(failed)?;
        }
        fs::rename(&unfinished, dir).map_err(failed)
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
    /// [`PkiError::Make`].
    pub fn generate(now: impl Into<MadeAt>) -> Result<Authority, PkiError> {
        Authority::make(now.into())
    }

    /// The one that is kept in `dir`, made with the signing key beside it when there is no such folder.
    ///
    /// # Errors
    /// [`PkiError::Io`], [`PkiError::Missing`], [`PkiError::Invalid`].
    pub fn load_or_generate(dir: &Path, now: impl Into<MadeAt>) -> Result<Authority, PkiError> {
        let is_new = fs::read_dir(dir).map_or(true, |mut files| files.next().is_none());
        if is_new {
            return Authority::make_in(dir, now.into());
        }
        let (certificate_pem, key_pem) = (load(dir, CERTIFICATE)?, load(dir, KEY)?);
        Authority::of_pem(&certificate_pem, &key_pem, &dir.display().to_string())
    }

    /// Makes the folder with all that belongs to it, whole or not at all: half of it would be taken for
    /// something lost.
    fn make_in(dir: &Path, now: MadeAt) -> Result<Authority, PkiError> {
        let authority = Authority::make(now)?;
        authority.keys(&generate_signing_key()?).write(dir)?;
        Ok(authority)
    }

    /// The authority that has these.
    ///
    /// # Errors
    /// [`PkiError::Invalid`], which names `origin`.
    pub fn of_keys(keys: &AuthorityKeys, origin: &str) -> Result<Authority, PkiError> {
        Authority::of_pem(&keys.certificate_pem, &keys.key_pem, origin)
    }

    fn of_pem(certificate_pem: &str, key_pem: &str, origin: &str) -> Result<Authority, PkiError> {
        let invalid = |error: rcgen::Error| PkiError::Invalid(origin.to_owned(), error.to_string());
        let issuer = KeyPair::from_pem(key_pem)
            .and_then(|key| Issuer::from_ca_cert_pem(certificate_pem, key))
            .map_err(invalid)?;
        Ok(Authority { certificate_pem: certificate_pem.to_owned(), issuer })
    }

    /// The authority with its key, and the key for tokens beside it.
    pub fn keys(&self, signing_key_pem: &str) -> AuthorityKeys {
        AuthorityKeys {
            certificate_pem: self.certificate_pem.clone(),
            key_pem: self.issuer.key().serialize_pem(),
            signing_key_pem: signing_key_pem.to_owned(),
        }
    }

    /// The authority's certificate: what clients trust.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The certificate in DER.
    fn certificate_der(&self) -> Result<CertificateDer<'static>, PkiError> {
        let der = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes());
        der.map_err(|error| PkiError::Request(error.to_string()))
    }

    /// A server's certificate for these host names and addresses.
    ///
    /// # Errors
    /// [`PkiError::Make`].
    pub fn server(
        &self,
        names: &[&str],
        addresses: &[IpAddr],
        now: impl Into<MadeAt>,
    ) -> Result<Identity, PkiError> {
        self.serving(leaf("kube-apiserver", now.into()), names, addresses)
    }

    /// What the kubelet of a node shows to those who ask it, as the signer `kubernetes.io/kubelet-serving`
    /// has it.
    ///
    /// # Errors
    /// [`PkiError::Make`].
    pub fn kubelet(
        &self,
        node: &str,
        addresses: &[IpAddr],
        now: impl Into<MadeAt>,
    ) -> Result<Identity, PkiError> {
        let mut params = leaf(&format!("system:node:{node}"), now.into());
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        self.serving(params, &[node], addresses)
    }

    fn serving(
        &self,
        mut params: CertificateParams,
        names: &[&str],
        addresses: &[IpAddr],
    ) -> Result<Identity, PkiError> {
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
    /// [`PkiError::Make`].
    pub fn client(&self, user: &str, group: &str, now: impl Into<MadeAt>) -> Result<Identity, PkiError> {
        let mut params = leaf(user, now.into());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name.push(DnType::OrganizationName, group);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Result<Identity, PkiError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    fn make(now: MadeAt) -> Result<Authority, PkiError> {
        let mut params = leaf("kubernetes", now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        now.set_validity(&mut params, AUTHORITY_DAYS);
        let (certificate_pem, key) = loop {
            let key = KeyPair::generate()?;
            let certificate = params.self_signed(&key)?;
            if has_usual_length(certificate.der()) {
                break (certificate.pem(), key);
            }
        };
        Ok(Authority { certificate_pem, issuer: Issuer::new(params, key) })
    }
}

impl Identity {
    /// As rustls takes it, with those that signed it, where they stand after it.
    pub fn chain_to_der(&self) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let chain = CertificateDer::pem_slice_iter(self.certificate_pem.as_bytes());
        let chain: Vec<_> =
            chain.collect::<Result<_, _>>().ok().filter(|chain: &Vec<_>| !chain.is_empty())?;
        Some((chain, PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).ok()?))
    }

    /// The certificate and the key, without those that vouch for it.
    pub fn to_der(&self) -> Option<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes()).ok()?;
        Some((certificate, PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).ok()?))
    }
}

/// Whether neither the serial number nor the signature is shorter or longer than most are. The authority's
/// certificate stands in objects, whose sizes are told: chance that the cluster does not seed must not be
/// seen in them. A try takes tens of microseconds.
fn has_usual_length(certificate: &[u8]) -> bool {
    const SERIAL_NUMBER: usize = 20;
    x509_parser::parse_x509_certificate(certificate).is_ok_and(|(_, parsed)| {
        parsed.raw_serial().len() == SERIAL_NUMBER && parsed.signature_value.data.len() == USUAL_SIGNATURE
    })
}

/// For what is made at each start.
fn leaf(common_name: &str, now: MadeAt) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    now.set_validity(&mut params, LEAF_DAYS);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

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
        let (der, _) = second.kubelet("a", &[IpAddr::from([10, 0, 0, 1])], now).unwrap().to_der().unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
        assert_eq!(parsed.subject().to_string(), "CN=system:node:a, O=system:nodes");
        let names = parsed.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 2);
        let keys = second.keys(&load_signing_key(dir.path()).unwrap());
        let pair = KeyPair::from_pem(&keys.signing_key_pem).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("sa.pub")).unwrap(), pair.public_key_pem());
        let copy = tempfile::tempdir().unwrap();
        let folder = copy.path().join("pki");
        keys.write(&folder).unwrap();
        let third = Authority::load_or_generate(&folder, now).unwrap();
        assert_eq!(third.keys(&load_signing_key(&folder).unwrap()), keys);
        assert_eq!(Authority::of_keys(&keys, "copy").unwrap().certificate_pem(), first.certificate_pem());
        fs::write(dir.path().join("ca.crt"), "garbage").unwrap();
        let text = Authority::load_or_generate(dir.path(), now).err().unwrap().to_string();
        assert!(text.contains("move the folder away"), "{text}");
    }

    #[test]
    fn all_authorities_are_of_one_length() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let length = || Authority::generate(now).unwrap().certificate_pem().len();
        let first = length();
        assert!((0..20).all(|_| length() == first));
    }

    #[test]
    fn a_key_that_is_gone_is_told_and_not_replaced() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        for (name, is_empty) in
            [(KEY, false), (KEY, true), (CERTIFICATE, false), (SIGNING_KEY, false), (SIGNING_KEY, true)]
        {
            let parent = tempfile::tempdir().unwrap();
            let dir = parent.path().join("pki");
            let load = || Authority::load_or_generate(&dir, now).and_then(|_| load_signing_key(&dir));
            let key = load().unwrap();
            assert_eq!(load().unwrap(), key);
            let file = dir.join(name);
            let what = if is_empty { "empty" } else { "missing" };
            if is_empty {
                fs::write(&file, "").unwrap()
            } else {
                fs::remove_file(&file).unwrap()
            }
            let why = load().unwrap_err().to_string();
            assert!(why.starts_with(&format!("{} is {what}, ", file.display())), "{why}");
            assert!(why.contains("put it back from a backup, or move "), "{why}");
            assert_eq!(fs::read(&file).unwrap_or_default(), b"", "it was made anew");
        }
    }

    #[test]
    fn a_folder_that_was_not_finished_is_made_again() {
        let parent = tempfile::tempdir().unwrap();
        let (dir, unfinished) = (parent.path().join("pki"), parent.path().join("pki.new"));
        fs::create_dir(&unfinished).unwrap();
        fs::write(unfinished.join(KEY), "half").unwrap();
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        assert!(Authority::load_or_generate(&dir, now).is_ok() && load_signing_key(&dir).is_ok());
        assert!(!unfinished.exists());
    }
}
