//! Pods that were to be disrupted, and were not: after a while they are as others again
//! (`syncStalePodDisruption`).

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use crate::controller::{Action, Reconcile};
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::core::pod::PODS;
use apis::views::meta::condition;
use apis::views::pod::Pod;

/// Upstream's `stalePodDisruptionTimeout`.
const TIMEOUT: TimeDelta = TimeDelta::minutes(2);

/// The condition.
const TARGET: &str = "DisruptionTarget";

/// The reason of kubelets, who may take any time before the pod goes: that is never stale.
const BY_KUBELET: &str = "TerminationByKubelet";

/// How long it is until a pod counts as spared; none for one that is not to be disrupted, or goes.
pub(super) fn spared_after(pod: &Object, now: Time) -> Option<Duration> {
    // Of most pods nobody else reads the fields, and this is asked of all: they are not to be kept for it.
    if !pod.mentions(TARGET) {
        return None;
    }
    let view = pod.view::<Pod>();
    let target = condition(&view.status.conditions, TARGET).filter(|it| it.status == "True")?;
    if pod.is_deleting() || view.is_terminal() || target.reason == BY_KUBELET {
        return None;
    }
    let since = target.last_transition_time.unwrap_or(now);
    Some((since + TIMEOUT - now).to_std().unwrap_or_default())
}

/// Takes the condition back when it is time.
pub(super) async fn spare(ctx: &Reconcile, pod: &Object) -> Result<Action, Status> {
    let now = ctx.clock.now();
    match spared_after(pod, now) {
        None => Ok(Action::Done),
        Some(left) if !left.is_zero() => Ok(Action::RequeueAfter(left)),
        Some(_) => {
            let metadata = &pod.metadata;
            let condition = json!({"type": TARGET, "status": "False", "reason": null, "message": null,
                "lastTransitionTime": rfc3339(now), "observedGeneration": metadata.generation});
            let patch = json!({"metadata": {"uid": metadata.uid}, "status": {"conditions": [condition]}});
            let (namespace, name) = (&metadata.namespace, &metadata.name);
            let patched =
                ctx.client.patch_status(&PODS, namespace, name, PatchType::StrategicMerge, &patch).await;
            match patched {
                Err(status) if !status.is_not_found() => Err(status),
                _ => Ok(Action::Done),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn pod(condition: Value, phase: &str) -> Object {
        let status = json!({"conditions": [condition], "phase": phase});
        Object::from_value(&json!({"metadata": {"name": "p"}, "status": status}), vec![]).unwrap()
    }

    #[test]
    fn a_pod_is_spared_after_two_minutes() {
        let at = |seconds| chrono::DateTime::from_timestamp(seconds, 0).unwrap();
        let condition = |status: &str| json!({"type": "DisruptionTarget", "status": status, "lastTransitionTime": rfc3339(at(1000))});
        let target = pod(condition("True"), "Running");
        assert_eq!(spared_after(&target, at(1060)), Some(Duration::from_secs(60)));
        assert_eq!(spared_after(&target, at(1130)), Some(Duration::ZERO));
        assert_eq!(spared_after(&pod(condition("True"), "Failed"), at(1130)), None);
        assert_eq!(spared_after(&pod(condition("False"), "Running"), at(1130)), None);
        let mut by_kubelet = condition("True");
        by_kubelet["reason"] = "TerminationByKubelet".into();
        assert_eq!(spared_after(&pod(by_kubelet, "Running"), at(1130)), None);
    }
}
