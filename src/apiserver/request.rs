//! `RequestInfo` and `RequestContext`: what a request asks for, read from its path, and who asks
//! (`k8s.io/apiserver/pkg/endpoints/request`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::audit_context::{AuditContext, Level};
use apimachinery::fields::FieldSelector;
use apimachinery::names;
use apimachinery::options::DeleteOptions;
use apimachinery::time::Time;
use apimachinery::user::UserInfo;
use flow::{Flow, Step, StepId};

/// Subresources of a namespace, as opposed to resources in one.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];
/// All warnings of one answer together; beyond it each is shortened, then dropped (upstream's numbers).
const MAX_WARNINGS_BYTES: usize = 4096;
const SHORT_WARNING_BYTES: usize = 256;

/// What a request asks for (`request.RequestInfo`), read from method, path and query alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether it is for an API resource or subresource; else it is for a path as `/healthz`.
    pub is_resource_request: bool,
    /// The whole path.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the lower-case
    /// method for a path that is no resource.
    pub verb: String,
    /// `api` or `apis`.
    pub api_prefix: &'static str,
    /// The group; empty for the core group.
    pub group: String,
    /// As `v1`.
    pub version: String,
    /// Empty for cluster-scoped resources and requests for all namespaces. For a namespace, its own name.
    pub namespace: String,
    /// The plural.
    pub resource: String,
    /// As `status`; empty for the resource itself.
    pub subresource: String,
    /// The object's name; for a list, watch or deletecollection the one that `metadata.name=` selects.
    pub name: String,
    /// How many segments the path has from the resource on.
    pub depth: usize,
    /// Of a list, watch or deletecollection, as it was sent.
    pub field_selector: String,
    /// Of a list, watch or deletecollection, as it was sent.
    pub label_selector: String,
}

/// What goes with a request below the handler chain: who asks, why, and what may be said back beside the
/// answer.
#[derive(Debug, Default)]
pub struct RequestContext {
    /// What is asked for.
    pub info: Arc<RequestInfo>,
    /// Who asks.
    pub user: Arc<UserInfo>,
    /// When objects that it makes are said to have been made; None is now. For what every cluster has from
    /// the start and is made when it is first looked at.
    pub created_at: Option<Time>,
    /// Everything runs but the write.
    pub dry_run: bool,
    /// It is a server-side apply: who owns what is the point of it.
    pub is_apply: bool,
    /// Who will own the written fields.
    pub field_manager: String,
    /// As the client gave it: `Strict`, `Warn`, `Ignore`, or nothing.
    pub field_validation: String,
    /// The options of a delete.
    pub delete_options: Option<Box<DeleteOptions>>,
    /// The flow record's step that made the caller ask.
    pub cause: Option<u64>,
    /// The answer's `Audit-Id`.
    pub audit_id: Arc<str>,
    /// What is told of it in the audit log; none when nothing is.
    pub audit: Option<Arc<AuditContext>>,
    /// Where it is said that the request is a long one.
    pub announced: Announced,
    /// Where the story of a write is told.
    pub flow: Flow,
    /// See [`RequestContext::name_attempt`].
    attempted: OnceLock<String>,
    /// The last step that was told of; 0 before the first.
    last_step: AtomicU64,
    warnings: Mutex<Vec<String>>,
}

/// Work with more bytes than this is long: it leaves the runtime's threads. Few objects are so big, and less
/// is done in a millisecond or two.
pub const LONG_BYTES: usize = 64 * 1024;

/// Where work says that it is going to be long, before it is. Without a listener nothing becomes of it.
#[derive(Clone, Debug, Default)]
pub struct Announced(Option<Arc<AtomicBool>>);

impl Announced {
    /// One that somebody listens to.
    pub fn possible() -> Announced {
        Announced(Some(Arc::default()))
    }

