//! Without TLS there are no credentials, so every web page that somebody looks at beside a server could use
//! it through the browser: here is what keeps them out. kube-apiserver has no such listener any more;
//! `kubectl proxy --accept-hosts` is the model.
//!
//! Over TLS nothing of this applies: browsers send no certificate or token for a page of somebody else's.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HOST, ORIGIN, UPGRADE};
use http::{HeaderMap, Method};
use http_body::Body;
use regex::Regex;

use super::{Next, Passing, refuse};
use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, PlainHttp};

/// Lets through what no page can have sent, and what pages of `allowed` origins send.
pub async fn keep_pages_out(allowed: &Arc<[Regex]>, mut request: Passing, next: Next<'_>) -> ApiResponse {
    let listener = request.extensions().get::<PlainHttp>().map(|plain| plain.0);
    match listener.map(|listener| check(&request, listener, allowed)) {
        Some(Err(status)) => refuse(&mut request, status),
        _ => next.run(request).await,
    }
}

fn check(request: &ApiRequest, listener: SocketAddr, allowed: &[Regex]) -> Result<(), Status> {
    let host = named_host(request);
    if let Some(host) = host.filter(|host| !is_ours(host, listener)) {
        return Err(forbidden(format!(
            "the request is for the host {host:?}; without TLS this server answers to {listener}, localhost and \
             loopback addresses alone, so that no web page reaches it under a name of its own: use one of \
             these, or start it without --insecure-http"
        )));
    }
    let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let does_more = is_write || request.headers().contains_key(UPGRADE);
    if let Some(origin) = origin(request.headers()).filter(|_| does_more)
        && !is_same_origin(&origin, host)
        && !allowed.iter().any(|regex| regex.is_match(&origin))
    {
        return Err(forbidden(format!(
            "the request is sent by a web page of {origin:?}; without TLS pages of other servers may neither \
             write nor open websockets: name it in --cors-allowed-origins if it may, or start the server \
             without --insecure-http"
        )));
    }
    if is_write && !request.headers().contains_key(CONTENT_TYPE) && !request.body().is_end_stream() {
        let text = "the body of the request has no Content-Type; without TLS it must have one, such as \
                    application/json, because any web page can send a body that has none (so does kubectl \
                    with --raw: give it the file without)";
        return Err(Status::failure(415, "UnsupportedMediaType", text));
    }
    Ok(())
}

fn forbidden(message: String) -> Status {
    Status::failure(403, "Forbidden", message)
}

/// Whom the client believes to talk to, as Go's `Request.Host` says it. A client older than HTTP/1.1 may
/// say nothing; no browser is.
fn named_host(request: &ApiRequest) -> Option<&str> {
    let in_uri = request.uri().authority().map(|authority| authority.as_str());
    in_uri.or_else(|| Some(request.headers().get(HOST)?.to_str().unwrap_or("?")))
}

/// Whether a host is a name that leads nowhere else, whatever its port: that may be forwarded.
fn is_ours(host: &str, listener: SocketAddr) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address: Option<IpAddr> = name.parse().ok();
    name.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|address| address.to_canonical().is_loopback() || address == listener.ip())
}

/// The page that sends it; browsers always say it of writes and websockets.
fn origin(headers: &HeaderMap) -> Option<String> {
    headers.get(ORIGIN).map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned())
}

fn is_same_origin(origin: &str, host: Option<&str>) -> bool {
    let page = origin.strip_prefix("http://");
    page.zip(host).is_some_and(|(page, host)| page.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(axum::body::Body::from(body.to_owned())).unwrap();
        let allowed = [Regex::new(r"^http://friend\.example$").unwrap()];
        check(&request, "127.0.0.1:8080".parse().unwrap(), &allowed).map_or_else(|status| status.code, |()| 0)
    }

    #[test]
    fn hosts_are_the_listeners_or_loopback_names() {
        for (host, code) in [
            ("127.0.0.1:8080", 0),
            ("127.0.0.1", 0),
            ("127.9.9.9:1", 0),
            ("localhost:9999", 0),
            ("LocalHost", 0),
            ("[::1]:8080", 0),
            ("[::ffff:127.0.0.1]:8080", 0),
            ("evil.example:8080", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("127.0.0.1@evil.example", 403),
            ("0.0.0.0:8080", 403),
            ("10.0.0.1:8080", 403),
            ("[fe80::1]", 403),
            ("", 403),
        ] {
            assert_eq!(refused("GET /api", &[("host", host)], ""), code, "{host:?}");
        }
        assert_eq!(refused("GET /api", &[], ""), 0, "HTTP/1.0");
        assert_eq!(refused("GET http://evil.example/api", &[("host", "localhost")], ""), 403);
        assert_eq!(refused("GET http://localhost:8080/api", &[("host", "evil.example")], ""), 0);
    }

    #[test]
    fn pages_of_others_neither_write_nor_open_websockets() {
        let host = ("host", "127.0.0.1:8080");
        let json = ("content-type", "application/json");
        for (origin, code) in [
            ("http://127.0.0.1:8080", 0),
            ("http://friend.example", 0),
            ("http://evil.example", 403),
            ("http://127.0.0.1:3000", 403),
            ("http://localhost", 403),
            ("https://127.0.0.1:8080", 403),
            ("null", 403),
            ("", 403),
        ] {
            let page = ("origin", origin);
            for (line, headers) in [
                ("POST /api/v1/namespaces", [host, page, json]),
                ("DELETE /api/v1/namespaces/a", [host, page, json]),
                ("GET /api/v1/secrets?watch=1", [host, page, ("upgrade", "websocket")]),
                ("POST /api/v1/namespaces/a/pods/b/exec", [host, page, ("upgrade", "SPDY/3.1")]),
            ] {
                assert_eq!(refused(line, &headers, ""), code, "{line} {origin:?}");
            }
            assert_eq!(refused("GET /api", &[host, page], ""), 0, "browsers keep the answer from it");
        }
        assert_eq!(refused("GET /x", &[host, ("upgrade", "websocket")], ""), 0, "no browser");
    }

    #[test]
    fn a_body_says_what_it_is() {
        let host = ("host", "127.0.0.1:8080");
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let line = format!("{method} /api/v1/namespaces");
            assert_eq!(refused(&line, &[host], "{}"), 415);
            assert_eq!(refused(&line, &[host], ""), 0);
            assert_eq!(refused(&line, &[host, ("content-type", "application/json")], "{}"), 0);
        }
    }
}
