//! URLs by Go's rules (`net/url`), which are not those of browsers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use golang::go_text::quote;

use super::net::parse_address;

golang::text_error! {
    /// What is no URL; in the words of Go's `net/url`.
    pub(super) struct UnreadableUrl;
}

/// `url.URL`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// What follows the scheme without a slash.
    opaque: String,
    userinfo: Option<String>,
    host: String,
    /// As it was written, if that is allowed, else escaped.
    path: String,
    query: Option<String>,
    fragment: String,
}

/// What a part of a URL is, which decides what may stand in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    Path,
    Host,
    Zone,
    UserInfo,
    Query,
    Fragment,
}

impl Url {
    /// What is a URL of a request (`ParseRequestURI`), read as any URL is (`Parse`).
    pub(super) fn parse(text: &str) -> Result<Url, UnreadableUrl> {
        check(text)?;
        let (address, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse(address, false)?;
        url.fragment = unescape(fragment, UrlPart::Fragment).map_err(|error| described(text, &error))?;
        Ok(url)
    }

    pub(super) fn scheme(&self) -> &str {
        &self.scheme
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn escaped_path(&self) -> &str {
        &self.path
    }

    /// Host without port, and without brackets.
    pub(super) fn hostname(&self) -> &str {
        let (host, _) = self.host_and_port();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    pub(super) fn port(&self) -> &str {
        self.host_and_port().1
    }

    fn host_and_port(&self) -> (&str, &str) {
        match self.host.rfind(':') {
            Some(colon) if is_optional_port(&self.host[colon..]) => {
                (&self.host[..colon], &self.host[colon + 1..])
            }
            _ => (&self.host, ""),
        }
    }

    /// `Query`: what cannot be read is left out.
    pub(super) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let query = self.query.as_deref().unwrap_or_default();
        for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Ok(key), Ok(value)) = (unescape(key, UrlPart::Query), unescape(value, UrlPart::Query)) {
                values.entry(key).or_default().push(value);
            }
        }
        values
    }
}

/// `ParseRequestURI`
pub(super) fn check(text: &str) -> Result<(), UnreadableUrl> {
    parse(text, true)?;
    Ok(())
}

fn described(text: &str, error: &str) -> String {
    format!("parse {}: {error}", quote(text))
}

fn parse(text: &str, is_request: bool) -> Result<Url, String> {
    parse_parts(text, is_request).map_err(|error| described(text, &error))
}

fn parse_parts(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = text.to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query.to_owned())),
        None => (rest, None),
    };
    url.query = query;
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !scheme.is_empty() || !is_request && !rest.starts_with("///");
    if let Some(behind) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = behind.find('/').unwrap_or(behind.len());
        parse_authority(&behind[..end], &mut url)?;
        rest = &behind[end..];
    }
    url.path = path(rest)?;
    Ok(url)
}

/// The scheme, if there is one, and what follows its colon.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str, url: &mut Url) -> Result<(), String> {
    let (userinfo, host) = match authority.rsplit_once('@') {
        Some((userinfo, host)) => (Some(userinfo), host),
        None => (None, authority),
    };
    url.host = parse_host(&url.scheme, host)?;
    let Some(userinfo) = userinfo else { return Ok(()) };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !userinfo.bytes().all(fits) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    for part in userinfo.splitn(2, ':') {
        unescape(part, UrlPart::UserInfo)?;
    }
    url.userinfo = Some(userinfo.to_owned());
    Ok(())
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    let wrong_port = |port: &str| format!("invalid port {} after host", quote(port));
    if let Some(open) = host.rfind('[') {
        let close = host.rfind(']').ok_or("missing ']' in host")?;
        let port = &host[close + 1..];
        if !is_optional_port(port) {
            return Err(wrong_port(port));
        }
        let inner = host.get(open + 1..close).ok_or("missing ']' in host")?;
        let inner = match inner.find("%25") {
            Some(zone) => {
                unescape(&inner[..zone], UrlPart::Host)? + &unescape(&inner[zone..], UrlPart::Zone)?
            }
            None => unescape(inner, UrlPart::Host)?,
        };
        return match parse_address(&inner) {
            Ok((IpAddr::V6(_), _)) => Ok(format!("[{inner}]{port}")),
            Ok(_) => Err("invalid IP-literal".to_owned()),
            Err(error) => Err(format!("invalid host: {error}")),
        };
    }
    // Of the schemes of the web a host has one colon at most.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    match colon.map(|colon| &host[colon..]) {
        Some(port) if !is_optional_port(port) => Err(wrong_port(port)),
        _ => unescape(host, UrlPart::Host),
    }
}

/// Nothing, or a colon and digits.
fn is_optional_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `EscapedPath`: as it was written, if every character in it may stand in a path.
fn path(written: &str) -> Result<String, String> {
    let path = unescape_bytes(written, UrlPart::Path)?;
    let is_valid = written
        .bytes()
        .all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || !should_escape(byte, UrlPart::Path));
    Ok(if is_valid { written.to_owned() } else { escape(&path, UrlPart::Path) })
}

fn escape(bytes: &[u8], part: UrlPart) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if should_escape(byte, part) { out.push_str(&format!("%{byte:02X}")) } else { out.push(byte as char) }
    }
    out
}

fn should_escape(byte: u8, part: UrlPart) -> bool {
    let is_host = matches!(part, UrlPart::Host | UrlPart::Zone);
    match byte {
        _ if byte.is_ascii_alphanumeric() => false,
        b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'[' | b']'
        | b'<' | b'>' | b'"'
            if is_host =>
        {
            false
        }
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            UrlPart::Path => byte == b'?',
            UrlPart::UserInfo => matches!(byte, b'@' | b'/' | b'?' | b':'),
            UrlPart::Fragment => false,
            UrlPart::Query | UrlPart::Host | UrlPart::Zone => true,
        },
        b'!' | b'(' | b')' | b'*' => part != UrlPart::Fragment,
        _ => true,
    }
}

fn unescape(text: &str, part: UrlPart) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&unescape_bytes(text, part)?).into_owned())
}

fn unescape_bytes(text: &str, part: UrlPart) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let is_host = matches!(part, UrlPart::Host | UrlPart::Zone);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            out.push(unescape_byte(&bytes[at..], part)?);
            at += 3;
            continue;
        }
        if is_host && byte < 0x80 && should_escape(byte, part) {
            let shown = quote(&(byte as char).to_string());
            return Err(format!("invalid character {shown} in host name"));
        }
        out.push(if byte == b'+' && part == UrlPart::Query { b' ' } else { byte });
        at += 1;
    }
    Ok(out)
}

/// The byte that `%xx` is.
fn unescape_byte(bytes: &[u8], part: UrlPart) -> Result<u8, String> {
    let escaped = &bytes[..bytes.len().min(3)];
    let wrong = || format!("invalid URL escape {}", quote(&String::from_utf8_lossy(escaped)));
    let digit = |at: usize| escaped.get(at).and_then(|byte| (*byte as char).to_digit(16)).ok_or_else(wrong);
    let byte = (digit(1)? * 16 + digit(2)?) as u8;
    let is_refused = match part {
        // Only what is not ASCII, and the percent sign before a zone.
        UrlPart::Host => byte < 0x80 && escaped != b"%25",
        UrlPart::Zone => escaped != b"%25" && byte != b' ' && should_escape(byte, UrlPart::Host),
        _ => false,
    };
    if is_refused { Err(wrong()) } else { Ok(byte) }
}
