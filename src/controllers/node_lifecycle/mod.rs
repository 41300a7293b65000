//! Node lifecycle: which nodes are alive, and what follows for those that are not
//! (`pkg/controller/nodelifecycle`).
//!
//! In: nodes, their leases, their pods. Out: conditions of silent nodes set to Unknown, taints that say what
//! is wrong, pods of such nodes no longer ready. It must not know who evicts (taint_eviction), nor where pods
//! go.

mod health;
mod taints;
mod zones;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value, json};
use sync::{Mutex, MutexGuard};

use self::health::NodeHealth;
use self::zones::{Leave, ZoneNode, Zones, zone_of};
use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::options::ControllerManagerOptions;
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::coordination::lease::LEASES;
use apis::core::node::NODES;
use apis::core::node_labels;
use apis::core::pod::PODS;
use apis::views::lease::Lease;
use apis::views::meta::condition;
use apis::views::node::Node;
use apis::views::pod::{Pod, node_name};
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use client_go::reference::ObjectReference;

/// Finds the pods of a node.
pub(crate) const NODE_INDEX: &str = "spec.nodeName";
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// Labels, and those of an older time that say the same (`labelReconcileInfo`).
const OLDER_LABELS: [(&str, &str); 2] =
    [(node_labels::OS, node_labels::OLDER_OS), (node_labels::ARCH, node_labels::OLDER_ARCH)];

/// The values of [`NODE_INDEX`] for a pod.
pub(crate) fn node_index(pod: &Object) -> Vec<String> {
    Some(node_name(pod).into_owned()).filter(|node| !node.is_empty()).into_iter().collect()
}

/// The controller of silent nodes.
pub(crate) struct NodeLifecycleController {
    nodes: Lister,
    leases: Lister,
    pods: Lister,
    grace_period: Duration,
    /// For a node that never said anything.
    startup_grace_period: Duration,
    monitor_period: Duration,
    zones: Arc<Zones>,
    /// By node. Bound: one entry a node, forgotten with it.
    health: Mutex<HashMap<Key, NodeHealth>>,
}

impl NodeLifecycleController {
    /// With its informers; the options say how long a node may be silent.
    pub(crate) fn new(ctx: &ComponentContext, options: &ControllerManagerOptions) -> NodeLifecycleController {
        let pods = ctx.informers.informer(&PODS);
        pods.add_index(NODE_INDEX, node_index);
        let [nodes, leases] = [&NODES, &LEASES].map(|kind| ctx.informers.informer(kind).lister());
        let zones = Arc::new(Zones::new(options));
        ctx.metrics.add("node-lifecycle", zones.clone());
        NodeLifecycleController {
            nodes,
            leases,
            pods: pods.lister(),
            grace_period: options.node_monitor_grace_period,
            startup_grace_period: options.node_startup_grace_period,
            monitor_period: options.node_monitor_period,
            zones,
            health: Mutex::default(),
        }
    }

    /// How long the node has been silent, and what its `Ready` was when last looked at (none at the first
    /// look).
    fn observe(&self, ctx: &Reconcile, object: &Object, node: &Node) -> (Duration, Option<String>) {
        let name = &object.metadata.name;
        let lease = self.leases.get(LEASE_NAMESPACE, name);
        let renewed = lease.and_then(|lease| lease.view::<Lease>().spec.renew_time);
        let ready = condition(&node.status.conditions, "Ready");
        let heartbeat = ready.and_then(|ready| ready.last_heartbeat_time);
        let status = ready.map_or("Unknown", |ready| &ready.status).to_owned();
        let mut all = self.health();
        let mut known = all.get(name).filter(|health| health.uid == object.metadata.uid).cloned();
        let now = ctx.clock.elapsed();
        if ctx.clock.is_beating(&object.metadata.uid) {
            known = known.map(|known| known.without_missed(now));
        }
        let next = NodeHealth::next(known.as_ref(), &object.metadata.uid, (renewed, heartbeat), status, now);
        let silent = now.saturating_sub(next.heard_at);
        all.insert(name.clone(), next);
        (silent, known.map(|known| known.ready))
    }

    fn forget(&self, ctx: &Reconcile, name: &str) {
        self.zones.forget(name);
        let Some(health) = self.health().remove(name) else { return };
        let message = format!("Node {name} event: Removing Node {name} from Controller");
        ctx.recorder.event(reference(name, &health.uid), "Normal", "RemovingNode", message);
    }

    async fn mark_unknown(&self, ctx: &Reconcile, object: &Arc<Object>) -> Result<Arc<Object>, Status> {
        let mut tree = object.to_value();
        if !health::mark_unknown(&mut tree, ctx.clock.now()) {
            return Ok(object.clone());
        }
        ctx.client.update_status(&NODES, "", &object.metadata.name, tree).await
    }

    /// `MarkPodsNotReady`: services stop sending anything there.
    async fn mark_pods_not_ready(&self, ctx: &Reconcile, node: &str) -> Result<(), Status> {
        let ready =
            self.pods.by_index(NODE_INDEX, node).into_iter().filter(|pod| pod.view::<Pod>().is_ready());
        let mark = |pod: Arc<Object>| async move {
            let metadata = &pod.metadata;
            let now = rfc3339(ctx.clock.now());
            let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": now});
            let patch = json!({"metadata": {"uid": metadata.uid}, "status": {"conditions": [condition]}});
            let (namespace, name) = (&metadata.namespace, &metadata.name);
            match ctx.client.patch_status(&PODS, namespace, name, PatchType::StrategicMerge, &patch).await {
                Ok(_) => ctx.event(&PODS, &pod, "Warning", "NodeNotReady", "Node is not ready"),
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                Err(error) => return Err(error),
            }
            Ok(())
        };
        try_join_all(ready.map(mark)).await.map(drop)
    }

