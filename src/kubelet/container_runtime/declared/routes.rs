//! WebRoutes of a web server that a pod declares: which requests are answered how.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use serde::Deserialize;

golang::text_error! {
    /// What is no list of routes; for people.
    pub(crate) struct BadRoutes;
}

/// So many routes may be declared for a port; an annotation with more is refused.
const MAX_ROUTES: usize = 256;
/// What the connection says by itself, and no route may.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// `kubarium.dev/http.N`: the first route that fits a request answers it.
#[derive(Debug, Default)]
pub(crate) struct WebRoutes(Vec<CountedRoute>);

/// A route, and how many requests it would have fitted but for `after` and `every`.
#[derive(Debug, Default)]
struct CountedRoute {
    route: WebRoute,
    requests: AtomicU64,
}

/// Which requests, and what they are answered.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WebRoute {
    /// Any where none is named.
    method: Option<String>,
    /// Without its port.
    host: Option<String>,
    /// Without its query; one that ends with a star fits all that begin so.
    path: Option<String>,
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
    #[serde(deserialize_with = "super::read::duration")]
    pub(crate) delay: Duration,
    /// It fits only when so many requests came before.
    after: u64,
    /// It fits only each so-manieth request.
    every: Option<u64>,
}

impl Default for WebRoute {
    fn default() -> WebRoute {
        WebRoute {
            method: None,
            host: None,
            path: None,
            status: 200,
            headers: BTreeMap::new(),
            body: String::new(),
            delay: Duration::ZERO,
            after: 0,
            every: None,
        }
    }
}

/// A list of routes, or one.
#[derive(Deserialize)]
#[serde(untagged)]
enum RouteForm {
    List(Vec<WebRoute>),
    One(Box<WebRoute>),
}

impl WebRoutes {
    pub(crate) fn parse(text: &str) -> Result<WebRoutes, BadRoutes> {
        let routes = match apimachinery::yaml::from_str(text) {
            Ok(RouteForm::List(routes)) => routes,
            Ok(RouteForm::One(route)) => vec![*route],
            Err(_) => return Err(format!("{HELP}{}", why(text)).into()),
        };
        if routes.len() > MAX_ROUTES {
            return Err(format!("has {} routes, at most {MAX_ROUTES} are taken", routes.len()).into());
        }
        routes.iter().try_for_each(WebRoute::check)?;
        Ok(WebRoutes(
            routes.into_iter().map(|route| CountedRoute { route, ..CountedRoute::default() }).collect(),
        ))
    }

    /// The route of a request, which it counts for.
    pub(crate) fn of(&self, method: &str, host: &str, path: &str) -> Option<&WebRoute> {
        let fits = |counted: &&CountedRoute| {
            counted.route.fits(method, host, path)
                && counted.route.is_due(counted.requests.fetch_add(1, Ordering::Relaxed) + 1)
        };
        self.0.iter().find(fits).map(|counted| &counted.route)
    }

    /// The code of what is answered at once to a `GET` whatever came before, and its body: what a probe
    /// finds.
    pub(crate) fn always(&self, path: &str) -> Option<(u16, &str)> {
        let path = path.split('?').next().unwrap_or(path);
        let fits = |route: &&WebRoute| route.host.is_none() && route.fits("GET", "", path);
        let found = self.0.iter().map(|counted| &counted.route).find(fits);
        match found {
            Some(route) if route.after > 0 || route.every.is_some() || !route.delay.is_zero() => None,
            Some(route) => Some((route.status, &route.body)),
            None => Some((404, NOT_FOUND)),
        }
    }
}

impl WebRoute {
    fn check(&self) -> Result<(), String> {
        let code = StatusCode::from_u16(self.status).ok().filter(|code| !code.is_informational());
        code.ok_or_else(|| format!("has the status {}, it may be from 200 to 999", self.status))?;
        if self.every == Some(0) {
            return Err("has a route for every 0th request, it may be 1 or more".into());
        }
        for (name, value) in &self.headers {
            let known = HeaderName::try_from(name).ok().filter(|_| HeaderValue::try_from(value).is_ok());
            let known = known.ok_or_else(|| format!("has the header {name:?}, which is none in HTTP"))?;
            if OF_CONNECTION.contains(&known) {
                return Err(format!(
                    "has the header {name:?}, which the server sets by itself, leave it out"
                ));
            }
        }
        Ok(())
    }

