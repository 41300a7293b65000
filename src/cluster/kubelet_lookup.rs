//! The way from the apiserver to a kubelet, which it knows only by its node's name.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::Request;
use sync::{Mutex, MutexGuard, RwLock};

use super::node_addresses::NodeAddresses;
use super::remote_kubelets::RemoteKubelets;
use apimachinery::status::Status;
use apimachinery::wire::ApiResponse;
use apiserver::kubelet_client::{
    AttachRequest, AttachedStreams, Duplex, ExecOutcome, ExecRequest, KubeletLookup, KubeletRequest,
    LogRequest, PodLogOptions, PortForwardRequest, STREAM_IDLE_TIMEOUT, TerminalStreams, WindowSize,
};
use clock::Clock;
use kubelet::attach::Attachment;
use kubelet::exec::ExecCommand;
use kubelet::kubelet::Kubelet;
use kubelet::node_config::NodeConfig;
use kubelet::players::Players;
use kubelet::server::LogOptions;
use machine::byte_text;
use machine::standard_input::TerminalSize;
use network::address_range::AddressRange;

/// The kubelets that run, by node. Bound: one for each node.
#[derive(Default)]
pub(super) struct Kubelets(
    Mutex<BTreeMap<String, Kubelet>>,
    OnceLock<Players>,
    RwLock<NodeAddresses>,
    /// Nodes of this process, whether their kubelets run or not.
    RwLock<BTreeSet<String>>,
    /// The way to all others.
    OnceLock<RemoteKubelets>,
);

impl Kubelets {
    /// Kubelets that are not here are reached by this from now on.
    pub(super) fn reach(&self, others: RemoteKubelets) {
        // Nobody says it twice.
        drop(self.4.set(others));
    }

    /// The way to the kubelet of a node, if that is in another process.
    fn way_to(&self, node: &str) -> Option<&RemoteKubelets> {
        self.4.get().filter(|_| !node.is_empty() && !self.3.read().contains(node))
    }

    pub(super) fn add(&self, kubelet: Kubelet) {
        self.3.write().insert(kubelet.node_name().to_owned());
        self.2.write().add(&kubelet);
        self.lock().insert(kubelet.node_name().to_owned(), kubelet);
    }

    pub(super) fn remove(&self, node: &str) {
        self.2.write().remove(node);
        self.lock().remove(node);
    }

    /// There is no such node any more: its addresses are nobody's.
    pub(super) fn forget(&self, node: &NodeConfig) {
        self.3.write().remove(&node.name);
        let mut addresses = self.2.write();
        node.pod_cidrs
            .iter()
            .filter_map(|cidr| AddressRange::parse(cidr))
            .for_each(|it| addresses.forget(it));
    }

    /// The kubelet of a node, if it runs.
    pub(super) fn get(&self, node: &str) -> Option<Kubelet> {
        self.lock().get(node).cloned()
    }

    pub(super) fn clear(&self) {
        *self.2.write() = NodeAddresses::default();
        self.lock().clear();
    }

    /// Where all of them play scripts.
    pub(super) fn players(&self, clock: &Clock) -> Players {
        self.1.get_or_init(|| Players::new(clock)).clone()
    }

    /// The kubelet of the node that has an address, or whose pods may have it.
    pub(super) fn at(&self, address: IpAddr) -> Option<Kubelet> {
        self.2.read().at(address).cloned()
    }

    /// The address of a node itself: of the IP family of `like`, or that of its pods' own.
    pub(super) fn address_of(&self, node: &str, like: Option<IpAddr>) -> Option<IpAddr> {
        let is_like = |own: &IpAddr| like.is_none_or(|like| like.is_ipv4() == own.is_ipv4());
        self.lock().get(node)?.addresses().find(is_like)
    }

    /// The address of the first node whose kubelet runs.
    pub(super) fn first_address(&self) -> Option<IpAddr> {
        self.lock().values().find_map(|kubelet| kubelet.addresses().next())
    }

    /// Whether an address is one of pods: of a range that a node has for them, whether its kubelet runs or
    /// not, or a node's own with a pod in it.
    pub(super) fn has_pods_at(&self, address: IpAddr) -> bool {
        self.2.read().is_for_pods(address)
            || self.at(address).is_some_and(|kubelet| kubelet.has_pod_at(address))
    }

    /// The kubelet of a node; 500 where none runs.
    fn of_node(&self, node: &str) -> Result<Kubelet, Status> {
        self.get(node).ok_or_else(|| Status::internal(format!("the kubelet of node {node:?} does not run")))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kubelet>> {
        self.0.lock()
    }
}

impl KubeletLookup for Kubelets {
    /// All kubelets are told the same.
    fn stream_idle_timeout(&self) -> Duration {
        let first = self.lock().values().next().map(Kubelet::stream_idle_timeout);
        first.unwrap_or(STREAM_IDLE_TIMEOUT)
    }

