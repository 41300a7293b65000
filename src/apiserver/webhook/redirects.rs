//! Redirects are followed as Go's client does (`http.Client.Do`): 307 and 308 with the method and the body,
//! 301 to 303 as a GET without one. Credentials stay with the host that they are for, as Go keeps an
//! `Authorization` header; so does our certificate.

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE,
    COOKIE, HeaderName, LOCATION, PROXY_AUTHORIZATION, REFERER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use url::{ParseError, Position, Url};

use super::errors::CallError;

/// Redirects that are followed of one request (`defaultCheckRedirect`). One more fails the call.
const MAX_REDIRECTS: usize = 10;
/// What is read of a redirect's own body, so that its connection can be used again (Go's
/// `maxBodySlurpSize`). With a longer one the connection is closed.
const MAX_SKIPPED_BYTES: usize = 2 << 10;
/// What says who we are, or what the host that we left knows us by.
const CREDENTIALS: [HeaderName; 4] = [AUTHORIZATION, WWW_AUTHENTICATE, COOKIE, PROXY_AUTHORIZATION];
/// What speaks of a body.
const OF_BODY: [HeaderName; 5] =
    [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, CONTENT_LENGTH];

/// A request that goes where its answers send it.
pub struct Journey {
    start: FirstAsked,
    /// Where it is asked next.
    url: Url,
    /// Where it is asked next, as it was written: with the port that every server of its kind has, if that
    /// was said.
    text: String,
    method: Method,
    body: Bytes,
    headers: HeaderMap,
    redirects: usize,
    has_left: bool,
}

/// What was asked at first: of it every further request is made.
struct FirstAsked {
    method: Method,
    url: Url,
    body: Bytes,
    headers: HeaderMap,
}

impl Journey {
    /// Begins with a request to an absolute URL.
    ///
    /// # Errors
    /// One that is none.
    pub fn new(method: Method, url: &str, headers: HeaderMap, body: Bytes) -> Result<Journey, CallError> {
        let parsed = Url::parse(url).map_err(|error| CallError::failed(&method, url, &error.to_string()))?;
        let start =
            FirstAsked { method: method.clone(), url: parsed.clone(), body, headers: headers.clone() };
        let body = start.body.clone();
        let text = url.to_owned();
        Ok(Journey { start, url: parsed, text, method, body, headers, redirects: 0, has_left: false })
    }

    /// Whom is asked next.
    pub fn url(&self) -> &str {
        &self.text
    }

    /// Whether it has come to another host: then that is not shown our certificate. It stays so.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// That the call failed where it is now: Go tells the method of the first request.
    pub fn failed(&self, why: &str) -> CallError {
        CallError::failed(&self.start.method, self.url(), why)
    }

    /// That it took too long, where it is now.
    pub fn timed_out(&self) -> CallError {
        let mut error = self.failed("context deadline exceeded");
        error.timed_out = true;
        error
    }

    /// What to ask next.
    ///
    /// # Errors
    /// A URL that no request can go to.
    pub fn request(&self) -> Result<http::Request<Body>, CallError> {
        if !matches!(self.url.scheme(), "http" | "https") {
            return Err(self.failed(&format!("unsupported protocol scheme {:?}", self.url.scheme())));
        }
        let request = http::Request::builder().method(&self.method).uri(self.url());
        let request = request.body(Body::from(self.body.clone()));
        let mut request = request.map_err(|error| self.failed(&error.to_string()))?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }

    /// Goes on to where an answer points; says whether it does. An answer that points nowhere is the last.
    ///
    /// # Errors
    /// The place is none, or there were too many before.
    pub fn follow(&mut self, code: StatusCode, headers: &HeaderMap) -> Result<bool, CallError> {
        let keeps_body = match code.as_u16() {
            301..=303 => false,
            307 | 308 => true,
            _ => return Ok(false),
        };
        let Some(location) = headers.get(LOCATION).filter(|location| !location.is_empty()) else {
            return Ok(false);
        };
        let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
        let next = self.url.join(&location).map_err(|error| {
            self.failed(&format!("failed to parse Location header {location:?}: {error}"))
        })?;
        if self.redirects == MAX_REDIRECTS {
            let why = format!("stopped after {MAX_REDIRECTS} redirects");
            return Err(CallError::failed(&self.start.method, &location, &why));
        }
        self.redirects += 1;
        self.prepare(&next, keeps_body);
        self.go_to(next, is_relative(&location));
        Ok(true)
    }