    /// So many bytes are to be worked on: where that is long, this comes back on a thread that may be kept
    /// busy.
    pub async fn bytes(&self, bytes: usize) {
        let listener = self.0.as_ref().filter(|_| bytes > LONG_BYTES);
        if listener.is_some_and(|listener| !listener.swap(true, Ordering::Relaxed)) {
            tokio::task::yield_now().await;
        }
    }

    /// Whether it has been said.
    pub fn is_made(&self) -> bool {
        self.0.as_ref().is_some_and(|made| made.load(Ordering::Relaxed))
    }
}

impl RequestInfo {
    /// Reads a request (`RequestInfoFactory.NewRequestInfo`). What is escaped in a path means what it stands
    /// for, slashes too: whoever authorizes sees what will be done. An error is a path that names no
    /// resource although it begins as one (`/api/v1/watch`).
    pub fn new(method: &http::Method, path: &str, query: &str) -> Result<RequestInfo, String> {
        let path = &*percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        let mut info =
            RequestInfo { path: path.into(), verb: method.as_str().to_lowercase(), ..RequestInfo::default() };
        // As many as most paths have.
        let mut parts = Vec::with_capacity(8);
        parts.extend(path.trim_matches('/').split('/'));
        let Some(parts) = info.take_group_version(&parts) else { return Ok(info) };
        let parts = info.take_verb(method, parts).map_err(|error| format!("{error}, {path}"))?;
        info.take_resource(parts);
        if info.name.is_empty() {
            info.take_collection_verb(query);
        }
        Ok(info)
    }

    /// What is left behind the version; nothing when the path is not one of a resource.
    fn take_group_version<'a, 'p>(&mut self, parts: &'a [&'p str]) -> Option<&'a [&'p str]> {
        let (prefix, group, version, rest) = match parts {
            ["api", version, rest @ ..] if !rest.is_empty() => ("api", "", version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => ("apis", *group, version, rest),
            _ => return None,
        };
        self.is_resource_request = true;
        (self.api_prefix, self.group, self.version) = (prefix, group.into(), version.to_string());
        Some(rest)
    }

    fn take_verb<'a, 'p>(
        &mut self,
        method: &http::Method,
        parts: &'a [&'p str],
    ) -> Result<&'a [&'p str], &'static str> {
        if matches!(parts[0], "proxy" | "watch") {
            if parts.len() < 2 {
                return Err("unable to determine kind and namespace from url");
            }
            self.verb = parts[0].into();
            return Ok(&parts[1..]);
        }
        self.verb = match method.as_str() {
            "POST" => "create",
            "GET" | "HEAD" => "get",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => "",
        }
        .into();
        Ok(parts)
    }

    fn take_resource(&mut self, parts: &[&str]) {
        let mut parts = parts;
        if let ["namespaces", namespace, rest @ ..] = parts {
            self.namespace = namespace.to_string();
            if rest.first().is_some_and(|next| !NAMESPACE_SUBRESOURCES.contains(next)) {
                parts = rest;
            }
        }
        let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
        (self.resource, self.name) = (part(0), part(1));
        if self.verb != "proxy" {
            self.subresource = part(2);
        }
        self.depth = parts.len();
    }

    /// Without a name a get is a list or a watch, and a delete one of the collection; a selector may give
    /// the name.
    fn take_collection_verb(&mut self, query: &str) {
        if !matches!(self.verb.as_str(), "get" | "delete" | "watch") {
            return;
        }
        let value = |key: &str| query_value(query, key);
        if self.verb == "get" {
            let watch = value("watch").is_some_and(|text| is_true(&text));
            self.verb = if watch { "watch" } else { "list" }.into();
        } else if self.verb == "delete" {
            self.verb = "deletecollection".into();
        }
        self.label_selector = value("labelSelector").unwrap_or_default();
        self.field_selector = value("fieldSelector").unwrap_or_default();
        let selector = FieldSelector::parse(&self.field_selector).ok();
        let name = selector.as_ref().and_then(|selector| selector.required_value("metadata.name"));
        if let Some(name) = name.filter(|name| names::path_segment_name(name).is_empty()) {
            self.name = name.into();
        }
    }

    /// Whether it changes nothing: limits and audit treat these apart.
    pub fn is_read_only(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch" | "head" | "options")
    }

    /// Whether it may stay open for as long as the client likes (`BasicLongRunningRequestCheck`): no
    /// timeout and no place in the limits.
    pub fn is_long_running(&self) -> bool {
        let streams = ["attach", "exec", "proxy", "log", "portforward"];
        matches!(self.verb.as_str(), "watch" | "proxy")
            || self.is_resource_request && streams.contains(&self.subresource.as_str())
    }
}

