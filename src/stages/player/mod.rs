//! `Player`: plays the stages of one kind of objects (kwok's `stage_controller.go`, `pod_controller.go`,
//! `node_controller.go`).
//!
//! What changes is matched; the stage that is drawn is due after its delay, on the cluster's clock. Whatever
//! changes again until then is matched again. Nothing is done where no stage matches.

mod acting;
mod jobs;
mod pace;
mod typed;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::Notify;

use super::cel_functions::CelHost;
use super::choose;
use super::error::StageError;
use super::manifest::ResourceRef;
use super::stagehand::{PAUSE, Stagehand};
use acting::{Act, PlayedStage};
use apimachinery::gvk::GroupVersion;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use jobs::{StageJob, StageJobs};
use pace::TooOften;
use typed::typed;

/// So many objects are changed at once; the others wait (kwok's `--pod-play-stage-parallelism`).
const PARALLELISM: usize = 4;

/// Who plays the stages of one kind.
pub(crate) struct StagePlayer {
    stagehand: Stagehand,
    resource: ResourceRef,
    /// There are other stages than before.
    changed: Arc<Notify>,
    jobs: StageJobs,
    started: Time,
}

type Playing = FuturesUnordered<BoxFuture<'static, PlayedStage>>;

impl StagePlayer {
    pub(crate) fn new(stagehand: Stagehand, resource: ResourceRef, changed: Arc<Notify>) -> StagePlayer {
        let started = stagehand.context.clock.now();
        StagePlayer { stagehand, resource, changed, jobs: StageJobs::default(), started }
    }

    /// Plays for as long as it is polled.
    pub(crate) async fn run(mut self) {
        let mut served = self.stagehand.scheme.changes();
        loop {
            let version = GroupVersion::parse(&self.resource.api_group);
            let kind = version.and_then(|version| self.stagehand.scheme.kind(&version, &self.resource.kind));
            let Some(kind) = kind else {
                if served.changed().await.is_err() {
                    return;
                }
                continue;
            };
            if let Err(status) = self.play(&kind).await {
                tracing::debug!(kind = %kind.kind, status.message, "objects are not followed just now");
            }
            self.stagehand.context.clock.sleep(PAUSE).await;
        }
    }

    async fn play(&mut self, kind: &Arc<Kind>) -> Result<(), Status> {
        let (client, clock) = (self.stagehand.context.client.clone(), self.stagehand.context.clock.clone());
        let list = client.list(kind, "", &ListOptions::default()).await?;
        self.jobs.retain(&list.items);
        list.items.iter().for_each(|object| self.heed(kind, object));
        let revision = Some(list.resource_version.to_string());
        let options = ListOptions { resource_version: revision, ..ListOptions::default() };
        let mut events = client.watch(kind, "", &options).await?;
        let changed = self.changed.clone();
        let mut playing = Playing::new();
        loop {
            let wait = self.start_due(kind, &mut playing);
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                        self.heed(kind, &object);
                    }
                    Some(WatchEvent::Deleted(object)) => self.jobs.forget(&object),
                    Some(WatchEvent::Bookmark(_)) => {}
                    Some(WatchEvent::Error(_)) | None => break,
                },
                Some(played) = playing.next(), if !playing.is_empty() => self.finish(kind, played),
                () = changed.notified() => self.match_all(kind),
                () = clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
        while let Some(played) = playing.next().await {
            self.finish(kind, played);
        }
        Ok(())
    }

    fn host(&self) -> CelHost {
        let context = &self.stagehand.context;
        CelHost { now: context.clock.now(), entropy: context.entropy.clone() }
    }

    /// Pods and Nodes are played where they are simulated.
    fn manages(&self, object: &Object, tree: &serde_json::Value) -> bool {
        let machines = &self.stagehand.machines;
        match (self.resource.api_group.as_str(), self.resource.kind.as_str()) {
            ("v1", "Pod") => tree["spec"]["nodeName"].as_str().is_some_and(|node| machines.has_node(node)),
            ("v1", "Node") => machines.has_node(&object.metadata.name),
            _ => true,
        }
    }

    /// An object is new, or has changed: what is to be played of it is drawn anew.
    fn heed(&mut self, kind: &Kind, object: &Arc<Object>) {
        if self.jobs.knows(object) {
            return;
        }
        self.jobs.see(object);
        let job = self.job_of(kind, object, None);
        self.jobs.set(object.shared_key(), job);
    }

    /// There are other stages: what would be drawn as before stays.
    fn match_all(&mut self, kind: &Kind) {
        for (object, job) in self.jobs.take_all() {
            let kept = self.job_of(kind, &object, job);
            self.jobs.set(object.shared_key(), kept);
        }
    }

    fn job_of(&self, kind: &Kind, object: &Arc<Object>, before: Option<StageJob>) -> Option<StageJob> {
        let tree = typed(kind, object);
        if !self.manages(object, &tree) {
            return None;
        }
        let host = self.host();
        let failed = |why: StageError| self.tell(kind, object, "StageFailed", &why);
        let chances = self.stagehand.book.possible(&self.resource, &tree, &host).map_err(failed).ok()?;
        if let Some(before) = before
            && chances.iter().any(|(stage, _)| Arc::ptr_eq(stage, &before.stage))
        {
            return Some(before);
        }
        let stage = choose::draw(&chances, &host)?;
        let delay =
            stage.delay(&tree, &host).map_err(|why| failed(why.at(format!("stage {}: ", stage.name))));
        let due = clock::after(host.now, delay.unwrap_or_default());
        Some(StageJob { object: object.clone(), stage, due, step: 0, retries: 0 })
    }

    /// Begins with what is due; says how long nothing else is, if anything will be.
    fn start_due(&mut self, kind: &Arc<Kind>, playing: &mut Playing) -> Option<Duration> {
        let now = self.stagehand.context.clock.now();
        while playing.len() < PARALLELISM {
            let mut job = match self.jobs.take_due(now) {
                Ok(job) => job,
                Err(wait) => return wait,
            };
            if let Some(TooOften { until, is_news }) = self.jobs.hold(&job.object, now) {
                if is_news {
                    self.tell(kind, &job.object, "StageLoops", &pace::message(&job.stage.name));
                }
                job.due = until;
                self.jobs.set(job.object.clone().shared_key(), Some(job));
                continue;
            }
            self.jobs.begin(&job.object);
            let act =
                Act { stagehand: self.stagehand.clone(), kind: kind.clone(), job, started: self.started };
            playing.push(Box::pin(act.perform()));
        }
        None
    }

    fn finish(&mut self, kind: &Kind, played: PlayedStage) {
        let PlayedStage { mut job, failed, made } = played;
        self.jobs.end(&job.object);
        if let Some((step, status)) = failed {
            let message = format!("Stage {}, step {step}: {}", job.stage.name, status.message);
            self.tell(kind, &job.object, "StageFailed", &message);
            if acting::is_passing(&status) {
                job.due = clock::after(self.host().now, acting::backoff(job.retries, &self.host().entropy));
                (job.step, job.retries) = (step, job.retries.saturating_add(1));
                self.jobs.retry(job);
            }
        }
        if let Some(made) = made {
            self.heed(kind, &made);
        }
    }

    fn tell(&self, kind: &Kind, object: &Object, reason: &str, message: &str) {
        self.stagehand.context.recorder.event((kind, object), "Warning", reason, message);
    }
}
