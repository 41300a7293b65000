//! `RequestInfo`: what a request asks for, read from its method, path and query
//! (`request.RequestInfoFactory`).

use apimachinery::fields::FieldSelector;
use apimachinery::names;

golang::text_error! {
    /// A path that begins as a resource's and names none; in upstream's words.
    pub struct BadRequestPath;
}

/// Below it stands what is mounted beside the API (`beside`), if anything is.
pub const BESIDE: &str = "/kubarium/";

/// Below it stand profiles, which take as long as is asked for.
const PROFILES: &str = "/debug/pprof/";

/// Subresources of a namespace, as opposed to resources in one.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

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

impl RequestInfo {
    /// Reads a request (`RequestInfoFactory.NewRequestInfo`). What is escaped in a path means what it stands
    /// for, slashes too: whoever authorizes sees what will be done. An error is a path that names no
    /// resource although it begins as one (`/api/v1/watch`).
    pub fn new(method: &http::Method, path: &str, query: &str) -> Result<RequestInfo, BadRequestPath> {
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

    /// Whether it is for what is mounted beside the API.
    pub fn is_beside(&self) -> bool {
        !self.is_resource_request && self.path.starts_with(BESIDE)
    }

    /// Whether it may stay open for as long as the client likes (`BasicLongRunningRequestCheck`): no
    /// timeout and no place in the limits. What is mounted beside the API says itself how long it takes, and
    /// who asks for a profile.
    pub fn is_long_running(&self) -> bool {
        let streams = ["attach", "exec", "proxy", "log", "portforward"];
        matches!(self.verb.as_str(), "watch" | "proxy")
            || self.is_beside()
            || !self.is_resource_request && self.path.starts_with(PROFILES)
            || self.is_resource_request && streams.contains(&self.subresource.as_str())
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

/// Whether a path is a root or stands below it; `/debugger` is not below `/debug`.
pub fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
}