impl RequestContext {
    /// For a request of `user`.
    pub fn new(info: Arc<RequestInfo>, user: Arc<UserInfo>) -> RequestContext {
        RequestContext { info, user, ..RequestContext::default() }
    }

    /// Says `text` to the client in a `Warning` header. The same text twice is said once; at the bound texts
    /// are shortened, and then left out.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if text.is_empty() || warnings.contains(&text) {
            return;
        }
        let used: usize = warnings.iter().map(String::len).sum();
        if used + text.len() <= MAX_WARNINGS_BYTES {
            warnings.push(text);
        } else if used + SHORT_WARNING_BYTES <= MAX_WARNINGS_BYTES {
            let end = (0..=SHORT_WARNING_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            warnings.push(text[..end].into());
        }
    }

    /// Adds an annotation to the audit event, if there will be one.
    pub fn annotate(&self, key: &str, value: &str) {
        if let Some(audit) = &self.audit {
            audit.annotate(key, value);
        }
    }

    /// The same, for what is only told where bodies are.
    pub fn annotate_request(&self, key: &str, value: &str) {
        if let Some(audit) = self.audit.as_ref().filter(|audit| audit.level >= Level::Request) {
            audit.annotate(key, value);
        }
    }

    /// What led to the next step of the flow record: the last step that was told of, or who asked.
    pub fn cause(&self) -> Option<u64> {
        StepId(self.last_step.load(Ordering::Relaxed)).cause().map(|step| step.0).or(self.cause)
    }

    /// Whether the story of this request is told: then it is worth looking what a plugin changes.
    pub fn is_told(&self) -> bool {
        self.flow.is_on() && self.cause.is_some()
    }

    /// A mutating admission plugin changed the object at these paths.
    pub fn tell_admitted(&self, plugin: &str, changed: &[String]) {
        let (plugin, changed) = (self.flow.name(plugin), self.flow.name(&changed.join(", ")));
        self.tell(Step::Admitted { plugin, changed });
    }

    /// An admission plugin said no.
    pub fn tell_denied(&self, plugin: &str) {
        if self.is_told() {
            self.tell(Step::Denied { plugin: self.flow.name(plugin) });
        }
    }

    /// The body of a create names the object: the path does not. The first name counts.
    pub fn name_attempt(&self, name: String) {
        let _ = self.attempted.set(name);
    }

    /// The name in the body of a create, as far as it was read; may be empty.
    pub fn attempted(&self) -> &str {
        self.attempted.get().map(String::as_str).unwrap_or_default()
    }

    /// Nothing is wrong with the object, and all plugins agree.
    pub fn tell_validated(&self) {
        self.tell(Step::Validated);
    }

    fn tell(&self, step: Step) {
        if self.is_told() {
            let step = self.flow.record(self.cause().map(StepId), step);
            self.last_step.store(step.0, Ordering::Relaxed);
        }
    }

    /// What was said so far, in order.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// The first value of `key` in a query, decoded.
pub fn query_value(query: &str, key: &str) -> Option<String> {
    query_pairs(query).find(|(name, _)| name == key).map(|(_, value)| value)
}

/// The names and values of a query, decoded (`url.ParseQuery`).
pub fn query_pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescape(key), unescape(value))
    })
}

