//! Somebody is attached to the process of a container (`pkg/kubelet`, `GetAttach`; CRI `Attach`): hears what
//! it says from then on, and says something to it.

use tokio::sync::{mpsc, watch};

use super::container_runtime::services::{
    AttachInput, AttachResponse, ContainerConfig, ContainerId, RuntimeError,
};
use super::dependencies::NodeRuntime;
use super::kubelet::Kubelet;
use super::kuberuntime::task::Task;
use super::players::Cause;
use super::pod_manager::pods::Loan;
use super::pod_workers::PodWorker;
use super::server::RunTimes;
use super::volume_manager::facts::VolumeFacts;
use super::volume_manager::surroundings;
use apimachinery::time::Time;
use machine::byte_text;
use machine::standard_input::TerminalSize;

/// So many pieces wait for either side; then the other one waits.
pub(crate) const PIECES: usize = 8;

/// Both ways to a process.
pub struct Attachment {
    /// What is said to it. It hears the end of it when this is dropped.
    pub says: mpsc::Sender<Vec<u8>>,
    /// How large the window is that it is shown in; the newest counts.
    pub sizes: watch::Sender<TerminalSize>,
    /// What it says, and whether as an error; the end is its own, or its container's.
    pub said: mpsc::Receiver<(bool, Vec<u8>)>,
}

/// Which run of which container somebody is attached to.
struct AttachedClient {
    kubelet: Kubelet,
    namespace: String,
    pod: String,
    container: String,
    id: ContainerId,
    started_at: Time,
    is_terminal: bool,
    hears_end: bool,
    /// How much it had said that is told already.
    seen: usize,
}

/// What tells whoever is attached that there may be more.
struct AttachNews {
    /// The pod has had a turn: it was started or stopped, heard something, or has other files.
    turns: watch::Receiver<()>,
    /// Its server was asked, and has written that down.
    requests: watch::Receiver<()>,
}

/// What came of one look at it.
struct AttachLook {
    response: AttachResponse,
    /// When it ended.
    finished_at: Option<Time>,
}

impl Kubelet {
    /// Attaches somebody to the process of a container. `reads` is whether anything will be said to it.
    ///
    /// # Errors
    /// Why that cannot be, in the words of kubelet and runtime.
    pub async fn attach(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        reads: bool,
    ) -> Result<Attachment, RuntimeError> {
        let not_found = || refusal(format!("container {container} not found in pod {pod}_{namespace}"));
        let exited = || refusal("container is in CONTAINER_EXITED state".to_owned());
        let find = |worker: &PodWorker| {
            let (spec, found) = worker.container(container)?;
            let hears_end = reads && spec.stdin_once;
            let run = found.running_id().cloned().zip(found.started_at());
            Some((run, spec.tty, hears_end))
        };
        let found = self.pods.look(namespace, pod, find).await.flatten();
        let (run, is_terminal, hears_end) = found.ok_or_else(not_found)?;
        let (id, started_at) = run.ok_or_else(exited)?;
        let (namespace, pod, container) = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        let attached = AttachedClient {
            kubelet: self.clone(),
            namespace,
            pod,
            container,
            id,
            started_at,
            is_terminal,
            hears_end,
            seen: 0,
        };
        let news = attached.news().await.ok_or_else(exited)?;
        let first = attached.look(AttachInput::Begins).await;
        let first = first.ok_or_else(exited)?;
        let (says, to_process) = mpsc::channel(PIECES);
        let (from_process, said) = mpsc::channel(PIECES);
        let (sizes, resized) = watch::channel(TerminalSize::default());
        // With the kubelet it ends, too.
        let begun = self
            .shared
            .context
            .tasks
            .spawn("attach", attached.talk(first, news, (to_process, resized), from_process));
        begun
            .map(|_| Attachment { says, sizes, said })
            .ok_or_else(|| refusal("the kubelet has stopped".to_owned()))
    }
}

pub(crate) fn refusal(message: String) -> RuntimeError {
    RuntimeError { reason: String::new(), message }
}

impl AttachedClient {
    /// Until the process has ended, or nobody hears it any more.
    async fn talk(
        mut self,
        first: AttachLook,
        mut news: AttachNews,
        (to_process, mut resized): (mpsc::Receiver<Vec<u8>>, watch::Receiver<TerminalSize>),
        from_process: mpsc::Sender<(bool, Vec<u8>)>,
    ) {
        let mut to_process = Some(to_process);
        let mut looked = first;
        self.seen = looked.response.seen;
        loop {
            if !self.tell(&looked, &from_process).await || looked.finished_at.is_some() {
                return;
            }
            let heard = tokio::select! {
                biased;
                Ok(()) = resized.changed() => AttachInput::Resized(*resized.borrow_and_update()),
                heard = next_said(&mut to_process) => heard,
                () = self.pause(looked.response.next, &mut news) => AttachInput::Nothing,
                () = from_process.closed() => {
                    self.hang_up().await;
                    return;
                }
            };
            let heard =
                if heard == AttachInput::End && !self.hears_end { AttachInput::Nothing } else { heard };
            match self.look(heard).await {
                Some(next) => looked = next,
                None => return,
            }
        }
    }

    /// Nobody is left: a process whose standard input is for one client alone reads its end.
    async fn hang_up(&self) {
        if self.hears_end {
            self.look(AttachInput::End).await;
        }
    }

