//! What agnhost's `mtlsserver` answers: the name that a client's certificate has.

use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::asking::Backing;
use super::mutual_tls::MutualTls;
use crate::requests::{WebAnswer, WebRequest};

const PATH: &str = "/spiffe-echo";
/// What it says to whom nobody vouches for.
const WANTED: &str = "SPIFFE client certificate authentication required";

/// The name that the client's certificate has, if one of the authorities vouches for it.
pub(crate) fn answer(files: &MutualTls, asked: &WebRequest<'_>, backing: Backing<'_>) -> WebAnswer {
    match (asked.target.split('?').next(), asked.method) {
        (Some(PATH), "GET" | "HEAD") => {}
        (Some(PATH), _) => return WebAnswer::error(405, "Method Not Allowed"),
        _ => return WebAnswer::not_found(),
    }
    let Some(client) = backing.client.filter(|client| !client.chain.is_empty()) else {
        return WebAnswer::error(401, WANTED);
    };
    let authorities = backing.around.and_then(|around| around.newest_file(&files.authorities));
    let Some(authorities) = authorities else { return WebAnswer::error(500, "Internal Error") };
    if !(client.is_vouched_for)(&authorities.text()) {
        return WebAnswer::error(401, WANTED);
    }
    match names(&client.chain[0]).as_slice() {
        [name] => WebAnswer::text(200, format!("Client Identity: {name}")),
        _ => WebAnswer::error(401, "Malformed SPIFFE certificate"),
    }
}

/// The names of a certificate that are addresses of the web.
fn names(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return vec![] };
    let extensions = certificate.extensions().iter().map(|extension| extension.parsed_extension());
    let names = extensions.filter_map(|extension| match extension {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    });
    let uri = |name: &GeneralName<'_>| match name {
        GeneralName::URI(uri) => Some((*uri).to_owned()),
        _ => None,
    };
    names.flatten().filter_map(uri).collect()
}
