//! The certificate that the server shows, when it is not one of the cluster's own
//! (`server/options.SecureServingOptions`).

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use rustls::crypto::ring::default_provider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use pki::Identity;

golang::text_error! {
    /// A certificate or a key to serve with that cannot be used, and why.
    pub struct BadServingFiles;
}

/// The serving certificate.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "APIs")]
pub struct SecureServingOptions {
    /// The certificate that clients are shown, PEM, those that signed it after it; one of the cluster's own
    /// authority when not given. The kubeconfig trusts what is in the file.
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,
}

impl SecureServingOptions {
    /// What the files hold; nothing without them.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn complete(&self) -> Result<Option<Identity>, BadServingFiles> {
        let (certificate, key) = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate, key),
            // Upstream's words, and what to do.
            (Some(_), None) => {
                return Err("missing filename for serving cert: --tls-cert-file needs the key of the \
                            certificate, with --tls-private-key-file"
                    .into());
            }
            (None, Some(_)) => {
                return Err(
                    "missing filename for serving cert: --tls-private-key-file needs the certificate \
                            of the key, with --tls-cert-file"
                        .into(),
                );
            }
        };
        let identity = Identity {
            certificate_pem: read("--tls-cert-file", certificate)?,
            key_pem: read("--tls-private-key-file", key)?,
        };
        check(&identity, certificate, key)?;
        Ok(Some(identity))
    }
}

fn read(flag: &str, path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{flag} {}: {error}", path.display()))
}

/// Whether rustls can serve with it: certificates, a key, and one that belongs to the first of them.
fn check(identity: &Identity, certificate: &Path, key: &Path) -> Result<(), String> {
    let chain = chain(&identity.certificate_pem);
    let chain = chain.filter(|chain| !chain.is_empty()).ok_or_else(|| {
        let shown = certificate.display();
        format!(
            "--tls-cert-file {shown}: failed to find any PEM data in certificate input; must be PEM, as \
                 -----BEGIN CERTIFICATE-----"
        )
    })?;
    let der = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).map_err(|_| {
        let shown = key.display();
        format!(
            "--tls-private-key-file {shown}: failed to find any PEM data in key input; must be PEM, as \
                 -----BEGIN PRIVATE KEY-----"
        )
    })?;
    CertifiedKey::from_der(chain, der, &default_provider()).map(drop).map_err(|error| {
        let why = match error {
            rustls::Error::InconsistentKeys(_) => "private key does not match public key".to_owned(),
            other => other.to_string(),
        };
        format!(
            "--tls-cert-file {} with --tls-private-key-file {}: {why}",
            certificate.display(),
            key.display()
        )
    })
}

fn chain(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().ok()
}

/// The names and addresses that a certificate is for, when `address` is not among them: then clients that go
/// there refuse it.
pub fn names_instead(certificate_pem: &str, address: IpAddr) -> Option<Vec<String>> {
    let leaf = chain(certificate_pem)?.into_iter().next()?;
    let (_, leaf) = X509Certificate::from_der(&leaf).ok()?;
    let named = leaf.subject_alternative_name().ok()?.map(|extension| &extension.value.general_names);
    let names: Vec<String> = named.into_iter().flatten().filter_map(shown).collect();
    (!names.contains(&address.to_string())).then_some(names)
}

fn shown(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn files(folder: &Path, certificate: &str, key: &str) -> SecureServingOptions {
        let (tls_cert_file, tls_private_key_file) = (folder.join("tls.crt"), folder.join("tls.key"));
        fs::write(&tls_cert_file, certificate).unwrap();
        fs::write(&tls_private_key_file, key).unwrap();
        SecureServingOptions {
            tls_cert_file: Some(tls_cert_file),
            tls_private_key_file: Some(tls_private_key_file),
        }
    }

    #[test]
    fn files_that_do_not_go_together_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let params = CertificateParams::new(vec!["example.com".into(), "127.0.0.1".into()]).unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let complete = |certificate: &str, key: &str| files(folder.path(), certificate, key).complete();
        assert!(complete(&pem, &key.serialize_pem()).unwrap().is_some());
        for (certificate, key, wanted) in [
            (pem.as_str(), other.serialize_pem(), "private key does not match public key"),
            ("nonsense", key.serialize_pem(), "failed to find any PEM data in certificate input"),
            (&pem, "nonsense".into(), "failed to find any PEM data in key input"),
        ] {
            let why = complete(certificate, &key).err().unwrap();
            assert!(why.starts_with("--tls-") && why.contains(wanted), "{why}");
        }
        let mut alone = files(folder.path(), &pem, "");
        alone.tls_private_key_file = None;
        let why = alone.complete().err().unwrap();
        assert!(why.starts_with("missing filename for serving cert"), "{why}");
        assert!(SecureServingOptions::default().complete().unwrap().is_none());
        assert_eq!(names_instead(&pem, IpAddr::from([127, 0, 0, 1])), None);
        let others = names_instead(&pem, IpAddr::from([10, 0, 0, 1])).unwrap();
        assert_eq!(others, ["example.com", "127.0.0.1"]);
    }
}