    /// Whether the pods of a node that is not ready have to leave it, and when to look again.
    fn leave(&self, ctx: &Reconcile, object: &Object, node: &Node) -> Leave {
        let all = || self.nodes.all().iter().map(|node| zone_node(node, &node.view::<Node>())).collect();
        self.zones.leave(&zone_of(object), taints::is_leaving(node), ctx.clock.elapsed(), all)
    }

    fn health(&self) -> MutexGuard<'_, HashMap<Key, NodeHealth>> {
        self.health.lock()
    }
}

impl Controller for NodeLifecycleController {
    const NAME: &'static str = "node-lifecycle";
    const EVENT_SOURCE: &'static str = "node-controller";
    const SERVICE_ACCOUNT: &'static str = "node-controller";

    fn watches(&self) -> Watches {
        // A lease that is renewed means nothing new as long as the node is thought to be alive.
        let nodes = self.nodes.clone();
        let leases = move |change: &Change<'_>, enqueue: &Enqueue| {
            let metadata = &change.object().metadata;
            let node = nodes.get("", &metadata.name).filter(|_| metadata.namespace == LEASE_NAMESPACE);
            if node.is_some_and(|node| ready_status(&node.view::<Node>()) != "True") {
                enqueue.batched(metadata.name.clone());
            }
        };
        Watches::of(&NODES).maps(&LEASES, leases)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(object) = self.nodes.get("", key) else {
            self.forget(ctx, key);
            return Ok(Action::Done);
        };
        let node = object.view::<Node>();
        let (silent, before) = self.observe(ctx, &object, &node);
        if before.is_none() {
            let message = format!("Node {key} event: Registered Node {key} in Controller");
            ctx.recorder.event(reference(key, &object.metadata.uid), "Normal", "RegisteredNode", message);
        }
        let never_said = condition(&node.status.conditions, "Ready").is_none();
        let grace_period = if never_said { self.startup_grace_period } else { self.grace_period };
        let object = if silent > grace_period { self.mark_unknown(ctx, &object).await? } else { object };
        let node = object.view::<Node>();
        let status = ready_status(&node).to_owned();
        let was_ready = before.as_deref().is_none_or(|before| before == "True");
        if status != "True" && !never_said {
            if before.is_some() && was_ready {
                let message = format!("Node {key} status is now: NodeNotReady");
                ctx.recorder.event(reference(key, &object.metadata.uid), "Normal", "NodeNotReady", message);
            }
            if status == "Unknown" || was_ready {
                self.mark_pods_not_ready(ctx, key).await?;
            }
        }
        self.zones.note(zone_node(&object, &node));
        let is_ready = status == "True";
        if let Some(known) = self.health().get_mut(key) {
            known.ready = status;
        }
        label(ctx, &object).await?;
        let leave = if is_ready { Leave::Never } else { self.leave(ctx, &object, &node) };
        taint(ctx, &object, &node, leave == Leave::Now).await?;
        if is_ready && ctx.clock.is_beating(&object.metadata.uid) {
            if let Some(known) = self.health().get_mut(key) {
                known.next_look = Some(ctx.clock.elapsed() + self.monitor_period);
            }
            return Ok(Action::LookAfter(self.monitor_period));
        }
        let wait = if let Leave::After(wait) = leave { wait } else { self.monitor_period };
        Ok(Action::RequeueAfter(self.monitor_period.min(wait)))
    }
}

async fn taint(ctx: &Reconcile, object: &Object, node: &Node, evicts: bool) -> Result<(), Status> {
    let now: Time = ctx.clock.now();
    let Some(desired) = taints::desired(node, evicts, now) else { return Ok(()) };
    let list = if desired.is_empty() { Value::Null } else { taints::value(&desired) };
    let revision = object.metadata.resource_version.to_string();
    let patch = json!({"metadata": {"resourceVersion": revision}, "spec": {"taints": list}});
    match ctx.client.patch(&NODES, "", &object.metadata.name, PatchType::Merge, &patch).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// `reconcileNodeLabels`
async fn label(ctx: &Reconcile, node: &Object) -> Result<(), Status> {
    let labels = &node.metadata.labels;
    let lacking = |(label, older): &&(&str, &str)| {
        labels.contains_key(*label) && labels.get(*label) != labels.get(*older)
    };
    let new: serde_json::Map<String, Value> = OLDER_LABELS
        .iter()
        .filter(lacking)
        .map(|(label, older)| ((*older).to_owned(), labels[*label].as_str().into()))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let patch = json!({"metadata": {"labels": new}});
    match ctx.client.patch(&NODES, "", &node.metadata.name, PatchType::StrategicMerge, &patch).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn ready_status(node: &Node) -> &str {
    condition(&node.status.conditions, "Ready").map_or("Unknown", |ready| &ready.status)
}

fn zone_node(object: &Object, node: &Node) -> ZoneNode {
    (object.metadata.name.clone(), zone_of(object), ready_status(node) == "True")
}

/// Events about a node name it by its name and uid only: it has no namespace.
fn reference(name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        kind: "Node".into(),
        api_version: "v1".into(),
        name: name.into(),
        uid: uid.into(),
        ..ObjectReference::default()
    }
}