    /// What tells that it is to be looked at; none when the pod is gone.
    async fn news(&self) -> Option<AttachNews> {
        let pods = &self.kubelet.pods;
        let uid = pods.look(&self.namespace, &self.pod, |worker| worker.object.metadata.uid.clone()).await?;
        let turns = pods.turns_of(&uid.as_str().into())?;
        Some(AttachNews { turns, requests: self.kubelet.shared.node.runtime.log_grows(&self.id) })
    }

    /// Until it says more by itself, or something has happened to it.
    async fn pause(&self, next: Option<Time>, news: &mut AttachNews) {
        let clock = &self.kubelet.shared.context.clock;
        let until_next = async {
            match next {
                Some(next) => clock.sleep((next - clock.now()).to_std().unwrap_or_default()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = until_next => {}
            // None come any more of a pod that is gone.
            _ = news.turns.changed() => {}
            Ok(()) = news.requests.changed() => {}
        }
    }

    /// Sends what is new. Whether anybody takes it.
    async fn tell(&mut self, looked: &AttachLook, to: &mpsc::Sender<(bool, Vec<u8>)>) -> bool {
        let AttachResponse { transcript, ran, .. } = &looked.response;
        for (is_error, text) in transcript.behind(self.seen, *ran) {
            // A terminal has one output, whose lines end as a typewriter's.
            let is_error = is_error && !self.is_terminal;
            let text = if self.is_terminal { text.replace('\n', "\r\n") } else { text };
            let bytes = byte_text::bytes_of(&text).into_owned();
            if to.send((is_error, bytes)).await.is_err() {
                self.hang_up().await;
                return false;
            }
        }
        self.seen = self.seen.max(transcript.said_by(*ran));
        true
    }

    /// What the process has said by now, and hears; none when nothing is left of it.
    async fn look(&self, heard: AttachInput) -> Option<AttachLook> {
        let pods = &self.kubelet.pods;
        let mut loan = pods.borrow(&self.namespace, &self.pod).await?;
        if heard == AttachInput::Begins
            && let Some(fetch) = loan.look_around(self.now())
        {
            drop(loan);
            let sources = fetch.perform(&self.kubelet.shared.context.client).await;
            loan = pods.borrow(&self.namespace, &self.pod).await?;
            loan = self.kubelet.provide(loan, sources, self.now()).await;
        }
        let (kubelet, now, uid) = (self.kubelet.clone(), self.now(), loan.uid.clone());
        let is_heard = !matches!(heard, AttachInput::Nothing);
        let (name, id) = (self.container.clone(), self.id.clone());
        let started_at = self.started_at;
        let look = move || look_at(&mut loan, &kubelet.shared.node, (&name, &id, started_at), &heard, now);
        let looked = self.kubelet.shared.players.run(Cause::Request, look).await;
        if is_heard {
            self.kubelet.pods.wake(&uid);
        }
        looked
    }

    fn now(&self) -> Time {
        self.kubelet.shared.context.clock.now()
    }
}

/// What is said next; it has ended once.
pub(crate) async fn next_said(to_process: &mut Option<mpsc::Receiver<Vec<u8>>>) -> AttachInput {
    let Some(says) = to_process else { return std::future::pending().await };
    match says.recv().await {
        Some(bytes) => AttachInput::Bytes(bytes),
        None => {
            *to_process = None;
            AttachInput::End
        }
    }
}

fn look_at(
    loan: &mut Loan,
    node: &NodeRuntime,
    (name, id, started_at): (&str, &ContainerId, Time),
    heard: &AttachInput,
    now: Time,
) -> Option<AttachLook> {
    let run = loan.container(name).and_then(|(_, container)| RunTimes::of(container, id))?;
    let finished_at = run.finished_at;
    let heard = if finished_at.is_some() { &AttachInput::Nothing } else { heard };
    let response = loan.attach(node, (name, id, started_at), heard, finished_at.unwrap_or(now))?;
    let ends = node.runtime.container_status(id).and_then(|status| status.ends).map(|(at, _)| at);
    Some(AttachLook { response, finished_at: finished_at.or(ends.filter(|at| *at <= now)) })
}

impl PodWorker {
    /// The process hears something, and is played again with that. None when there is no such run.
    fn attach(
        &mut self,
        node: &NodeRuntime,
        (name, id, started_at): (&str, &ContainerId, Time),
        heard: &AttachInput,
        now: Time,
    ) -> Option<AttachResponse> {
        let held = self.held_facts()?;
        let facts = held.facts(node);
        let VolumeFacts { pod, metadata, .. } = facts;
        let written = self.written_until(node, now);
        let response = self.container(name).and_then(|(spec, container)| {
            let attempt = container.restart_count;
            let config = ContainerConfig { pod, metadata, container: spec, attempt };
            let found = || surroundings::surroundings(&facts, spec, attempt, started_at, &written).ok();
            node.runtime.attach(&config, id, heard, &found, now)
        });
        self.keep(written);
        if !matches!(heard, AttachInput::Nothing) {
            self.note_end(node, name, id);
            self.look_at_files_again(node, name, now);
        }
        response
    }

    /// What was said to it may be its end.
    fn note_end(&mut self, node: &NodeRuntime, name: &str, id: &ContainerId) {
        let Some(container) = self.container_mut(name) else { return };
        let status = node.runtime.container_status(id);
        if let (Task::Run(running), Some(status)) = (&mut container.task, status) {
            running.note(status);
        }
    }
}
