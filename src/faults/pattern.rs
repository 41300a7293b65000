//! Which requests a fault is about: texts with `*`, as rules of RBAC and webhooks have them, a little wider.

use apiserver::request::RequestInfo;

/// Verbs that change something.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// Verbs that look.
const READS: [&str; 3] = ["get", "list", "watch"];

/// What a request can be besides: a connection through a server, and those of paths that are no resources.
const OTHERS: [&str; 5] = ["proxy", "post", "put", "head", "options"];

/// A text in which each `*` stands for anything, made ready for many requests.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// A single star.
    Anything,
    /// Without any star, as most are.
    Exactly(Box<str>),
    /// With stars among other text.
    WithStars(Box<str>),
}

/// Which verbs: `read` and `write` stand for those of their kind.
#[derive(Clone, Debug)]
pub(crate) enum VerbPattern {
    /// Those that look.
    Reads,
    /// Those that change something.
    Writes,
    /// As the text says.
    Named(Pattern),
}

/// `pods`, `pods/status`, `deployments.apps/scale`, `pods/*`, or the path of what is no resource: `/version`.
/// A subresource is not its resource; a resource without a group is of any.
#[derive(Clone, Debug)]
pub(crate) enum ResourcePattern {
    /// Every resource, and what is none.
    Anything,
    /// What is no resource.
    Path(Pattern),
    /// A resource, its group where that matters, and its subresource, empty for none.
    Resource(Pattern, Option<Pattern>, Pattern),
}

/// Whether one of the patterns is as `is` wants it; none at all are for everything.
pub(crate) fn any<P>(patterns: &[P], is: impl Fn(&P) -> bool) -> bool {
    patterns.is_empty() || patterns.iter().any(is)
}

impl Pattern {
    /// Of a text.
    pub(crate) fn new(text: &str) -> Pattern {
        match text {
            "*" => Pattern::Anything,
            _ if text.contains('*') => Pattern::WithStars(text.into()),
            _ => Pattern::Exactly(text.into()),
        }
    }

    /// Whether `text` is as it says.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Anything => true,
            Pattern::Exactly(whole) => **whole == *text,
            Pattern::WithStars(parts) => matches(parts, text),
        }
    }
}

impl VerbPattern {
    /// Of a text.
    pub(crate) fn new(text: &str) -> VerbPattern {
        match text {
            "read" => VerbPattern::Reads,
            "write" => VerbPattern::Writes,
            text => VerbPattern::Named(Pattern::new(text)),
        }
    }

    /// Whether any request has such a verb.
    pub(crate) fn is_any(&self) -> bool {
        all_verbs().any(|verb| self.matches(verb))
    }

    /// Whether it is this verb.
    pub(crate) fn matches(&self, verb: &str) -> bool {
        match self {
            VerbPattern::Reads => READS.contains(&verb),
            VerbPattern::Writes => WRITES.contains(&verb),
            VerbPattern::Named(pattern) => pattern.matches(verb),
        }
    }
}

/// Those that requests have.
pub(crate) fn all_verbs() -> impl Iterator<Item = &'static str> {
    READS.into_iter().chain(WRITES).chain(OTHERS)
}

impl ResourcePattern {
    /// Of a text.
    pub(crate) fn new(text: &str) -> ResourcePattern {
        match text {
            "*" => return ResourcePattern::Anything,
            path if path.starts_with('/') => return ResourcePattern::Path(Pattern::new(path)),
            _ => {}
        }
        let (object, subresource) = text.split_once('/').unwrap_or((text, ""));
        let (resource, group) = match object.split_once('.') {
            Some((resource, group)) => (resource, Some(Pattern::new(group))),
            None => (object, None),
        };
        ResourcePattern::Resource(Pattern::new(resource), group, Pattern::new(subresource))
    }

    /// Whether a request is about it.
    pub(crate) fn matches(&self, info: &RequestInfo) -> bool {
        match self {
            ResourcePattern::Anything => true,
            ResourcePattern::Path(path) => !info.is_resource_request && path.matches(&info.path),
            ResourcePattern::Resource(resource, group, subresource) => {
                info.is_resource_request
                    && resource.matches(&info.resource)
                    && group.as_ref().is_none_or(|group| group.matches(&info.group))
                    && subresource.matches(&info.subresource)
            }
        }
    }
}

/// Whether `text` is as the pattern says, part by part between its stars.
fn matches(pattern: &str, text: &str) -> bool {
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
            ("**", "x", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn resources_are_named_with_group_and_subresource() {
        let info = |path: &str| RequestInfo::new(&http::Method::GET, path, "").unwrap();
        let pods = info("/api/v1/namespaces/a/pods/x");
        let status = info("/api/v1/namespaces/a/pods/x/status");
        let scale = info("/apis/apps/v1/namespaces/a/deployments/x/scale");
        let is = |pattern: &str, info: &RequestInfo| ResourcePattern::new(pattern).matches(info);
        let verb = |pattern: &str, verb: &str| VerbPattern::new(pattern).matches(verb);
        assert!(is("pods", &pods) && !is("pods", &status) && is("pods/status", &status));
        assert!(is("pods/*", &status) && is("*", &status) && is("deployments.apps/scale", &scale));
        assert!(is("deployments/scale", &scale) && !is("deployments.batch/scale", &scale));
        assert!(is("/version", &info("/version")) && !is("/version", &pods) && is("*", &info("/version")));
        assert!(!is("*/status", &info("/version")) && is("*/status", &status) && !is("/*", &pods));
        assert!(verb("write", "patch") && !verb("write", "get") && verb("read", "watch"));
        assert!(verb("delete*", "delete") && !verb("read", "read"));
        assert!(any::<Pattern>(&[], |_| false));
    }
}
