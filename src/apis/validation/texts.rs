//! Rules for texts and numbers (`k8s.io/apimachinery/pkg/util/validation`), each answering with what is
//! wrong.

use std::net::IpAddr;

use super::labels::{annotations, labels};
use super::{Field, push};
use crate::tree;
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::dns1123_subdomain;

/// `InclusiveRangeError`
pub fn in_range(number: i64, least: i64, most: i64) -> Vec<String> {
    if (least..=most).contains(&number) {
        vec![]
    } else {
        vec![format!("must be between {least} and {most}, inclusive")]
    }
}

/// `IsValidPortNum`
pub fn port_number(number: i64) -> Vec<String> {
    in_range(number, 1, 65_535)
}

/// `IsValidPortName`
pub fn port_name(name: &str) -> Vec<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rules = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            name.is_empty() || !name.chars().all(fits),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!name.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    rules.iter().filter(|(broken, _)| *broken).map(|(_, words)| (*words).to_owned()).collect()
}

/// `ValidatePortNumOrName`
pub fn port_number_or_name(port: &Field, errors: &mut FieldErrors) {
    match port.value.as_str() {
        Some(name) => port.invalid_each(port_name(name), errors),
        None => port.invalid_each(port_number(port.number()), errors),
    }
}

/// `IsRelaxedEnvVarName`
pub fn environment_variable_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".into()];
    }
    if name.chars().all(|c| c == ' ' || (c.is_ascii_graphic() && c != '=')) {
        vec![]
    } else {
        vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='".into(),
        ]
    }
}

/// `IsConfigMapKey`
pub fn config_map_key(key: &str) -> Vec<String> {
    const WORDS: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let rules = [
        (key.len() > 253, "must be no more than 253 characters"),
        (key.is_empty() || !key.chars().all(fits), WORDS),
        (key == ".", "must not be '.'"),
        (key == "..", "must not be '..'"),
        (key.starts_with("..") && key.len() > 2, "must not start with '..'"),
    ];
    rules.iter().filter(|(broken, _)| *broken).map(|(_, words)| (*words).to_owned()).collect()
}

/// `IsValidIP`
pub fn ip(text: &str) -> Vec<String> {
    match text.parse::<IpAddr>() {
        Ok(_) => vec![],
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".into()],
    }
}

/// A pod's or a host's addresses: at most one of each family.
pub fn address_list(list: &Field, errors: &mut FieldErrors) {
    let addresses: Vec<Field> = list.items().iter().map(|item| item.child("ip")).collect();
    for address in &addresses {
        address.shown_as(address.path.trim_end_matches(".ip")).invalid_each(ip(address.text()), errors);
    }
    let families: Vec<bool> = addresses.iter().map(|address| address.text().contains(':')).collect();
    if families.len() > 2 || families.len() == 2 && families[0] == families[1] {
        list.invalid("may specify no more than one IP for each IP family", errors);
    }
}

/// `ValidateNonSpecialIP`: not an address that means something else on every node.
pub fn non_special_ip(text: &str) -> Vec<String> {
    let Ok(address) = text.parse::<IpAddr>() else { return vec!["must be a valid IP address".into()] };
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02),
    };
    let rules = [
        (address.is_unspecified(), format!("may not be unspecified ({text})")),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".into()),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".into()),
        (
            link_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".into(),
        ),
    ];
    rules.into_iter().filter(|(broken, _)| *broken).map(|(_, words)| words).collect()
}

/// `IsValidCIDR`
pub fn cidr(text: &str) -> Vec<String> {
    match parse_cidr(text) {
        Some(_) => vec![],
        None => vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".into()],
    }
}

/// An address and how many of its bits are the network's.
pub fn parse_cidr(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?);
    (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
}

/// The number of a percentage.
pub fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    (!digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// `ValidatePositiveIntOrPercent`
pub fn number_or_percent(field: &Field, errors: &mut FieldErrors) {
    const WORDS: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
'93%', regex used for validation is '[0-9]+%')";
    match field.value.as_str() {
        Some(text) if percent(text).is_none() => field.invalid(WORDS, errors),
        Some(_) => {}
        None => field.nonnegative(errors),
    }
}

/// `IsNotMoreThan100Percent`
pub fn at_most_100_percent(field: &Field, errors: &mut FieldErrors) {
    if percent(field.text()).is_some_and(|percent| percent > 100) {
        field.invalid("must not be greater than 100%", errors);
    }
}

/// `getIntOrPercentValue`
pub fn number_or_percent_value(field: &Field) -> i64 {
    match field.value.as_str() {
        Some(text) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0),
        None => field.number(),
    }
}

/// `IsValidUserID`, `IsValidGroupID`
pub fn identity(field: &Field, errors: &mut FieldErrors) {
    field.invalid_each(in_range(field.number(), 0, i64::from(i32::MAX)), errors);
}

/// `IsHTTPHeaderName`
pub fn http_header_name(name: &str) -> Vec<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !name.is_empty() && name.chars().all(fits) {
        vec![]
    } else {
        vec![
            "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
             validation is '[-A-Za-z0-9]+')"
                .into(),
        ]
    }
}

