//! Which pods go first when there are too many (`getPodsToDelete`, `controller.ActivePodsWithRanks`).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::pod_state::is_active;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::meta::condition;
use apis::views::pod::{Container, Pod};

/// An integer; pods with a lower one go first (`core.PodDeletionCost`).
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The `count` pods that are missed least: unassigned before assigned, pending before unknown before running,
/// not ready before ready, cheap before dear, doubled up before alone on a node, ready for a short time
/// before long, often restarted before seldom, young before old. `related` are the pods that may share a node
/// with them.
pub(crate) fn pods_to_delete(
    pods: &[Arc<Object>],
    related: &[Arc<Object>],
    count: usize,
    now: Time,
) -> Vec<Arc<Object>> {
    if count >= pods.len() {
        return pods.to_vec();
    }
    let crowds = crowds(related);
    let mut ranked: Vec<(Rank, &Arc<Object>)> =
        pods.iter().map(|pod| (Rank::of(pod, &crowds, now), pod)).collect();
    ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
    ranked.into_iter().take(count).map(|(_, pod)| pod.clone()).collect()
}

/// How many times as old as the youngest pod each is that is ready and goes, as if that were seconds
/// (`reportSortingDeletionAgeRatioMetric`): whole ones, as upstream divides. Of pods that came this very
/// moment nothing can be said.
pub(crate) fn age_ratios(
    pods: &[Arc<Object>],
    doomed: &[Arc<Object>],
    now: Time,
) -> impl Iterator<Item = Duration> {
    let age = |pod: &Arc<Object>| {
        let created = pod.metadata.creation_timestamp?;
        u64::try_from((now - created).num_milliseconds()).ok().filter(|_| pod.view::<Pod>().is_ready())
    };
    let youngest = pods.iter().filter_map(age).min().filter(|age| *age > 0);
    let ratio = move |age: u64| youngest.map(|youngest| Duration::from_secs(age / youngest));
    doomed.iter().filter_map(age).filter_map(ratio).collect::<Vec<_>>().into_iter()
}

/// Compared from top to bottom; the least goes first. Ages count by their logarithm, so that pods of about
/// the same age go in no particular order (upstream's `LogarithmicScaleDown`), which the uid stands for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    deletion_cost: i32,
    crowd: Reverse<usize>,
    ready_age: u32,
    restarts: Reverse<i64>,
    age: u32,
    uid: String,
}

impl Rank {
    fn of(object: &Object, crowds: &HashMap<String, usize>, now: Time) -> Rank {
        let pod = object.view::<Pod>();
        let ready_since =
            condition(&pod.status.conditions, "Ready").and_then(|ready| ready.last_transition_time);
        let cost = pod.metadata.annotations.get(DELETION_COST).and_then(|text| text.parse().ok());
        Rank {
            is_assigned: !pod.spec.node_name.is_empty(),
            phase: match pod.status.phase.as_str() {
                "Running" => 2,
                "Unknown" => 1,
                _ => 0,
            },
            is_ready: pod.is_ready(),
            deletion_cost: cost.unwrap_or(0),
            crowd: Reverse(crowds.get(&pod.spec.node_name).copied().unwrap_or(0)),
            ready_age: if pod.is_ready() { logarithm_of_age(ready_since, now) } else { 0 },
            restarts: Reverse(most_restarts(&pod)),
            age: logarithm_of_age(object.metadata.creation_timestamp, now),
            uid: object.metadata.uid.clone(),
        }
    }
}

/// How many active pods each node has.
fn crowds(pods: &[Arc<Object>]) -> HashMap<String, usize> {
    let mut crowds = HashMap::new();
    for pod in pods.iter().filter(|pod| is_active(pod)) {
        *crowds.entry(pod.view::<Pod>().spec.node_name.clone()).or_default() += 1;
    }
    crowds
}

