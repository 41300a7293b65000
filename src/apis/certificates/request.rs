//! What is asked for in a CertificateSigningRequest: a PKCS#10 request in PEM (`certificates.ParseCSR`), and
//! what Kubernetes' own signers want it to be (`pkg/apis/certificates/helpers.go`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::FromDer;

golang::text_error! {
    /// What is wrong with a request for a certificate, or with a certificate; in upstream's words.
    pub struct BadSigningRequest;
}

const NOT_PEM: &str = "PEM block type must be CERTIFICATE REQUEST";
const NODES: &str = "system:nodes";
const NODE: &str = "system:node:";
/// The usages that a kubelet's certificate must have; with an RSA key also `key encipherment`.
const SERVING: [&str; 3] = ["digital signature", "key encipherment", "server auth"];
const CLIENT: [&str; 3] = ["client auth", "digital signature", "key encipherment"];

/// A request whose own signature is right.
#[derive(Clone, Debug, Default)]
pub struct CertificateRequest {
    /// The request in DER.
    pub der: Vec<u8>,
    /// The subject's last common name.
    pub common_name: String,
    /// The subject's organizations.
    pub organizations: Vec<String>,
    /// Alternative names: how many hosts, addresses, mail addresses and URIs.
    pub dns_names: usize,
    /// See [`CertificateRequest::dns_names`].
    pub ip_addresses: usize,
    /// See [`CertificateRequest::dns_names`].
    pub email_addresses: usize,
    /// See [`CertificateRequest::dns_names`].
    pub uris: usize,
}

impl CertificateRequest {
    /// Reads `spec.request`: base64 of PEM.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<CertificateRequest, BadSigningRequest> {
        let bytes = STANDARD.decode(text).map_err(|_| NOT_PEM)?;
        let (_, pem) = parse_x509_pem(&bytes).map_err(|_| NOT_PEM)?;
        if pem.label != "CERTIFICATE REQUEST" {
            return Err(NOT_PEM.into());
        }
        let malformed = "asn1: structure error: malformed certificate request";
        let (rest, request) = X509CertificationRequest::from_der(&pem.contents).map_err(|_| malformed)?;
        if !rest.is_empty() {
            return Err("asn1: syntax error: trailing data".into());
        }
        request.verify_signature().map_err(|_| "x509: the request's signature does not fit its key")?;
        let mut parsed = CertificateRequest::read(&request);
        parsed.der = pem.contents;
        Ok(parsed)
    }

    fn read(request: &X509CertificationRequest) -> CertificateRequest {
        let subject = &request.certification_request_info.subject;
        let text = |name: &x509_parser::x509::AttributeTypeAndValue| name.as_str().ok().map(str::to_owned);
        let mut read = CertificateRequest {
            common_name: subject.iter_common_name().filter_map(text).last().unwrap_or_default(),
            organizations: subject.iter_organization().filter_map(text).collect(),
            ..CertificateRequest::default()
        };
        for extension in request.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(_) => read.dns_names += 1,
                    GeneralName::IPAddress(_) => read.ip_addresses += 1,
                    GeneralName::RFC822Name(_) => read.email_addresses += 1,
                    GeneralName::URI(_) => read.uris += 1,
                    _ => {}
                }
            }
        }
        read
    }

    /// `ValidateKubeletServingCSR`
    ///
    /// # Errors
    /// Upstream's words.
    pub fn check_kubelet_serving(&self, usages: &[&str]) -> Result<(), BadSigningRequest> {
        self.check_organization()?;
        let named = self.dns_names + self.ip_addresses > 0;
        let rules = [
            (!named, "DNS or IP subjectAltName is required"),
            (self.email_addresses > 0, "Email subjectAltNames are not allowed"),
            (self.uris > 0, "URI subjectAltNames are not allowed"),
        ];
        first_broken(&rules)?;
        check_usages(usages, &SERVING)?;
        self.check_common_name()
    }

    /// `ValidateKubeletClientCSR`
    ///
    /// # Errors
    /// Upstream's words.
    pub fn check_kubelet_client(&self, usages: &[&str]) -> Result<(), BadSigningRequest> {
        self.check_organization()?;
        let rules = [
            (self.dns_names > 0, "DNS subjectAltNames are not allowed"),
            (self.email_addresses > 0, "Email subjectAltNames are not allowed"),
            (self.ip_addresses > 0, "IP subjectAltNames are not allowed"),
            (self.uris > 0, "URI subjectAltNames are not allowed"),
        ];
        first_broken(&rules)?;
        self.check_common_name()?;
        check_usages(usages, &CLIENT)
    }

    fn check_organization(&self) -> Result<(), BadSigningRequest> {
        if self.organizations.iter().eq([NODES]) {
            Ok(())
        } else {
            Err("subject organization is not system:nodes".into())
        }
    }

    fn check_common_name(&self) -> Result<(), BadSigningRequest> {
        if self.common_name.starts_with(NODE) {
            Ok(())
        } else {
            Err("subject common name does not begin with system:node:".into())
        }
    }
}

