//! Connections from a node, in the words of Go's `net.Dial`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::io::DuplexStream;

use crate::container_runtime::answers;
use crate::dependencies::Dependencies;
use network::{Obstacle, Refusal};

/// How probes call themselves.
pub(super) const PROBE_AGENT: &str = "kube-probe/1.36";

/// A host and its port, as a probe says them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AskedHost {
    pub(super) host: String,
    pub(super) port: i64,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct DialFailure(pub(super) String);

/// The host of an action, or the pod's own.
pub(super) fn or(host: &str, pod_ip: &str) -> String {
    if host.is_empty() { pod_ip.to_owned() } else { host.to_owned() }
}

impl AskedHost {
    /// Nothing for a name: none is resolved on a node. A port that is none is 0, where nobody listens.
    fn address(&self) -> Option<SocketAddr> {
        let ip = match self.host.as_str() {
            "localhost" => Ipv4Addr::LOCALHOST.into(),
            host => host.parse::<IpAddr>().ok()?,
        };
        Some(SocketAddr::new(ip, u16::try_from(self.port).unwrap_or(0)))
    }
}

impl std::fmt::Display for AskedHost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", answers::in_url(&self.host), self.port)
    }
}

impl Dependencies {
    /// The node's own address.
    fn host_address(&self) -> IpAddr {
        let own = self.config.addresses.first().and_then(|address| address.parse().ok());
        own.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Connects from the node.
    ///
    /// # Errors
    /// As Go's `net.Dial` says why not.
    pub(super) async fn dial(&self, at: &AskedHost) -> Result<DuplexStream, DialFailure> {
        let to = at.address().ok_or_else(|| no_such_host(at))?;
        self.network().connect(self.host_address(), to).await.map_err(|refusal| dialled(at, refusal))
    }

    /// Whether the first packet gets through, whoever listens there.
    pub(super) async fn reach(&self, at: &AskedHost) -> Result<(), DialFailure> {
        let to = at.address().ok_or_else(|| no_such_host(at))?;
        self.network().reach(self.host_address(), to).await.map_err(|refusal| dialled(at, refusal))
    }
}

fn no_such_host(at: &AskedHost) -> DialFailure {
    DialFailure(format!("dial tcp: lookup {}: no such host", at.host))
}

fn dialled(at: &AskedHost, refusal: Refusal) -> DialFailure {
    let why = match refusal.obstacle {
        Obstacle::Refused => "connection refused",
        Obstacle::TimedOut => "connection timed out",
        Obstacle::Unreachable => "no route to host",
    };
    DialFailure(format!("dial tcp {at}: connect: {why}"))
}
