//! What somebody must be allowed to who asks a kubelet (`pkg/kubelet/server/auth.go`): a verb on
//! subresources of its Node, of which one suffices.

use http::Method;

/// What is asked of the kubelet's Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// As `get`; empty for methods that have none.
    pub verb: &'static str,
    /// The finer ones first (`KubeletFineGrainedAuthz`); `proxy` allows what they do and more.
    pub subresources: &'static [&'static str],
}

/// What a request asks for.
pub fn asked(method: &Method, path: &str) -> Asked {
    let verb = match method.as_str() {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    };
    Asked { verb, subresources: subresources(path) }
}

fn subresources(path: &str) -> &'static [&'static str] {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match first {
        "stats" => &["stats"],
        "metrics" => &["metrics"],
        // As in pods/log.
        "logs" => &["log"],
        "checkpoint" => &["checkpoint"],
        "healthz" => &["healthz", "proxy"],
        "configz" => &["configz", "proxy"],
        "pods" | "runningpods" => &["pods", "proxy"],
        _ => &["proxy"],
    }
}
