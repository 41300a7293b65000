//! Requests to the apiserver, as whoever the pod's token says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::exec_streams;
use super::known::KnownResource;
use super::options::KubectlOptions;
use super::stop::KubectlStop;
use crate::byte_text;
use crate::interpreter::player::Player;
use crate::questions::{HttpQuestion, NetworkAsk, NetworkReply, Question, TlsTrust, WebReply};

/// Where a pod finds its account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// And what a command in another container says: `kubectl exec` waits as long as that runs.
const STREAM_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// Any key will do: what the server makes of it tells whether it has understood, which this client believes.
const WEBSOCKET_KEY: &str = "a3ViZWN0bCBpbiBhIHBvZA==";
/// Rows, as the apiserver makes them.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// Who asks whom.
pub(crate) struct ApiClient {
    to: SocketAddr,
    token: String,
    authorities: String,
    namespace: String,
}

/// What came back.
pub(crate) struct ApiAnswer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl ApiAnswer {
    /// # Errors
    /// What the apiserver says against it, as kubectl says it.
    pub(crate) fn well(self) -> Result<Value, KubectlStop> {
        if self.code < 400 {
            return Ok(self.body);
        }
        let text = |name: &str| self.body[name].as_str().unwrap_or_default().to_owned();
        let (reason, message) = (text("reason"), text("message"));
        let reason = if reason.is_empty() { "InternalError".to_owned() } else { reason };
        Err(KubectlStop::Failed(format!("Error from server ({reason}): {message}")))
    }
}

impl ApiClient {
    /// # Errors
    /// That there is no apiserver here, or no account.
    pub(crate) fn in_cluster(
        player: &Player<'_>,
        options: &KubectlOptions,
    ) -> Result<ApiClient, KubectlStop> {
        let variable = |name: &str| player.variables.get(name).map_or("", String::as_str);
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"));
        let read = |name: &str| player.file(&format!("{ACCOUNT}/{name}")).map(|file| file.text());
        let (Ok(host), Ok(port), Some(token)) = (host.parse(), port.parse(), read("token")) else {
            let why = "The connection to the server localhost:8080 was refused";
            return Err(KubectlStop::Failed(format!("{why} - did you specify the right host or port?")));
        };
        let own = read("namespace").unwrap_or_else(|| "default".into());
        Ok(ApiClient {
            to: SocketAddr::new(host, port),
            token: token.trim().to_owned(),
            authorities: read("ca.crt").unwrap_or_default(),
            namespace: options.namespace.clone().unwrap_or_else(|| own.trim().to_owned()),
        })
    }

    /// Of a kind or one of its objects, with what selects.
    pub(crate) fn path(
        &self,
        resource: &KnownResource,
        name: Option<&str>,
        options: &KubectlOptions,
    ) -> String {
        let Some(name) = name else {
            let namespace = Some(&*self.namespace).filter(|_| !options.is_everywhere);
            let mut path = resource.path(namespace);
            let selectors =
                [("labelSelector", options.selector.as_ref()), ("fieldSelector", options.fields.as_ref())];
            let mut joint = '?';
            for (name, selector) in selectors {
                if let Some(selector) = selector {
                    path.push_str(&format!("{joint}{name}={}", escaped(selector)));
                    joint = '&';
                }
            }
            return path;
        };
        self.object_path(resource, name, None, options)
    }

    /// Of an object; without a namespace of its own it is in the client's.
    pub(crate) fn object_path(
        &self,
        resource: &KnownResource,
        name: &str,
        namespace: Option<&str>,
        _: &KubectlOptions,
    ) -> String {
        format!("{}/{}", resource.path(Some(namespace.unwrap_or(&self.namespace))), escaped(name))
    }

