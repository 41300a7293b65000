//! Certificates for those who asked for one (PKCS#10): signed as kube-controller-manager signs them
//! (`pkg/controller/certificates/authority`).
//!
//! What names the client is taken over to the byte: subject, public key, alternative names. Everything else
//! of the certificate is the authority's.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Datelike, TimeDelta, Utc};
use rcgen::{KeyPair, SigningKey};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use super::{Authority, PkiError, USUAL_SIGNATURE};
use apimachinery::der::{self, BIT_STRING, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE};

/// Clocks differ: a certificate is valid from so long before it was made.
const BACKDATE: TimeDelta = TimeDelta::minutes(5);
/// A certificate that lives shorter does not lose that time at its end.
const SHORT: Duration = Duration::from_secs(8 * 3600);
const BOOLEAN_TRUE: &[u8] = &[0x01, 0x01, 0xff];
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The bits of the key usage extension, by the names of `spec.usages`.
const KEY_USAGES: &[(&str, u8)] = &[
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// The purposes of the extended key usage extension.
const PURPOSES: &[(&str, &[u64])] = &[
    ("any", &[2, 5, 29, 37, 0]),
    ("server auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113_730, 4, 1]),
];

impl Authority {
    /// A certificate in PEM for a request in DER, whose own signature was checked before. `serial` is 16
    /// random bytes.
    ///
    /// # Errors
    /// A request that cannot be read, or a key that does not sign.
    pub fn sign_request(
        &self,
        request: &[u8],
        usages: &[&str],
        lifetime: Duration,
        now: DateTime<Utc>,
        serial: [u8; 16],
    ) -> Result<String, PkiError> {
        let unreadable = || PkiError::Request("it is no certificate request".into());
        let (_, parsed) = X509CertificationRequest::from_der(request).map_err(|_| unreadable())?;
        let own = self.certificate_der()?;
        let (_, authority) = X509Certificate::from_der(&own).map_err(|_| unreadable())?;
        let end = authority.validity().not_after.timestamp();
        let key = self.issuer.key();
        let algorithm = signature_algorithm(key)?;
        let alternative_names = alternative_names(request).unwrap_or_default();
        let body = der::write_sequence(&[
            // Version 3.
            &[0xa0, 0x03, 0x02, 0x01, 0x02],
            &serial_number(serial),
            &algorithm,
            authority.subject().as_raw(),
            &validity(now, lifetime, end),
            parsed.certification_request_info.subject.as_raw(),
            parsed.certification_request_info.subject_pki.raw,
            &der::write(0xa3, &extensions(usages, &key_identifier(&authority), &alternative_names)),
        ]);
        let signature = usual_signature(key, &body)?;
        let certificate = der::write_sequence(&[&body, &algorithm, &der::write_bits(&signature)]);
        Ok(to_pem("CERTIFICATE", &certificate))
    }
}

/// Of one length, as the authority's own: the certificate stands in an object. Authorities with another kind
/// of key sign in one length anyway.
fn usual_signature(key: &KeyPair, body: &[u8]) -> Result<Vec<u8>, PkiError> {
    loop {
        let signature = key.sign(body)?;
        if key.algorithm() != &rcgen::PKCS_ECDSA_P256_SHA256 || signature.len() == USUAL_SIGNATURE {
            return Ok(signature);
        }
    }
}

fn signature_algorithm(key: &KeyPair) -> Result<Vec<u8>, PkiError> {
    let algorithm = key.algorithm();
    let known: [(&rcgen::SignatureAlgorithm, &[u64], &[u8]); 4] = [
        (&rcgen::PKCS_ECDSA_P256_SHA256, &[1, 2, 840, 10045, 4, 3, 2], &[]),
        (&rcgen::PKCS_ECDSA_P384_SHA384, &[1, 2, 840, 10045, 4, 3, 3], &[]),
        (&rcgen::PKCS_RSA_SHA256, &[1, 2, 840, 113_549, 1, 1, 11], &[0x05, 0x00]),
        (&rcgen::PKCS_ED25519, &[1, 3, 101, 112], &[]),
    ];
    let found = known.into_iter().find(|(candidate, ..)| *candidate == algorithm);
    let (_, identifier, parameters) =
        found.ok_or_else(|| PkiError::Request("the authority's key signs no requests".into()))?;
    Ok(der::write_sequence(&[&object_identifier(identifier), parameters]))
}

/// Positive, and without leading zeros.
fn serial_number(mut bytes: [u8; 16]) -> Vec<u8> {
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    der::write(INTEGER, &bytes)
}

fn validity(now: DateTime<Utc>, lifetime: Duration, authority_end: i64) -> Vec<u8> {
    let lasting = TimeDelta::from_std(lifetime).unwrap_or(TimeDelta::days(365));
    let end = if lifetime < SHORT { now + lasting } else { now + lasting - BACKDATE };
    let end = end.min(DateTime::from_timestamp(authority_end, 0).unwrap_or(end));
    der::write_sequence(&[&time(now - BACKDATE), &time(end)])
}

fn time(at: DateTime<Utc>) -> Vec<u8> {
    match at.year() {
        1950..2050 => der::write(UTC_TIME, at.format("%y%m%d%H%M%SZ").to_string().as_bytes()),
        _ => der::write(GENERALIZED_TIME, at.format("%Y%m%d%H%M%SZ").to_string().as_bytes()),
    }
}

fn extensions(usages: &[&str], key_identifier: &[u8], alternative_names: &[u8]) -> Vec<u8> {
    let bits = KEY_USAGES
        .iter()
        .filter(|(name, _)| usages.contains(name))
        .fold(0u16, |bits, (_, bit)| bits | (0x8000 >> bit));
    let purposes: Vec<Vec<u8>> = PURPOSES
        .iter()
        .filter(|(name, _)| usages.contains(name))
        .map(|(_, purpose)| object_identifier(purpose))
        .collect();
    let mut all = Vec::new();
    if bits != 0 {
        all.push(extension(&[2, 5, 29, 15], true, &bit_string(bits)));
    }
    if !purposes.is_empty() {
        all.push(extension(&[2, 5, 29, 37], false, &der::write(SEQUENCE, &purposes.concat())));
    }
    // No authority.
    all.push(extension(&[2, 5, 29, 19], true, &der::write(SEQUENCE, &[])));
    if !key_identifier.is_empty() {
        let identifier = der::write_sequence(&[&der::write(0x80, key_identifier)]);
        all.push(extension(&[2, 5, 29, 35], false, &identifier));
    }
    if !alternative_names.is_empty() {
        all.push(extension(&[2, 5, 29, 17], false, alternative_names));
    }
    der::write(SEQUENCE, &all.concat())
}

fn extension(identifier: &[u64], critical: bool, value: &[u8]) -> Vec<u8> {
    let flag = if critical { BOOLEAN_TRUE } else { &[] };
    der::write_sequence(&[&object_identifier(identifier), flag, &der::write(OCTET_STRING, value)])
}

/// A named bit list: bits behind the last one that is set are left out.
fn bit_string(bits: u16) -> Vec<u8> {
    let [high, low] = bits.to_be_bytes();
    let bytes: &[u8] = if low == 0 { &[high] } else { &[high, low] };
    let unused = bytes.last().map_or(0, |byte| byte.trailing_zeros());
    let unused = u8::try_from(unused).unwrap_or(0);
    der::write(BIT_STRING, &[&[unused], bytes].concat())
}

fn object_identifier(numbers: &[u64]) -> Vec<u8> {
    let [first, second, rest @ ..] = numbers else { return vec![] };
    let mut content = Vec::new();
    for number in [first * 40 + second].iter().chain(rest) {
        let mut digits = vec![(number & 0x7f) as u8];
        let mut left = number >> 7;
        while left > 0 {
            digits.push(0x80 | (left & 0x7f) as u8);
            left >>= 7;
        }
        content.extend(digits.into_iter().rev());
    }
    der::write(OBJECT_IDENTIFIER, &content)
}

fn key_identifier(authority: &X509Certificate) -> Vec<u8> {
    let found = authority.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
        _ => None,
    });
    found.unwrap_or_default()
}