    fn fits(&self, method: &str, host: &str, path: &str) -> bool {
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        let path_fits = |wanted: &String| match wanted.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == wanted,
        };
        self.method.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
            && self.host.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(host))
            && self.path.as_ref().is_none_or(path_fits)
    }

    /// Of the request with this number, counted from 1.
    fn is_due(&self, number: u64) -> bool {
        let number = number.saturating_sub(self.after);
        number > 0 && self.every.is_none_or(|every| number.is_multiple_of(every))
    }

    fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.body.clone()));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        response.headers_mut().insert(header::CONTENT_TYPE, PLAIN);
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// What is answered to a request, and after how long.
pub(crate) fn answer(routes: &WebRoutes, request: &Request<Bytes>) -> (Duration, Response<Bytes>) {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match routes.of(request.method().as_str(), host, request.uri().path()) {
        Some(route) => (route.delay, route.response()),
        None => {
            let mut response = Response::new(Bytes::from_static(NOT_FOUND.as_bytes()));
            *response.status_mut() = StatusCode::NOT_FOUND;
            (Duration::ZERO, response)
        }
    }
}

/// What of it is no route, when that is known.
fn why(text: &str) -> String {
    let list = apimachinery::yaml::from_str::<Vec<serde_json::Value>>(text).unwrap_or_default();
    let wrong = list.into_iter().find_map(|item| serde_json::from_value::<WebRoute>(item).err());
    wrong.map(|error| format!(": {error}")).unwrap_or_default()
}

const NOT_FOUND: &str = "404 page not found\n";
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const HELP: &str = "is no list of routes like [{method: GET, path: /api/*, status: 200, body: TEXT}] (each may \
                    have host, headers, delay, after and every)";

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(routes: &WebRoutes, method: &str, path: &str, count: usize) -> Vec<u16> {
        let request =
            || Request::builder().method(method).uri(path).header("host", "web:80").body(Bytes::new());
        (0..count).map(|_| answer(routes, &request().unwrap()).1.status().as_u16()).collect()
    }

    #[test]
    fn the_first_route_that_fits_answers() {
        let routes = WebRoutes::parse(
            "- {method: POST, path: /a, status: 201, headers: {x-a: b}, body: made}\n\
             - {path: /b*, host: other}\n- {path: /b*, status: 302}\n- {path: /a, delay: 3s}\n",
        );
        let routes = routes.unwrap();
        assert_eq!(codes(&routes, "POST", "/a?x=y", 1), [201]);
        assert_eq!(codes(&routes, "GET", "/b/c", 1), [302]);
        assert_eq!(codes(&routes, "GET", "/none", 1), [404]);
        let (delay, response) = answer(&routes, &Request::get("/a").body(Bytes::new()).unwrap());
        assert_eq!((delay, response.status().as_u16()), (Duration::from_secs(3), 200));
        let (_, made) = answer(&routes, &Request::post("/a").body(Bytes::new()).unwrap());
        assert_eq!((made.headers()["x-a"].to_str().unwrap(), &made.body()[..]), ("b", &b"made"[..]));
    }

    #[test]
    fn routes_count_their_requests() {
        let failing =
            WebRoutes::parse("[{every: 3, status: 500}, {after: 4, status: 429}, {body: ok}]").unwrap();
        // The second is asked for what the first lets by: the 1st, 2nd, 4th, 5th, 7th, 8th.
        assert_eq!(codes(&failing, "GET", "/", 8), [200, 200, 500, 200, 200, 500, 429, 429]);
    }

    #[test]
    fn what_is_no_route_is_told() {
        for (text, why) in [
            ("hello", "is no list of routes"),
            ("[{pth: /a}]", "unknown field `pth`"),
            ("[{status: 101}]", "has the status 101, it may be from 200 to 999"),
            ("[{every: 0}]", "every 0th request, it may be 1 or more"),
            ("[{headers: {\"a b\": c}}]", "has the header \"a b\""),
            ("[{headers: {Content-Length: \"5\"}}]", "\"Content-Length\", which the server sets by itself"),
            ("[{headers: {upgrade: h2c}}]", "\"upgrade\", which the server sets by itself, leave it out"),
            ("[{delay: long}]", "\"long\" is no duration"),
        ] {
            let told = WebRoutes::parse(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
        let many = format!("[{}]", "{status: 200},".repeat(MAX_ROUTES + 1));
        assert_eq!(WebRoutes::parse(&many).unwrap_err(), "has 257 routes, at most 256 are taken");
    }

    #[test]
    fn what_always_holds_is_known_ahead() {
        let routes = WebRoutes::parse(
            "[{path: /ok, body: fine}, {path: /down, status: 503}, {path: /x, every: 2}, {path: /late, delay: 3s}]",
        );
        let routes = routes.unwrap();
        assert_eq!(routes.always("/ok?a=b"), Some((200, "fine")));
        assert_eq!(routes.always("/down"), Some((503, "")));
        assert_eq!(routes.always("/none"), Some((404, NOT_FOUND)));
        assert_eq!((routes.always("/x"), routes.always("/late")), (None, None));
    }
}
