//! Connections to ports of a pod (`pkg/kubelet/server`, `portForward`): the runtime says who listens there.

use std::time::Duration;

use tokio::io::DuplexStream;

use super::container_runtime::services::{
    Datagram, PodSandboxConfig, PortListener, RunningContainer, RuntimeError, RuntimeService,
};
use super::kubelet::Kubelet;
use super::kuberuntime::state::State;
use super::pod_workers::PodWorker;
use apimachinery::time::Time;

/// How often a connection looks whether its container still runs.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

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
    ) -> Result<DuplexStream, String> {
        let runtime = self.shared.node.runtime.clone();
        let found = self.pods.look(namespace, pod, |worker| worker.listener(&*runtime, port)).await;
        let listener = found.ok_or_else(|| format!("pod not found ({:?})", format!("{pod}_{namespace}")))?;
        let listener = listener.map_err(|error| error.message)?;
        let (client, server) = network::connection();
        let clock = self.shared.context.clock.clone();
        let serving = (listener.serve)(server, from.to_owned(), clock);
        let (kubelet, namespace, pod) = (self.clone(), namespace.to_owned(), pod.to_owned());
        // It ends with either side, and with the container.
        let task = async move {
            tokio::select! {
                () = serving => {}
                () = kubelet.ended(&namespace, &pod, &listener) => {}
            }
        };
        // With the kubelet it ends, too.
        let begun = self.shared.context.tasks.spawn("port forward", task);
        begun.map(|_| client).ok_or_else(|| "the kubelet has stopped".to_owned())
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
    ) -> Result<Option<Vec<u8>>, String> {
        let runtime = self.shared.node.runtime.clone();
        let found = self.pods.look(namespace, pod, |worker| worker.datagram(&*runtime, asked)).await;
        let answer = found.ok_or_else(|| format!("pod not found ({:?})", format!("{pod}_{namespace}")))?;
        answer.map_err(|error| error.message)
    }

    /// Waits until what listens does not run any more.
    async fn ended(&self, namespace: &str, pod: &str, listener: &PortListener) {
        let runs = |worker: &PodWorker| worker.runs(&listener.container) == Some(listener.started_at);
        while self.pods.look(namespace, pod, runs).await == Some(true) {
            self.shared.context.clock.sleep(LOOK_PERIOD).await;
        }
    }
}

impl PodWorker {
    /// Since when a container has run; none where it does not.
    fn runs(&self, container: &str) -> Option<Time> {
        match self.container(container)?.1.state {
            State::Running { started_at, .. } => Some(started_at),
            _ => None,
        }
    }

    fn listener(&self, runtime: &dyn RuntimeService, port: u16) -> Result<PortListener, RuntimeError> {
        let config = PodSandboxConfig { pod: &self.pod, metadata: &self.object.metadata, attempt: 0 };
        runtime.port_forward(&config, &self.running_containers(), port)
    }

    fn datagram(
        &self,
        runtime: &dyn RuntimeService,
        asked: &Datagram<'_>,
    ) -> Result<Option<Vec<u8>>, RuntimeError> {
        let config = PodSandboxConfig { pod: &self.pod, metadata: &self.object.metadata, attempt: 0 };
        runtime.datagram(&config, &self.running_containers(), asked)
    }

    fn running_containers(&self) -> Vec<RunningContainer<'_>> {
        let running = self.all_containers().filter_map(|(container, run)| match &run.state {
            State::Running { id, started_at } => {
                Some(RunningContainer { container, id, started_at: *started_at })
            }
            _ => None,
        });
        running.collect()
    }
}
