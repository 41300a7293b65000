//! The node itself: its registration, its status, its Lease (`pkg/kubelet/kubelet_node_status.go`,
//! `nodestatus`).
//!
//! The Lease says that the kubelet lives and is renewed often; the status is written when it changes, and
//! every five minutes all the same.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::container_runtime::services::Image;
use super::dependencies::Dependencies;
use super::node_config::NodeConfig;
use super::node_lease::NodeLease;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::core::node::NODES;
use apis::views::node::Node;
use client_go::reference::ObjectReference;

/// How often the Lease is renewed at least: a quarter of the time for which it is good.
const LEASE_PERIOD: Duration = Duration::from_secs(10);
/// How often the status is written although it did not (`nodeStatusReportFrequency`).
const REPORT_PERIOD: Duration = Duration::from_secs(300);
/// The first and the longest pause between two attempts to register.
const REGISTER_RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(7));

/// The conditions of a healthy node: type, status, reason, message, and the Event that tells of it.
const CONDITIONS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
        "NodeHasSufficientMemory",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
        "NodeHasNoDiskPressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
        "NodeHasSufficientPID",
    ),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status", "NodeReady"),
];

/// Registers the node, then keeps its Lease and its status fresh for ever.
pub(crate) async fn run(kubelet: Arc<Dependencies>) {
    let context = &kubelet.context;
    tell(&kubelet, "Starting", "Starting kubelet.");
    let uid = register(&kubelet).await;
    for (_, _, _, _, event) in CONDITIONS {
        tell(&kubelet, event, &format!("Node {} status is now: {event}", kubelet.node_name()));
    }
    let mut lease = NodeLease::new(kubelet.node_name(), &uid);
    let frequency = kubelet.config.options.node_status_update_frequency;
    let mut looked_at = context.clock.now();
    let mut reported_at = looked_at;
    let mut reported_images = 0;
    loop {
        if let Err(status) = lease.renew(&context.client, context.clock.now()).await {
            let (node, status) = (kubelet.node_name(), &status.message);
            tracing::debug!(node, %status, "failed to ensure lease exists");
        }
        context.clock.sleep(context.entropy.jitter(LEASE_PERIOD.min(frequency), 0.04)).await;
        let now = context.clock.now();
        if (now - looked_at).to_std().is_ok_and(|age| age < frequency) {
            continue;
        }
        looked_at = now;
        let images = kubelet.node.runtime.list_images(0, now).1;
        let is_stale = (now - reported_at).to_std().is_ok_and(|age| age >= REPORT_PERIOD);
        if !is_stale && images == reported_images {
            continue;
        }
        match report(&kubelet, now).await {
            Ok(()) => (reported_at, reported_images) = (now, images),
            Err(status) => {
                tracing::warn!(node = kubelet.node_name(), status = %status.message, "updating node status");
            }
        }
    }
}

/// `registerWithAPIServer`: creates the Node, or brings the one that is there up to date. Its uid.
async fn register(kubelet: &Dependencies) -> String {
    let context = &kubelet.context;
    let mut pause = REGISTER_RETRY.0;
    loop {
        match try_register(kubelet).await {
            Ok(uid) => return uid,
            Err(status) => {
                tracing::debug!(node = kubelet.node_name(), status = %status.message, "registering")
            }
        }
        context.clock.sleep(pause).await;
        pause = (pause * 2).min(REGISTER_RETRY.1);
    }
}

async fn try_register(kubelet: &Dependencies) -> Result<String, Status> {
    let (context, config) = (&kubelet.context, &kubelet.config);
    let now = context.clock.now();
    let node = json!({
        "metadata": {"name": config.name, "labels": labels(config), "annotations": annotations(config)},
        "spec": {"podCIDR": config.pod_cidr, "podCIDRs": [config.pod_cidr]},
        "status": status(config, &[], now),
    });
    match context.client.create(&NODES, "", node).await {
        Ok(created) if !created.view::<Node>().status.conditions.is_empty() => {
            Ok(created.metadata.uid.clone())
        }
        Ok(created) => report(kubelet, now).await.map(|()| created.metadata.uid.clone()),
        Err(status) if status.is_already_exists() => {
            let patch = json!({"metadata": {"labels": labels(config)}});
            let name = &config.name;
            let node = context.client.patch(&NODES, "", name, PatchType::StrategicMerge, &patch).await?;
            report(kubelet, now).await.map(|()| node.metadata.uid.clone())
        }
        Err(status) => Err(status),
    }
}

