//! Connections to ports of pods (`pkg/kubelet/server`, `portForward`, and what a kernel does with packets for
//! a pod): the runtime says who listens there.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt;
use network::address_range::AddressRange;
use network::{Accept, Network, Obstacle};
use tokio::io::DuplexStream;

use super::container_runtime::services::{
    Datagram, Exit, PodSandboxConfig, PortListener, RunningContainer, RuntimeError, RuntimeService,
};
use super::kubelet::Kubelet;
use super::kuberuntime::state::KubeContainerState;
use super::players::Cause;
use super::pod_workers::PodWorker;
use apimachinery::object::Object;
use apimachinery::time::Time;
use client_go::client::Client;

golang::text_error! {
    /// Why nobody answers at a port of a pod; in the words of kubelet and runtime.
    pub struct NotForwarded;
}

impl Kubelet {
    /// Connects to a port of a pod. `from` is the address of who asks.
    ///
    /// # Errors
    /// Why nobody answers there, in the words of kubelet and runtime.
    pub async fn connect(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        from: &str,
    ) -> Result<DuplexStream, NotForwarded> {
        let look =
            |worker: &PodWorker| (self.listener(worker, port), Arc::from(&*worker.object.metadata.uid));
        let found = self.pods.look(namespace, pod, look).await;
        let (listener, uid) =
            found.ok_or_else(|| format!("pod not found ({:?})", format!("{pod}_{namespace}")))?;
        let listener = listener.map_err(|error| error.message)?;
        if !self.listens(&listener).await {
            return Err(format!("dial tcp4 127.0.0.1:{port}: connect: connection refused").into());
        }
        let (client, server) = network::connection();
        let task = self.clone().served(uid, listener, server, from.to_owned());
        // With the kubelet it ends, too.
        let begun = self.shared.context.tasks.spawn("port forward", task);
        begun.map(|_| client).ok_or_else(|| "the kubelet has stopped".into())
    }

    /// Who takes connections at an address of this node or of one of its pods.
    ///
    /// # Errors
    /// That nobody listens there, or nobody has that address.
    pub async fn accept(&self, to: SocketAddr) -> Result<Accept, Obstacle> {
        let accept = self.accept_at(to).await;
        if matches!(accept, Err(Obstacle::Refused))
            && let Some(behind) = self.behind_host_port(to, "TCP")
        {
            return self.accept_at(behind).await;
        }
        accept
    }

    async fn accept_at(&self, to: SocketAddr) -> Result<Accept, Obstacle> {
        let ip = to.ip().to_string();
        for uid in self.shared.node.runtime.pods_at(&ip) {
            let look = |worker: &PodWorker| self.listener(worker, to.port()).ok();
            let Some(Some(listener)) = self.pods.look_by_uid(&uid, look).await else { continue };
            if !self.listens(&listener).await {
                continue;
            }
            let kubelet = self.clone();
            return Ok(Arc::new(move |io, from| {
                kubelet.clone().served(uid.clone(), listener.clone(), io, from.to_string()).boxed()
            }));
        }
        Err(self.nobody_at(&ip))
    }

    /// What somebody at an address of this node or of one of its pods answers to a datagram; nothing where
    /// he answers nothing.
    ///
    /// # Errors
    /// That nobody listens there, or nobody has that address.
    pub async fn ask_at(
        &self,
        to: SocketAddr,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<Option<Vec<u8>>, Obstacle> {
        let answer = self.answer_at(to, from, datagram).await;
        match answer {
            Err(Obstacle::Refused) => match self.behind_host_port(to, "UDP") {
                Some(behind) => self.answer_at(behind, from, datagram).await,
                None => answer,
            },
            answer => answer,
        }
    }

    async fn answer_at(
        &self,
        to: SocketAddr,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<Option<Vec<u8>>, Obstacle> {
        let (ip, from, runtime) = (to.ip().to_string(), from.to_string(), &*self.shared.node.runtime);
        let asked = Datagram { port: to.port(), from: &from, bytes: datagram };
        for uid in runtime.pods_at(&ip) {
            let look = |worker: &PodWorker| worker.datagram(runtime, &asked).ok();
            if let Some(Some(answer)) = self.pods.look_by_uid(&uid, look).await {
                return Ok(answer);
            }
        }
        Err(self.nobody_at(&ip))
    }

    /// What a pod answers to a datagram; nothing where it answers nothing.
    ///
    /// # Errors
    /// That nobody listens there, in the words of kubelet and runtime.
    pub async fn ask(
        &self,
        namespace: &str,
        pod: &str,
        asked: &Datagram<'_>,
    ) -> Result<Option<Vec<u8>>, NotForwarded> {
        let runtime = self.shared.node.runtime.clone();
        let found = self.pods.look(namespace, pod, |worker| worker.datagram(&*runtime, asked)).await;
        let answer = found.ok_or_else(|| format!("pod not found ({:?})", format!("{pod}_{namespace}")))?;
        answer.map_err(|error| error.message.into())
    }

    /// Whether anybody has an address: this node, or one of its pods.
    pub fn is_there(&self, address: IpAddr) -> bool {
        self.nobody_at(&address.to_string()) == Obstacle::Refused
    }

    /// The pod whose own address this is, before anybody was told that it has it; none for the node's.
    pub async fn pod_at(&self, address: IpAddr) -> Option<Arc<Object>> {
        if self.is_own(address) {
            return None;
        }
        let uid = self.shared.node.runtime.pods_at(&address.to_string()).pop()?;
        self.pods.look_by_uid(&uid, |worker| worker.object.clone()).await
    }

    /// Whether a pod has an address: its own, or that of this node.
    pub fn has_pod_at(&self, address: IpAddr) -> bool {
        !self.shared.node.runtime.pods_at(&address.to_string()).is_empty()
    }

    /// The node's own addresses, that of its pods' own IP family first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.shared.addresses.iter().copied()
    }

    /// Whether an address is the node's own.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.addresses().any(|own| own == address)
    }

