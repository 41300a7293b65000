//! Recycler pods (`pkg/volume/util/recyclerclient`): what empties a volume with the policy `Recycle` whose
//! claim is gone, before it may be claimed again.
//!
//! Nobody waits here for a pod to end: each round looks how far it is, and asks for the next round.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use sync::Mutex;

use super::controller::{Action, Reconcile};
use super::pod_state::pods_with_claim;
use super::volume_writes::{fail, set_volume_phase, unbind};
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::quantity::Quantity;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::core::event::EVENTS;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::pod::PODS;
use apis::tree::{at, text};
use apis::views::pod::is_terminal;
use client_go::lister::Lister;

/// Where recycler pods are.
const NAMESPACE: &str = "default";
/// The image of upstream's `NewPersistentVolumeRecyclerPodTemplate`.
const IMAGE: &str = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6";
/// What it runs: it ends well if there is nothing left.
const SCRUB: &str =
    "test -e /scrub && find /scrub -mindepth 1 -delete && test -z \"$(ls -A /scrub)\" || exit 1";
/// How often it is looked how far a pod is. An informer's handler would hear of each pod of the cluster.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// At most so many events of a pod are told of its volume.
const MOST_EVENTS: usize = 30;
/// A pod has so many seconds for each Gi of its volume.
const SECONDS_A_GI: i64 = 30;
/// And at least so many: of a path of a node, of an NFS share.
const LEAST_SECONDS: [i64; 2] = [60, 300];

/// How far a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Recycling {
    /// The pod of this UID empties it.
    By(String),
    /// It could not be emptied; when it is tried again, by the cluster's clock.
    FailedUntil(Duration),
}

/// Empties volumes.
pub(super) struct VolumeRecycler {
    claims: Lister,
    pods: Lister,
    retry_period: Duration,
    /// By the volume's name. Bound: one for each volume that is to be emptied, forgotten when it was or is
    /// none of these any more.
    volumes: Mutex<BTreeMap<String, Recycling>>,
}

impl VolumeRecycler {
    /// What could not be emptied is tried again after `retry_period`.
    pub(super) fn new(claims: Lister, pods: Lister, retry_period: Duration) -> VolumeRecycler {
        VolumeRecycler { claims, pods, retry_period, volumes: Mutex::default() }
    }

    /// Brings a volume whose claim is gone nearer to being empty (`recycleVolumeOperation`).
    pub(super) async fn recycle(
        &self,
        ctx: &Reconcile,
        volume: &Object,
        tree: Value,
    ) -> Result<Action, Status> {
        if !matches!(text(&tree, "status.phase"), "Released" | "Failed") {
            // That it is released now leads to the next round.
            return set_volume_phase(ctx, tree, "Released").await.map(|()| Action::Done);
        }
        let name = volume.metadata.name.as_str();
        let known = self.volumes.lock().get(name).cloned();
        match known {
            None => self.begin(ctx, volume, &tree).await,
            Some(Recycling::By(uid)) => self.look(ctx, volume, tree, &uid).await,
            Some(Recycling::FailedUntil(time)) => match time.checked_sub(ctx.clock.elapsed()) {
                Some(left) if !left.is_zero() => Ok(Action::LookAfter(left)),
                _ => self.begin(ctx, volume, &tree).await,
            },
        }
    }

    /// A volume that is not to be emptied any more: its pod goes, if it has one.
    pub(super) async fn leave(&self, ctx: &Reconcile, name: &str) -> Result<(), Status> {
        let known = self.volumes.lock().remove(name);
        match known {
            Some(Recycling::By(_)) => delete_pod(ctx, &pod_name(name)).await,
            _ => Ok(()),
        }
    }

    async fn begin(&self, ctx: &Reconcile, volume: &Object, tree: &Value) -> Result<Action, Status> {
        let users = self.users(tree);
        if !users.is_empty() {
            let message = format!("Volume is used by pods: {}", users.join(","));
            ctx.event(&PERSISTENT_VOLUMES, volume, "Normal", "VolumeFailedRecycle", message);
            return Ok(Action::LookAfter(self.retry_period));
        }
        let name = &volume.metadata.name;
        match ctx.client.create(&PODS, NAMESPACE, recycler_pod(tree)).await {
            Ok(pod) => {
                self.volumes.lock().insert(name.clone(), Recycling::By(pod.metadata.uid.clone()));
                Ok(Action::ResumeAfter(LOOK_PERIOD))
            }
            // One of before a restart, or somebody's who wants to seem one: nobody knows what it has done.
            Err(status) if status.is_already_exists() => {
                delete_pod(ctx, &pod_name(name)).await?;
                Ok(Action::ResumeAfter(LOOK_PERIOD))
            }
            Err(status) => {
                let why = format!("unexpected error creating recycler pod:  {}", status.message);
                self.failed(ctx, volume, tree.clone(), &why).await
            }
        }
    }

    async fn look(&self, ctx: &Reconcile, volume: &Object, tree: Value, uid: &str) -> Result<Action, Status> {
        let name = pod_name(&volume.metadata.name);
        let pod = ctx.client.find(&PODS, NAMESPACE, &name).await?;
        let Some(pod) = pod.filter(|pod| pod.metadata.uid == uid) else {
            return self
                .failed(ctx, volume, tree, "failed to recycle volume: recycler pod was deleted")
                .await;
        };
        let status = pod.to_value();
        match text(&status, "status.phase") {
            "Succeeded" => {
                tell_events(ctx, volume, &name).await?;
                delete_pod(ctx, &name).await?;
                ctx.event(&PERSISTENT_VOLUMES, volume, "Normal", "VolumeRecycled", "Volume recycled");
                unbind(ctx, volume, tree).await?;
                self.volumes.lock().remove(&volume.metadata.name);
                Ok(Action::Done)
            }
            "Failed" => {
                tell_events(ctx, volume, &name).await?;
                delete_pod(ctx, &name).await?;
                let why = match text(&status, "status.message") {
                    "" => "pod failed, pod.Status.Message unknown",
                    message => message,
                };
                self.failed(ctx, volume, tree, &format!("failed to recycle volume: {why}")).await
            }
            _ => Ok(Action::ResumeAfter(LOOK_PERIOD)),
        }
    }

