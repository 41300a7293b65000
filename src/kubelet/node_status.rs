//! The node itself: its registration, its status, its Lease (`pkg/kubelet/kubelet_node_status.go`,
//! `nodestatus`).
//!
//! The Lease says that the kubelet lives and is renewed often; the status is written when it changes, and
//! every five minutes all the same.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::container_runtime::services::Image;
use super::csi_node;
use super::dependencies::Dependencies;
use super::node_amounts;
use super::node_lease::NodeLease;
use super::node_state::{SaidCondition, event_of};
use super::node_system_info::NodeSystemInfo;
use super::ports::KUBELET_PORT;
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::core::node::NODES;
use apis::views::node::Node;
use client_go::reference::ObjectReference;
use stages::Governed;

/// How often the Lease is renewed at least: a quarter of the time for which it is good.
const LEASE_PERIOD: Duration = Duration::from_secs(10);
/// How often the status is written although it did not (`nodeStatusReportFrequency`).
const REPORT_PERIOD: Duration = Duration::from_secs(300);
/// What this kubelet can do that not every one can (`component-helpers/nodedeclaredfeatures`).
const DECLARED_FEATURES: [&str; 4] = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
];
/// The first and the longest pause between two attempts to register.
const REGISTER_RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(7));

/// Registers the node, then keeps its Lease and its status fresh for ever.
pub(crate) async fn run(kubelet: Arc<Dependencies>) {
    let context = &kubelet.context;
    tell(&kubelet, "Starting", "Starting kubelet.");
    // The first look for images that may go comes before the disk is known (`imageGCManager.GarbageCollect`).
    tell_as(&kubelet, "Warning", "InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
    let node = register(&kubelet).await;
    let uid: Arc<str> = node.metadata.uid.as_str().into();
    kubelet.state.mirror_gone.notify_one();
    let mut told = kubelet.state.conditions();
    let is_ready = |condition: &&SaidCondition| condition.condition_type == "Ready";
    told.iter().filter(|it| !is_ready(it)).for_each(|condition| tell_of(&kubelet, condition));
    tell(&kubelet, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods");
    told.iter().filter(is_ready).for_each(|condition| tell_of(&kubelet, condition));
    let mut lease = NodeLease::new(kubelet.node_name(), &uid);
    let frequency = kubelet.config.options.node_status_update_frequency;
    let mut looked_at = context.clock.now();
    let mut reported_at = looked_at;
    let mut reported_images = 0;
    // Who was silent may have been given up meanwhile, and says that it is there.
    let mut was_silent = false;
    let mut is_owed = false;
    // One that stages play is none of this kubelet's.
    let mut has_csi_node = kubelet.is_played(Governed::Node, &node);
    loop {
        let renewed = lease.renew(&context.client, kubelet.config.skewed(context.clock.now())).await;
        has_csi_node = has_csi_node || csi_node::create(&kubelet, &node).await;
        if let Err(status) = &renewed {
            let (node, status) = (kubelet.node_name(), &status.message);
            tracing::debug!(node, %status, "failed to ensure lease exists");
            was_silent = true;
        }
        let is_calm = renewed.is_ok() && !is_owed && !was_silent;
        let has_news = wait_for_news(&kubelet, &uid, looked_at, is_calm).await;
        let now = context.clock.now();
        if !has_news && (now - looked_at).to_std().is_ok_and(|age| age < frequency) {
            continue;
        }
        looked_at = now;
        let is_amended = kubelet.state.is_amended.swap(false, Ordering::Relaxed);
        let images = kubelet.node.runtime.list_images(0, now).1;
        let is_stale = (now - reported_at).to_std().is_ok_and(|age| age >= REPORT_PERIOD);
        let is_back = was_silent && renewed.is_ok();
        let is_same = !is_amended && images == reported_images;
        if !has_news && !is_back && !is_stale && !is_owed && is_same {
            continue;
        }
        let conditions = kubelet.state.conditions();
        let is_new = |condition: &&SaidCondition| !told.contains(condition);
        conditions.iter().filter(is_new).for_each(|condition| tell_of(&kubelet, condition));
        told = conditions;
        let reported = report(&kubelet, now).await;
        is_owed = reported.is_err();
        match reported {
            Ok(()) => (reported_at, reported_images, was_silent) = (now, images, false),
            Err(status) => {
                tracing::warn!(node = kubelet.node_name(), status = %status.message, "updating node status");
            }
        }
    }
}

/// Waits until the node says something new of itself, which is answered, or it is time to renew the Lease or
/// to look at the status. What others have written is looked at in time, however little happens.
async fn wait_for_news(kubelet: &Dependencies, uid: &Arc<str>, looked_at: Time, is_calm: bool) -> bool {
    let (context, state) = (&kubelet.context, &kubelet.state);
    let (clock, frequency) = (&context.clock, kubelet.config.options.node_status_update_frequency);
    let pause = context.entropy.jitter(LEASE_PERIOD.min(frequency), 0.04);
    let news = async {
        tokio::select! {
            biased;
            () = state.changed.notified() => true,
            () = state.amended.notified() => false,
        }
    };
    let heard = if state.is_amended.load(Ordering::Relaxed) {
        let age = (clock.now() - looked_at).to_std().unwrap_or_default();
        clock.timeout(pause.min(frequency.saturating_sub(age)), news).await
    } else if is_calm {
        clock.timeout_of_beat(uid, pause, news).await
    } else {
        clock.timeout(pause, news).await
    };
    heard.unwrap_or(false)
}

/// `registerWithAPIServer`: creates the Node, or brings the one that is there up to date.
async fn register(kubelet: &Dependencies) -> Arc<Object> {
    let context = &kubelet.context;
    let mut pause = REGISTER_RETRY.0;
    loop {
        match try_register(kubelet).await {
            Ok(node) => return node,
            Err(status) => {
                tracing::debug!(node = kubelet.node_name(), status = %status.message, "registering")
            }
        }
        context.clock.sleep(pause).await;
        pause = (pause * 2).min(REGISTER_RETRY.1);
    }
}

async fn try_register(kubelet: &Dependencies) -> Result<Arc<Object>, Status> {
    let (context, config) = (&kubelet.context, &kubelet.config);
    let now = context.clock.now();
    let mut node = config.object();
    node["status"] = status(kubelet, now);
    match context.client.create(&NODES, "", node).await {
        Ok(created) if !created.view::<Node>().status.conditions.is_empty() => Ok(created),
        Ok(created) => report(kubelet, now).await.map(|()| created),
        // A node of roles is made by whoever may give them: no kubelet may create it.
        Err(status) if status.is_already_exists() || status.code == 403 => {
            let patch = json!({"metadata": {"labels": config.default_labels()}});
            let name = &config.name;
            let node = context.client.patch(&NODES, "", name, PatchType::StrategicMerge, &patch).await?;
            tell_of_boot(kubelet, &node.to_value());
            report(kubelet, now).await.map(|()| node)
        }
        Err(status) => Err(status),
    }
}

/// Writes the whole status; the times at which conditions changed stay. That of a node that stages play is
/// theirs.
async fn report(kubelet: &Dependencies, now: Time) -> Result<(), Status> {
    let (context, config) = (&kubelet.context, &kubelet.config);
    let mut status = status(kubelet, now);
    let found = context.client.get(&NODES, "", &config.name).await?;
    if kubelet.is_played(Governed::Node, &found) {
        return Ok(());
    }
    let written = found.view::<Node>();
    status["allocatable"] = json!(node_amounts::allocatable(config, &written.status));
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let is_same = |old: &&apis::views::meta::Condition| {
            old.condition_type == condition["type"] && old.status == condition["status"]
        };
        let since = written.status.conditions.iter().find(is_same).and_then(|old| old.last_transition_time);
        if let Some(since) = since {
            condition["lastTransitionTime"] = rfc3339(since).into();
        }
    }
    let in_use = kubelet.node.volumes.names();
    status["volumesInUse"] = if in_use.is_empty() { Value::Null } else { json!(in_use) };
    replace_addresses(&mut status);
    let patch = json!({"status": status});
    context.client.patch_status(&NODES, "", &config.name, PatchType::StrategicMerge, &patch).await.map(|_| ())
}

/// Addresses are merged by their type, and a node may have two of one: a list is written as a whole
/// (`fixupPatchForNodeStatusAddresses`).
fn replace_addresses(status: &mut Value) {
    if let Some(addresses) = status["addresses"].as_array_mut() {
        addresses.push(json!({"$patch": "replace"}));
    }
}

fn status(kubelet: &Dependencies, now: Time) -> Value {
    let (config, state) = (&kubelet.config, &kubelet.state);
    let images = kubelet.node.runtime.list_images(config.options.max_images(), now).0;
    let now = rfc3339(config.skewed(now));
    let condition = |said: &SaidCondition| {
        json!({
            "type": said.condition_type,
            "status": said.status,
            "reason": said.reason,
            "message": said.message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    let port = config.endpoint.map_or(KUBELET_PORT, |endpoint| endpoint.port());
    let image = |image: &Image| json!({"names": [image.reference], "sizeBytes": image.size});
    let mut status = json!({
        "addresses": config.node_addresses(),
        "capacity": config.capacity,
        "allocatable": config.allocatable(),
        "conditions": state.conditions().iter().map(condition).collect::<Vec<_>>(),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": config.info.to_value(&config.name, config.boots.count),
        "runtimeHandlers": [
            {"name": "", "features": {"recursiveReadOnlyMounts": true, "userNamespaces": true}},
        ],
        "features": {"supplementalGroupsPolicy": true},
    });
    if config.info.kubelet_version == NodeSystemInfo::default().kubelet_version {
        status["declaredFeatures"] = json!(DECLARED_FEATURES);
    }
    if !images.is_empty() {
        status["images"] = images.iter().map(image).collect();
    }
    status
}

/// `rebootedNode`: the machine is not the one that wrote the status.
fn tell_of_boot(kubelet: &Dependencies, node: &Value) {
    let config = &kubelet.config;
    let (before, info) =
        (&node["status"]["nodeInfo"]["bootID"], config.info.to_value(&config.name, config.boots.count));
    if let (Some(before), Some(now)) = (before.as_str(), info["bootID"].as_str())
        && !before.is_empty()
        && before != now
    {
        let message = format!("Node {} has been rebooted, boot id: {now}", config.name);
        tell_as(kubelet, "Warning", "Rebooted", &message);
    }
}

/// `recordNodeStatusEvent`
fn tell_of(kubelet: &Dependencies, condition: &SaidCondition) {
    let Some(event) = event_of(condition) else { return };
    tell(kubelet, event, &format!("Node {} status is now: {event}", kubelet.node_name()));
}

/// An Event about the node; its uid is its name, as upstream's kubelet refers to its own node.
fn tell(kubelet: &Dependencies, reason: &str, message: &str) {
    tell_as(kubelet, "Normal", reason, message);
}

pub(crate) fn tell_as(kubelet: &Dependencies, event_type: &str, reason: &str, message: &str) {
    let name = kubelet.node_name().to_owned();
    let about =
        ObjectReference { kind: "Node".into(), uid: name.clone(), name, ..ObjectReference::default() };
    kubelet.context.recorder.event(about, event_type, reason, message);
}