/// Writes the whole status; the times at which conditions changed stay.
async fn report(kubelet: &Dependencies, now: Time) -> Result<(), Status> {
    let (context, config) = (&kubelet.context, &kubelet.config);
    let images = kubelet.node.runtime.list_images(config.options.max_images(), now).0;
    let mut status = status(config, &images, now);
    let written = context.client.get(&NODES, "", &config.name).await?.view::<Node>();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let is_same = |old: &&apis::views::meta::Condition| {
            old.condition_type == condition["type"] && old.status == condition["status"]
        };
        let since = written.status.conditions.iter().find(is_same).and_then(|old| old.last_transition_time);
        if let Some(since) = since {
            condition["lastTransitionTime"] = rfc3339(since).into();
        }
    }
    let patch = json!({"status": status});
    context.client.patch_status(&NODES, "", &config.name, PatchType::StrategicMerge, &patch).await.map(|_| ())
}

fn labels(config: &NodeConfig) -> Value {
    let architecture = architecture();
    let mut labels = Map::new();
    let own = [
        ("beta.kubernetes.io/arch", architecture),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture),
        ("kubernetes.io/hostname", config.name.as_str()),
        ("kubernetes.io/os", "linux"),
    ];
    labels.extend(own.map(|(name, value)| (name.to_owned(), value.into())));
    labels.extend(config.labels.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
    Value::Object(labels)
}

fn annotations(config: &NodeConfig) -> Value {
    json!({
        "alpha.kubernetes.io/provided-node-ip": config.address,
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    })
}

fn status(config: &NodeConfig, images: &[Image], now: Time) -> Value {
    let now = rfc3339(now);
    let condition = |(condition_type, status, reason, message, _): &(&str, &str, &str, &str, &str)| {
        json!({
            "type": condition_type,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    let image = |image: &Image| json!({"names": [image.reference], "sizeBytes": image.size});
    let mut status = json!({
        "addresses": [
            {"type": "InternalIP", "address": config.address},
            {"type": "Hostname", "address": config.name},
        ],
        "capacity": config.capacity,
        "allocatable": config.allocatable(),
        "conditions": CONDITIONS.iter().map(condition).collect::<Vec<_>>(),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": node_info(config),
        "runtimeHandlers": [
            {"name": "", "features": {"recursiveReadOnlyMounts": true, "userNamespaces": true}},
        ],
        "features": {"supplementalGroupsPolicy": true},
    });
    if !images.is_empty() {
        status["images"] = images.iter().map(image).collect();
    }
    status
}

fn node_info(config: &NodeConfig) -> Value {
    // The same name makes the same machine, so that a node that comes back is the one that went.
    let id = |salt: &str| {
        use sha2::{Digest, Sha256};
        format!("{:x}", Sha256::digest(format!("{salt}/{}", config.name)))
    };
    let uuid = |hex: &str| {
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
    };
    json!({
        "architecture": architecture(),
        "bootID": uuid(&id("boot")),
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.12.48+deb13-amd64",
        "kubeProxyVersion": "",
        "kubeletVersion": "v1.36.2",
        "machineID": &id("machine")[..32],
        "operatingSystem": "linux",
        "osImage": "Debian GNU/Linux 13 (trixie)",
        "systemUUID": uuid(&id("system")),
    })
}

/// As Go calls the machine's.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// An Event about the node; its uid is its name, as upstream's kubelet refers to its own node.
fn tell(kubelet: &Dependencies, reason: &str, message: &str) {
    let name = kubelet.node_name().to_owned();
    let about =
        ObjectReference { kind: "Node".into(), uid: name.clone(), name, ..ObjectReference::default() };
    kubelet.context.recorder.event(about, "Normal", reason, message);
}
