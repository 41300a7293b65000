//! Servers of agnhost that remember what they are told.

use super::asking::{AskFirst, Backing};
use super::consumer::{self, ConsumerController};
use super::flags::{flag, is_set};
use super::mutual_tls::{self, MutualTls};
use super::nettest::NetTest;
use super::{external_metrics, fake_registry, mutual_tls_server, net_server};
use crate::requests::{WebAnswer, WebRequest};
use crate::server_state::ServerState;

/// Which of them, as its command line has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RememberingMode {
    /// `nettest`
    NetTest(NetTest),
    /// `fake-registry-server`, with a password or without.
    Registry(bool),
    /// `external-metrics`
    ExternalMetrics,
    /// `resource-consumer`
    Consumer,
    /// `resource-consumer-controller`
    ConsumerController(ConsumerController),
    /// `mtlsserver`
    MutualTls(MutualTls),
    /// `net --serve`
    Runners,
}

/// Where it serves, and what; nothing where that is none of these.
pub(crate) fn serving(mode: &str, words: &[String]) -> Option<(i64, RememberingMode)> {
    if mode == "mtlsserver" {
        let (port, files) = mutual_tls::serving(words)?;
        return Some((port, RememberingMode::MutualTls(files)));
    }
    if mode == "net" {
        let (_, port) = flag(words, "serve")?.rsplit_once(':')?;
        return Some((port.parse().ok()?, RememberingMode::Runners));
    }
    let (usual, mode) = match mode {
        "nettest" => (8080, RememberingMode::NetTest(NetTest::of(words))),
        "fake-registry-server" => (5000, RememberingMode::Registry(is_set(words, "private"))),
        "resource-consumer" => (8080, RememberingMode::Consumer),
        "resource-consumer-controller" => {
            (8080, RememberingMode::ConsumerController(ConsumerController::of(words)))
        }
        "external-metrics" => (6443, RememberingMode::ExternalMetrics),
        _ => return None,
    };
    let port = match flag(words, "port") {
        Some(text) => text.parse().ok()?,
        None => usual,
    };
    Some((port, mode))
}

impl RememberingMode {
    pub(crate) fn answer(
        &self,
        asked: &WebRequest<'_>,
        state: &mut ServerState,
        backing: Backing<'_>,
    ) -> Result<WebAnswer, Box<AskFirst>> {
        Ok(match self {
            RememberingMode::NetTest(test) => test.answer(asked, state, backing.around),
            RememberingMode::Registry(is_private) => fake_registry::answer(asked, *is_private),
            RememberingMode::Consumer => consumer::answer(asked, state),
            RememberingMode::ConsumerController(controller) => return controller.answer(asked, backing),
            RememberingMode::MutualTls(files) => mutual_tls_server::answer(files, asked, backing),
            RememberingMode::Runners => return net_server::answer(asked, state, backing),
            RememberingMode::ExternalMetrics => external_metrics::answer(asked, state),
        })
    }
}