/// An unknown time is the youngest.
fn logarithm_of_age(since: Option<Time>, now: Time) -> u32 {
    let age = since.and_then(|since| (now - since).num_nanoseconds()).unwrap_or(0);
    u64::try_from(age).ok().and_then(u64::checked_ilog2).map_or(0, |logarithm| logarithm + 1)
}

/// Of any container that runs as long as the pod does.
fn most_restarts(pod: &Pod) -> i64 {
    let stays = |name: &str| {
        let is_sidecar = |container: &Container| container.restart_policy.as_deref() == Some("Always");
        pod.spec.init_containers.iter().any(|container| container.name == name && is_sidecar(container))
    };
    let sidecars = pod.status.init_container_statuses.iter().filter(|status| stays(&status.name));
    let restarts = pod.status.container_statuses.iter().chain(sidecars).map(|status| status.restart_count);
    restarts.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, TimeDelta};
    use serde_json::{Value, json};

    fn now() -> Time {
        DateTime::from_timestamp(1_000_000, 0).unwrap()
    }

    fn ago(seconds: i64) -> Value {
        apimachinery::time::rfc3339(now() - TimeDelta::seconds(seconds)).into()
    }

    fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Arc<Object> {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": ago(3600)});
        let mut tree = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": ago(3600), "annotations": {}},
            "spec": {"nodeName": name},
            "status": {"phase": "Running", "conditions": [ready], "containerStatuses": [{"restartCount": 1}]},
        });
        change(&mut tree);
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    #[test]
    fn the_order_is_upstreams() {
        let ranked = [
            pod("unassigned", |pod| pod["spec"]["nodeName"] = "".into()),
            pod("pending", |pod| pod["status"]["phase"] = "Pending".into()),
            pod("unknown", |pod| pod["status"]["phase"] = "Unknown".into()),
            pod("unready", |pod| pod["status"]["conditions"][0]["status"] = "False".into()),
            pod("cheap", |pod| pod["metadata"]["annotations"][DELETION_COST] = "-1".into()),
            pod("doubled", |pod| pod["spec"]["nodeName"] = "full".into()),
            pod("just-ready", |pod| pod["status"]["conditions"][0]["lastTransitionTime"] = ago(5)),
            pod("restarted", |pod| pod["status"]["containerStatuses"][0]["restartCount"] = 7.into()),
            pod("young", |pod| pod["metadata"]["creationTimestamp"] = ago(4)),
            pod("a", |_| ()),
            pod("b", |_| ()),
            pod("dear", |pod| pod["metadata"]["annotations"][DELETION_COST] = "9".into()),
        ];
        let neighbour = pod("neighbour", |pod| pod["spec"]["nodeName"] = "full".into());
        let related: Vec<_> = ranked.iter().cloned().chain([neighbour]).collect();
        let reversed: Vec<_> = ranked.iter().rev().cloned().collect();
        let names =
            |pods: &[Arc<Object>]| pods.iter().map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>();
        let all_but_one = pods_to_delete(&reversed, &related, ranked.len() - 1, now());
        assert_eq!(names(&all_but_one), names(&ranked[..ranked.len() - 1]));
        assert_eq!(pods_to_delete(&ranked, &related, 99, now()).len(), ranked.len());
    }

    #[test]
    fn those_that_go_are_compared_to_the_youngest_that_is_ready() {
        let aged = |name: &str, seconds: i64, ready: &str| {
            pod(name, |pod| {
                pod["metadata"]["creationTimestamp"] = ago(seconds);
                pod["status"]["conditions"][0]["status"] = ready.into();
            })
        };
        let pods = [aged("old", 250, "True"), aged("young", 100, "True"), aged("unready", 10, "False")];
        let ratios: Vec<u64> = age_ratios(&pods, &pods, now()).map(|ratio| ratio.as_secs()).collect();
        assert_eq!(ratios, [2, 1]);
        let new = [aged("new", 0, "True"), pods[0].clone()];
        assert_eq!(age_ratios(&new, &new, now()).count(), 0);
    }
}
