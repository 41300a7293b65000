//! A line in the log for each request (`server/httplog`): who asked what, what came of it, and how long it
//! took. Never what was sent or answered.
//!
//! Upstream writes these lines at `-v=3`; here they are events of the level `DEBUG`, in a span that whatever
//! is logged on the way of the request is in, too. Below that level nothing is made.

use std::time::Duration;

use tracing::Span;
use tracing::field::Empty;

use crate::request::{RequestContext, RequestInfo};
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, ApiResponse, InProcessUser, RemoteAddress};

/// The parameters of the API, which say what is asked for. Of others, as of what a proxied path is asked,
/// nobody knows what they hold; of `command` (exec) it is known that it may be a password.
const SHOWN: &[&str] = &[
    "allowWatchBookmarks",
    "container",
    "continue",
    "dryRun",
    "fieldManager",
    "fieldSelector",
    "fieldValidation",
    "follow",
    "force",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "includeObject",
    "includeUninitialized",
    "labelSelector",
    "limit",
    "limitBytes",
    "orphanDependents",
    "ports",
    "pretty",
    "previous",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "sinceSeconds",
    "sinceTime",
    "stderr",
    "stdin",
    "stdout",
    "stream",
    "tailLines",
    "timeout",
    "timeoutSeconds",
    "timestamps",
    "tty",
    "watch",
];

/// The span of the line of a request that is logged.
#[derive(Clone)]
pub(super) struct RequestLogSpan(Span);

impl RequestLogSpan {
    /// Begins the line of a request; none when nobody reads it.
    pub(super) fn begin(request: &ApiRequest, ctx: &RequestContext) -> Option<RequestLogSpan> {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return None;
        }
        let extensions = request.extensions();
        let address = extensions.get().map(|RemoteAddress(address)| address.to_string()).unwrap_or_default();
        let component = extensions.get().map(|InProcessUser(user)| user.name.clone());
        let agent = request.headers().get(http::header::USER_AGENT);
        let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes())).unwrap_or_default();
        let span = tracing::debug_span!(
            "request",
            verb = %verb(&ctx.info),
            URI = %uri(request),
            user = Empty,
            "as" = Empty,
            userAgent = ?agent,
            "audit-ID" = %ctx.audit_id,
            srcIP = ?address,
        );
        if let Some(name) = component {
            span.record("user", &*name);
        }
        Some(RequestLogSpan(span))
    }

    /// Authentication says who asks, of whom that was not known before.
    pub(super) fn asked_by(&self, user: &UserInfo) {
        self.0.record("user", &*user.name);
    }

    /// Who asks is somebody else from here on.
    pub(super) fn acting_as(&self, user: &UserInfo) {
        self.0.record("as", &*user.name);
    }

    /// What is logged while the request is worked on belongs to its line.
    pub(super) fn span(&self) -> Span {
        self.0.clone()
    }

    /// The answer is there; that of a watch has begun.
    pub(super) fn end(&self, response: &ApiResponse, latency: Duration) {
        let resp = response.status().as_u16();
        tracing::debug!(parent: &self.0, resp, ?latency, "HTTP");
    }
}

/// As in metrics: `LIST`, `POST`, ... (`metrics.NormalizedVerb`).
fn verb(info: &RequestInfo) -> String {
    match info.verb.as_str() {
        "create" => "POST".into(),
        "update" => "PUT".into(),
        other => other.to_ascii_uppercase(),
    }
}

/// Path and query, without the values of parameters that are not the API's.
fn uri(request: &ApiRequest) -> String {
    let uri = request.uri();
    with_shown_query(uri.path(), uri.query())
}

/// A path and a query, without the values of parameters that are not the API's.
pub(super) fn with_shown_query(path: &str, query: Option<&str>) -> String {
    let Some(query) = query else { return path.to_owned() };
    let shown: Vec<String> = query.split('&').map(shown).collect();
    format!("{path}?{}", shown.join("&"))
}

fn shown(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if !SHOWN.contains(&name) => format!("{name}=..."),
        _ => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use axum::body::Body;
    use sync::Mutex;
    use tower::{ServiceBuilder, ServiceExt};
    use tracing_subscriber::fmt::MakeWriter;

    use super::super::audit_init::identify;
    use super::super::chain::{Chain, endpoint, from_fn, from_fn_with_state};
    use super::super::metrics::measure;
    use super::super::passed::Passed;
    use super::super::request_info::resolve_request_info;
    use super::*;
    use crate::metrics::Metrics;
    use clock::Clock;
    use entropy::Entropy;

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Log {
        type Writer = Log;

        fn make_writer(&'a self) -> Log {
            self.clone()
        }
    }

    /// What is logged at a level of a request, and whether a line went with it.
    async fn logged(level: tracing::Level) -> (String, bool) {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(log.clone())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let went = Arc::new(Mutex::new(false));
        let seen = went.clone();
        let service = ServiceBuilder::new()
            .layer(from_fn(resolve_request_info))
            .layer(from_fn_with_state(Entropy::seeded(1), identify))
            .layer(from_fn_with_state(Arc::new(Metrics::new(Clock::real(), vec![])), measure))
            .service(endpoint(move |request: Passed| {
                *seen.lock() = request.line.is_some();
                if let Some(line) = &request.line {
                    line.asked_by(&UserInfo::authenticated("jane", &[]));
                    line.acting_as(&UserInfo::authenticated("joe", &[]));
                }
                async {
                    tracing::debug!("on the way");
                    http::Response::builder().status(201).body(Body::from("s3cret")).unwrap()
                }
            }));
        let request = http::Request::builder()
            .method("POST")
            .uri("/api/v1/namespaces/ns/pods?dryRun=All&command=s3cret&token=s3cret")
            .header("user-agent", "kubectl/v1")
            .header("authorization", "Bearer s3cret")
            .header("audit-id", "id-1")
            .body(Body::from("s3cret"))
            .unwrap();
        Chain::new(service).oneshot(request).await.unwrap();
        let text = String::from_utf8(log.0.lock().clone()).unwrap();
        let went = *went.lock();
        (text, went)
    }

    #[tokio::test]
    async fn a_line_says_who_asked_what_and_what_came_of_it_and_no_secret() {
        let (text, _) = logged(tracing::Level::DEBUG).await;
        let uri = "URI=/api/v1/namespaces/ns/pods?dryRun=All&command=...&token=...";
        let fields = ["verb=POST", uri, "user=\"jane\"", "as=\"joe\"", "userAgent=\"kubectl/v1\""];
        let line = text.lines().find(|line| line.contains("HTTP")).unwrap_or_else(|| panic!("{text}"));
        for field in fields.into_iter().chain(["audit-ID=id-1", "resp=201", "latency="]) {
            assert!(line.contains(field), "{field} is not in {line}");
        }
        let inner = text.lines().find(|line| line.contains("on the way")).unwrap();
        assert!(inner.contains("audit-ID=id-1"), "what is logged on the way is in the span: {inner}");
        assert!(!text.contains("s3cret"), "{text}");
    }

    #[tokio::test]
    async fn below_its_level_nothing_is_made() {
        let (text, went) = logged(tracing::Level::INFO).await;
        assert_eq!((text.as_str(), went), ("", false));
    }
}
