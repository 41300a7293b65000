//! How OpenSSL writes what stands in certificates.

use chrono::{DateTime, Utc};
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

/// Names of an entity that are not the short ones of their kinds.
const NAMES: [(&str, &str); 8] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];
/// As `CN = web, O = me`.
pub(super) fn name(name: &X509Name<'_>) -> String {
    let parts = name.iter_attributes().map(|attribute| {
        let oid = attribute.attr_type().to_id_string();
        let short = NAMES.iter().find(|(known, _)| *known == oid).map_or(oid.as_str(), |(_, short)| short);
        format!("{short} = {}", attribute.as_str().unwrap_or_default())
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// As `Jan  2 03:04:05 2026 GMT`.
pub(super) fn date(time: &ASN1Time) -> String {
    let time = DateTime::<Utc>::from_timestamp(time.timestamp(), 0).unwrap_or_default();
    time.format("%b %e %H:%M:%S %Y GMT").to_string()
}
