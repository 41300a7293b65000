//! Probes and hooks over HTTP (`pkg/probe/http`).

use ::http::{HeaderName, HeaderValue, Request};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use tokio::io::{AsyncRead, AsyncWrite};

use super::dialling::{AskedHost, or};
use crate::container_runtime::answers::{self, MAX_REDIRECTS};
use crate::container_runtime::services::ProbeAnswer;
use crate::dependencies::Dependencies;
use apis::views::pod::Container as Spec;
use apis::views::probe::HttpGetAction;
use machine::url::WebUrl;
use network::tls::{self, PeerTrust, TlsFailure};

/// So much of an answer is read (`maxRespBodyLength`); the rest is not looked at.
const MAX_BODY_BYTES: usize = 10 << 10;
/// What no URL has as it stands.
const ESCAPED: &[u8] = b" \"<>\\^`{|}";

/// A `GET`.
#[derive(Clone, Debug)]
pub(super) struct HttpInquiry {
    pub(super) at: AskedHost,
    url: WebUrl,
    headers: Vec<(String, String)>,
}

/// What came back.
struct HttpAnswer {
    code: u16,
    location: Option<String>,
    body: Vec<u8>,
}

/// Why nothing came back.
pub(super) enum HttpFailure {
    /// Who is there speaks no TLS.
    NoTls,
    Other(String),
}

