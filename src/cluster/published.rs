//! `Publish`: what of the cluster's Services is opened on the host, and where (kind's `extraPortMappings`,
//! k3d's `--port`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// What `--publish` may be, for whoever has written something else.
const FORMS: &str = "it may be PORT:NODEPORT, PORT:NODEPORT@NODE, PORT:PORT@loadbalancer, nodeports or \
                     loadbalancers, with an address and a colon before it where that is not 127.0.0.1, as \
                     8080:30080, 0.0.0.0:8080:80@loadbalancer or [::1]:nodeports; port 0 takes a free one";

/// One wish: what is opened, and at which address of the host.
///
/// ```
/// use kubarium::cluster::Publish;
///
/// let publish: Publish = "8080:30080".parse().unwrap();
/// assert_eq!(publish.to_string(), "127.0.0.1:8080:30080");
/// assert!("8080:".parse::<Publish>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// Loopback, unless another is said.
    pub(super) address: IpAddr,
    pub(super) what: PublishedPorts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublishedPorts {
    /// Each port that a Service has on nodes, at its own number.
    NodePorts,
    /// Each port of a Service that has a load balancer, at its own number.
    LoadBalancers,
    /// A port of the host, and where it leads.
    One(u16, PublishedTarget),
}

/// Where a port of the host leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublishedTarget {
    /// To a port of a node: of the first that runs, when none is named.
    NodePort(Option<String>, u16),
    /// To the first load balancer, by namespace and name, that has the port.
    LoadBalancer(u16),
    /// To the load balancer of one Service, as `NAMESPACE/NAME`.
    Service(String, u16),
}

impl PublishedTarget {
    /// Whether Services have to be looked at to find it.
    pub(super) fn is_balancer(&self) -> bool {
        !matches!(self, PublishedTarget::NodePort(..))
    }
}

impl Publish {
    /// The port that is taken on the host from the start.
    pub(super) fn fixed(&self) -> Option<(SocketAddr, &PublishedTarget)> {
        match &self.what {
            PublishedPorts::One(port, target) => Some((SocketAddr::new(self.address, *port), target)),
            _ => None,
        }
    }
}

impl FromStr for Publish {
    type Err = String;

    fn from_str(text: &str) -> Result<Publish, String> {
        let (places, at) = text.split_once('@').map_or((text, None), |(places, at)| (places, Some(at)));
        let (rest, last) = places.rsplit_once(':').map_or((None, places), |(rest, last)| (Some(rest), last));
        let read = match (last, at) {
            ("nodeports", None) => address(rest).map(|address| (address, PublishedPorts::NodePorts)),
            ("loadbalancers", None) => address(rest).map(|address| (address, PublishedPorts::LoadBalancers)),
            _ => one(rest, last, at),
        };
        let (address, what) = read.ok_or_else(|| format!("{text:?} is nothing to publish; {FORMS}"))?;
        Ok(Publish { address, what })
    }
}

/// `[ADDRESS:]PORT:TARGET`, or a port that is the same on both sides.
fn one(rest: Option<&str>, target: &str, at: Option<&str>) -> Option<(IpAddr, PublishedPorts)> {
    let target: u16 = target.parse().ok().filter(|port| *port > 0)?;
    let (host, own) = match rest {
        None => (None, target),
        Some(rest) => match rest.rsplit_once(':') {
            Some((host, own)) if !rest.ends_with(']') => (Some(host), own.parse().ok()?),
            _ => (None, rest.parse().ok()?),
        },
    };
    let target = match at {
        Some("loadbalancer") => PublishedTarget::LoadBalancer(target),
        Some("") => return None,
        node => PublishedTarget::NodePort(node.map(str::to_owned), target),
    };
    Some((address(host)?, PublishedPorts::One(own, target)))
}

/// Loopback where none is said.
fn address(text: Option<&str>) -> Option<IpAddr> {
    let Some(text) = text else { return Some(Ipv4Addr::LOCALHOST.into()) };
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if bare == "localhost" { Some(Ipv4Addr::LOCALHOST.into()) } else { bare.parse().ok() }
}

impl fmt::Display for Publish {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = match self.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        match &self.what {
            PublishedPorts::NodePorts => write!(out, "{address}:nodeports"),
            PublishedPorts::LoadBalancers => write!(out, "{address}:loadbalancers"),
            PublishedPorts::One(port, target) => write!(out, "{address}:{port}:{target}"),
        }
    }
}

impl fmt::Display for PublishedTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishedTarget::NodePort(None, port) => write!(out, "{port}"),
            PublishedTarget::NodePort(Some(node), port) => write!(out, "{port}@{node}"),
            PublishedTarget::LoadBalancer(port) => write!(out, "{port}@loadbalancer"),
            PublishedTarget::Service(key, port) => write!(out, "{port} of {key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_as_users_of_kind_and_k3d_write_them() {
        for (text, shown) in [
            ("8080:30080", "127.0.0.1:8080:30080"),
            ("30080", "127.0.0.1:30080:30080"),
            ("0:30080", "127.0.0.1:0:30080"),
            ("8080:30080@node-2", "127.0.0.1:8080:30080@node-2"),
            ("0.0.0.0:8080:80@loadbalancer", "0.0.0.0:8080:80@loadbalancer"),
            ("localhost:8080:30080", "127.0.0.1:8080:30080"),
            ("[::1]:8080:30080", "[::1]:8080:30080"),
            ("nodeports", "127.0.0.1:nodeports"),
            ("[::]:loadbalancers", "[::]:loadbalancers"),
        ] {
            assert_eq!(text.parse::<Publish>().unwrap().to_string(), shown, "{text}");
        }
        for text in ["", "web", "8080:", "8080:0", ":30080", "x:8080:30080", "8080:70000", "8080:80@", "a@b"]
        {
            let why = text.parse::<Publish>().unwrap_err();
            assert!(why.contains("it may be PORT:NODEPORT,"), "{text}: {why}");
        }
    }
}
