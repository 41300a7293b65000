//! Which requests a fault is about: texts with `*`, as rules of RBAC and webhooks have them, a little wider.

use apiserver::request::RequestInfo;

/// Verbs that change something.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// Verbs that look.
const READS: [&str; 3] = ["get", "list", "watch"];

/// Whether `text` is as the pattern says, in which each `*` stands for anything.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Whether one of the patterns matches; none at all match everything.
pub fn any(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, text))
}

/// `read` and `write` stand for verbs of their kind.
pub fn verb(patterns: &[String], verb: &str) -> bool {
    patterns.is_empty()
        || patterns.iter().any(|pattern| match pattern.as_str() {
            "read" => READS.contains(&verb),
            "write" => WRITES.contains(&verb),
            pattern => matches(pattern, verb),
        })
}

/// `pods`, `pods/status`, `deployments.apps/scale`, `pods/*`, or the path of what is no resource: `/version`.
/// A subresource is not its resource; a resource without a group is of any.
pub fn resource(patterns: &[String], info: &RequestInfo) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| is_resource(pattern, info))
}

fn is_resource(pattern: &str, info: &RequestInfo) -> bool {
    if pattern == "*" {
        return true;
    }
    if !info.is_resource_request {
        return pattern.starts_with('/') && matches(pattern, &info.path);
    }
    let (object, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
    let (resource, group) = match object.split_once('.') {
        Some((resource, group)) => (resource, Some(group)),
        None => (object, None),
    };
    matches(resource, &info.resource)
        && group.is_none_or(|group| matches(group, &info.group))
        && matches(subresource, &info.subresource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        let cases = [
            ("web", "web", true),
            ("web", "web-1", false),
            ("web-*", "web-1", true),
            ("*-1", "web-1", true),
            ("*", "", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXc", false),
            ("a*a", "a", false),
            ("", "x", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn resources_are_named_with_group_and_subresource() {
        let info = |path: &str| RequestInfo::new(&http::Method::GET, path, "").unwrap();
        let pods = info("/api/v1/namespaces/a/pods/x");
        let status = info("/api/v1/namespaces/a/pods/x/status");
        let scale = info("/apis/apps/v1/namespaces/a/deployments/x/scale");
        let is = |pattern: &str, info: &RequestInfo| resource(&[pattern.to_owned()], info);
        assert!(is("pods", &pods) && !is("pods", &status) && is("pods/status", &status));
        assert!(is("pods/*", &status) && is("*", &status) && is("deployments.apps/scale", &scale));
        assert!(is("deployments/scale", &scale) && !is("deployments.batch/scale", &scale));
        assert!(is("/version", &info("/version")) && !is("/version", &pods) && is("*", &info("/version")));
        assert!(verb(&["write".into()], "patch") && !verb(&["write".into()], "get"));
        assert!(verb(&["read".into()], "watch") && verb(&[], "get") && verb(&["delete*".into()], "delete"));
    }
}