impl HttpInquiry {
    /// What an action says; what it leaves out the kubelet says.
    pub(super) fn new(get: &HttpGetAction, spec: &Spec, pod_ip: &str, agent: &str) -> HttpInquiry {
        let at = AskedHost { host: or(&get.host, pod_ip), port: answers::port(&get.port, spec) };
        let target = escaped(&format!("/{}", get.path.strip_prefix('/').unwrap_or(&get.path)));
        let url = WebUrl {
            is_secure: get.scheme.eq_ignore_ascii_case("https"),
            user: None,
            host: answers::in_url(&at.host),
            port: u16::try_from(at.port).unwrap_or(0),
            target,
        };
        let given = get.http_headers.iter().map(|header| (header.name.clone(), header.value.clone()));
        let mut headers: Vec<(String, String)> = given.collect();
        let has = |headers: &[(String, String)], name: &str| {
            headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        if !has(&headers, "user-agent") {
            headers.push(("User-Agent".into(), agent.into()));
        }
        if !has(&headers, "accept") {
            headers.push(("Accept".into(), "*/*".into()));
        }
        // One that is empty asks for nothing.
        headers.retain(|(name, value)| !(name.eq_ignore_ascii_case("accept") && value.is_empty()));
        HttpInquiry { at, url, headers }
    }

    /// In the words of Go's client.
    pub(super) fn failed(&self, why: &str) -> String {
        failed(&self.url, why)
    }

    /// What comes of it, and of where it leads: on the same host only.
    pub(super) async fn ask(&self, node: &Dependencies) -> ProbeAnswer {
        let mut url = self.url.clone();
        for redirects in 0..=MAX_REDIRECTS {
            let answer = match self.get(node, &url).await {
                Ok(answer) => answer,
                Err(failure) => return ProbeAnswer::Failure(failed(&url, &failure.text())),
            };
            let next = answer.location.as_deref().and_then(|location| url.join(location).ok());
            match next.filter(|next| next.host == self.url.host) {
                Some(next) if redirects < MAX_REDIRECTS => url = next,
                Some(_) => break,
                None => return judged(&answer),
            }
        }
        ProbeAnswer::Failure(failed(&url, &format!("stopped after {MAX_REDIRECTS} redirects")))
    }

    /// A hook: whoever answers, whatever he answers, has heard it. Who speaks no TLS is asked without.
    ///
    /// # Errors
    /// Why nobody did.
    pub(super) async fn tell(&self, node: &Dependencies) -> Result<(), HttpFailure> {
        let told = match self.get(node, &self.url).await {
            Err(HttpFailure::NoTls) => {
                let mut plain = self.clone();
                plain.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
                plain.url.is_secure = false;
                plain.get(node, &plain.url).await
            }
            told => told,
        };
        told.map(drop)
    }

    async fn get(&self, node: &Dependencies, url: &WebUrl) -> Result<HttpAnswer, HttpFailure> {
        let host = url.host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let at = AskedHost { host, port: url.port.into() };
        let stream = node.dial(&at).await.map_err(|failure| HttpFailure::Other(failure.0))?;
        if !url.is_secure {
            return self.get_over(node, url, stream).await;
        }
        let everybody = PeerTrust { everybody: true, ..PeerTrust::default() };
        match tls::connect(stream, &at.host, &everybody).await {
            Ok(stream) => self.get_over(node, url, stream).await,
            Err(TlsFailure::NoTls) => Err(HttpFailure::NoTls),
            Err(_) => Err(HttpFailure::Other("EOF".into())),
        }
    }

    async fn get_over<Io>(&self, node: &Dependencies, url: &WebUrl, io: Io) -> Result<HttpAnswer, HttpFailure>
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let no_request = || HttpFailure::Other("net/http: invalid header field".into());
        let request = self.request(url).ok_or_else(no_request)?;
        let asked = network::http_client::ask(&node.context.clock, io, request).await;
        let (head, body) = asked.map_err(|_| HttpFailure::Other("EOF".into()))?.into_parts();
        let moves = matches!(head.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = head.headers.get("location").filter(|_| moves);
        let location = location.and_then(|location| location.to_str().ok()).map(str::to_owned);
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
        let body = body.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
        Ok(HttpAnswer { code: head.status.as_u16(), location, body })
    }

    /// Nothing for what HTTP cannot say.
    fn request(&self, url: &WebUrl) -> Option<Request<Bytes>> {
        let host = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = host.map_or_else(|| format!("{}:{}", url.host, url.port), |(_, host)| host.clone());
        let mut request = Request::get(url.target.as_str()).header("Host", host);
        for (name, value) in self.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            request = request.header(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
        }
        request.header("Connection", "close").body(Bytes::new()).ok()
    }
}

impl HttpFailure {
    pub(super) fn text(self) -> String {
        match self {
            HttpFailure::NoTls => "http: server gave HTTP response to HTTPS client".into(),
            HttpFailure::Other(why) => why,
        }
    }
}

fn failed(url: &WebUrl, why: &str) -> String {
    let WebUrl { is_secure, host, port, target, .. } = url;
    let scheme = if *is_secure { "https" } else { "http" };
    format!("Get \"{scheme}://{host}:{port}{target}\": {why}")
}

fn judged(answer: &HttpAnswer) -> ProbeAnswer {
    match answer.code {
        200..=299 => ProbeAnswer::Success,
        300..=399 => ProbeAnswer::Warning(answers::redirected(&String::from_utf8_lossy(&answer.body))),
        code => ProbeAnswer::Failure(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// As `url.URL` writes it.
fn escaped(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path.split('#').next().unwrap_or_default().bytes() {
        match byte {
            byte if byte.is_ascii_graphic() && !ESCAPED.contains(&byte) => escaped.push(byte.into()),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inquiry(get: serde_json::Value) -> HttpInquiry {
        let spec =
            serde_json::from_value(json!({"name": "a", "ports": [{"name": "web", "containerPort": 8080}]}));
        let get = serde_json::from_value(get).unwrap();
        HttpInquiry::new(&get, &spec.unwrap(), "fd00::5", "kube-probe/1.36")
    }

    #[test]
    fn a_request_says_what_the_action_says_and_what_the_kubelet_adds() {
        let plain = inquiry(json!({"path": "a b?c=d#e", "port": "web"}));
        assert_eq!(plain.failed("why"), "Get \"http://[fd00::5]:8080/a%20b?c=d\": why");
        let request = plain.request(&plain.url).unwrap();
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("host"), Some("[fd00::5]:8080"));
        assert_eq!((header("user-agent"), header("accept")), (Some("kube-probe/1.36"), Some("*/*")));
        let headers = json!([{"name": "Host", "value": "web"}, {"name": "accept"},
            {"name": "X-A", "value": "1"}, {"name": "X-A", "value": "2"}, {"name": "user-agent", "value": "me"}]);
        let own = inquiry(json!({"port": 443, "scheme": "HTTPS", "httpHeaders": headers}));
        let request = own.request(&own.url).unwrap();
        let all =
            |name: &str| request.headers().get_all(name).iter().map(|it| it.to_str().unwrap()).collect();
        let (host, agent, accept, twice): (Vec<_>, Vec<_>, Vec<&str>, Vec<_>) =
            (all("host"), all("user-agent"), all("accept"), all("x-a"));
        assert_eq!((host, agent, twice), (vec!["web"], vec!["me"], vec!["1", "2"]));
        assert!(accept.is_empty() && own.url.is_secure);
        let bad = inquiry(json!({"port": 80, "httpHeaders": [{"name": "a b", "value": "c"}]}));
        assert!(bad.request(&bad.url).is_none());
    }
}
