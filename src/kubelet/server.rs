//! What a kubelet answers when the apiserver asks it (`pkg/kubelet/server`): the logs of its containers.
//!
//! Here nobody opens a socket: whoever builds the cluster hands the apiserver a way to find the kubelet of a
//! node.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use chrono::SecondsFormat;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::container_runtime::services::{ContainerConfig, ContainerId};
use super::kubelet::Kubelet;
use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::state::{ContainerEnd, KubeContainerState};
use super::players::Cause;
use super::pod_workers::PodWorker;
use apimachinery::status::Status;
use apimachinery::time::Time;
use clock::Clock;
use machine::logs::LogLine;

/// How often a log that is followed is looked at.
const FOLLOW_PERIOD: Duration = Duration::from_millis(500);

/// `v1.PodLogOptions`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The container's name. The apiserver has chosen one when the user has not.
    pub container: String,
    /// Goes on until the container ends.
    pub follow: bool,
    /// Of the run before the last restart.
    pub previous: bool,
    /// Only what is not older.
    pub since_seconds: Option<i64>,
    /// Only what was said then or later.
    pub since_time: Option<Time>,
    /// With the time in front of each line.
    pub timestamps: bool,
    /// At most so many lines of those that are there.
    pub tail_lines: Option<usize>,
    /// At most so many bytes.
    pub limit_bytes: Option<usize>,
}

/// One run of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunTimes {
    id: ContainerId,
    started_at: Time,
    pub(crate) finished_at: Option<Time>,
}

impl RunTimes {
    /// The run of a container that has this id, if it is still known. Two may have begun at one instant.
    pub(crate) fn of(container: &KubeContainer, id: &ContainerId) -> Option<RunTimes> {
        let mut runs = [current(container), last(container)].into_iter().flatten();
        runs.find(|run| run.id == *id)
    }
}

/// A log on its way to who asked.
struct LogStream {
    kubelet: Kubelet,
    namespace: String,
    pod: String,
    options: LogOptions,
    id: ContainerId,
    has_begun: bool,
    /// Lines of the run that were sent or left out.
    seen: usize,
    bytes_left: usize,
    waiting: VecDeque<Bytes>,
    is_over: bool,
}

