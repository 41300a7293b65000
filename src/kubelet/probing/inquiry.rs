//! What a probe or a hook asks, and what comes of it.

use std::time::Duration;

use super::dialling::{AskedHost, PROBE_AGENT, or};
use super::grpc::GrpcInquiry;
use super::http::HttpInquiry;
use crate::container_runtime::answers;
use crate::container_runtime::services::ProbeAnswer;
use crate::dependencies::Dependencies;
use apis::views::pod::Container as Spec;
use apis::views::probe::{Hook, PortAction, Probe};

/// `kube-lifecycle/1.36`
const HOOK_AGENT: &str = "kube-lifecycle/1.36";

/// What is asked, of whom, and how.
#[derive(Clone, Debug)]
pub(super) enum Inquiry {
    Http(HttpInquiry),
    Tcp(AskedHost),
    Grpc(GrpcInquiry),
    Exec(Vec<String>),
}

impl Inquiry {
    /// Nothing for a probe that asks nobody.
    pub(super) fn of_probe(probe: &Probe, spec: &Spec, pod_ip: &str) -> Option<Inquiry> {
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

    pub(super) fn of_hook(hook: &Hook, spec: &Spec, pod_ip: &str) -> Option<Inquiry> {
        match (&hook.exec, &hook.http_get) {
            (Some(exec), _) => Some(Inquiry::Exec(exec.command.clone())),
            (_, Some(get)) => Some(Inquiry::Http(HttpInquiry::new(get, spec, pod_ip, HOOK_AGENT))),
            _ => None,
        }
    }
}

/// Words of a failure, for each kind of question.
type TellsWhy<'a> = Box<dyn Fn(&str) -> String + Send + Sync + 'a>;

impl Dependencies {
    /// What a server of which nobody knows what it says is assumed to answer to whom it reaches.
    pub(super) async fn ask_assumed(&self, inquiry: &Inquiry, within: Duration) -> ProbeAnswer {
        let (at, told): (&AskedHost, TellsWhy<'_>) = match inquiry {
            Inquiry::Exec(_) => return ProbeAnswer::Success,
            Inquiry::Tcp(at) => (at, Box::new(str::to_owned)),
            Inquiry::Http(http) => (&http.at, Box::new(|why| http.failed(why))),
            Inquiry::Grpc(grpc) => {
                (&grpc.at, Box::new(move |_| answers::no_grpc(&grpc.at.to_string(), within)))
            }
        };
        match self.context.clock.timeout(within, self.reach(at)).await {
            Ok(Ok(())) => ProbeAnswer::Success,
            Ok(Err(failure)) => ProbeAnswer::Failure(told(&failure.0)),
            Err(_) => too_late(inquiry, within),
        }
    }

    /// What is answered within a time; a command is the kubelet's to run.
    pub(super) async fn ask_server(&self, inquiry: &Inquiry, within: Duration) -> ProbeAnswer {
        let asked = async {
            match inquiry {
                Inquiry::Http(http) => http.ask(self).await,
                Inquiry::Tcp(at) => match self.dial(at).await {
                    Ok(_) => ProbeAnswer::Success,
                    Err(failure) => ProbeAnswer::Failure(failure.0),
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
