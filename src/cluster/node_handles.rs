//! The nodes of a cluster over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::inside::Inside;
use super::node_changes::refused;
use super::time::parse_duration;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::node::NODES;
use handles::{ClusterHandle, HandleCall, Handles, answer};
use kubelet::eviction::ShutdownGrace;
use kubelet::node_group::NodeGroup;
use kubelet::node_state::SaidCondition;

/// Lists, adds, removes, stops and starts them, and makes them unwell.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let listing = ClusterHandle::get("/nodes", "The simulated nodes, and whether their kubelets run.");
    let adding = ClusterHandle::post("/nodes", "Adds a group of nodes, as --node-config has them.");
    let removing = ClusterHandle::delete("/nodes/{name}", "Ends a node's kubelet, and deletes the node.");
    let stopping = ClusterHandle::post("/nodes/{name}/stop", "Stops a node's kubelet; the node stays.");
    let starting = ClusterHandle::post("/nodes/{name}/start", "Starts a node's kubelet again.");
    let rebooting = ClusterHandle::post("/nodes/{name}/reboot", "Starts a node's machine again.");
    let ending =
        ClusterHandle::post("/nodes/{name}/shutdown", "Switches a node's machine off, in order or not.");
    let of_end = inside.clone();
    let saying = ClusterHandle::post("/nodes/{name}/conditions", "A node has a condition from now on.");
    let recovering = ClusterHandle::delete("/nodes/{name}/conditions", "A node is well again.")
        .query("type", "Only of this condition.");
    let (of_list, of_add, of_remove) = (inside.clone(), inside.clone(), inside.clone());
    let on = |act: fn(&Inside, &HandleCall) -> Result<(), Status>| {
        let inside = inside.clone();
        move |call: HandleCall| std::future::ready(act(&inside, &call).and_then(|()| done(&call)))
    };
    let of_say = inside.clone();
    handles
        .with(listing, move |call| list(of_list.clone(), call))
        .with(adding.body(group()), move |call| create(of_add.clone(), call))
        .with(removing, move |call| remove(of_remove.clone(), call))
        .with(stopping, on(|inside, call| inside.stop_node(call.path("name"))))
        .with(starting, on(|inside, call| inside.start_node(call.path("name"))))
        .with(rebooting, on(|inside, call| inside.reboot_node(call.path("name"))))
        .with(ending.body(shutdown()), move |call| shut_down(of_end.clone(), call))
        .with(saying.body(condition()), move |call| say(of_say.clone(), call))
        .with(recovering, on(recover))
}

async fn list(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    let there = inside.kit_for(&call.user).list(&NODES, "", &ListOptions::default()).await?;
    let node = |name: &str| {
        let is_simulated = inside.running.nodes.contains(name);
        json!({"name": name, "simulated": is_simulated, "running": inside.running.kubelet(name).is_some()})
    };
    let nodes: Vec<Value> = there.items.iter().map(|object| node(&object.metadata.name)).collect();
    answer(&json!({"nodes": nodes}))
}

async fn create(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    let client = inside.kit_for(&call.user);
    let group: NodeGroup = call.json().await?;
    let names = inside.add_nodes(&client, &group).await?;
    answer(&json!({"added": names}))
}

async fn remove(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    inside.remove_node(&inside.kit_for(&call.user), call.path("name")).await?;
    done(&call)
}

async fn say(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    let name = call.path("name").to_owned();
    let condition: SaidCondition = call.json().await?;
    inside.kubelet(&name)?.say(condition).map_err(refused)?;
    answer(&json!({"node": name}))
}

/// How long the pods of a node have that is switched off; without, none.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct ShutdownBody {
    grace_period: Option<String>,
    critical_grace_period: Option<String>,
}

/// Critical pods have a part of the whole (`ValidateKubeletConfiguration`).
fn grace(body: ShutdownBody) -> Result<ShutdownGrace, Status> {
    let read = |text: Option<String>| match text {
        Some(text) => parse_duration(&text).map_err(|why| Status::bad_request(why.to_string())),
        None => Ok(Duration::ZERO),
    };
    let total = read(body.grace_period)?;
    let critical = read(body.critical_grace_period)?;
    if critical > total {
        let why = format!(
            "criticalGracePeriod {critical:?} is longer than gracePeriod {total:?}, of which it is a part"
        );
        return Err(Status::bad_request(why));
    }
    Ok(ShutdownGrace { total, critical })
}

async fn shut_down(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    let name = call.path("name").to_owned();
    let body: ShutdownBody = call.json().await?;
    let grace = grace(body)?;
    inside.begin_shutdown(&name, grace)?;
    answer(&json!({"node": name}))
}

fn recover(inside: &Inside, call: &HandleCall) -> Result<(), Status> {
    inside.kubelet(call.path("name"))?.recover_node(call.query("type"));
    Ok(())
}

fn done(call: &HandleCall) -> Result<Response, Status> {
    answer(&json!({"node": call.path("name")}))
}

/// The form of a group.
fn group() -> Value {
    let (text, texts) = (json!({"type": "string"}), json!({"type": "array", "items": {"type": "string"}}));
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "properties": {
        "name": text, "count": {"type": "integer"}, "labels": map, "annotations": map, "zones": texts,
        "region": text, "instanceType": text, "roles": texts, "taints": texts, "capacity": map,
        "allocatable": map, "images": texts, "architecture": text, "operatingSystem": text, "osImage": text,
        "kernelVersion": text, "kubeletVersion": text, "containerRuntimeVersion": text, "clockSkew": text,
    }})
}

fn shutdown() -> Value {
    let text = json!({"type": "string", "description": "A duration, as 30s."});
    json!({"type": "object", "properties": {"gracePeriod": text, "criticalGracePeriod": text}})
}

fn condition() -> Value {
    let text = json!({"type": "string"});
    let properties = json!({"type": text, "status": text, "reason": text, "message": text});
    json!({"type": "object", "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_pods_have_no_longer_than_all() {
        let asked = |total: Option<&str>, critical: Option<&str>| {
            grace(ShutdownBody {
                grace_period: total.map(str::to_owned),
                critical_grace_period: critical.map(str::to_owned),
            })
        };
        let given = asked(Some("30s"), Some("10s")).unwrap();
        assert_eq!((given.total.as_secs(), given.critical.as_secs()), (30, 10));
        assert!(asked(Some("30s"), Some("30s")).is_ok());
        for (total, critical) in [(Some("10s"), "30s"), (None, "1s")] {
            let refused = asked(total, Some(critical)).unwrap_err();
            assert_eq!(refused.code, 400, "{}", refused.message);
        }
    }
}