    fn prepare(&mut self, next: &Url, keeps_body: bool) {
        self.has_left |= !is_same_or_below(next, &self.start.url);
        let is_downgrade = self.url.scheme() == "https" && next.scheme() == "http";
        let referer = (!is_downgrade).then(|| HeaderValue::from_str(self.url())).and_then(Result::ok);
        self.headers = self.start.headers.clone();
        if self.has_left {
            CREDENTIALS.iter().for_each(|name| drop(self.headers.remove(name)));
        }
        if keeps_body {
            self.body = self.start.body.clone();
        } else {
            OF_BODY.iter().for_each(|name| drop(self.headers.remove(name)));
            self.body = Bytes::new();
            if self.method != Method::HEAD {
                self.method = Method::GET;
            }
        }
        if let Some(referer) = referer {
            self.headers.insert(REFERER, referer);
        }
    }

    fn go_to(&mut self, mut next: Url, is_same_origin: bool) {
        next.set_fragment(None);
        self.take_login(&mut next);
        self.text = if is_same_origin {
            format!("{}{}", origin(&self.text), &next[Position::BeforePath..])
        } else {
            next.to_string()
        };
        self.url = next;
    }

    /// A URL may say as whom to ask, as `https://user:password@example.com`.
    fn take_login(&mut self, next: &mut Url) {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, password) = (decoded(next.username()), decoded(next.password().unwrap_or_default()));
        let is_said = !user.is_empty() || !password.is_empty();
        let _ = (next.set_username(""), next.set_password(None));
        if is_said && !self.headers.contains_key(AUTHORIZATION) {
            let login = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
            self.headers.extend(HeaderValue::from_str(&login).ok().map(|login| (AUTHORIZATION, login)));
        }
    }
}

/// Whether a location says nothing of a host.
fn is_relative(location: &str) -> bool {
    !location.starts_with("//") && Url::parse(location) == Err(ParseError::RelativeUrlWithoutBase)
}

/// All in front of the path.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find(['/', '?', '#']).map_or(url, |end| &url[..start + end])
}