    fn is_elsewhere(&self, node: &str) -> bool {
        self.way_to(node).is_some()
    }

    fn pass_on(&self, node: String, request: Request<Body>) -> BoxFuture<'_, Result<ApiResponse, Status>> {
        Box::pin(async move {
            match self.way_to(&node) {
                Some(way) => way.ask(&node, request).await,
                None => Err(Status::internal(format!("the kubelet of node {node:?} is not elsewhere"))),
            }
        })
    }

    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
        if let Some(way) = self.way_to(&request.node) {
            return Box::pin(async move { way.logs(&request).await });
        }
        let LogRequest { node, namespace, pod, container, options } = request;
        let kubelet = self.of_node(&node);
        Box::pin(async move {
            let lines = kubelet?.container_logs(&namespace, &pod, options_for(container, &options)).await?;
            Ok(Body::from_stream(lines.map(Ok::<_, Infallible>)))
        })
    }

    fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecOutcome, Status>> {
        let kubelet = self.of_node(&request.node);
        Box::pin(async move {
            let ExecRequest { namespace, pod, .. } = &request;
            let played = kubelet?.exec(namespace, pod, &command(&request)).await;
            played.map(executed).map_err(|why| Status::failure(500, "InternalError", why))
        })
    }

    fn exec_at_terminal(&self, request: ExecRequest) -> BoxFuture<'_, Result<TerminalStreams, Status>> {
        let kubelet = self.of_node(&request.node);
        Box::pin(async move {
            let ExecRequest { namespace, pod, .. } = &request;
            let session = kubelet?.exec_at_terminal(namespace, pod, command(&request)).await;
            let session = session.map_err(|why| Status::failure(500, "InternalError", why.message))?;
            Ok(TerminalStreams { streams: streams(session.streams), ended: session.ended })
        })
    }

    fn ask(&self, request: KubeletRequest) -> BoxFuture<'_, Result<ApiResponse, Status>> {
        let KubeletRequest { node, method, path } = request;
        let kubelet = self.of_node(&node);
        Box::pin(async move { Ok(kubelet?.answer_http(&method, &path).await.map(Body::from)) })
    }

    fn attach(&self, request: AttachRequest) -> BoxFuture<'_, Result<AttachedStreams, Status>> {
        let AttachRequest { node, namespace, pod, container, reads } = request;
        let kubelet = self.of_node(&node);
        Box::pin(async move {
            let attached = kubelet?.attach(&namespace, &pod, &container, reads).await;
            attached.map(streams).map_err(|why| Status::failure(500, "InternalError", why.message))
        })
    }

    fn port_forward(&self, request: PortForwardRequest) -> BoxFuture<'_, Result<Box<dyn Duplex>, Status>> {
        let PortForwardRequest { node, namespace, pod, port } = request;
        let kubelet = self.of_node(&node);
        Box::pin(async move {
            let connected = kubelet?.connect(&namespace, &pod, port, LOOPBACK).await;
            let connected = connected.map_err(|why| Status::failure(500, "InternalError", why))?;
            Ok(Box::new(connected) as Box<dyn Duplex>)
        })
    }
}

/// From where what is forwarded reaches a pod.
const LOOPBACK: &str = "127.0.0.1:0";

fn command(request: &ExecRequest) -> ExecCommand {
    ExecCommand {
        container: request.container.clone(),
        words: request.command.clone(),
        terminal: request.window.map(terminal),
        ..ExecCommand::default()
    }
}

fn streams(attachment: Attachment) -> AttachedStreams {
    let Attachment { says, sizes, said } = attachment;
    let resize = Box::new(move |window| {
        sizes.send_replace(terminal(window));
    });
    AttachedStreams { says, resize, said }
}

fn terminal(window: WindowSize) -> TerminalSize {
    TerminalSize { columns: window.width, lines: window.height }
}

/// What a command said, when it has ended: one that never does is not waited for.
fn executed(played: machine::exec::Executed) -> ExecOutcome {
    let code = played.end.map_or(137, |(_, code)| code);
    let machine::exec::Executed { out, errors, .. } = played;
    let [out, errors] = [out, errors].map(|said| byte_text::bytes_of(&said).into_owned());
    ExecOutcome { code, out, errors }
}

/// Numbers below zero were refused by the apiserver.
fn options_for(container: String, options: &PodLogOptions) -> LogOptions {
    let number = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
    LogOptions {
        container,
        follow: options.follow,
        previous: options.previous,
        since_seconds: options.since_seconds,
        since_time: options.since_time,
        timestamps: options.timestamps,
        tail_lines: number(options.tail_lines),
        limit_bytes: number(options.limit_bytes),
    }
}