    /// Tells it, and tries again later.
    async fn failed(
        &self,
        ctx: &Reconcile,
        volume: &Object,
        tree: Value,
        why: &str,
    ) -> Result<Action, Status> {
        // What is told already is not told anew with each attempt.
        if text(&tree, "status.phase") != "Failed" {
            fail(ctx, volume, tree, "VolumeFailedRecycle", &format!("Recycle failed: {why}")).await?;
        }
        let until = ctx.clock.elapsed() + self.retry_period;
        self.volumes.lock().insert(volume.metadata.name.clone(), Recycling::FailedUntil(until));
        Ok(Action::LookAfter(self.retry_period))
    }

    /// Which pods use the volume yet (`isVolumeUsed`): none of those that mean another claim of that name.
    fn users(&self, volume: &Value) -> Vec<String> {
        let (namespace, claim) =
            (text(volume, "spec.claimRef.namespace"), text(volume, "spec.claimRef.name"));
        if self.claims.get(namespace, claim).is_some() {
            return vec![];
        }
        let mut pods = pods_with_claim(&self.pods, namespace, claim);
        pods.retain(|pod| !is_terminal(pod));
        pods.iter().map(|pod| pod.key()).collect()
    }
}

/// What the recycler pod of a volume is called, so that there is never a second one.
fn pod_name(volume: &str) -> String {
    format!("recycler-for-{volume}")
}

fn recycler_pod(volume: &Value) -> Value {
    let share = at(volume, "spec.nfs");
    let (mounted, least) = if share.is_null() {
        let path = at(volume, "spec.hostPath.path");
        (json!({"name": "vol", "hostPath": {"path": path}}), LEAST_SECONDS[0])
    } else {
        (json!({"name": "vol", "nfs": {"server": share["server"], "path": share["path"]}}), LEAST_SECONDS[1])
    };
    json!({
        "metadata": {"name": pod_name(text(volume, "metadata.name"))},
        "spec": {
            "activeDeadlineSeconds": seconds_for(volume, least),
            "restartPolicy": "Never",
            "volumes": [mounted],
            "containers": [{"name": "pv-recycler", "image": IMAGE, "command": ["/bin/sh"], "args": ["-c", SCRUB],
                "volumeMounts": [{"name": "vol", "mountPath": "/scrub"}]}],
        },
    })
}

/// How long a pod may take (`CalculateTimeoutForVolume`).
fn seconds_for(volume: &Value, least: i64) -> i64 {
    let size = Quantity::parse(text(volume, "spec.capacity.storage")).map_or(0, |size| size.value());
    (size / (1 << 30)).saturating_mul(SECONDS_A_GI).max(least)
}

async fn delete_pod(ctx: &Reconcile, name: &str) -> Result<(), Status> {
    match ctx.client.delete(&PODS, NAMESPACE, name, &DeleteOptions::default()).await {
        Err(status) if !status.is_not_found() => Err(status),
        _ => Ok(()),
    }
}

/// What happened to the pod is told of its volume (`newRecyclerEventRecorder`). The role of this controller
/// has a watch of events and no list.
async fn tell_events(ctx: &Reconcile, volume: &Object, pod: &str) -> Result<(), Status> {
    let fields = FieldSelector::equal("involvedObject.name", pod);
    let options = ListOptions {
        predicate: Predicate { fields, ..Predicate::default() },
        resource_version_match: Some("NotOlderThan".into()),
        allow_watch_bookmarks: true,
        send_initial_events: Some(true),
        ..ListOptions::default()
    };
    let mut events = ctx.client.watch(&EVENTS, NAMESPACE, &options).await?;
    let mut told = 0;
    while let Some(WatchEvent::Added(event)) = events.recv().await {
        let event = event.to_value();
        let message = format!("Recycler pod: {}", text(&event, "message"));
        ctx.event(&PERSISTENT_VOLUMES, volume, text(&event, "type"), "RecyclerPod", message);
        told += 1;
        if told == MOST_EVENTS {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(storage: &str, source: Value) -> Value {
        let mut spec = source;
        spec["capacity"] = json!({"storage": storage});
        json!({"metadata": {"name": "v"}, "spec": spec})
    }

    #[test]
    fn a_pod_has_the_volume_and_as_much_time_as_that_is_large() {
        let of = |storage: &str, source: Value| {
            let pod = recycler_pod(&volume(storage, source));
            (pod["spec"]["volumes"].clone(), pod["spec"]["activeDeadlineSeconds"].as_i64().unwrap())
        };
        let path = json!({"hostPath": {"path": "/data", "type": "Directory"}});
        let mounted = json!([{"name": "vol", "hostPath": {"path": "/data"}}]);
        assert_eq!(of("1Gi", path.clone()), (mounted.clone(), 60));
        assert_eq!(of("2900Mi", path.clone()), (mounted.clone(), 60));
        assert_eq!(of("3Gi", path.clone()), (mounted.clone(), 90));
        assert_eq!(of("1Mi", path), (mounted, 60));
        let share = json!({"nfs": {"server": "s", "path": "/exports"}});
        let mounted = json!([{"name": "vol", "nfs": {"server": "s", "path": "/exports"}}]);
        assert_eq!(of("10Gi", share), (mounted, 300));
    }
}
