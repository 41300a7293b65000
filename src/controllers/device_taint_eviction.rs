//! Device taint eviction (`pkg/controller/devicetainteviction`): pods whose devices have a `NoExecute` taint
//! that their claims do not tolerate, or no longer, go. Taints are those of ResourceSlices.
//!
//! A key is that of a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use sync::Mutex;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pod_garbage_collector::mark_disrupted;
use apimachinery::object::{Object, object_key, split_key};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::{self, Time};
use apis::core::pod::PODS;
use apis::resource::device_taints::{DeviceTolerance, tolerance};
use apis::resource::resource_claim::RESOURCE_CLAIMS;
use apis::resource::resource_slice::RESOURCE_SLICES;
use apis::tree::{at, items, number, text};
use apis::views::pod::Pod;
use client_go::ComponentContext;
use client_go::lister::Lister;

/// Drives pods out whose devices are tainted.
pub(crate) struct DeviceTaintEvictionController {
    pods: Lister,
    claims: Lister,
    slices: Lister,
    /// Pods whose eviction waits for its time, and since when. Bound: forgotten when they are evicted, spared
    /// or gone.
    scheduled: Mutex<BTreeMap<Key, Time>>,
}

impl DeviceTaintEvictionController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> DeviceTaintEvictionController {
        let [pods, claims, slices] =
            [&PODS, &RESOURCE_CLAIMS, &RESOURCE_SLICES].map(|kind| ctx.informers.informer(kind).lister());
        DeviceTaintEvictionController { pods, claims, slices, scheduled: Mutex::default() }
    }

    /// When a pod has to go, if it has to: the earliest of what its claims say.
    fn due(&self, pod: &Object, since: Time) -> Option<Time> {
        let slices: Vec<Value> = self.slices.all().iter().map(|slice| slice.to_value()).collect();
        if !slices.iter().any(|slice| !evicting_taints(slice).is_empty()) {
            return None;
        }
        let names = claim_names(&pod.view::<Pod>());
        let claims = names.iter().filter_map(|name| self.claims.get(&pod.metadata.namespace, name));
        let claims = claims.map(|claim| claim.to_value());
        let own = claims.filter(|claim| users(claim).any(|user| text(user, "uid") == pod.metadata.uid));
        own.filter_map(|claim| due_of_claim(&claim, &slices, since)).min()
    }

    async fn evict(&self, ctx: &Reconcile, key: &Key, pod: &Object) -> Result<Action, Status> {
        ctx.event(&PODS, pod, "Normal", "DeviceTaintManagerEviction", "Marking for deletion");
        let why = json!({
            "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint",
        });
        mark_disrupted(ctx, pod, why, None).await?;
        let (namespace, name) = split_key(key);
        let options = DeleteOptions::default().of_uid(&pod.metadata.uid);
        match ctx.client.delete(&PODS, namespace, name, &options).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => {
                self.scheduled.lock().remove(key);
                Ok(Action::Done)
            }
        }
    }
}

impl Controller for DeviceTaintEvictionController {
    const NAME: &'static str = "device-taint-eviction";
    const EVENT_SOURCE: &'static str = "device-taint-eviction";
    const SERVICE_ACCOUNT: &'static str = "device-taint-eviction-controller";
    const WORKERS: usize = 2;

    fn watches(&self) -> Watches {
        let claims = self.claims.clone();
        let slices = move |change: &Change<'_>, enqueue: &Enqueue| {
            let before = change.old().map(|old| old.to_value()).unwrap_or_default();
            if evicting_taints(&before) == evicting_taints(&change.object().to_value()) {
                return;
            }
            claims.all().iter().for_each(|claim| enqueue_users(claim, enqueue));
        };
        Watches::none()
            .maps(&RESOURCE_SLICES, slices)
            .maps(&RESOURCE_CLAIMS, |change, enqueue| enqueue_users(change.object(), enqueue))
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let pod = self.pods.get(namespace, name);
        let Some(pod) = pod.filter(|pod| !pod.is_deleting() && !pod.view::<Pod>().is_terminal()) else {
            self.scheduled.lock().remove(key);
            return Ok(Action::Done);
        };
        let now = ctx.clock.now();
        let since = self.scheduled.lock().get(key).copied().unwrap_or(now);
        match self.due(&pod, since) {
            Some(due) if due <= now => self.evict(ctx, key, &pod).await,
            Some(due) => {
                self.scheduled.lock().insert(key.clone(), since);
                Ok(Action::RequeueAfter((due - now).to_std().unwrap_or(Duration::ZERO)))
            }
            None => {
                if self.scheduled.lock().remove(key).is_some() {
                    let message = "Cancelling deletion";
                    ctx.event(&PODS, &pod, "Normal", "DeviceTaintManagerEviction", message);
                }
                Ok(Action::Done)
            }
        }
    }
}

