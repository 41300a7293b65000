//! The ports of a node's sandboxes: who takes connections there. What the user gave in Rust comes before what
//! a pod declares, and that before what its images are known to serve.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;

use super::consumed::ConsumedBook;
use super::declared::{self, DeclaredListener};
use super::listeners;
use super::listening::{self, AskedDatagram, ListeningNode};
use super::own_listeners::OwnListeners;
use super::request_log::AskedRun;
use super::services::{
    ContainerId, Datagram, PodSandboxConfig, PortListener, RunningContainer, RuntimeError, Serve,
};
use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use machine::logs::LogLine;
use machine::surroundings::Surroundings;
use network::Network;
use sync::Mutex;
use tokio::sync::watch;

/// A pod's uid, and a port.
type DeclaredAt = (Arc<str>, u16);

/// What is known of who was asked. Nothing of pods that nobody asks.
pub(super) struct SandboxPorts {
    own: OwnListeners,
    /// What servers ask on; nothing where none is there.
    network: Option<Network>,
    /// By pod uid and port. Bound: the ports that a pod declares, of pods of the node that were asked.
    declared: Mutex<HashMap<DeclaredAt, Arc<DeclaredListener>>>,
    /// What servers were told to use.
    consumed: ConsumedBook,
    /// Bound: one for each container of the node that was asked.
    asked: Mutex<HashMap<ContainerId, Arc<AskedRun>>>,
}

impl SandboxPorts {
    pub(super) fn new(own: OwnListeners) -> SandboxPorts {
        let consumed = ConsumedBook::default();
        SandboxPorts { own, network: None, declared: Mutex::default(), consumed, asked: Mutex::default() }
    }

    /// What its servers are told to use.
    pub(super) fn consumed(&self) -> &ConsumedBook {
        &self.consumed
    }

    /// Its servers ask others on a network.
    pub(super) fn join(&mut self, network: Network) {
        self.network = Some(network);
    }

    /// Who takes connections at `port`.
    ///
    /// # Errors
    /// Why nobody does.
    pub(super) fn listener(
        &self,
        config: &PodSandboxConfig<'_>,
        address: &str,
        running: &[RunningContainer<'_>],
        port: u16,
        around: &dyn Fn(&ContainerId) -> Option<Arc<Surroundings>>,
    ) -> Result<PortListener, RuntimeError> {
        // Whoever says what listens says nothing of which container it is in.
        let of_pod = running.first().map(|first| (first.container.name.clone(), first.started_at));
        if let (Some((container, started_at)), Some(serve)) = (of_pod, self.given(config, port)?) {
            return Ok(PortListener { container, started_at, serve, exit: Arc::default(), listens: None });
        }
        let node = ListeningNode {
            network: self.network.as_ref(),
            run: &|id| self.run(id),
            around,
            consumed: &self.consumed,
        };
        listening::listener((config, address), running, port, &node)
            .or_else(|refused| self.standing_in(running, port).ok_or(refused))
    }

    fn standing_in(&self, running: &[RunningContainer<'_>], port: u16) -> Option<PortListener> {
        running.iter().find_map(|one| {
            let handler = self.own.standing_in(one.container, port)?;
            let (container, started_at) = (one.container.name.clone(), one.started_at);
            let serve: Serve = Arc::new(move |io, from, _| handler(io, from));
            Some(PortListener { container, started_at, serve, exit: Arc::default(), listens: None })
        })
    }

    /// Somebody wrote files in a container: where those are served, whoever knew the answer asks again.
    pub(super) fn note_files(&self, container: &Container, around: &Surroundings) {
        let serves_files = || listeners::served(container).is_some_and(|server| server.serves_files());
        if !around.foreign.is_empty()
            && serves_files()
            && let Some(network) = &self.network
        {
            network.stir();
        }
    }

    /// Whether the user gave in Rust who answers at a port of a pod.
    pub(super) fn is_given(&self, pod: &ObjectMeta, port: u16) -> bool {
        self.own.of(pod, port).is_some()
    }

    /// Whether somebody told a server to answer otherwise.
    pub(super) fn is_told(&self, id: &ContainerId) -> bool {
        self.asked.lock().get(id).is_some_and(|run| run.state.lock().is_told())
    }

    /// What the user gave, or the pod declares.
    fn given(&self, config: &PodSandboxConfig<'_>, port: u16) -> Result<Option<Serve>, RuntimeError> {
        if let Some(handler) = self.own.of(config.metadata, port) {
            return Ok(Some(Arc::new(move |io, from, _| handler(io, from))));
        }
        let declared = self.declared(config, port)?;
        Ok(declared.map(|listener| -> Serve {
            Arc::new(move |io, _, clock| listener.clone().serve(io, clock).boxed())
        }))
    }

    fn declared(
        &self,
        config: &PodSandboxConfig<'_>,
        port: u16,
    ) -> Result<Option<Arc<DeclaredListener>>, RuntimeError> {
        let annotations = &config.pod.metadata.annotations;
        if !declared::listens(annotations, false, port) {
            return Ok(None);
        }
        let Some(found) = declared::declaration(annotations, port) else { return Ok(None) };
        let mut known = self.declared.lock();
        let key = (Arc::from(config.metadata.uid.as_str()), port);
        if let Some(listener) = known.get(&key).filter(|listener| listener.text == found.text) {
            return Ok(Some(listener.clone()));
        }
        let declaration = found.read(self.own.forwarding).map_err(|wrong| refused(wrong.0))?;
        let listener = Arc::new(DeclaredListener::new(found.text.to_owned(), declaration));
        known.insert(key, listener.clone());
        Ok(Some(listener))
    }

    /// What comes back of a datagram.
    ///
    /// # Errors
    /// That nobody listens.
    pub(super) fn datagram(
        &self,
        config: &PodSandboxConfig<'_>,
        running: &[RunningContainer<'_>],
        asked: &Datagram<'_>,
    ) -> Result<Option<Vec<u8>>, RuntimeError> {
        if !running.is_empty() && declared::listens(&config.pod.metadata.annotations, true, asked.port) {
            return Ok(Some(asked.bytes.to_vec()));
        }
        let asked = AskedDatagram { port: i64::from(asked.port), from: asked.from, bytes: asked.bytes };
        listening::datagram(config, running, &asked)
    }

    /// What is wrong with what a pod says of its listeners.
    pub(super) fn problems(&self, pod: &Pod) -> Vec<String> {
        let annotations = &pod.metadata.annotations;
        if annotations.keys().any(|name| declared::is_ours(name)) {
            declared::problems(annotations, self.own.forwarding)
        } else {
            vec![]
        }
    }

    /// Adds what was said of requests.
    pub(super) fn add_requests(&self, id: &ContainerId, said: &mut Vec<LogLine>, until: Time) {
        let run = self.asked.lock().get(id).cloned();
        run.iter().for_each(|run| run.log.add_to(said, until));
    }

    pub(super) fn log_grows(&self, id: &ContainerId) -> watch::Receiver<()> {
        self.run(id).log.grows()
    }

    pub(super) fn forget_pod(&self, uid: &str) {
        self.declared.lock().retain(|(own, _), _| **own != *uid);
        self.consumed.forget_pod(uid);
    }

    pub(super) fn forget_container(&self, id: &ContainerId) {
        self.asked.lock().remove(id);
    }

    fn run(&self, id: &ContainerId) -> Arc<AskedRun> {
        self.asked.lock().entry(id.clone()).or_default().clone()
    }
}

fn refused(message: String) -> RuntimeError {
    RuntimeError { reason: "Unavailable".into(), message }
}
