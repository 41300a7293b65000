//! Client certificates: the common name is the user, the organizations are the groups (`request/x509`).
//!
//! TLS has already verified the certificate against the cluster's authority.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Authenticator;
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::{ApiRequest, PeerCertificate};

/// Certificates that were read before; at the bound all are forgotten and read again.
const MAX_KNOWN: usize = 1024;
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Reads the certificate that came with the connection, each one once.
#[derive(Default)]
pub struct ClientCertificate {
    known: Mutex<HashMap<Arc<[u8]>, Arc<UserInfo>>>,
}

impl Authenticator for ClientCertificate {
    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, String> {
        let Some(PeerCertificate(der)) = request.extensions().get::<PeerCertificate>() else {
            return Ok(None);
        };
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(user) = known.get(der) {
            return Ok(Some(user.clone()));
        }
        let Some(user) = user_of(der)?.map(Arc::new) else { return Ok(None) };
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(der.clone(), user.clone());
        Ok(Some(user))
    }
}

/// Whom a certificate names; nobody without a common name.
fn user_of(der: &[u8]) -> Result<Option<UserInfo>, String> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
    let subject = certificate.subject();
    let names = subject.iter_common_name().filter_map(|name| name.as_str().ok());
    let Some(name) = names.last().filter(|name| !name.is_empty()) else { return Ok(None) };
    let groups: Vec<&str> = subject.iter_organization().filter_map(|name| name.as_str().ok()).collect();
    let digest: String = Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")])]);
    Ok(Some(UserInfo { extra, ..UserInfo::authenticated(name, &groups) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    fn certificate(name: Option<&str>, organization: &str) -> Arc<[u8]> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        if let Some(name) = name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec().into()
    }

    #[test]
    fn the_subject_is_the_user() {
        let authenticator = ClientCertificate::default();
        let mut request = ApiRequest::default();
        let der = certificate(Some("kubernetes-admin"), "system:masters");
        request.extensions_mut().insert(PeerCertificate(der));
        let user = authenticator.authenticate(&request).unwrap().unwrap();
        assert_eq!(&*user.name, "kubernetes-admin");
        assert!(user.is_member_of("system:masters") && user.is_member_of("system:authenticated"));
        request.extensions_mut().insert(PeerCertificate(certificate(None, "a")));
        assert_eq!(authenticator.authenticate(&request), Ok(None));
        request.extensions_mut().insert(PeerCertificate(Arc::from(&b"garbage"[..])));
        assert!(authenticator.authenticate(&request).is_err());
    }
}