    /// The addresses of its pods, by IP family.
    pub fn pod_ranges(&self) -> impl Iterator<Item = AddressRange> {
        self.shared.config.pod_cidrs.iter().filter_map(|cidr| AddressRange::parse(cidr))
    }

    /// The address that whoever is at `own` has of the IP family of `like`: this node, or one of its pods.
    pub fn address_like(&self, own: IpAddr, like: IpAddr) -> Option<IpAddr> {
        let is_like = |other: &IpAddr| other.is_ipv4() == like.is_ipv4();
        if self.is_own(own) {
            return self.addresses().find(is_like);
        }
        let runtime = &self.shared.node.runtime;
        let uid = runtime.pods_at(&own.to_string()).pop()?;
        let status = runtime.pod_sandbox_status(&uid)?;
        status.ips().filter_map(|ip| ip.parse().ok()).find(is_like)
    }

    /// What its pods are reached on.
    pub fn network(&self) -> &Network {
        self.shared.network()
    }

    /// What it asks the apiserver with, in its node's name.
    pub fn client(&self) -> &Client {
        &self.shared.context.client
    }

    fn nobody_at(&self, ip: &str) -> Obstacle {
        let is_own = self.shared.config.addresses.iter().any(|own| own == ip);
        let is_there = is_own || !self.shared.node.runtime.pods_at(ip).is_empty();
        if is_there { Obstacle::Refused } else { Obstacle::Unreachable }
    }

    /// A script is played to see that, where scripts are.
    async fn listens(&self, listener: &PortListener) -> bool {
        let Some(listens) = listener.listens.clone() else { return true };
        let now = self.shared.context.clock.now();
        self.shared.players.run(Cause::Request, move || listens(now)).await
    }

    fn listener(&self, worker: &PodWorker, port: u16) -> Result<PortListener, RuntimeError> {
        worker.listener(&*self.shared.node.runtime, port)
    }

    /// It ends with either side, and with the container.
    async fn served(self, uid: Arc<str>, listener: PortListener, io: DuplexStream, from: String) {
        let serving = (listener.serve)(io, from, self.shared.context.clock.clone());
        tokio::select! {
            biased;
            () = serving => {}
            () = self.ended(&uid, &listener) => {}
            code = listener.exit.asked() => self.end_process(&uid, &listener, code).await,
        }
    }

    /// Waits until what listens does not run any more: it looks after each turn of the pod.
    async fn ended(&self, uid: &Arc<str>, listener: &PortListener) {
        let runs = |worker: &PodWorker| worker.runs(&listener.container) == Some(listener.started_at);
        let Some(mut turns) = self.pods.turns_of(uid) else { return };
        while self.pods.look_by_uid(uid, runs).await == Some(true) {
            // None comes any more of a pod that is gone.
            if turns.changed().await.is_err() {
                return;
            }
        }
    }

    /// The process that listens ends, because somebody asked it to.
    async fn end_process(&self, uid: &Arc<str>, listener: &PortListener, code: i32) {
        let now = self.shared.context.clock.now();
        let Some(mut loan) = self.pods.borrow_by_uid(uid).await else { return };
        if loan.runs(&listener.container) == Some(listener.started_at) {
            let reason = listener.exit.reason().to_owned();
            loan.end_process(&listener.container, now, Exit { code, reason, ..Exit::default() });
        }
        drop(loan);
        self.pods.wake(uid);
    }
}

impl PodWorker {
    /// Since when a container has run; none where it does not.
    fn runs(&self, container: &str) -> Option<Time> {
        match self.container(container)?.1.state {
            KubeContainerState::Running { started_at, .. } => Some(started_at),
            _ => None,
        }
    }

    fn listener(&self, runtime: &dyn RuntimeService, port: u16) -> Result<PortListener, RuntimeError> {
        runtime.port_forward(&self.sandbox_config(), &self.running(), port)
    }

    fn datagram(
        &self,
        runtime: &dyn RuntimeService,
        asked: &Datagram<'_>,
    ) -> Result<Option<Vec<u8>>, RuntimeError> {
        runtime.datagram(&self.sandbox_config(), &self.running(), asked)
    }

    fn running(&self) -> Vec<RunningContainer<'_>> {
        let running = self.all_containers().filter_map(|(container, run)| match &run.state {
            KubeContainerState::Running { id, started_at } => {
                Some(RunningContainer { container, id, started_at: *started_at })
            }
            _ => None,
        });
        running.collect()
    }

    fn sandbox_config(&self) -> PodSandboxConfig<'_> {
        PodSandboxConfig { pod: &self.pod, metadata: &self.object.metadata, attempt: 0 }
    }
}
