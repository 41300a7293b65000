//! Probes and hooks of a container, as the kubelet reads them.

use serde::Deserialize;

use apimachinery::int_or_string::IntOrString;
use apimachinery::object::nullable;

/// `v1.Lifecycle`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lifecycle {
    /// Right after the start.
    pub post_start: Option<Hook>,
    /// Before the stop signal.
    pub pre_stop: Option<Hook>,
    /// Instead of `SIGTERM`.
    pub stop_signal: Option<String>,
}

/// `v1.LifecycleHandler`; its `tcpSocket` does nothing upstream, either.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hook {
    /// A command in the container.
    pub exec: Option<ExecAction>,
    /// A request over HTTP.
    pub http_get: Option<HttpGetAction>,
    /// Nothing, for a while.
    pub sleep: Option<SleepAction>,
}

/// `v1.SleepAction`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SleepAction {
    /// So long.
    pub seconds: i64,
}

/// `v1.Probe`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Probe {
    /// So long after the start nobody asks.
    pub initial_delay_seconds: i64,
    /// How often it is asked.
    pub period_seconds: i64,
    /// How long an answer may take.
    pub timeout_seconds: i64,
    /// So many good answers in a row make it pass.
    pub success_threshold: i64,
    /// So many bad answers in a row make it fail.
    pub failure_threshold: i64,
    /// Of a process that fails it, instead of the pod's.
    pub termination_grace_period_seconds: Option<i64>,
    /// Asked by a command in the container.
    pub exec: Option<ExecAction>,
    /// Asked over HTTP.
    pub http_get: Option<HttpGetAction>,
    /// Asked by a connection.
    pub tcp_socket: Option<PortAction>,
    /// Asked by gRPC's health protocol.
    pub grpc: Option<PortAction>,
}

/// `v1.HTTPHeader`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HttpHeader {
    /// Its name.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// `v1.HTTPGetAction`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpGetAction {
    /// On the server.
    pub path: String,
    /// A number, or the name of one.
    pub port: Option<IntOrString>,
    /// `HTTP` or `HTTPS`.
    pub scheme: String,
    /// Instead of the pod's address.
    pub host: String,
    /// Sent along; one that is named twice twice.
    #[serde(deserialize_with = "nullable")]
    pub http_headers: Vec<HttpHeader>,
}

/// `v1.TCPSocketAction` and `v1.GRPCAction`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PortAction {
    /// A number, or the name of one.
    pub port: Option<IntOrString>,
    /// Instead of the pod's address (TCP).
    pub host: String,
    /// Of which health is asked (gRPC).
    pub service: Option<String>,
}

/// `v1.ExecAction`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExecAction {
    /// The command line.
    #[serde(deserialize_with = "nullable")]
    pub command: Vec<String>,
}
