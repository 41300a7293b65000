//! Where a bearer token stands in a request (`request/bearertoken`, `request/websocket`).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// A browser cannot set headers on a websocket: it sends the token as a protocol with this in front of it.
const PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The token of a request: of its `Authorization: Bearer` header, or of a websocket's protocols.
pub fn of(headers: &HeaderMap) -> Option<String> {
    of_header(headers).map(str::to_owned).or_else(|| of_websocket(headers))
}

/// Takes the token out of the headers, so that nobody below can leak it.
pub fn remove(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    if !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return;
    }
    let kept: Vec<String> =
        protocols(headers).filter(|name| !name.starts_with(PROTOCOL)).map(str::to_owned).collect();
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(value) = HeaderValue::from_str(&kept.join(",")) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
}

fn of_header(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

fn of_websocket(headers: &HeaderMap) -> Option<String> {
    let has = |name: http::HeaderName, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.to_ascii_lowercase().contains(word)
    };
    if !has(CONNECTION, "upgrade") || !has(UPGRADE, "websocket") {
        return None;
    }
    let encoded = protocols(headers).find_map(|name| name.strip_prefix(PROTOCOL))?;
    let token = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
    Some(token).filter(|token| !token.is_empty())
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_in_a_header() {
        let cases = [
            ("Bearer abc", Some("abc")),
            ("bearer abc rest", Some("abc")),
            ("Bearer  abc", None),
            ("Bearer", None),
            ("Basic abc", None),
        ];
        for (value, token) in cases {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(of(&headers).as_deref(), token, "{value}");
        }
    }

    #[test]
    fn or_among_the_protocols_of_a_websocket() {
        let mut headers = HeaderMap::new();
        let protocols = format!("v4.channel.k8s.io, {PROTOCOL}{}", URL_SAFE_NO_PAD.encode("abc"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocols.parse().unwrap());
        assert_eq!(of(&headers), None);
        headers.insert(CONNECTION, "Upgrade".parse().unwrap());
        headers.insert(UPGRADE, "websocket".parse().unwrap());
        assert_eq!(of(&headers).as_deref(), Some("abc"));
        remove(&mut headers);
        assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], "v4.channel.k8s.io");
    }
}