/// The content of the alternative names that a request asks for, as it stands there: of the attribute
/// `extensionRequest` the extension `subjectAltName`.
fn alternative_names(request: &[u8]) -> Option<Vec<u8>> {
    let request = der::read_sequence(request)?;
    let info = der::read_all(request.first()?.content)?;
    let attributes = info.iter().find(|element| element.tag == 0xa0)?;
    let extension_request = object_identifier(&[1, 2, 840, 113_549, 1, 9, 14]);
    let alternative_name = object_identifier(&[2, 5, 29, 17]);
    for attribute in der::read_all(attributes.content)? {
        let parts = der::read_all(attribute.content)?;
        if parts.first()?.whole != extension_request {
            continue;
        }
        let (extensions, _) = der::read(parts.get(1)?.content)?;
        for extension in der::read_all(extensions.content)? {
            let parts = der::read_all(extension.content)?;
            if parts.first()?.whole == alternative_name {
                return Some(parts.last()?.content.to_vec());
            }
        }
    }
    None
}

fn to_pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, SanType};
    use x509_parser::extensions::GeneralName;

    #[test]
    fn a_request_becomes_a_certificate_that_leads_to_the_authority() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_600);
        let authority = Authority::generate(now).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "dev");
        params.subject_alt_names.push(SanType::DnsName("a.example".try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap();
        let usages = ["digital signature", "key encipherment", "client auth"];
        let day = Duration::from_secs(86_400);
        let pem = authority.sign_request(request.der(), &usages, day, now, [0xff; 16]).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        assert_eq!(certificate.subject().to_string(), "CN=jane, O=dev");
        assert_eq!(certificate.issuer().to_string(), "CN=kubernetes");
        let own = authority.certificate_der().unwrap();
        let (_, own) = X509Certificate::from_der(&own).unwrap();
        certificate.verify_signature(Some(own.public_key())).unwrap();
        let (start, end) = (certificate.validity().not_before, certificate.validity().not_after);
        assert_eq!(start.timestamp(), (now - BACKDATE).timestamp());
        assert_eq!(end.timestamp() - start.timestamp(), 86_400);
        let usage = certificate.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.digital_signature() && usage.value.key_encipherment());
        assert!(!usage.value.key_cert_sign());
        let purpose = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(purpose.client_auth && !purpose.server_auth);
        assert!(!certificate.is_ca());
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names, [GeneralName::DNSName("a.example")]);
        let error = authority.sign_request(b"garbage", &[], day, now, [0; 16]).unwrap_err();
        assert!(error.to_string().contains("no certificate request"));
    }
}