    /// Where an object is that says so or not; nothing for what is in none.
    pub(crate) fn namespace_of<'a>(
        &'a self,
        resource: &KnownResource,
        namespace: Option<&'a str>,
    ) -> Option<&'a str> {
        resource.is_namespaced.then(|| namespace.unwrap_or(&self.namespace))
    }

    /// Where what is in a namespace is.
    pub(crate) fn own_namespace(&self) -> Option<&str> {
        Some(self.namespace.as_str())
    }

    pub(crate) fn get(&self, player: &mut Player<'_>, path: &str) -> Result<ApiAnswer, KubectlStop> {
        self.ask(player, ("GET", path), "application/json", None)
    }

    /// What is at a path, with what selects of it.
    pub(crate) fn select(
        &self,
        player: &mut Player<'_>,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<ApiAnswer, KubectlStop> {
        self.get(player, &format!("{path}?{}", query_text(query)))
    }

    /// What is no JSON, as a log.
    ///
    /// # Errors
    /// What the apiserver says against it.
    pub(crate) fn text(&self, player: &mut Player<'_>, path: &str) -> Result<String, KubectlStop> {
        let web = self.exchange(player, ("GET", path), "*/*", None)?;
        if web.code < 400 {
            return Ok(byte_text::text_of(&web.body));
        }
        let body = serde_json::from_slice(&web.body).unwrap_or(Value::Null);
        ApiAnswer { code: web.code, body }.well().map(|_| String::new())
    }

    pub(crate) fn get_table(&self, player: &mut Player<'_>, path: &str) -> Result<ApiAnswer, KubectlStop> {
        self.ask(player, ("GET", path), TABLE, None)
    }

    pub(crate) fn send(
        &self,
        player: &mut Player<'_>,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<ApiAnswer, KubectlStop> {
        self.ask(player, (method, path), "application/json", body.map(|body| (body, "application/json")))
    }

    pub(crate) fn patch(
        &self,
        player: &mut Player<'_>,
        path: &str,
        patch: Value,
        kind: &str,
    ) -> Result<ApiAnswer, KubectlStop> {
        self.ask(player, ("PATCH", path), "application/json", Some((patch, kind)))
    }

    fn ask(
        &self,
        player: &mut Player<'_>,
        (method, path): (&str, &str),
        accepted: &str,
        body: Option<(Value, &str)>,
    ) -> Result<ApiAnswer, KubectlStop> {
        let web = self.exchange(player, (method, path), accepted, body)?;
        let body = serde_json::from_slice(&web.body);
        let cut = || {
            KubectlStop::Failed(format!("error: the answer to {method} {path} is longer than is read here"))
        };
        match body {
            Ok(body) => Ok(ApiAnswer { code: web.code, body }),
            Err(_) if web.code >= 400 => Ok(ApiAnswer { code: web.code, body: Value::Null }),
            Err(_) => Err(cut()),
        }
    }

    fn exchange(
        &self,
        player: &mut Player<'_>,
        (method, path): (&str, &str),
        accepted: &str,
        body: Option<(Value, &str)>,
    ) -> Result<Arc<WebReply>, KubectlStop> {
        let mut headers = self.headers(accepted);
        headers.extend(body.iter().map(|(_, kind)| ("Content-Type".to_owned(), (*kind).to_owned())));
        let question = HttpQuestion {
            to: Some(self.to),
            method: method.to_owned(),
            target: path.to_owned(),
            headers,
            body: body.map(|(body, _)| body.to_string().into_bytes()).unwrap_or_default(),
            tls: Some(self.trust()),
            ..HttpQuestion::default()
        };
        self.put(player, question, PATIENCE)
    }

    fn trust(&self) -> TlsTrust {
        TlsTrust {
            server_name: self.to.ip().to_string(),
            authorities: self.authorities.clone(),
            ..TlsTrust::default()
        }
    }

    /// Streams of a command, over a websocket: what is said on it, and all that is heard until it ends.
    ///
    /// # Errors
    /// What the apiserver says against it.
    pub(crate) fn streams(
        &self,
        player: &mut Player<'_>,
        path: &str,
        query: &[(&str, &str)],
        said: Vec<u8>,
    ) -> Result<Vec<u8>, KubectlStop> {
        let mut headers = self.headers("*/*");
        let opening = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", WEBSOCKET_KEY),
            ("Sec-WebSocket-Protocol", exec_streams::PROTOCOL),
        ];
        headers.extend(opening.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let question = HttpQuestion {
            to: Some(self.to),
            method: "GET".to_owned(),
            target: format!("{path}?{}", query_text(query)),
            headers,
            tls: Some(self.trust()),
            goes_on: Some(said),
            ..HttpQuestion::default()
        };
        let web = self.put(player, question, STREAM_PATIENCE)?;
        if web.code == 101 {
            return Ok(web.body.clone());
        }
        let body = serde_json::from_slice(&web.body).unwrap_or(Value::Null);
        let why = || KubectlStop::Failed("error: unable to upgrade connection".to_owned());
        ApiAnswer { code: web.code, body }.well().and_then(|_| Err(why()))
    }

    fn headers(&self, accepted: &str) -> Vec<(String, String)> {
        vec![
            ("Host".to_owned(), self.to.to_string()),
            ("User-Agent".to_owned(), "kubectl/v1.36.2 (linux/amd64) kubernetes".to_owned()),
            ("Accept".to_owned(), accepted.to_owned()),
            ("Authorization".to_owned(), format!("Bearer {}", self.token)),
        ]
    }

    fn put(
        &self,
        player: &mut Player<'_>,
        question: HttpQuestion,
        within: Duration,
    ) -> Result<Arc<WebReply>, KubectlStop> {
        let what = NetworkAsk::Http(Box::new(question));
        let reply = player.ask(Question { what, within })?;
        let NetworkReply::Web(web) = reply else {
            let why = format!("dial tcp {}: connect: connection refused", self.to);
            let why = format!("Unable to connect to the server: {why}");
            return Err(KubectlStop::Failed(why));
        };
        player.handle(web.body.len());
        Ok(web)
    }
}

fn query_text(query: &[(&str, &str)]) -> String {
    query.iter().map(|(key, value)| format!("{key}={}", escaped(value))).collect::<Vec<_>>().join("&")
}

fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
