//! Nodes that somebody creates with the annotation `kubarium.dev/node: simulated`, or kwok's: each has a
//! kubelet for as long as it is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::inside::Inside;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apimachinery::watch::WatchEvent;
use apis::core::event::EVENTS;
use apis::core::node::NODES;
use client_go::client::Client;
use kubelet::node_group::is_simulated;

/// How long is waited before asking again, after a watch that ended.
const PAUSE: Duration = Duration::from_millis(100);

/// The uids of those that are followed, by name. Bound: the Nodes that there are.
type FollowedNodes = BTreeMap<String, String>;

/// [`follow`], which settles with everything else.
pub(super) fn following(inside: Arc<Inside>) -> impl Future<Output = ()> {
    inside.clock.named("nodes").tracked(follow(inside))
}

/// Follows the Nodes for as long as it is polled.
async fn follow(inside: Arc<Inside>) {
    let client = inside.kit();
    let mut known = FollowedNodes::new();
    loop {
        if let Err(status) = watch(&inside, &client, &mut known).await {
            tracing::debug!(status.message, "nodes are not followed just now");
        }
        inside.clock.sleep(PAUSE).await;
    }
}

async fn watch(inside: &Inside, client: &Client, known: &mut FollowedNodes) -> Result<(), Status> {
    let list = client.list(&NODES, "", &ListOptions::default()).await?;
    let there: BTreeMap<&str, &str> =
        list.items.iter().map(|node| (&*node.metadata.name, &*node.metadata.uid)).collect();
    known.retain(|name, uid| {
        let is_there = there.get(name.as_str()) == Some(&uid.as_str());
        if !is_there {
            inside.running.forget(name);
        }
        is_there
    });
    for node in list.items.iter() {
        take(inside, client, known, node).await;
        tell_kubelet(inside, node);
    }
    let revision = Some(list.resource_version.to_string());
    let options = ListOptions { resource_version: revision, ..ListOptions::default() };
    let mut events = client.watch(&NODES, "", &options).await?;
    while let Some(event) = events.recv().await {
        match &event {
            WatchEvent::Added(node) | WatchEvent::Modified(node) => {
                take(inside, client, known, node).await;
                tell_kubelet(inside, node);
            }
            WatchEvent::Deleted(node) if known.remove(&*node.metadata.name).is_some() => {
                inside.running.forget(&node.metadata.name);
            }
            WatchEvent::Deleted(node) => inside.running.nodes.release(&node.metadata.name),
            _ => {}
        }
    }
    Ok(())
}

/// Its kubelet hears here what others have written into it: no kubelet watches its own Node, since there are
/// many.
fn tell_kubelet(inside: &Inside, node: &Object) {
    if let Some(kubelet) = inside.running.kubelet(&node.metadata.name) {
        kubelet.note_node(node);
    }
}

/// Starts the kubelet of a Node that is new; one that was stopped stays so.
async fn take(inside: &Inside, client: &Client, known: &mut FollowedNodes, node: &Arc<Object>) {
    let metadata = &node.metadata;
    if known.contains_key(&*metadata.name) || !is_simulated(node) {
        return;
    }
    known.insert(metadata.name.to_string(), metadata.uid.to_string());
    if let Err(why) = inside.running.adopt(node) {
        tracing::warn!(node = %metadata.name, %why, "a node gets no kubelet");
        // That it is not told is no reason not to go on.
        let _ = client.create(&EVENTS, "default", refusal(inside, node, &why.0)).await;
    }
}

fn refusal(inside: &Inside, node: &Object, why: &str) -> serde_json::Value {
    let (metadata, now) = (&node.metadata, rfc3339(inside.clock.now()));
    json!({
        "metadata": {"generateName": format!("{}.", metadata.name), "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": metadata.name, "uid": metadata.uid},
        "type": "Warning", "reason": "NoKubelet", "message": format!("This node gets no kubelet: {why}"),
        "source": {"component": "kubarium"}, "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    })
}
