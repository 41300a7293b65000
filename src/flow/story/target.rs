//! What a request is about, read from its path.

/// A path taken apart (`request.RequestInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestTarget<'a> {
    /// As `apps/v1`, `v1`.
    pub version: String,
    /// As `deployments.apps`.
    pub resource: String,
    pub namespace: &'a str,
    /// Empty for a collection.
    pub name: &'a str,
    /// As `status`.
    pub subresource: &'a str,
}

impl RequestTarget<'_> {
    /// Whether something that was stored is what the request is about, in whichever of its groups, and not
    /// what a plugin wrote beside it, as a quota that counts.
    pub(crate) fn is_of(&self, resource: &str) -> bool {
        let plural = |resource: &str| resource.split('.').next().unwrap_or_default().to_owned();
        self.resource.is_empty() || plural(resource) == plural(&self.resource)
    }

    /// Of a path below `/api` or `/apis`; nothing of any other.
    pub(crate) fn of(path: &str) -> Option<RequestTarget<'_>> {
        let mut parts = path.split('/').skip(1);
        let (group, version) = match parts.next()? {
            "api" => ("", parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let rest: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, inside @ ..] if is_inside(inside) => (*namespace, inside),
            rest => ("", rest),
        };
        let at = |index: usize| rest.get(index).copied().unwrap_or_default();
        let resource = Some(at(0)).filter(|resource| !resource.is_empty())?;
        let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Some(RequestTarget { version, resource, namespace, name: at(1), subresource: at(2) })
    }
}

/// Behind a namespace comes a resource in it, and not a part of the namespace itself.
fn is_inside(rest: &[&str]) -> bool {
    !rest.is_empty() && !matches!(rest, ["status" | "finalize"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let cases = [
            ("/api/v1/namespaces/ns/pods/web/status", "v1 pods ns web status"),
            ("/apis/apps/v1/namespaces/ns/deployments", "apps/v1 deployments.apps ns  "),
            ("/api/v1/namespaces/ns", "v1 namespaces  ns "),
            ("/api/v1/namespaces/ns/finalize", "v1 namespaces  ns finalize"),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/a",
                "rbac.authorization.k8s.io/v1 clusterroles.rbac.authorization.k8s.io  a ",
            ),
        ];
        for (path, wanted) in cases {
            let RequestTarget { version, resource, namespace, name, subresource } =
                RequestTarget::of(path).unwrap();
            assert_eq!([&*version, &resource, namespace, name, subresource].join(" "), wanted, "{path}");
        }
        for path in ["/api/v1", "/version", "/apis/apps/v1", ""] {
            assert_eq!(RequestTarget::of(path), None, "{path}");
        }
    }
}
