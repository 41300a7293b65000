//! Which requests the page itself can have sent: those for a loopback name of the listener, and from no page
//! of another server. A name that leads to loopback by somebody else's DNS is not among them.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Request};

/// Where a browser says from which kind of page a request comes (Fetch Metadata).
const FETCH_SITE: &str = "sec-fetch-site";

/// Why the request cannot have come from the page; none if it can. A browser may be led to the page itself
/// from anywhere (`is_page`), which shows nothing before somebody is let in.
pub(crate) fn refusal<B>(request: &Request<B>, is_page: bool) -> Option<String> {
    let headers = request.headers();
    let in_uri = request.uri().authority().map(|authority| authority.as_str());
    let host = in_uri.or_else(|| text(headers, HOST.as_str())).unwrap_or_default();
    if !is_loopback(host) {
        return Some(format!(
            "the request is for the host {host:?}: this page answers to localhost and loopback addresses alone"
        ));
    }
    let foreign = text(headers, ORIGIN.as_str()).filter(|origin| *origin != format!("http://{host}"));
    if let Some(origin) = foreign {
        return Some(format!("the request is sent by a page of {origin:?}, which may not use this one"));
    }
    let site = text(headers, FETCH_SITE).filter(|site| !matches!(*site, "same-origin" | "none"));
    match site {
        Some(site) if !is_page => {
            Some(format!("the request is sent by a page of another server (Sec-Fetch-Site: {site})"))
        }
        _ => None,
    }
}

/// What is no text is somebody else's.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_in(headers: &[(&str, &str)], is_page: bool) -> bool {
        let mut request = Request::builder().uri("/api");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        refusal(&request.body(()).unwrap(), is_page).is_none()
    }

    #[test]
    fn loopback_by_its_own_names_alone() {
        for host in ["127.0.0.1:4000", "localhost:4000", "[::1]:4000", "localhost"] {
            assert!(is_let_in(&[("host", host)], false), "{host}");
        }
        for host in ["evil.example:4000", "127.0.0.1.evil.example:4000", "localhost:4000:1", ""] {
            assert!(!is_let_in(&[("host", host)], true), "{host}");
        }
        assert!(!is_let_in(&[], true));
    }

    #[test]
    fn pages_of_others_may_lead_to_it_and_ask_nothing() {
        let host = ("host", "127.0.0.1:4000");
        assert!(is_let_in(&[host, ("origin", "http://127.0.0.1:4000")], false));
        for origin in ["http://127.0.0.1:3000", "https://127.0.0.1:4000", "null", "http://localhost:4000"] {
            assert!(!is_let_in(&[host, ("origin", origin)], false), "{origin}");
        }
        assert!(!is_let_in(&[host, ("sec-fetch-site", "cross-site")], false));
        assert!(!is_let_in(&[host, ("sec-fetch-site", "same-site")], false));
        assert!(is_let_in(&[host, ("sec-fetch-site", "cross-site")], true));
        assert!(is_let_in(&[host, ("sec-fetch-site", "same-origin")], false));
    }
}