/// A boolean of a query: anything but `false` and `0` is true, as is the bare name.
pub fn is_true(text: &str) -> bool {
    !matches!(text.to_ascii_lowercase().as_str(), "false" | "0")
}

fn unescape(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: &str, url: &str) -> RequestInfo {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        RequestInfo::new(&method.parse().unwrap(), path, query).unwrap()
    }

    #[test]
    fn resources_are_read_from_paths() {
        // method, url, verb, group, version, namespace, resource, subresource, name
        let cases = [
            ("GET", "/api/v1/namespaces", "list", "", "v1", "", "namespaces", "", ""),
            ("GET", "/api/v1/namespaces/other", "get", "", "v1", "other", "namespaces", "", "other"),
            ("PUT", "/api/v1/namespaces/o/finalize", "update", "", "v1", "o", "namespaces", "finalize", "o"),
            ("GET", "/api/v1/namespaces/o/pods", "list", "", "v1", "o", "pods", "", ""),
            ("HEAD", "/api/v1/namespaces/o/pods/p", "get", "", "v1", "o", "pods", "", "p"),
            ("GET", "/api/v1/pods?watch=true", "watch", "", "v1", "", "pods", "", ""),
            ("GET", "/api/v1/pods?watch", "watch", "", "v1", "", "pods", "", ""),
            ("GET", "/api/v1/pods?watch=0", "list", "", "v1", "", "pods", "", ""),
            ("GET", "/api/v1/watch/pods", "watch", "", "v1", "", "pods", "", ""),
            ("GET", "/api/v1/watch/namespaces/o/pods/p", "watch", "", "v1", "o", "pods", "", "p"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dp", "list", "", "v1", "", "pods", "", "p"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da/b", "list", "", "v1", "", "pods", "", ""),
            ("DELETE", "/api/v1/namespaces/o/pods", "deletecollection", "", "v1", "o", "pods", "", ""),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/o/deployments/d/scale",
                "patch",
                "apps",
                "v1",
                "o",
                "deployments",
                "scale",
                "d",
            ),
            (
                "POST",
                "/apis/apps/v1/namespaces/o/deployments",
                "create",
                "apps",
                "v1",
                "o",
                "deployments",
                "",
                "",
            ),
            ("GET", "/api/v1/namespaces/o%2Fpods/%61", "get", "", "v1", "o", "pods", "", "a"),
            ("GET", "/api/v1/proxy/namespaces/o/pods/p/x", "proxy", "", "v1", "o", "pods", "", "p"),
        ];
        for (method, url, verb, group, version, namespace, resource, subresource, name) in cases {
            let info = info(method, url);
            assert!(info.is_resource_request, "{url}");
            let found = (&*info.verb, &*info.group, &*info.version, &*info.namespace, &*info.resource);
            assert_eq!(found, (verb, group, version, namespace, resource), "{url}");
            assert_eq!((&*info.subresource, &*info.name), (subresource, name), "{url}");
        }
    }

    #[test]
    fn other_paths_are_no_resources() {
        for url in ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/version"] {
            let info = info("GET", url);
            assert_eq!((info.is_resource_request, &*info.verb, &*info.path), (false, "get", url));
        }
        assert!(RequestInfo::new(&http::Method::GET, "/api/v1/watch", "").is_err());
    }

    #[test]
    fn watches_and_streams_run_long() {
        assert!(info("GET", "/api/v1/pods?watch=1").is_long_running());
        assert!(info("GET", "/api/v1/namespaces/a/pods/p/log?follow=true").is_long_running());
        assert!(!info("GET", "/api/v1/pods").is_long_running());
    }

    #[test]
    fn warnings_are_said_once_and_bounded() {
        let context = RequestContext::default();
        context.warn("a");
        context.warn("a");
        assert_eq!(context.warnings(), ["a"]);
        (0..100).for_each(|number| context.warn(format!("{number}{}", "x".repeat(300))));
        assert!(context.warnings().iter().map(String::len).sum::<usize>() <= MAX_WARNINGS_BYTES);
    }
}
