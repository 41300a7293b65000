//! Probes by gRPC's health protocol (`pkg/probe/grpc`, `grpc.health.v1.Health`).

use std::time::Duration;

use network::grpc::{self, GrpcCall, GrpcStatus};

use super::dialling::{AskedHost, PROBE_AGENT};
use crate::container_runtime::answers;
use crate::container_runtime::health_messages;
use crate::container_runtime::services::ProbeAnswer;
use crate::dependencies::Dependencies;
use apimachinery::duration;
use golang::grpc_code::code_name;

/// What is asked for the health of a service.
#[derive(Clone, Debug)]
pub(super) struct GrpcInquiry {
    pub(super) at: AskedHost,
    pub(super) service: String,
}

impl GrpcInquiry {
    /// Whoever cannot connect tries again until his time is over: of that nothing is said before.
    pub(super) async fn ask(&self, node: &Dependencies, within: Duration) -> ProbeAnswer {
        let clock = &node.context.clock;
        let begun = clock.elapsed();
        let no_server = || ProbeAnswer::Failure(answers::no_grpc(&self.at.to_string(), within));
        let Ok(Ok(stream)) = clock.timeout(within, node.dial(&self.at)).await else { return no_server() };
        let authority = self.at.to_string();
        let call = GrpcCall {
            authority: &authority,
            path: health_messages::CHECK,
            agent: PROBE_AGENT,
            message: health_messages::request(&self.service),
        };
        let left = within.saturating_sub(clock.elapsed().saturating_sub(begun));
        let why = match clock.timeout(left, grpc::call(clock, stream, call)).await {
            Ok(Ok(Ok(message))) => match health_messages::status(&message) {
                "SERVING" => return ProbeAnswer::Success,
                status => answers::unhealthy(status),
            },
            Ok(Ok(Err(status))) => refused(&status),
            Ok(Err(_)) => return no_server(),
            Err(_) => format!("timeout: health rpc did not complete within {}", duration::format(within)),
        };
        ProbeAnswer::Failure(why)
    }
}

fn refused(status: &GrpcStatus) -> String {
    let GrpcStatus { code, message } = status;
    match code_name(*code).unwrap_or("Unknown") {
        "Unimplemented" => format!(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {message}"
        ),
        code => answers::grpc_failed(code, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_told_in_the_words_of_the_prober() {
        let told = |code, message: &str| refused(&GrpcStatus { code, message: message.into() });
        let why = "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service";
        assert_eq!(told(5, "unknown service"), why);
        assert!(told(12, "unknown method").ends_with("(grpc.health.v1.Health): unknown method"));
    }
}
