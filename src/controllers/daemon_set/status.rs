//! The status of a DaemonSet: counted over nodes, by the oldest pod of each (`updateDaemonSetStatus`).

use serde_json::{Map, Value};

use super::template::is_updated;
use super::work::{DaemonSetWork, PodsByNode, seniority};
use crate::controller::Reconcile;
use crate::pod_state::is_available;
use crate::status::{put_count, update_status};
use apimachinery::status::Status;
use apis::apps::daemon_set::DAEMON_SETS;
use apis::views::daemon_set::DaemonSetStatus;
use apis::views::pod::Pod;

/// What the pods amount to. The generation is the one that was observed before.
pub(super) fn calculate(work: &DaemonSetWork, pods: &PodsByNode, hash: &str) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation: work.view.status.observed_generation,
        collision_count: work.view.status.collision_count,
        ..DaemonSetStatus::default()
    };
    for (node, placement) in &work.placements {
        let oldest =
            pods.get(&node.metadata.name).and_then(|pods| pods.iter().min_by_key(|pod| seniority(pod)));
        if !placement.should_run {
            status.number_misscheduled += i64::from(oldest.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(pod) = oldest else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += i64::from(pod.view::<Pod>().is_ready());
        let is_available = is_available(pod, work.view.spec.min_ready_seconds, work.now);
        status.number_available += i64::from(is_available);
        status.updated_number_scheduled += i64::from(is_updated(pod, &work.view, hash));
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}

/// Writes `new` if it says something else than what is there.
pub(super) async fn write(ctx: &Reconcile, work: &DaemonSetWork, new: DaemonSetStatus) -> Result<(), Status> {
    if new == work.view.status {
        return Ok(());
    }
    update_status(&ctx.client, &DAEMON_SETS, &work.object, |status| put(status, &new)).await.map(drop)
}

/// The count of collisions is not of this file: it is written where a collision is found.
fn put(status: &mut Map<String, Value>, new: &DaemonSetStatus) {
    let always = [
        ("currentNumberScheduled", new.current_number_scheduled),
        ("numberMisscheduled", new.number_misscheduled),
        ("desiredNumberScheduled", new.desired_number_scheduled),
        ("numberReady", new.number_ready),
    ];
    for (name, count) in always {
        status.insert(name.into(), count.into());
    }
    put_count(status, "observedGeneration", new.observed_generation);
    put_count(status, "updatedNumberScheduled", new.updated_number_scheduled);
    put_count(status, "numberAvailable", new.number_available);
    put_count(status, "numberUnavailable", new.number_unavailable);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon_set::eligibility::Placement;
    use apimachinery::labels::Selector;
    use apimachinery::object::Object;
    use apis::views::daemon_set::DaemonSet;
    use chrono::DateTime;
    use serde_json::json;
    use std::sync::Arc;

    fn object(tree: Value) -> Arc<Object> {
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    #[test]
    fn nodes_are_counted_by_their_oldest_pod() {
        let pod = |name: &str, hash: &str, ready: &str| {
            object(json!({
                "metadata": {"name": name, "labels": {"controller-revision-hash": hash}},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }))
        };
        let place = |name: &str, should_run| {
            (object(json!({"metadata": {"name": name}})), Placement { should_run, should_continue: true })
        };
        let work = DaemonSetWork {
            object: object(json!({"metadata": {"name": "ds"}})),
            view: Arc::new(DaemonSet::default()),
            selector: Selector::everything(),
            placements: vec![place("a", true), place("b", true), place("c", true), place("d", false)],
            now: DateTime::UNIX_EPOCH,
        };
        let pods = PodsByNode::from([
            ("a".into(), vec![pod("p1", "new", "True"), pod("p2", "old", "False")]),
            ("b".into(), vec![pod("p3", "old", "False")]),
            ("d".into(), vec![pod("p4", "old", "True")]),
        ]);
        let expected = DaemonSetStatus {
            desired_number_scheduled: 3,
            current_number_scheduled: 2,
            number_misscheduled: 1,
            number_ready: 1,
            number_available: 1,
            number_unavailable: 2,
            updated_number_scheduled: 1,
            ..DaemonSetStatus::default()
        };
        assert_eq!(calculate(&work, &pods, "new"), expected);
    }
}
