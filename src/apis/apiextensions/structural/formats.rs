//! The formats that are checked (`apiserver/validation/formats.go`, strfmt); others are taken as they are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;

use crate::apimachinery::cel::schema::is_duration;
use crate::apimachinery::time;

/// Whether `text` is of `format`.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => time::parse(text).is_some(),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, length)| {
            let most = if address.contains(':') { 128 } else { 32 };
            address.parse::<IpAddr>().is_ok() && length.parse::<u8>().is_ok_and(|length| length <= most)
        }),
        "mac" => is_mac(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(format, text),
        "email" => text.rsplit_once('@').is_some_and(|(name, host)| !name.is_empty() && is_host(host)),
        "hostname" => is_host(text),
        "uri" => is_uri(text),
        "hexcolor" => {
            text.strip_prefix('#').unwrap_or(text).len().is_multiple_of(3)
                && is_hex(text.trim_start_matches('#'))
        }
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && time::parse(&format!("{text}T00:00:00Z")).is_some()
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(|part| part.len() == 2 && is_hex(part))
}

fn is_uuid(format: &str, text: &str) -> bool {
    let digits = text.replace('-', "");
    let version = format.strip_prefix("uuid").unwrap_or_default();
    digits.len() == 32 && is_hex(&digits) && (version.is_empty() || digits[12..].starts_with(version))
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 255 && text.trim_end_matches('.').split('.').all(is_label)
}

/// `url.ParseRequestURI`: absolute, or a path.
fn is_uri(text: &str) -> bool {
    let scheme = text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    (scheme || text.starts_with('/')) && !text.contains([' ', '\n', '\t'])
}
