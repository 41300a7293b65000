//! The steps of a stage, one after the other (kwok's `doStageSteps`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::jobs::StageJob;
use super::typed::typed;
use crate::changes;
use crate::manifest::PatchAs;
use crate::names::FIELD_MANAGER;
use crate::stage::{ObjectStep, StageChange};
use crate::stagehand::Stagehand;
use crate::surroundings::TemplateSurroundings;
use apimachinery::gvk::GroupVersion;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, PatchType};
use apimachinery::status::Status;
use apimachinery::time::Time;
use apimachinery::user::UserInfo;
use apis::kind::Kind;
use client_go::Client;
use entropy::Entropy;

/// Between two attempts, doubled each time (kwok's `defaultBackoff`).
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(32 * 60);

/// A stage that is played.
pub(super) struct Act {
    pub(super) stagehand: Stagehand,
    pub(super) kind: Arc<Kind>,
    pub(super) job: StageJob,
    /// When the player began.
    pub(super) started: Time,
}

/// What became of it.
pub(super) struct PlayedStage {
    pub(super) job: StageJob,
    /// The step that failed, and why.
    pub(super) failed: Option<(usize, Status)>,
    /// The object as it is now, where the next stage is not to wait for the watch.
    pub(super) made: Option<Arc<Object>>,
}

/// Whether the same may go well later.
pub(super) fn is_passing(status: &Status) -> bool {
    matches!(status.code, 429 | 503 | 504) || status.reason == "ServerTimeout"
}

/// How long to wait after so many failures.
pub(super) fn backoff(retries: u32, entropy: &Entropy) -> Duration {
    let pause = FIRST_RETRY.saturating_mul(2u32.saturating_pow(retries)).min(LONGEST_RETRY);
    entropy.jitter(pause, 0.2)
}

impl Act {
    pub(super) async fn perform(self) -> PlayedStage {
        let failed = self.steps().await;
        let made = match &failed {
            None if self.job.stage.is_immediate => self.look().await,
            _ => None,
        };
        PlayedStage { job: self.job, failed, made }
    }

    async fn steps(&self) -> Option<(usize, Status)> {
        let tree = typed(&self.kind, &self.job.object);
        let mut is_deleted = false;
        for (at, step) in self.job.stage.steps.iter().enumerate().skip(self.job.step) {
            if is_deleted && !matches!(step, ObjectStep::Event(_)) {
                continue;
            }
            if let Err(status) = self.step(step, &tree).await {
                return Some((at, status));
            }
            is_deleted |= matches!(step, ObjectStep::Delete);
        }
        None
    }

    async fn step(&self, step: &ObjectStep, tree: &Value) -> Result<(), Status> {
        let object = &*self.job.object;
        match step {
            ObjectStep::Event(event) => {
                let recorder = &self.stagehand.context.recorder;
                recorder.event((&*self.kind, object), &event.event_type, &event.reason, &event.message);
                Ok(())
            }
            ObjectStep::Finalizers(wanted) => {
                let changes = changes::finalizers(&finalizers_of(tree), wanted);
                if changes.is_empty() {
                    return Ok(());
                }
                self.patch(&self.client(None), "", PatchType::Json, &changes.into()).await
            }
            ObjectStep::Delete => {
                let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
                let options = options.of_uid(&object.metadata.uid);
                let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
                match self.client(None).delete(&self.kind, namespace, name, &options).await {
                    Err(status) if status.is_not_found() => Ok(()),
                    done => done,
                }
            }
            ObjectStep::Patch(change) => {
                let body = self.body(change, tree)?;
                let client = self.client(change.impersonation.as_ref());
                let patch_type = change.patch_type.unwrap_or(self.usual_patch());
                self.patch(&client, &change.subresource, patch_type, &body).await
            }
            ObjectStep::Apply(change) => self.apply(change, self.body(change, tree)?).await,
        }
    }

    fn client(&self, impersonation: Option<&PatchAs>) -> Client {
        let client = &self.stagehand.context.client;
        match impersonation {
            Some(PatchAs { username }) => client.acting_as(UserInfo::authenticated(username, &[])),
            None => client.clone(),
        }
    }

    fn body(&self, change: &StageChange, tree: &Value) -> Result<Value, Status> {
        let context = &self.stagehand.context;
        let surroundings = TemplateSurroundings {
            object: &self.job.object,
            tree,
            machines: &self.stagehand.machines,
            now: context.clock.now(),
            started: self.started,
            entropy: &context.entropy,
        };
        change.body(tree, &surroundings).map_err(|why| Status::bad_request(why.to_string()))
    }

    /// Strategic of Pods and Nodes.
    fn usual_patch(&self) -> PatchType {
        let is_core = self.kind.group_version.group.is_empty();
        match &*self.kind.kind {
            "Pod" | "Node" if is_core => PatchType::StrategicMerge,
            _ => PatchType::Merge,
        }
    }

    /// What is gone needs no patch.
    async fn patch(
        &self,
        client: &Client,
        subresource: &str,
        patch_type: PatchType,
        body: &Value,
    ) -> Result<(), Status> {
        let metadata = &self.job.object.metadata;
        let place = [metadata.namespace.as_str(), metadata.name.as_str(), subresource];
        match client.patch_as(&self.kind, place, patch_type, body, FIELD_MANAGER).await {
            Err(status) if status.is_not_found() => Ok(()),
            done => done.map(drop),
        }
    }

    /// Creates the object, or changes the one that is there; a subresource of one that is there.
    async fn apply(&self, change: &StageChange, mut body: Value) -> Result<(), Status> {
        let kind = self.kind_of(&body)?;
        let named = |field: &str| body["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (name, mut namespace) = (named("name"), named("namespace"));
        if kind.namespaced && namespace.is_empty() {
            namespace.clone_from(&self.job.object.metadata.namespace);
            body["metadata"]["namespace"] = namespace.as_str().into();
        }
        let client = self.client(change.impersonation.as_ref());
        if change.subresource.is_empty() {
            match client.create(&kind, &namespace, body.clone()).await {
                Err(status) if status.is_already_exists() && !name.is_empty() => {}
                done => return done.map(drop),
            }
        }
        let patch_type = change.patch_type.unwrap_or(PatchType::Apply);
        let place = [namespace.as_str(), name.as_str(), change.subresource.as_str()];
        client.patch_as(&kind, place, patch_type, &body, FIELD_MANAGER).await.map(drop)
    }

    fn kind_of(&self, body: &Value) -> Result<Arc<Kind>, Status> {
        let text = |field: &str| body[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let version = GroupVersion::parse(api_version).filter(|_| !kind.is_empty());
        let version =
            version.ok_or_else(|| Status::bad_request("template must include apiVersion and kind"))?;
        let found = self.stagehand.scheme.kind(&version, kind);
        found.ok_or_else(|| {
            Status::bad_request(format!("no matches for kind {kind:?} in version {api_version:?}"))
        })
    }

    async fn look(&self) -> Option<Arc<Object>> {
        let metadata = &self.job.object.metadata;
        self.client(None).get(&self.kind, &metadata.namespace, &metadata.name).await.ok()
    }
}

fn finalizers_of(tree: &Value) -> Vec<String> {
    let present = tree["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    present.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