impl Kubelet {
    /// `GetKubeletContainerLogs`: what a container has said, line by line.
    ///
    /// # Errors 404 when the pod is not on this node; 400 when the container is none of the pod's or has not
    /// run yet, in the words of the real kubelet.
    pub async fn container_logs(
        &self,
        namespace: &str,
        pod: &str,
        options: LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, Status> {
        let name = options.container.clone();
        let find = |worker: &PodWorker| match worker.container(&name) {
            None => Err(format!("container {name:?} in pod {pod:?} is not available")),
            Some((_, container)) => run_of(container, pod, &name, options.previous)
                .map(|run| (self.has_removed(container, &run.id), run)),
        };
        let Some(run) = self.pods.look(namespace, pod, find).await else {
            return Err(Status::failure(404, "NotFound", format!("pod {pod:?} does not exist")));
        };
        let (is_removed, RunTimes { id, .. }) = run.map_err(Status::bad_request)?;
        if is_removed {
            // Upstream has begun its answer when it finds that, so that it reads as if the container said it.
            let said = format!("unable to retrieve container logs for {}", &*id);
            return Ok(stream::iter([said.into()]).boxed());
        }
        let bytes_left = options.limit_bytes.unwrap_or(usize::MAX);
        let (namespace, pod, kubelet) = (namespace.to_owned(), pod.to_owned(), self.clone());
        let waiting = VecDeque::new();
        let is_over = false;
        let seen = 0;
        let has_begun = false;
        let log =
            LogStream { kubelet, namespace, pod, options, id, has_begun, seen, bytes_left, waiting, is_over };
        Ok(stream::unfold(log, LogStream::next).boxed())
    }

    fn has_removed(&self, container: &KubeContainer, id: &ContainerId) -> bool {
        let (options, now) = (&self.shared.config.options, self.clock().now());
        self.shared.garbage.has_removed(container, id, options, now)
    }

    /// Has what containers of a pod look at fetched again, because somebody looks at them.
    async fn refresh_pod(&self, namespace: &str, pod: &str) {
        let now = self.shared.context.clock.now();
        let refresh = |worker: &PodWorker| worker.refresh(now);
        let Some(fetch) = self.pods.look(namespace, pod, refresh).await.flatten() else { return };
        let sources = fetch.perform(&self.shared.context.client).await;
        if let Some(loan) = self.pods.borrow(namespace, pod).await {
            self.provide(loan, sources, self.shared.context.clock.now()).await;
        }
    }

    /// What the run of an id has said, and whether it has ended.
    async fn run_lines(
        &self,
        namespace: &str,
        pod: &str,
        name: &str,
        id: &ContainerId,
    ) -> Option<(Vec<LogLine>, bool)> {
        let now = self.clock().now();
        let find = |worker: &PodWorker| {
            let (_, container) = worker.container(name)?;
            let run = RunTimes::of(container, id)?;
            Some((worker.pod.clone(), worker.object.clone(), container.restart_count, run))
        };
        let (pod, object, attempt, run) = self.pods.look(namespace, pod, find).await.flatten()?;
        let (until, runtime) = (run.finished_at.unwrap_or(now), self.shared.node.runtime.clone());
        let (name, id) = (name.to_owned(), run.id);
        let started_at = run.started_at;
        let finished_at = run.finished_at;
        let play = move || {
            let container = pod.spec.all_containers().find(|spec| spec.name == name)?;
            let config = ContainerConfig { pod: &pod, metadata: &object.metadata, container, attempt };
            Some(runtime.container_log(&config, &id, started_at, until))
        };
        let lines = self.shared.players.run(Cause::Request, play).await?;
        Some((lines, finished_at.is_some()))
    }

    fn clock(&self) -> &Clock {
        &self.shared.context.clock
    }
}

/// `validateContainerLogStatus`: the run that is meant, or why there is none.
fn run_of(container: &KubeContainer, pod: &str, name: &str, previous: bool) -> Result<RunTimes, String> {
    if previous {
        return last(container)
            .ok_or_else(|| format!("previous terminated container {name:?} in pod {pod:?} not found"));
    }
    if let Some(run) = current(container).or_else(|| last(container)) {
        return Ok(run);
    }
    let why = match &container.state {
        KubeContainerState::Waiting { reason, .. } if reason == "ErrImagePull" => "image can't be pulled",
        KubeContainerState::Waiting { reason, .. } if reason == "ImagePullBackOff" => {
            "trying and failing to pull image"
        }
        KubeContainerState::Waiting { reason, .. } => reason,
        _ => return Err(format!("container {name:?} in pod {pod:?} is terminated")),
    };
    Err(format!("container {name:?} in pod {pod:?} is waiting to start: {why}"))
}

fn current(container: &KubeContainer) -> Option<RunTimes> {
    match &container.state {
        KubeContainerState::Running { id, started_at } => {
            Some(RunTimes { id: id.clone(), started_at: *started_at, finished_at: None })
        }
        KubeContainerState::Terminated(ended) => ended_run(ended),
        KubeContainerState::Waiting { .. } => None,
    }
}

fn last(container: &KubeContainer) -> Option<RunTimes> {
    container.last.as_deref().and_then(ended_run)
}

fn ended_run(ended: &ContainerEnd) -> Option<RunTimes> {
    let (started_at, finished_at) = (ended.started_at?, Some(ended.finished_at?));
    Some(RunTimes { id: ended.id.clone(), started_at, finished_at })
}

impl LogStream {
    /// What is there already, as far as it is wanted.
    async fn start(&mut self) {
        let now = self.kubelet.clock().now();
        let Some((lines, is_over)) = self.read().await else { return self.is_over = true };
        self.is_over = is_over || !self.options.follow;
        self.seen = lines.len();
        let age = |seconds: i64| {
            chrono::TimeDelta::try_seconds(seconds).and_then(|age| now.checked_sub_signed(age))
        };
        let since = self.options.since_time.or_else(|| self.options.since_seconds.and_then(age));
        let first = self.options.tail_lines.map_or(0, |count| lines.len().saturating_sub(count));
        for line in lines.iter().skip(first).filter(|line| since.is_none_or(|since| line.at >= since)) {
            self.push(line);
        }
    }

    async fn read(&self) -> Option<(Vec<LogLine>, bool)> {
        let (namespace, pod, name) = (&self.namespace, &self.pod, &self.options.container);
        self.kubelet.run_lines(namespace, pod, name, &self.id).await
    }

    fn push(&mut self, line: &LogLine) {
        let mut text = if self.options.timestamps {
            format!("{} {}\n", line.at.to_rfc3339_opts(SecondsFormat::Nanos, true), line.text)
        } else {
            format!("{}\n", line.text)
        }
        .into_bytes();
        text.truncate(self.bytes_left);
        self.bytes_left -= text.len();
        if !text.is_empty() {
            self.waiting.push_back(text.into());
        }
    }

    async fn next(mut self) -> Option<(Bytes, LogStream)> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.kubelet.refresh_pod(&self.namespace, &self.pod).await;
            self.start().await;
        }
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Some((line, self));
            }
            if self.is_over || self.bytes_left == 0 {
                return None;
            }
            self.kubelet.clock().sleep(FOLLOW_PERIOD).await;
            self.kubelet.refresh_pod(&self.namespace, &self.pod).await;
            let (lines, is_over) = self.read().await?;
            self.is_over = is_over;
            for line in lines.iter().skip(self.seen) {
                self.push(line);
            }
            self.seen = lines.len();
        }
    }
}
