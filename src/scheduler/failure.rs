//! What becomes of a pod that could not be scheduled (`handleSchedulingFailure`): back into the queue, an
//! Event, the condition `PodScheduled=False`, and the evictions that make room for it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use golang::first_bytes::first_bytes;
use serde_json::{Value, json};

use super::config::DEFAULT_SCHEDULER_NAME;
use super::framework::plugin::PostFilterResult;
use super::framework::pod_info::{PodInfo, QueuedPodInfo};
use super::parts::SchedulerParts;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, PatchType, Preconditions};
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::core::pod::PODS;
use apis::views::meta;
use apis::views::pod::Pod;
use client_go::client::Client;
use client_go::component::ComponentContext;
use client_go::reference::ObjectReference;

/// The longest message of an Event, in bytes.
const MAX_EVENT_MESSAGE: usize = 1024;

/// Why a pod was not scheduled.
#[derive(Clone, Debug, Default)]
pub struct SchedulingFailure {
    /// `Unschedulable` or `SchedulerError`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// The plugins that rejected it; none when something went wrong.
    pub plugins: BTreeSet<&'static str>,
    /// How room is to be made; a result without a node takes an earlier nomination back.
    pub preemption: Option<PostFilterResult>,
}

impl SchedulingFailure {
    /// No node will have it.
    pub fn unschedulable(message: &str, plugins: BTreeSet<&'static str>) -> SchedulingFailure {
        SchedulingFailure { reason: "Unschedulable", message: message.into(), plugins, preemption: None }
    }

    /// As metrics call it.
    pub(super) fn result(&self) -> &'static str {
        if self.reason == "Unschedulable" { "unschedulable" } else { "error" }
    }

    /// Something went wrong.
    pub fn error(message: &str) -> SchedulingFailure {
        SchedulingFailure {
            reason: "SchedulerError",
            message: message.into(),
            ..SchedulingFailure::default()
        }
    }
}

/// Puts the pod back into the queue, and says why it was not scheduled; `context` speaks on account of the
/// attempt that failed.
pub(super) async fn handle_scheduling_failure(
    parts: &SchedulerParts,
    context: &ComponentContext,
    mut info: QueuedPodInfo,
    failure: SchedulingFailure,
) {
    let metadata = &info.pod.object.metadata;
    // What the watch knows is newer than what was tried: the pod may be gone, or on a node.
    let current = parts.pods.get(&metadata.namespace, &metadata.name);
    let current = current.filter(|pod| pod.metadata.uid == metadata.uid);
    let Some(current) = current.filter(|pod| pod.view::<Pod>().spec.node_name.is_empty()) else {
        return parts.queue.done(info.pod.uid());
    };
    info.pod = Arc::new(PodInfo::new(current));
    info.unschedulable_plugins = failure.plugins.clone();
    let pod = info.pod.clone();
    let nominated = failure.preemption.as_ref().map(|result| result.nominated_node.clone());
    if let Some(node) = &nominated {
        parts.queue.nominate(&pod, node.clone());
    }
    let preemption = failure.preemption.as_ref().and_then(RoomToMake::of);
    // Whoever goes first wakes the pod: it is to wait for the others.
    preemption.iter().for_each(|_| parts.preempting.begin(pod.uid()));
    parts.queue.add_unschedulable(info);
    log(&pod, &failure);
    let message = truncated(&failure.message);
    let action = ("Scheduling", None);
    context.recorder.event_of((&PODS, &pod.object), action, "Warning", "FailedScheduling", message);
    if let Some(status) = status_patch(&pod, &failure, nominated, context.clock.now()) {
        let patched = patch_status(&context.client, &pod.object, status).await;
        if let Err(status) = patched.map_err(ignore_gone) {
            tracing::debug!(pod = %pod.object.key(), status = ?status, "error updating pod");
        }
    }
    if let Some(room) = preemption {
        room.make(parts, context, &pod).await;
    }
}

/// Who has to leave a node for a pod.
struct RoomToMake<'a> {
    node: &'a Arc<str>,
    /// How many leave, those included that do so already.
    count: usize,
    victims: Vec<&'a Arc<PodInfo>>,
}

impl RoomToMake<'_> {
    /// Nothing where nobody has to be sent away: whoever goes already is not told again.
    fn of(result: &PostFilterResult) -> Option<RoomToMake<'_>> {
        let PostFilterResult { nominated_node: Some(node), victims, .. } = result else { return None };
        let leaving: Vec<&Arc<PodInfo>> =
            victims.iter().filter(|victim| !victim.object.is_deleting()).collect();
        (!leaving.is_empty()).then_some(RoomToMake { node, count: victims.len(), victims: leaving })
    }

    /// `prepareCandidateAsync`: the pod is tried again when the last victim is seen to go, and at once if not
    /// all do.
    async fn make(&self, parts: &SchedulerParts, context: &ComponentContext, pod: &Arc<PodInfo>) {
        parts.metrics.preempted(self.count);
        let begun = context.clock.elapsed();
        self.clear_nominations(parts, context, pod).await;
        let mut outcomes = Vec::new();
        for (place, victim) in self.victims.iter().enumerate() {
            if outcomes.contains(&Eviction::Failed) {
                break;
            }
            if place + 1 == self.victims.len() {
                parts.preempting.is_left(pod.uid(), &victim.object);
            }
            outcomes.push(preempt(context, pod, victim, self.node).await);
        }
        let is_done = !outcomes.contains(&Eviction::Failed);
        parts.metrics.made_room(is_done, context.clock.elapsed().saturating_sub(begun));
        parts.preempting.end(pod.uid());
        // Of one that was gone already nobody hears any more.
        if outcomes.iter().any(|outcome| *outcome != Eviction::Done) {
            parts.queue.activate_now(pod.uid());
        }
    }

    /// Less important pods for which room was made there find it taken: they look for another place.
    async fn clear_nominations(
        &self,
        parts: &SchedulerParts,
        context: &ComponentContext,
        pod: &Arc<PodInfo>,
    ) {
        for other in parts.queue.nominated_after(pod, self.node) {
            parts.queue.nominate(&other, None);
            let patched =
                patch_status(&context.client, &other.object, json!({"nominatedNodeName": null})).await;
            if let Err(status) = patched.map_err(ignore_gone) {
                let pod = other.object.shared_key();
                tracing::debug!(%pod, status = ?status, "cannot clear nominatedNodeName");
            }
            parts.queue.activate_now(other.uid());
        }
    }
}