/// `IsWildcardDNS1123Subdomain`
pub fn wildcard_dns1123_subdomain(text: &str) -> Vec<String> {
    if text.strip_prefix("*.").is_some_and(|rest| dns1123_subdomain(rest).is_empty()) {
        vec![]
    } else {
        vec![
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
             of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
             '*.example.com', regex used for validation is \
             '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .into(),
        ]
    }
}

/// `IsDomainPrefixedPath`: `example.com/name`
pub fn domain_prefixed_path(field: &Field, errors: &mut FieldErrors) {
    if !field.require(errors) {
        return;
    }
    match field.text().split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            let domain_value = domain.into();
            let domain = Field { path: field.path.clone(), value: &domain_value };
            domain.follows(dns1123_subdomain, errors);
        }
        _ => field.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")", errors),
    }
}

/// `validatePathNoBacksteps`
pub fn no_backsteps(path: &Field, errors: &mut FieldErrors) {
    if path.text().split('/').any(|part| part == "..") {
        path.invalid("must not contain '..'", errors);
    }
}

/// `validateLocalDescendingPath`
pub fn descending_path(path: &Field, errors: &mut FieldErrors) {
    if path.text().starts_with('/') {
        path.invalid("must be a relative path", errors);
    }
    no_backsteps(path, errors);
}

/// `ValidateLocalNonReservedPath`
pub fn file_path(path: &Field, errors: &mut FieldErrors) {
    descending_path(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") && path.text() != ".." {
        path.invalid("must not start with '..'", errors);
    }
}

/// What `rule` says of a text, which is shown as empty when it is absent.
pub fn shown_each(field: &Field, rule: fn(&str) -> Vec<String>, errors: &mut FieldErrors) {
    for detail in rule(field.text()) {
        push(errors, &field.path, ErrorType::Invalid, field.text(), &detail);
    }
}

/// `ValidateCSIDriverName`: of a driver of devices, too.
pub fn csi_driver_name(name: &Field, errors: &mut FieldErrors) {
    const MOST_BYTES: usize = 63;
    if !name.require(errors) {
        return;
    }
    if name.text().len() > MOST_BYTES {
        errors.too_long(name.path.as_str(), MOST_BYTES);
    }
    name.invalid_each(dns1123_subdomain(&name.text().to_lowercase()), errors);
}

/// How long a token for a volume may last.
pub fn token_seconds(seconds: &Field, errors: &mut FieldErrors) {
    match seconds.number() {
        ..600 => seconds.invalid("may not specify a duration less than 10 minutes", errors),
        600..=0x1_0000_0000 => {}
        _ => seconds.invalid("may not specify a duration larger than 2^32 seconds", errors),
    }
}

/// The metadata of a template for objects: labels and annotations, and nothing else
/// (`ValidateTemplateObjectMeta`).
pub fn template_metadata(metadata: &Field, errors: &mut FieldErrors) {
    annotations(&metadata.child("annotations"), errors);
    labels(&metadata.child("labels"), errors);
    for (name, value) in metadata.value.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "annotations" | "labels") && !tree::is_zero(value) {
            // Upstream writes Go's `UID` with a small first letter.
            let shown = if name == "uid" { "uID" } else { name };
            errors.forbidden(format!("{}.{shown}", metadata.path), "cannot be set");
        }
    }
}

/// `fileModeErrorMsg`
pub fn file_mode(mode: &Field, errors: &mut FieldErrors) {
    if !(0..=0o777).contains(&mode.number()) {
        mode.invalid("must be a number between 0 and 0777 (octal), both inclusive", errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_right_or_wrong() {
        type Rule = fn(&str) -> Vec<String>;
        let rules: [(Rule, &[&str], &[&str]); 8] = [
            (port_name, &["http", "a-1"], &["", "1", "a--b", "-a", "Http", "sixteen-letters-"]),
            (environment_variable_name, &["A", "a.b-c", "1 2"], &["", "a=b", "ä"]),
            (config_map_key, &["a", "A.b_c-d", ".a"], &["", ".", "..", "..a", "a/b"]),
            (ip, &["1.2.3.4", "::1"], &["", "1.2.3", "1.2.3.256"]),
            (
                non_special_ip,
                &["1.2.3.4"],
                &["0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.0.1", "fe80::1", "x"],
            ),
            (cidr, &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "x/1"]),
            (http_header_name, &["X-A"], &["", "X_A"]),
            (wildcard_dns1123_subdomain, &["*.a.b"], &["*", "a.b", "*.*.b"]),
        ];
        for (rule, right, wrong) in rules {
            right.iter().for_each(|text| assert_eq!(rule(text), [""; 0], "{text}"));
            wrong.iter().for_each(|text| assert!(!rule(text).is_empty(), "{text}"));
        }
        assert_eq!(
            (percent("25%"), percent("%"), percent("-1%"), percent("5")),
            (Some(25), None, None, None)
        );
    }
}
