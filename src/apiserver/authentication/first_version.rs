//! Certificates of X.509 version 1, as `openssl x509 -req` makes them without extensions, and many a tutorial
//! with it. Go believes one that an authority has signed itself; webpki reads none.

use rustls_pki_types::CertificateDer;
use x509_parser::oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// Whether a certificate is of version 1, and one of the authorities has signed it
/// (`Certificate.CheckSignatureFrom`). Its time is asked elsewhere.
pub(super) fn is_signed_first_version(leaf: &CertificateDer, authorities: &[CertificateDer]) -> bool {
    let Ok((_, leaf)) = X509Certificate::from_der(leaf) else { return false };
    let algorithm = &leaf.signature_algorithm.algorithm;
    // Go takes no signature over SHA-1 any more, and this parser would.
    let is_weak = *algorithm == OID_PKCS1_SHA1WITHRSA || *algorithm == OID_SHA1_WITH_RSA;
    if leaf.version() != X509Version::V1 || is_weak {
        return false;
    }
    authorities.iter().any(|authority| {
        X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
            authority.subject().as_raw() == leaf.issuer().as_raw()
                && may_sign(&authority)
                && leaf.verify_signature(Some(authority.public_key())).is_ok()
        })
    })
}

/// Whether its extensions, if it is of a version that has some, let it sign certificates.
fn may_sign(authority: &X509Certificate) -> bool {
    let is_authority = match authority.basic_constraints() {
        Ok(Some(constraints)) => constraints.value.ca,
        Ok(None) => authority.version() != X509Version::V3,
        Err(_) => false,
    };
    let has_usage =
        authority.key_usage().is_ok_and(|usage| usage.is_none_or(|usage| usage.value.key_cert_sign()));
    is_authority && has_usage
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
    use rustls_pki_types::pem::PemObject;

    use super::*;

    fn read(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    /// Another authority, or none, of the same name.
    fn other(is_ca: IsCa) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "team");
        params.is_ca = is_ca;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn who_has_signed_it_is_asked_and_whether_they_may() {
        let jane = read(include_str!("testdata/version_1/jane.crt"));
        let team = read(include_str!("testdata/version_1/ca.crt"));
        let stranger = other(IsCa::Ca(BasicConstraints::Unconstrained));
        assert!(is_signed_first_version(&jane, &[stranger.clone(), team.clone()]));
        assert!(!is_signed_first_version(&jane, &[stranger, other(IsCa::NoCa)]));
        assert!(!is_signed_first_version(&jane, &[]));
        assert!(!is_signed_first_version(&team, std::slice::from_ref(&team)), "it is of version 3");
        let mut forged = jane.to_vec();
        let at = forged.windows(4).position(|four| four == b"jane").unwrap();
        forged[at] = b'J';
        assert!(!is_signed_first_version(&forged.into(), &[team]));
    }
}
