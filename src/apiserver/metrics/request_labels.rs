//! What a request is counted by: the labels of `apiserver_request_total` and its like (`cleanVerb`,
//! `CleanScope`, `cleanDryRun`). All values but names of kinds are of a closed set, so that no client makes
//! endless series.

use http::Method;
use http::header::CONTENT_TYPE;

use crate::request::{RequestInfo, query_value};
use apimachinery::wire::ApiRequest;

/// What is asked of whatever handles a connection itself.
const CONNECTS: [&str; 5] = ["log", "exec", "portforward", "attach", "proxy"];
const APPLY: &str = "application/apply-patch+yaml";

/// The labels of a request, as `endpoints/metrics` cleans them. All but `component` and `dry_run` are in each
/// metric of requests.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) struct RequestLabels<'a> {
    pub component: &'static str,
    pub dry_run: &'static str,
    pub group: &'a str,
    pub resource: &'a str,
    pub scope: &'static str,
    pub subresource: &'a str,
    pub verb: &'static str,
    pub version: &'a str,
}

impl<'a> RequestLabels<'a> {
    /// Of a request for a resource.
    pub(crate) fn of_resource(info: &'a RequestInfo, cleaned: Cleaned) -> RequestLabels<'a> {
        let Cleaned { scope, verb, dry_run } = cleaned;
        let RequestInfo { group, resource, subresource, version, .. } = info;
        RequestLabels { component: "apiserver", dry_run, group, resource, scope, subresource, verb, version }
    }

    /// Of a path that is no resource, which is only read.
    pub(crate) fn of_path(component: &'static str, path: &'a str) -> RequestLabels<'a> {
        RequestLabels {
            component,
            dry_run: "",
            group: "",
            resource: "",
            scope: "",
            subresource: path,
            verb: "GET",
            version: "",
        }
    }

    /// Those that every metric has behind `component` and `dry_run`, as they stand between braces.
    pub(super) fn common(&self) -> String {
        let RequestLabels { group, resource, scope, subresource, verb, version, .. } = self;
        format!(
            "group={group:?},resource={resource:?},scope=\"{scope}\",subresource={subresource:?},\
             verb=\"{verb}\",version={version:?}"
        )
    }
}

/// Of a request for a resource, what is not in its [`RequestInfo`] as metrics want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cleaned {
    scope: &'static str,
    verb: &'static str,
    dry_run: &'static str,
}

impl Cleaned {
    /// As a route of the API is counted: a list is one of a namespace or of the cluster, whatever it selects.
    pub(crate) fn of_route(request: &ApiRequest, info: &RequestInfo) -> Cleaned {
        let scope = if info.depth > 1 || info.verb == "create" {
            "resource"
        } else if info.namespace.is_empty() {
            "cluster"
        } else {
            "namespace"
        };
        Cleaned { scope, verb: clean_verb(request, info, scope), dry_run: clean_dry_run(request) }
    }

    /// As filters count it, which know of no routes.
    pub(crate) fn of_filters(request: &ApiRequest, info: &RequestInfo) -> Cleaned {
        let scope = clean_scope(info);
        Cleaned { scope, verb: clean_verb(request, info, scope), dry_run: clean_dry_run(request) }
    }

    /// Of the list that a watch begins with (`CleanListScope`).
    pub(super) fn list_scope(info: &RequestInfo) -> &'static str {
        clean_scope(info)
    }

    /// As long-running requests are counted while they are under way.
    pub(crate) fn long_running(self, info: &RequestInfo) -> Cleaned {
        Cleaned { scope: clean_scope(info), dry_run: "", ..self }
    }
}

/// `CleanScope`
fn clean_scope(info: &RequestInfo) -> &'static str {
    if !info.name.is_empty() || info.verb == "create" {
        "resource"
    } else if !info.namespace.is_empty() {
        "namespace"
    } else if info.is_resource_request {
        "cluster"
    } else {
        ""
    }
}

/// `cleanVerb` of `CanonicalVerb`: by the method, but for what the method does not say.
fn clean_verb(request: &ApiRequest, info: &RequestInfo, scope: &str) -> &'static str {
    if info.is_resource_request && CONNECTS.contains(&&*info.subresource) {
        return "CONNECT";
    }
    if info.is_resource_request && info.verb == "watch" {
        return "WATCH";
    }
    match *request.method() {
        Method::GET | Method::HEAD if matches!(scope, "resource" | "") => "GET",
        Method::GET | Method::HEAD => "LIST",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH if request.headers().get(CONTENT_TYPE).is_some_and(|it| it == APPLY) => "APPLY",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// `cleanDryRun`
fn clean_dry_run(request: &ApiRequest) -> &'static str {
    // Nearly no request says so.
    let Some(query) = request.uri().query().filter(|query| query.contains("dryRun")) else { return "" };
    match query_value(query, "dryRun").as_deref() {
        None => "",
        Some("All") => "All",
        Some(_) => "invalid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(line: &str, content_type: &str) -> [Cleaned; 2] {
        let (method, target) = line.split_once(' ').unwrap();
        let request = http::Request::builder().method(method).uri(target).header(CONTENT_TYPE, content_type);
        let request = request.body(axum::body::Body::empty()).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let info = RequestInfo::new(request.method(), path, query).unwrap();
        [Cleaned::of_route(&request, &info), Cleaned::of_filters(&request, &info)]
    }

    /// As the labels of a 1.36.2 stood after such requests.
    #[test]
    fn labels_are_those_that_upstream_writes() {
        for (line, content_type, verb, scope, dry_run) in [
            ("GET /api/v1/namespaces/a/pods", "", "LIST", "namespace", ""),
            ("GET /api/v1/pods", "", "LIST", "cluster", ""),
            ("GET /api/v1/namespaces", "", "LIST", "cluster", ""),
            ("GET /api/v1/namespaces/a", "", "GET", "resource", ""),
            ("HEAD /api/v1/namespaces/a/pods/p", "", "GET", "resource", ""),
            ("GET /api/v1/namespaces/a/pods?watch=1", "", "WATCH", "namespace", ""),
            ("GET /api/v1/watch/pods", "", "WATCH", "cluster", ""),
            ("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dp", "", "LIST", "namespace", ""),
            ("POST /api/v1/namespaces/a/pods", "", "POST", "resource", ""),
            ("POST /api/v1/namespaces/a/pods?dryRun=All", "", "POST", "resource", "All"),
            ("PUT /api/v1/namespaces/a/pods/p/status?dryRun=no", "", "PUT", "resource", "invalid"),
            ("PATCH /api/v1/nodes/n", "application/merge-patch+json", "PATCH", "resource", ""),
            ("PATCH /api/v1/nodes/n", APPLY, "APPLY", "resource", ""),
            ("DELETE /api/v1/namespaces/a/pods", "", "DELETE", "namespace", ""),
            ("GET /api/v1/namespaces/a/pods/p/log", "", "CONNECT", "resource", ""),
            ("POST /api/v1/namespaces/a/pods/p/exec", "", "CONNECT", "resource", ""),
        ] {
            let expected = Cleaned { scope, verb, dry_run };
            assert_eq!(cleaned(line, content_type)[0], expected, "{line}");
        }
        let [_, by_name] = cleaned("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dp", "");
        assert_eq!(by_name, Cleaned { scope: "resource", verb: "GET", dry_run: "" });
        let [_, path] = cleaned("GET /healthz", "");
        assert_eq!(path, Cleaned { scope: "", verb: "GET", dry_run: "" });
    }
}
