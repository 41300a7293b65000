//! What HTTP/1.1 demands of the `Host` header, as Go's server holds clients to it (`net/http`,
//! `conn.readRequest`).

use axum::body::Body;
use http::header::{CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

/// The 400 for a request whose `Host` is none; it ends the connection. HTTP/2 has another word for it.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<Response<Body>> {
    if request.version() > Version::HTTP_11 {
        return None;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let why = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => "too many Host headers",
        (Some(host), None) if !host.as_bytes().iter().all(is_valid) => "malformed Host header",
        (None, _) if request.version() == Version::HTTP_11 && request.method() != Method::CONNECT => {
            "missing required Host header"
        }
        _ => return None,
    };
    let reason = format!("Bad Request: {why}");
    let mut response = Response::new(Body::from(format!("400 {reason}")));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    ReasonPhrase::try_from(reason).map(|reason| response.extensions_mut().insert(reason)).ok();
    Some(response)
}

/// Of names, addresses and ports (`httpguts.ValidHostHeader`).
fn is_valid(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_are_demanded_one_and_well_formed() {
        let [missing, many, malformed] = ["missing required", "too many", "malformed"];
        for (version, method, hosts, why) in [
            (Version::HTTP_11, Method::GET, &["a:80"][..], ""),
            (Version::HTTP_11, Method::GET, &["[fe80::1%25en0]:80"], ""),
            (Version::HTTP_11, Method::GET, &[""], ""),
            (Version::HTTP_11, Method::GET, &[], missing),
            (Version::HTTP_11, Method::CONNECT, &[], ""),
            (Version::HTTP_10, Method::GET, &[], ""),
            (Version::HTTP_2, Method::GET, &[], ""),
            (Version::HTTP_11, Method::GET, &["a", "a"], many),
            (Version::HTTP_10, Method::GET, &["a", "b"], many),
            (Version::HTTP_11, Method::GET, &["a b"], malformed),
            (Version::HTTP_11, Method::GET, &["a/b"], malformed),
            (Version::HTTP_10, Method::GET, &["a@b"], malformed),
        ] {
            let mut request = Request::builder().version(version).method(method.clone());
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let refusal = refusal(&request.body(()).unwrap());
            let case = format!("{version:?} {method} {hosts:?}");
            assert_eq!(refusal.is_some(), !why.is_empty(), "{case}");
            let Some(refusal) = refusal else { continue };
            let text = axum::body::to_bytes(refusal.into_body(), 100).await.unwrap();
            assert!(text.starts_with(format!("400 Bad Request: {why} Host header").as_bytes()), "{case}");
        }
    }
}
