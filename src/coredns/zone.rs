//! Which name is meant: how names below the cluster's domain are made (`plugin/kubernetes/parse.go`).

use std::net::IpAddr;

/// The cluster's domain (`--cluster-domain`).
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";
/// The version of the specification that names follow.
pub(crate) const DNS_SCHEMA_VERSION: &str = "1.1.0";

/// What a name below the cluster's domain means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning<'a> {
    /// A part of the tree that others are below: it is there, and has nothing.
    Branch,
    /// A namespace, which others are below: it has nothing itself.
    Namespace(&'a str),
    /// `dns-version`
    Version,
    /// `SERVICE.NAMESPACE.svc`
    Service { namespace: &'a str, service: &'a str },
    /// `ENDPOINT.SERVICE.NAMESPACE.svc`
    Endpoint { namespace: &'a str, service: &'a str, endpoint: &'a str },
    /// `_PORT._PROTOCOL.SERVICE.NAMESPACE.svc`
    Port { namespace: &'a str, service: &'a str, port: &'a str, protocol: &'a str },
    /// `10-244-1-2.NAMESPACE.pod`
    Pod { namespace: &'a str, address: Option<IpAddr> },
    /// Nothing that there can be.
    Nothing,
}

/// The part of a name before the cluster's domain; nothing where it is not below that.
pub(crate) fn below(name: &str) -> Option<&str> {
    if name == CLUSTER_DOMAIN {
        return Some("");
    }
    name.strip_suffix(CLUSTER_DOMAIN)?.strip_suffix('.')
}

/// What the part before the cluster's domain means; it is in lower case.
pub(crate) fn meaning(inner: &str) -> Meaning<'_> {
    let labels: Vec<&str> = inner.rsplit('.').filter(|label| !label.is_empty()).collect();
    match labels[..] {
        [] | ["svc"] | ["pod"] => Meaning::Branch,
        ["dns-version"] => Meaning::Version,
        ["svc" | "pod", namespace] => Meaning::Namespace(namespace),
        ["svc", namespace, service] => Meaning::Service { namespace, service },
        ["svc", namespace, service, endpoint] => Meaning::Endpoint { namespace, service, endpoint },
        ["svc", namespace, service, protocol, port] => {
            match (port.strip_prefix('_'), protocol.strip_prefix('_')) {
                (Some(port), Some(protocol)) => Meaning::Port { namespace, service, port, protocol },
                _ => Meaning::Nothing,
            }
        }
        ["pod", namespace, dashed] => Meaning::Pod { namespace, address: address(dashed) },
        _ => Meaning::Nothing,
    }
}

/// `10-244-1-2`, and with more dashes an IPv6 address.
fn address(dashed: &str) -> Option<IpAddr> {
    let is_v4 = dashed.matches('-').count() == 3 && !dashed.contains("--");
    dashed.replace('-', if is_v4 { "." } else { ":" }).parse().ok()
}