/// The devices of a slice that have taints which drive pods out, each with one.
fn evicting_taints(slice: &Value) -> Vec<(&str, &Value)> {
    let of_device = |device| {
        let taints = items(device, "taints").iter().filter(|taint| text(taint, "effect") == "NoExecute");
        taints.map(move |taint| (text(device, "name"), taint))
    };
    items(slice, "spec.devices").iter().flat_map(of_device).collect()
}

fn users(claim: &Value) -> impl Iterator<Item = &Value> {
    items(claim, "status.reservedFor").iter().filter(|user| text(user, "resource") == "pods")
}

fn enqueue_users(claim: &Object, enqueue: &Enqueue) {
    let (tree, namespace) = (claim.to_value(), &claim.metadata.namespace);
    users(&tree).for_each(|user| enqueue.now(object_key(namespace, text(user, "name"))));
}

/// The claims of a pod: those that it names, those made for it, the one for extended resources.
fn claim_names(pod: &Pod) -> BTreeSet<String> {
    let named = pod.spec.resource_claims.iter().filter_map(|claim| claim.resource_claim_name.clone());
    let made =
        pod.status.resource_claim_statuses.iter().filter_map(|claim| claim.resource_claim_name.clone());
    let extended = pod.status.extended_resource_claim_status.as_deref();
    let extended = extended.map(|status| text(status, "resourceClaimName").to_owned());
    named.chain(made).chain(extended).collect()
}

/// When whoever uses a claim has to go: of its devices and their taints the earliest. A taint that does not
/// say since when it is there counts from `since`.
fn due_of_claim(claim: &Value, slices: &[Value], since: Time) -> Option<Time> {
    let results = items(claim, "status.allocation.devices.results").iter();
    let due = |result: &Value| {
        let newest = newest_slices(slices, result);
        let taints = newest.iter().flat_map(|slice| evicting_taints(slice));
        let own = taints.filter(|(device, _)| *device == text(result, "device"));
        own.filter_map(|(_, taint)| due_of_taint(items(result, "tolerations"), taint, since)).min()
    };
    results.filter_map(due).min()
}

fn due_of_taint(tolerations: &[Value], taint: &Value, since: Time) -> Option<Time> {
    let added = time::parse(text(taint, "timeAdded")).unwrap_or(since);
    match tolerance(tolerations, taint) {
        DeviceTolerance::Forever => None,
        DeviceTolerance::None => Some(added),
        DeviceTolerance::Seconds(seconds) => {
            Some(added + TimeDelta::seconds(seconds.clamp(0, i64::from(u32::MAX))))
        }
    }
}

/// The slices of a result's pool, without those of older generations.
fn newest_slices<'a>(slices: &'a [Value], result: &Value) -> Vec<&'a Value> {
    let is_its = |slice: &&Value| {
        at(slice, "spec.driver") == at(result, "driver") && at(slice, "spec.pool.name") == at(result, "pool")
    };
    let pool: Vec<&Value> = slices.iter().filter(is_its).collect();
    let generation = |slice: &Value| number(slice, "spec.pool.generation");
    let newest = pool.iter().map(|slice| generation(slice)).max();
    pool.into_iter().filter(|slice| Some(generation(slice)) == newest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    fn at(seconds: i64) -> Time {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn slice(generation: i64, taints: Value) -> Value {
        json!({"spec": {"driver": "d", "pool": {"name": "p", "generation": generation},
            "devices": [{"name": "gpu-0", "taints": taints}, {"name": "gpu-1"}]}})
    }

    fn claim(device: &str, tolerations: Value) -> Value {
        let result = json!({"driver": "d", "pool": "p", "device": device, "tolerations": tolerations});
        json!({"status": {"allocation": {"devices": {"results": [result]}}}})
    }

    #[test]
    fn pods_go_when_a_device_of_theirs_is_tainted() {
        let taint = json!({"key": "k", "effect": "NoExecute", "timeAdded": "1970-01-01T00:01:40Z"});
        let slices = [slice(2, json!([taint])), slice(1, json!([]))];
        let due =
            |device: &str, tolerations: Value| due_of_claim(&claim(device, tolerations), &slices, at(500));
        assert_eq!(due("gpu-0", json!([])), Some(at(100)));
        assert_eq!(due("gpu-1", json!([])), None);
        assert_eq!(due("gpu-0", json!([{"operator": "Exists", "tolerationSeconds": 60}])), Some(at(160)));
        assert_eq!(due("gpu-0", json!([{"operator": "Exists"}])), None);
        let of_old = [slice(1, json!([taint])), slice(2, json!([]))];
        assert_eq!(due_of_claim(&claim("gpu-0", json!([])), &of_old, at(500)), None, "an older generation");
        let others =
            [json!({"key": "k", "effect": "NoSchedule"}), json!({"key": "k", "effect": "NoExecute"})];
        let dueless = [slice(1, json!(others))];
        assert_eq!(due_of_claim(&claim("gpu-0", json!([])), &dueless, at(500)), Some(at(500)));
    }
}