/// Whether a host is `parent`'s, or one below it (`isDomainOrSubdomain`); ports do not matter.
fn is_same_or_below(url: &Url, parent: &Url) -> bool {
    let (Some(host), Some(parent)) = (url.host_str(), parent.host_str()) else { return false };
    let is_name = url.domain().is_some();
    host == parent || (is_name && host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')))
}

/// Reads what nobody wants of a redirect, if it is short.
pub(super) async fn skip(body: Incoming) {
    let announced = body.size_hint().exact();
    if announced.is_none_or(|length| length <= MAX_SKIPPED_BYTES as u64) {
        let _ = Limited::new(body, MAX_SKIPPED_BYTES).collect().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journey(method: Method, url: &str) -> Journey {
        let headers = [(AUTHORIZATION, "Bearer t"), (CONTENT_TYPE, "application/json"), (COOKIE, "a=b")];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        Journey::new(method, url, HeaderMap::from_iter(headers), Bytes::from_static(b"{}")).unwrap()
    }

    fn follow(journey: &mut Journey, code: u16, location: &str) -> Result<bool, String> {
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(location).unwrap())]);
        journey.follow(StatusCode::from_u16(code).unwrap(), &headers).map_err(|error| error.message)
    }

    #[test]
    fn locations_are_read_from_where_they_were_said() {
        for (location, wanted) in [
            ("https://b.example:8443/x?y=1#part", "https://b.example:8443/x?y=1"),
            ("//b.example/x", "https://b.example/x"),
            ("/final", "https://a.example:9443/final"),
            ("final", "https://a.example:9443/d/final"),
            ("../final?q", "https://a.example:9443/final?q"),
            ("?q=2", "https://a.example:9443/d/p?q=2"),
        ] {
            let mut journey = journey(Method::POST, "https://a.example:9443/d/p?timeout=10s");
            assert_eq!(follow(&mut journey, 307, location), Ok(true));
            assert_eq!(journey.url(), wanted, "{location}");
        }
        let mut journey = journey(Method::POST, "https://s.n.svc:443");
        assert_eq!(follow(&mut journey, 307, "p"), Ok(true));
        assert_eq!(journey.url(), "https://s.n.svc:443/p");
    }

    #[test]
    fn methods_and_bodies_are_kept_as_the_code_says() {
        for (code, method, body) in
            [(301, "GET", ""), (302, "GET", ""), (303, "GET", ""), (307, "POST", "{}"), (308, "POST", "{}")]
        {
            let mut journey = journey(Method::POST, "https://a/p");
            assert_eq!(follow(&mut journey, code, "/q"), Ok(true));
            let request = journey.request().unwrap();
            assert_eq!(request.method().as_str(), method, "{code}");
            assert_eq!(&journey.body[..], body.as_bytes(), "{code}");
            assert_eq!(request.headers().contains_key(CONTENT_TYPE), !body.is_empty(), "{code}");
            assert_eq!(request.headers()[REFERER], "https://a/p");
        }
        let mut head = journey(Method::HEAD, "https://a/p");
        assert_eq!(follow(&mut head, 303, "/q"), Ok(true));
        assert_eq!(head.method, Method::HEAD);
        for (code, location) in [(200, "/q"), (300, "/q"), (304, "/q"), (307, "")] {
            let mut journey = journey(Method::POST, "https://a/p");
            assert_eq!(follow(&mut journey, code, location), Ok(false), "{code} {location}");
            assert_eq!(journey.url(), "https://a/p");
        }
    }

    #[test]
    fn credentials_stay_with_their_host_and_do_not_come_back() {
        let keeps = |journey: &Journey| {
            [AUTHORIZATION, COOKIE].map(|name| journey.headers.contains_key(name)) == [true; 2]
        };
        for (location, is_kept) in [
            ("https://a.example:1/q", true),
            ("https://sub.a.example/q", true),
            ("https://nota.example/q", false),
            ("https://b.example/q", false),
            ("https://127.0.0.1/q", false),
        ] {
            let mut journey = journey(Method::POST, "https://a.example/p");
            follow(&mut journey, 307, location).unwrap();
            assert_eq!((keeps(&journey), journey.has_left()), (is_kept, !is_kept), "{location}");
            follow(&mut journey, 307, "https://a.example/r").unwrap();
            assert_eq!(keeps(&journey), is_kept, "{location} and back");
        }
        let mut journey = journey(Method::POST, "https://a.example/p");
        follow(&mut journey, 307, "http://me:my%40word@b.example/q").unwrap();
        assert_eq!(journey.url(), "http://b.example/q");
        assert_eq!(journey.headers[AUTHORIZATION], format!("Basic {}", STANDARD.encode("me:my@word")));
        assert!(!journey.headers.contains_key(REFERER), "nobody on the way is to see a URL that was secret");
    }

    #[test]
    fn ten_are_followed_and_places_that_are_none_are_told() {
        let mut circle = journey(Method::POST, "https://a/p?timeout=10s");
        for _ in 0..10 {
            assert_eq!(follow(&mut circle, 307, "/p"), Ok(true));
        }
        let error = "Post \"/p\": stopped after 10 redirects";
        assert_eq!(follow(&mut circle, 307, "/p").unwrap_err(), error);
        let mut lost = journey(Method::GET, "https://a/p");
        let error = follow(&mut lost, 302, "https://[/").unwrap_err();
        assert!(error.starts_with("Get \"https://a/p\": failed to parse Location header \"https://[/\": "));
        assert_eq!(follow(&mut lost, 302, "ftp://a/p"), Ok(true));
        let error = lost.request().unwrap_err().message;
        assert_eq!(error, "Get \"ftp://a/p\": unsupported protocol scheme \"ftp\"");
    }
}
