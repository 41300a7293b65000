//! `ClientConfig`: where to ask, whom to trust, who we are (`webhook.ClientConfig`, `rest.Config`).

use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde_json::Value;

use apis::tree::{at, is_set, number, text};

golang::text_error! {
    /// A `clientConfig` that names nobody; in upstream's words.
    pub struct NoTarget;
}

/// What upstream takes when a service reference names no port.
const DEFAULT_PORT: u16 = 443;

/// How to reach one webhook. It bears credentials, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Whom to ask.
    pub target: WebhookTarget,
    /// Authorities to trust, PEM. Empty: those of the system.
    pub ca_bundle: Vec<u8>,
    /// The name that the certificate must bear, where it is not the host's.
    pub server_name: Option<String>,
    /// Any certificate will do. Only a kubeconfig may say so.
    pub insecure_skip_tls_verify: bool,
    /// Our certificate and its key, PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// Where the token of that header stands, which may change there (`tokenFile`).
    pub token_file: Option<PathBuf>,
    /// The `User-Agent` header.
    pub user_agent: &'static str,
    /// Whether the URL says how long the answer may take (`?timeout=10s`).
    pub tells_timeout: bool,
}

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookTarget {
    /// As `https://example.com:9443/validate`.
    Url(String),
    /// A Service of this cluster.
    Service(ServiceReference),
}

/// `admissionregistration.ServiceReference`, and its likes in other groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReference {
    /// The Service's namespace.
    pub namespace: String,
    /// The Service.
    pub name: String,
    /// As `/validate`; empty for `/`.
    pub path: String,
    /// One of the Service's ports.
    pub port: u16,
}

impl ClientConfig {
    /// With nothing but a target: the system's authorities, no credentials.
    pub fn new(target: WebhookTarget) -> ClientConfig {
        ClientConfig {
            target,
            ca_bundle: vec![],
            server_name: None,
            insecure_skip_tls_verify: false,
            identity: None,
            authorization: None,
            token_file: None,
            user_agent: "kube-apiserver",
            tells_timeout: true,
        }
    }

    /// From a `clientConfig` as it stands in webhook configurations and CRDs: `url` or `service`, and
    /// `caBundle`.
    ///
    /// # Errors
    /// Upstream's words for one that names nobody.
    pub fn from_tree(tree: &Value) -> Result<ClientConfig, NoTarget> {
        let target = match (is_set(tree, "service"), text(tree, "url")) {
            (true, _) => WebhookTarget::Service(ServiceReference::from_tree(at(tree, "service"))),
            (false, "") => return Err("webhook configuration must have either service or URL".into()),
            (false, url) => WebhookTarget::Url(url.into()),
        };
        let mut config = ClientConfig::new(target);
        config.ca_bundle = decode_base64(text(tree, "caBundle")).unwrap_or_default();
        Ok(config)
    }

    /// The target without anything that says who we are.
    #[must_use]
    pub fn anonymous(&self) -> ClientConfig {
        ClientConfig { identity: None, authorization: None, ..self.clone() }
    }

    /// The name that whoever answers must have, where the host of the URL is not meant: a redirect changes
    /// nothing about it.
    pub(super) fn expected_name(&self) -> Option<String> {
        match &self.target {
            _ if self.server_name.is_some() => self.server_name.clone(),
            WebhookTarget::Service(service) => Some(service.server_name()),
            WebhookTarget::Url(_) => None,
        }
    }
}

impl ServiceReference {
    /// From a `service` as it stands in webhook configurations, CRDs and APIServices.
    pub fn from_tree(tree: &Value) -> ServiceReference {
        let port = u16::try_from(number(tree, "port")).ok().filter(|port| *port != 0);
        ServiceReference {
            namespace: text(tree, "namespace").into(),
            name: text(tree, "name").into(),
            path: text(tree, "path").into(),
            port: port.unwrap_or(DEFAULT_PORT),
        }
    }

    /// The name that its certificate must bear: `name.namespace.svc`.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl WebhookTarget {
    /// The URL as it is asked and stands in messages, with a path that is clean and nothing behind it
    /// (`rest.DefaultVersionedAPIPath`).
    pub fn url(&self) -> String {
        match self {
            WebhookTarget::Url(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
                let rest = rest.split(['?', '#']).next().unwrap_or_default();
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let path: Vec<u8> = percent_decode_str(path).collect();
                format!("{scheme}://{host}{}", clean(&path))
            }
            WebhookTarget::Service(service) => {
                let path = clean(service.path.as_bytes());
                format!("https://{}:{}{path}", service.server_name(), service.port)
            }
        }
    }
}

/// What Go's `url.URL` leaves as it is in a path.
const IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// Go's `path.Join("/", path)`, as it stands in a URL: without empty parts, `.` and `..`, nor a slash at the
/// end.
fn clean(path: &[u8]) -> String {
    let mut kept: Vec<&[u8]> = vec![];
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    format!("/{}", percent_encode(&kept.join(&b'/'), IN_PATHS))
}

pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn targets_are_read_and_shown() {
        for (tree, url) in [
            (json!({"url": "https://127.0.0.1:9443"}), "https://127.0.0.1:9443/"),
            (json!({"url": "https://a.example/x/y"}), "https://a.example/x/y"),
            (json!({"service": {"namespace": "n", "name": "s"}}), "https://s.n.svc:443/"),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "/p", "port": 8443}}),
                "https://s.n.svc:8443/p",
            ),
        ] {
            assert_eq!(ClientConfig::from_tree(&tree).ok().unwrap().target.url(), url);
        }
        for (path, wanted) in [
            ("//failing", "/failing"),
            ("/p/", "/p"),
            ("/a/../b", "/b"),
            ("/../..", "/"),
            ("/./a//b/.", "/a/b"),
            ("/a%2Fb%20c", "/a/b%20c"),
            ("/x?y#z", "/x"),
            ("/(a)*;b=c,@:$&+~", "/%28a%29%2A;b=c,@:$&+~"),
        ] {
            let url = WebhookTarget::Url(format!("https://127.0.0.1:9443{path}"));
            assert_eq!(url.url(), format!("https://127.0.0.1:9443{wanted}"), "{path}");
        }
        for (path, wanted) in [("/p/", "/p"), ("//p", "/p"), ("p", "/p"), ("/50%", "/50%25")] {
            let tree = json!({"service": {"namespace": "n", "name": "s", "path": path}});
            let url = ClientConfig::from_tree(&tree).ok().unwrap().target.url();
            assert_eq!(url, format!("https://s.n.svc:443{wanted}"), "{path}");
        }
        let refused = ClientConfig::from_tree(&json!({})).err();
        assert_eq!(refused.unwrap(), "webhook configuration must have either service or URL");
    }
}
