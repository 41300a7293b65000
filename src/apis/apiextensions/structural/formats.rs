//! The formats that are checked (`apiserver/validation/formats.go`, strfmt); others are taken as they are.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use apimachinery::names;
use apimachinery::time;
use cel::schema::is_duration;

/// Formats that are a pattern and no more.
const PATTERNS: [(&str, &str); 12] = [
    ("bsonobjectid", "^[0-9a-fA-F]{24}$"),
    ("byte", "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    ("hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "hostname",
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    ),
    (
        "mac",
        "^(([0-9a-fA-F]{2}:){5}|([0-9a-fA-F]{2}:){7}|([0-9a-fA-F]{2}:){19})[0-9a-fA-F]{2}$|\
         ^(([0-9a-fA-F]{2}-){5}|([0-9a-fA-F]{2}-){7}|([0-9a-fA-F]{2}-){19})[0-9a-fA-F]{2}$|\
         ^(([0-9a-fA-F]{4}[.]){2}|([0-9a-fA-F]{4}[.]){3}|([0-9a-fA-F]{4}[.]){9})[0-9a-fA-F]{4}$",
    ),
    (
        "rgbcolor",
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
    ),
    ("ssn", "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
    ("uuid", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid3", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid4", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("uuid5", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    (
        "creditcard",
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    ),
];
/// Formats that are more than a pattern.
const OTHERS: [&str; 14] = [
    "cidr",
    "date",
    "datetime",
    "duration",
    "email",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "password",
    "uri",
];
static COMPILED: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let compile = |pattern: &str| Regex::new(pattern).expect("a pattern of ours");
    PATTERNS.iter().map(|(name, pattern)| (*name, compile(pattern))).collect()
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    Regex::new(pattern).expect("a pattern of ours")
});

/// The format as it is checked of values of a type: without dashes, and empty where it is not
/// (`StripUnsupportedFormatsPostProcess`).
pub(super) fn checked(type_name: &str, format: &str) -> String {
    let is_checked = match type_name {
        "" | "string" => {
            let plain = format.replace('-', "");
            PATTERNS.iter().any(|(name, _)| *name == plain) || OTHERS.contains(&plain.as_str())
        }
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    if is_checked { format.to_owned() } else { String::new() }
}

/// Whether `text` is of `format`.
pub(super) fn fits(format: &str, text: &str) -> bool {
    let format = format.replace('-', "");
    match format.as_str() {
        "datetime" => is_date_time(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "ipv4" => text.contains('.') && is_ip(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "email" => is_email(text),
        "uri" => is_uri(text),
        "isbn" => is_isbn_10(text) || is_isbn_13(text),
        "isbn10" => is_isbn_10(text),
        "isbn13" => is_isbn_13(text),
        "k8sshortname" => names::dns1123_label(text).is_empty(),
        "k8slongname" => names::dns1123_subdomain(text).is_empty(),
        "hostname" => matches("hostname", text) && is_short(text),
        "creditcard" => is_credit_card(text),
        format => matches(format, text),
    }
}

/// What is no pattern fits.
fn matches(format: &str, text: &str) -> bool {
    COMPILED.iter().find(|(name, _)| *name == format).is_none_or(|(_, regex)| regex.is_match(text))
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && time::parse(&format!("{text}T00:00:00Z")).is_some()
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.captures(time) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

fn is_short(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// `ParseIPSloppy`: zeros in front do not matter.
fn is_ip(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_octet = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok();
    (parts.len() == 4 && parts.iter().all(is_octet)) || text.parse::<IpAddr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        let most = if address.contains(':') { 128 } else { 32 };
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        is_ip(address) && is_number && length.parse::<u8>().is_ok_and(|length| length <= most)
    })
}

/// `mail.ParseAddress`: an address, with or without the name of whose it is.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => match rest.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text,
    };
    let Some((name, domain)) = address.rsplit_once('@') else { return false };
    let is_quoted = name.len() > 2 && name.starts_with('"') && name.ends_with('"');
    (is_quoted || is_dot_atom(name)) && (is_dot_atom(domain) || is_literal(domain))
}

fn is_literal(domain: &str) -> bool {
    let inner = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.parse::<IpAddr>().is_ok())
}

fn is_dot_atom(text: &str) -> bool {
    let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii();
    text.split('.').all(|part| !part.is_empty() && part.chars().all(is_atom))
}

/// `url.ParseRequestURI`: absolute, or a path.
fn is_uri(text: &str) -> bool {
    if text.contains(|c: char| c.is_ascii_control()) {
        return false;
    }
    let scheme = text.split_once(':').filter(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    let rest = scheme.map_or(text, |(_, rest)| rest);
    let host = rest.strip_prefix("//").filter(|_| scheme.is_some());
    let host = host.map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    let fits = scheme.is_some() || text.starts_with('/') || text == "*";
    fits && !host.is_some_and(|host| host.contains([' ', '<', '>', '"'])) && has_whole_escapes(rest)
}

/// Each `%` is followed by two digits, before the query.
fn has_whole_escapes(text: &str) -> bool {
    let path = text.split('?').next().unwrap_or_default();
    path.split('%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// The digits of a number that people write with blanks and dashes.
fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect()
}

fn is_isbn_10(text: &str) -> bool {
    let text = without_blanks(text);
    let (body, last) = text.split_at_checked(9).unwrap_or_default();
    let check = match last {
        "X" => 10,
        last if last.len() == 1 && last.as_bytes()[0].is_ascii_digit() => digits(last)[0],
        _ => return false,
    };
    let sum: u32 = digits(body).iter().zip(1..).map(|(digit, factor)| digit * factor).sum();
    body.bytes().all(|byte| byte.is_ascii_digit()) && (sum + 10 * check).is_multiple_of(11)
}

fn is_isbn_13(text: &str) -> bool {
    let text = without_blanks(text);
    if text.len() != 13 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let digits = digits(&text);
    let sum: u32 = digits[..12].iter().zip([1, 3].iter().cycle()).map(|(digit, factor)| digit * factor).sum();
    digits[12] == (10 - sum % 10) % 10
}

/// Of a known issuer, and Luhn's sum is right.
fn is_credit_card(text: &str) -> bool {
    let digits = digits(text);
    let plain: String = digits.iter().map(u32::to_string).collect();
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 1 { doubled(*digit) } else { *digit })
        .sum();
    matches("creditcard", &plain) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_formats() {
        for (format, fitting, others) in [
            ("isbn", &["0321751043", "978-0321751041"][..], &["0321751044", "12", "a"][..]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112", "1"]),
            ("rgbcolor", &["rgb(0, 255,9)"], &["rgb(0,256,9)", "red"]),
            ("ssn", &["111-22-3333", "111223333"], &["11-22-3333"]),
            ("mac", &["01:02:03:04:05:06", "0102.0304.0506"], &["01:02:03:04:05", "01:02-03:04:05:06"]),
            ("email", &["a@b", "Barry <bg@example.com>"], &["a", "@b", "a b@c"]),
            ("uri", &["/a", "http://a/b c", "mailto:a"], &["a b", "http://a b/", "http://a/%zz"]),
            ("ipv4", &["10.0.0.1", "010.0.0.1"], &["10.0.0", "::1"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0/33", "10.0.0.0"]),
            ("date-time", &["2020-01-01T00:00:00Z", "2020-01-01t00:00:00.1+01:00"], &["2020-01-01"]),
            ("uuid4", &["F47AC10B-58CC-4372-8567-0E02B2C3D479"], &["f47ac10b-58cc-3372-8567-0e02b2c3d479"]),
            ("k8s-short-name", &["a-b"], &["A", "a.b"]),
            ("hostname", &["a.example", "a"], &["a..b", "-a", "a_b"]),
        ] {
            assert_eq!(checked("string", format), format);
            assert!(fitting.iter().all(|text| fits(format, text)), "{format}: {fitting:?}");
            assert!(!others.iter().any(|text| fits(format, text)), "{format}: {others:?}");
        }
        assert_eq!((checked("string", "int32"), checked("integer", "date")), Default::default());
    }
}
