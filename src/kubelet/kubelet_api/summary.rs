//! `/stats/summary` (`pkg/kubelet/apis/stats/v1alpha1`): usage by pod and container; nothing is used here.

use serde_json::{Value, json};

use super::pods::{PodHere, RunningHere};
use apimachinery::time::{Time, rfc3339};

/// The node's, and that of all its pods, since `begun`.
pub(super) fn summary(node: &str, pods: &[PodHere], (begun, now): (Time, Time)) -> String {
    let pods: Vec<Value> =
        pods.iter().filter(|pod| !pod.running.is_empty()).map(|pod| of_pod(pod, now)).collect();
    let mut own = idle(now);
    own["nodeName"] = node.into();
    own["startTime"] = rfc3339(begun).into();
    json!({"node": own, "pods": pods}).to_string()
}

fn of_pod(pod: &PodHere, now: Time) -> Value {
    let container = |container: &RunningHere| {
        let mut usage = idle(now);
        usage["name"] = container.name.as_str().into();
        usage["startTime"] = rfc3339(container.started_at).into();
        usage
    };
    let mut usage = idle(now);
    let metadata = &pod.object.metadata;
    usage["podRef"] = json!({"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid});
    usage["startTime"] = rfc3339(pod.start_time).into();
    usage["containers"] = pod.running.iter().map(container).collect();
    usage
}

/// What an idle process uses.
fn idle(now: Time) -> Value {
    let time = rfc3339(now);
    json!({
        "cpu": {"time": time, "usageNanoCores": 0, "usageCoreNanoSeconds": 0},
        "memory": {"time": time, "usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0},
    })
}
