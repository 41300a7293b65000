//! A pod for measurements.

use serde_json::{Value, json};

/// As a server holds one that runs: about 3 KB.
pub(crate) fn running() -> Value {
    let variable =
        |at: usize| json!({"name": format!("SETTING_{at}"), "value": format!("the value of setting {at}")});
    let since = "2026-11-20T12:00:00Z";
    let condition = |name: &str| {
        json!({"type": name, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": since})
    };
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-5d4f7c9b8-x2v5z", "namespace": "default",
            "uid": "6f8180b5-15f3-4bc0-a5b4-666aa9b8b72f",
            "creationTimestamp": since, "generateName": "web-5d4f7c9b8-",
            "labels": {"app": "web", "pod-template-hash": "5d4f7c9b8", "tier": "frontend"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f7c9b8",
                "controller": true, "blockOwnerDeletion": true,
                "uid": "0a361e64-4f17-435a-8b09-69faeb6700ed"}],
        },
        "spec": {
            "nodeName": "node-1", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "dnsPolicy": "ClusterFirst",
            "containers": [{
                "name": "web", "image": "registry.example.com/team/web:1.2.3", "args": ["--listen=:8080"],
                "env": (0..8).map(variable).collect::<Vec<Value>>(),
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            }],
        },
        "status": {
            "phase": "Running", "podIP": "10.244.0.7", "hostIP": "192.168.0.11", "startTime": since,
            "conditions": conditions,
            "containerStatuses": [{"name": "web", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": since}}}],
        },
    })
}
