//! How a kubelet is asked for what only it knows: logs, and what a command in a container does
//! (`pkg/kubelet/client`). The apiserver knows no kubelet; whoever runs it hands it a [`KubeletLookup`].

use std::time::Duration;

use axum::body::Body;
use futures::future::BoxFuture;
use http::Method;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use apimachinery::status::Status;
use apimachinery::time::Time;
use apimachinery::wire::ApiResponse;

/// `streamingConnectionIdleTimeout` of kubelets of which nobody says it.
pub const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 60 * 60);

/// Finds the kubelet of a node: the apiserver knows no kubelet itself.
pub trait KubeletLookup: Send + Sync {
    /// The log of a container, as the bytes of `text/plain`.
    ///
    /// # Errors
    /// 404 and 400 as the kubelet says; 500 or 503 when there is no kubelet of that name.
    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<Body, Status>>;

    /// How long streams stay on which nobody says anything; zero is for ever.
    fn stream_idle_timeout(&self) -> Duration {
        STREAM_IDLE_TIMEOUT
    }

    /// Runs a command in a container, as far as it is known what it would do.
    ///
    /// # Errors
    /// Why it could not be started, as the kubelet says.
    fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecOutcome, Status>> {
        let text = format!("no kubelet of node {:?} can be reached", request.node);
        Box::pin(std::future::ready(Err(Status::internal(text))))
    }

    /// Attaches somebody to the process of a container.
    ///
    /// # Errors
    /// Why that cannot be, as the kubelet says.
    fn attach(&self, request: AttachRequest) -> BoxFuture<'_, Result<AttachedStreams, Status>> {
        let text = format!("no kubelet of node {:?} can be reached", request.node);
        Box::pin(std::future::ready(Err(Status::internal(text))))
    }

    /// Runs a command at a terminal in a container.
    ///
    /// # Errors
    /// Why it could not be started, as the kubelet says.
    fn exec_at_terminal(&self, request: ExecRequest) -> BoxFuture<'_, Result<TerminalStreams, Status>> {
        let text = format!("no kubelet of node {:?} can be reached", request.node);
        Box::pin(std::future::ready(Err(Status::internal(text))))
    }

    /// Asks for what the kubelet says over HTTP of itself and its pods.
    ///
    /// # Errors
    /// 500 or 503 when there is no kubelet of that name.
    fn ask(&self, request: KubeletRequest) -> BoxFuture<'_, Result<ApiResponse, Status>> {
        let text = format!("no kubelet of node {:?} can be reached", request.node);
        Box::pin(std::future::ready(Err(Status::internal(text))))
    }

    /// Whether the kubelet of a node is no part of this process, and is asked at its own port.
    fn is_elsewhere(&self, _node: &str) -> bool {
        false
    }

    /// Asks a kubelet that is elsewhere at a path of its own; what the headers want to go on with instead of
    /// HTTP is in the answer (`hyper::upgrade`).
    ///
    /// # Errors
    /// There is no such node, or nobody listens there.
    fn pass_on(
        &self,
        node: String,
        _request: http::Request<Body>,
    ) -> BoxFuture<'_, Result<ApiResponse, Status>> {
        let text = format!("no kubelet of node {node:?} can be reached");
        Box::pin(std::future::ready(Err(Status::internal(text))))
    }

    /// Connects to a port of a pod.
    ///
    /// # Errors
    /// Why nobody answers there, as the kubelet says.
    fn port_forward(&self, request: PortForwardRequest) -> BoxFuture<'_, Result<Box<dyn Duplex>, Status>> {
        let text = format!("no kubelet of node {:?} can be reached", request.node);
        Box::pin(std::future::ready(Err(Status::internal(text))))
    }
}

/// Both ways of a connection that speaks HTTP no more.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// Nobody has a kubelet.
impl KubeletLookup for () {
    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
        let text = format!("no kubelet of node {:?} can be reached", request.node);
        Box::pin(std::future::ready(Err(Status::internal(text))))
    }
}

/// Where a connection is to lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortForwardRequest {
    /// The node that the pod is bound to.
    pub node: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The port, of the pod's own loopback.
    pub port: u16,
}

/// What a kubelet is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletRequest {
    /// The node whose kubelet is meant.
    pub node: String,
    /// As `GET`.
    pub method: Method,
    /// As `/stats/summary`.
    pub path: String,
}

/// To which process somebody is to be attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachRequest {
    /// The node that the pod is bound to.
    pub node: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container.
    pub container: String,
    /// Whether anything will be said to it.
    pub reads: bool,
}

/// Both ways to a process.
pub struct AttachedStreams {
    /// What is said to it. It hears the end of it when this is dropped.
    pub says: mpsc::Sender<Vec<u8>>,
    /// Tells it how large the window is that it is shown in.
    pub resize: Box<dyn Fn(WindowSize) + Send + Sync>,
    /// What it says, and whether as an error; it ends with the process.
    pub said: mpsc::Receiver<(bool, Vec<u8>)>,
}

/// A command at a terminal, or behind a pipe.
pub struct TerminalStreams {
    /// Both ways to it.
    pub streams: AttachedStreams,
    /// Its exit code, when it has ended.
    pub ended: oneshot::Receiver<i32>,
}

/// The size of the window of a terminal (`remotecommand.TerminalSize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WindowSize {
    /// Letters in a line.
    pub width: u16,
    /// How many of those.
    pub height: u16,
}

impl Default for WindowSize {
    /// Before anybody has said how large it is.
    fn default() -> WindowSize {
        WindowSize { width: 80, height: 24 }
    }
}

/// What is to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecRequest {
    /// The node that the pod is bound to.
    pub node: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container.
    pub container: String,
    /// The command line.
    pub command: Vec<String>,
    /// The window of its terminal, where it has one.
    pub window: Option<WindowSize>,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOutcome {
    /// Its exit code.
    pub code: i32,
    /// What it said.
    pub out: Vec<u8>,
    /// What it said of errors.
    pub errors: Vec<u8>,
}

/// Which log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRequest {
    /// The node that the pod is bound to.
    pub node: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container, init container or ephemeral container.
    pub container: String,
    /// How much of it.
    pub options: PodLogOptions,
}

/// `v1.PodLogOptions`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodLogOptions {
    /// Goes on with what is said later.
    pub follow: bool,
    /// Of the container before the last restart.
    pub previous: bool,
    /// Only what is no older than this.
    pub since_seconds: Option<i64>,
    /// Only what was said after this.
    pub since_time: Option<Time>,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// Only the last lines.
    pub tail_lines: Option<i64>,
    /// No more than so many bytes.
    pub limit_bytes: Option<i64>,
}