/// What became of an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eviction {
    /// The victim goes.
    Done,
    /// It was gone.
    Needless,
    /// It stays.
    Failed,
}

/// As upstream says it.
fn log(pod: &PodInfo, SchedulingFailure { message, plugins, .. }: &SchedulingFailure) {
    let pod = pod.object.shared_key();
    if plugins.is_empty() {
        tracing::warn!(%pod, err = message, "Error scheduling pod; retrying");
    } else {
        tracing::info!(%pod, err = message, "Unable to schedule pod; no fit; waiting");
    }
}

/// `PreemptPod`: says why on the victim, then deletes it.
async fn preempt(context: &ComponentContext, preemptor: &PodInfo, victim: &PodInfo, node: &str) -> Eviction {
    let scheduler = &*scheduler_of(preemptor);
    match evict(&context.client, scheduler, victim, context.clock.now()).await {
        Ok(()) => {
            let text = format!("Preempted by pod {} on node {node}", preemptor.uid());
            let action = ("Preempting", Some(ObjectReference::of(&PODS, &preemptor.object)));
            context.recorder.event_of((&PODS, &victim.object), action, "Normal", "Preempted", text);
            Eviction::Done
        }
        Err(status) if status.is_not_found() => Eviction::Needless,
        Err(status) => {
            tracing::warn!(pod = %victim.object.key(), status = %status.message, "tried to preempt pod");
            Eviction::Failed
        }
    }
}

fn scheduler_of(pod: &PodInfo) -> Cow<'_, str> {
    match pod.scheduler_name() {
        name if name.is_empty() => DEFAULT_SCHEDULER_NAME.into(),
        name => name,
    }
}

async fn evict(client: &Client, scheduler: &str, victim: &PodInfo, now: Time) -> Result<(), Status> {
    let metadata = &victim.object.metadata;
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
        "lastProbeTime": null,
        "lastTransitionTime": rfc3339(now),
        "observedGeneration": metadata.generation,
    });
    patch_status(client, &victim.object, json!({"conditions": [condition]})).await?;
    let preconditions = Preconditions { uid: Some(metadata.uid.clone()), resource_version: None };
    let options = DeleteOptions { preconditions: Some(preconditions), ..DeleteOptions::default() };
    client.delete(&PODS, &metadata.namespace, &metadata.name, &options).await
}

/// What changes in the pod's status; nothing when it says so already.
fn status_patch(
    pod: &PodInfo,
    failure: &SchedulingFailure,
    nominated: Option<Option<Arc<str>>>,
    now: Time,
) -> Option<Value> {
    let mut status = json!({});
    let view = pod.pod();
    let old = meta::condition(&view.status.conditions, "PodScheduled");
    let same = |old: &&meta::Condition| {
        old.status == "False" && old.reason == failure.reason && old.message == failure.message
    };
    if old.filter(same).is_none() {
        let since = old.filter(|old| old.status == "False").and_then(|old| old.last_transition_time);
        let mut condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": failure.reason,
            "message": failure.message,
            "lastProbeTime": null,
            "lastTransitionTime": rfc3339(since.unwrap_or(now)),
        });
        if pod.object.metadata.generation > 0 {
            condition["observedGeneration"] = pod.object.metadata.generation.into();
        }
        status["conditions"] = json!([condition]);
    }
    let old_node = view.status.nominated_node_name.as_str();
    match nominated {
        Some(Some(node)) if *node != *old_node => status["nominatedNodeName"] = (*node).into(),
        Some(None) if !old_node.is_empty() => status["nominatedNodeName"] = Value::Null,
        _ => {}
    }
    status.as_object().is_some_and(|status| !status.is_empty()).then_some(status)
}

pub(super) async fn patch_status(client: &Client, pod: &Object, status: Value) -> Result<(), Status> {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
    client.patch_status(&PODS, namespace, name, PatchType::StrategicMerge, &patch).await.map(|_| ())
}

fn ignore_gone(status: Status) -> Option<Status> {
    (!status.is_not_found()).then_some(status)
}

fn truncated(message: &str) -> String {
    const ENDING: &str = " ...";
    if message.len() <= MAX_EVENT_MESSAGE {
        return message.to_owned();
    }
    format!("{}{ENDING}", first_bytes(message, MAX_EVENT_MESSAGE - ENDING.len()))
}
