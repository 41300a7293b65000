//! Probes and hooks that ask the network, from the node's own address (`pkg/probe`, `pkg/kubelet/lifecycle`):
//! whose answers are not known ahead, or that something on the way may change.
//!
//! What comes in: what a probe or a hook says, and who is probed. What goes out: an answer in the words of the
//! real kubelet. Who asks is a task for the time of that question, one for each probe at most.

mod asking;
mod grpc;
mod http;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::DuplexStream;

use self::grpc::GrpcInquiry;
use self::http::HttpInquiry;
use crate::container_runtime::answers;
use crate::container_runtime::services::ProbeAnswer;
use crate::dependencies::Dependencies;
use apis::views::pod::Container as Spec;
use apis::views::probe::{Hook, PortAction, Probe};
use network::{Obstacle, Refusal};

/// `kube-probe/1.36`
const PROBE_AGENT: &str = "kube-probe/1.36";
/// `kube-lifecycle/1.36`
const HOOK_AGENT: &str = "kube-lifecycle/1.36";

/// What is asked, of whom, and how.
#[derive(Clone, Debug)]
enum Inquiry {
    Http(HttpInquiry),
    Tcp(AskedHost),
    Grpc(GrpcInquiry),
    Exec(Vec<String>),
}

/// A host and its port, as a probe says them.
#[derive(Clone, Debug, PartialEq)]
struct AskedHost {
    host: String,
    port: i64,
}

impl Inquiry {
    /// Nothing for a probe that asks nobody.
    fn of_probe(probe: &Probe, spec: &Spec, pod_ip: &str) -> Option<Inquiry> {
        let at = |action: &PortAction| AskedHost {
            host: or(&action.host, pod_ip),
            port: answers::port(&action.port, spec),
        };
        match (&probe.exec, &probe.http_get, &probe.tcp_socket, &probe.grpc) {
            (Some(exec), ..) => Some(Inquiry::Exec(exec.command.clone())),
            (_, Some(get), ..) => Some(Inquiry::Http(HttpInquiry::new(get, spec, pod_ip, PROBE_AGENT))),
            (_, _, Some(tcp), _) => Some(Inquiry::Tcp(at(tcp))),
            (_, _, _, Some(grpc)) => {
                let service = grpc.service.clone().unwrap_or_default();
                Some(Inquiry::Grpc(GrpcInquiry {
                    at: AskedHost { host: pod_ip.into(), ..at(grpc) },
                    service,
                }))
            }
            _ => None,
        }
    }

    fn of_hook(hook: &Hook, spec: &Spec, pod_ip: &str) -> Option<Inquiry> {
        match (&hook.exec, &hook.http_get) {
            (Some(exec), _) => Some(Inquiry::Exec(exec.command.clone())),
            (_, Some(get)) => Some(Inquiry::Http(HttpInquiry::new(get, spec, pod_ip, HOOK_AGENT))),
            _ => None,
        }
    }
}

fn or(host: &str, pod_ip: &str) -> String {
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
        self.config.address.parse().unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Connects from the node.
    ///
    /// # Errors
    /// As Go's `net.Dial` says why not.
    async fn dial(&self, at: &AskedHost) -> Result<DuplexStream, String> {
        let to = at.address().ok_or_else(|| no_such_host(at))?;
        self.network().connect(self.host_address(), to).await.map_err(|refusal| dialled(at, refusal))
    }

    /// Whether the first packet gets through, whoever listens there.
    async fn reach(&self, at: &AskedHost) -> Result<(), String> {
        let to = at.address().ok_or_else(|| no_such_host(at))?;
        self.network().reach(self.host_address(), to).await.map_err(|refusal| dialled(at, refusal))
    }

    /// What a server of which nobody knows what it says is assumed to answer to whom it reaches.
    async fn ask_assumed(&self, inquiry: &Inquiry, within: Duration) -> ProbeAnswer {
        let (at, told): (&AskedHost, Box<dyn Fn(&str) -> String + Send + Sync>) = match inquiry {
            Inquiry::Exec(_) => return ProbeAnswer::Success,
            Inquiry::Tcp(at) => (at, Box::new(str::to_owned)),
            Inquiry::Http(http) => (&http.at, Box::new(|why| http.failed(why))),
            Inquiry::Grpc(grpc) => {
                (&grpc.at, Box::new(move |_| answers::no_grpc(&grpc.at.to_string(), within)))
            }
        };
        match self.context.clock.timeout(within, self.reach(at)).await {
            Ok(Ok(())) => ProbeAnswer::Success,
            Ok(Err(why)) => ProbeAnswer::Failure(told(&why)),
            Err(_) => too_late(inquiry, within),
        }
    }

    /// What is answered within a time; a command is the kubelet's to run.
    async fn ask_server(&self, inquiry: &Inquiry, within: Duration) -> ProbeAnswer {
        let asked = async {
            match inquiry {
                Inquiry::Http(http) => http.ask(self).await,
                Inquiry::Tcp(at) => match self.dial(at).await {
                    Ok(_) => ProbeAnswer::Success,
                    Err(why) => ProbeAnswer::Failure(why),
                },
                Inquiry::Grpc(grpc) => return grpc.ask(self, within).await,
                Inquiry::Exec(_) => ProbeAnswer::Success,
            }
        };
        let answered = self.context.clock.timeout(within, asked).await;
        answered.unwrap_or_else(|_| too_late(inquiry, within))
    }
}

/// Nothing came in time.
fn too_late(inquiry: &Inquiry, within: Duration) -> ProbeAnswer {
    ProbeAnswer::Failure(match inquiry {
        Inquiry::Http(http) => {
            http.failed("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
        }
        Inquiry::Tcp(at) => format!("dial tcp {at}: i/o timeout"),
        Inquiry::Grpc(grpc) => answers::no_grpc(&grpc.at.to_string(), within),
        Inquiry::Exec(command) => answers::timed_out(command, within),
    })
}

fn no_such_host(at: &AskedHost) -> String {
    format!("dial tcp: lookup {}: no such host", at.host)
}

fn dialled(at: &AskedHost, refusal: Refusal) -> String {
    let why = match refusal.obstacle {
        Obstacle::Refused => "connection refused",
        Obstacle::TimedOut => "connection timed out",
        Obstacle::Unreachable => "no route to host",
    };
    format!("dial tcp {at}: connect: {why}")
}