/// `validAPIServerClientUsages`
///
/// # Errors
/// Upstream's words.
pub fn check_apiserver_client(usages: &[&str]) -> Result<(), BadSigningRequest> {
    const OPTIONAL: [&str; 2] = ["digital signature", "key encipherment"];
    let invalid = usages.iter().find(|usage| **usage != "client auth" && !OPTIONAL.contains(usage));
    if let Some(usage) = invalid {
        return Err(format!("invalid usage for client certificate: {usage}").into());
    }
    if usages.contains(&"client auth") {
        Ok(())
    } else {
        Err("missing required usage for client certificate: client auth".into())
    }
}

/// `validateCertificate`: base64 of certificates in PEM, and of nothing else.
///
/// # Errors
/// What is wrong with them, for people.
pub fn check_certificates(text: &str) -> Result<(), BadSigningRequest> {
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let blocks: Vec<Pem> = Pem::iter_from_buffer(&bytes).map_while(Result::ok).collect();
    if text.is_empty() {
        return Ok(());
    }
    for block in &blocks {
        if block.label != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label).into());
        }
        block.parse_x509().map_err(|_| "x509: malformed certificate")?;
    }
    if blocks.is_empty() { Err("must contain at least one CERTIFICATE PEM block".into()) } else { Ok(()) }
}

fn first_broken(rules: &[(bool, &str)]) -> Result<(), BadSigningRequest> {
    match rules.iter().find(|(broken, _)| *broken) {
        Some((_, words)) => Err((*words).into()),
        None => Ok(()),
    }
}

/// All three, or all but `key encipherment`, which only RSA keys can do.
fn check_usages(usages: &[&str], needed: &[&str; 3]) -> Result<(), BadSigningRequest> {
    let has = |usage: &&&str| usages.contains(usage);
    let is_known = usages.iter().all(|usage| needed.contains(usage));
    let has_all = needed.iter().filter(|usage| **usage != "key encipherment").all(|usage| has(&usage));
    if is_known && has_all {
        Ok(())
    } else {
        Err(format!("usages did not match [{}]", needed.join(" ")).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    fn request(name: &str, organizations: &[&str], host: Option<&str>) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        for organization in organizations {
            params.distinguished_name.push(DnType::OrganizationName, *organization);
        }
        if let Some(host) = host {
            params.subject_alt_names.push(SanType::DnsName(host.try_into().unwrap()));
        }
        let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        STANDARD.encode(request.pem().unwrap())
    }

    #[test]
    fn a_request_is_read_only_when_its_signature_is_right() {
        let text = request("jane", &["dev"], Some("a.b"));
        let parsed = CertificateRequest::parse(&text).unwrap();
        assert_eq!((&*parsed.common_name, parsed.dns_names), ("jane", 1));
        assert_eq!(parsed.organizations, ["dev"]);
        let pem = String::from_utf8(STANDARD.decode(&text).unwrap()).unwrap();
        let (_, block) = parse_x509_pem(pem.as_bytes()).unwrap();
        let mut forged = block.contents.clone();
        let at = forged.windows(4).position(|four| four == b"jane").unwrap();
        forged[at] = b'J';
        let forged = format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
            STANDARD.encode(forged)
        );
        let cases = [
            ("", NOT_PEM),
            ("garbage!", NOT_PEM),
            (&*STANDARD.encode(pem.replace("CERTIFICATE REQUEST", "CERTIFICATE")), NOT_PEM),
            (&*STANDARD.encode(forged), "x509: the request's signature does not fit its key"),
        ];
        for (text, words) in cases {
            assert_eq!(CertificateRequest::parse(text).unwrap_err(), words);
        }
    }

    #[test]
    fn kubelets_ask_for_what_kubelets_may_have() {
        let client = CertificateRequest::parse(&request("system:node:n", &["system:nodes"], None)).unwrap();
        let serving =
            CertificateRequest::parse(&request("system:node:n", &["system:nodes"], Some("n"))).unwrap();
        let other = CertificateRequest::parse(&request("n", &["system:nodes"], Some("n"))).unwrap();
        assert_eq!(client.check_kubelet_client(&CLIENT), Ok(()));
        assert_eq!(client.check_kubelet_client(&["client auth", "digital signature"]), Ok(()));
        let wrong = "usages did not match [client auth digital signature key encipherment]";
        assert_eq!(client.check_kubelet_client(&["client auth"]), Err(wrong.into()));
        assert_eq!(serving.check_kubelet_client(&CLIENT), Err("DNS subjectAltNames are not allowed".into()));
        assert_eq!(serving.check_kubelet_serving(&SERVING), Ok(()));
        assert_eq!(
            client.check_kubelet_serving(&SERVING),
            Err("DNS or IP subjectAltName is required".into())
        );
        let name = "subject common name does not begin with system:node:";
        assert_eq!(other.check_kubelet_serving(&SERVING), Err(name.into()));
        assert_eq!(check_apiserver_client(&["client auth", "key encipherment"]), Ok(()));
        let invalid = "invalid usage for client certificate: server auth";
        assert_eq!(check_apiserver_client(&["server auth"]), Err(invalid.into()));
    }
}
