//! Stopping and starting components over HTTP.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::components::UnknownComponent;
use super::inside::Inside;
use apimachinery::status::Status;
use axum::response::Response;
use handles::{ClusterHandle, HandleCall, Handles, answer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichComponent {
    name: String,
}

/// Lists, stops and starts them.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let state = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "running": {"type": "boolean"}},
    });
    let states = json!({"type": "object", "properties": {"components": {"type": "array", "items": state}}});
    let body = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "description": "As kube-controller-manager/deployment."}},
    });
    let list = ClusterHandle::get("/components", "The components, and whether each runs.").answers(states);
    let stop = ClusterHandle::post("/components/stop", "Stops a component, or a single controller.");
    let start = ClusterHandle::post("/components/start", "Starts a component again.");
    let on = |act: fn(&Inside, &str) -> Result<(), UnknownComponent>| {
        let inside = inside.clone();
        move |call: HandleCall| change(inside.clone(), call, act)
    };
    let listing = inside.clone();
    handles
        .with(list, move |_| {
            let components = listing.running.list();
            std::future::ready(answer(&json!({"components": components})))
        })
        .with(stop.body(body.clone()), on(|inside, name| inside.running.stop(name).map(drop)))
        .with(start.body(body), on(|inside, name| inside.running.start(name)))
}

async fn change(
    inside: Arc<Inside>,
    call: HandleCall,
    act: fn(&Inside, &str) -> Result<(), UnknownComponent>,
) -> Result<Response, Status> {
    let WhichComponent { name } = call.json().await?;
    act(&inside, &name).map_err(|unknown| Status::failure(404, "NotFound", unknown.to_string()))?;
    let done: Value = json!({"name": name});
    answer(&done)
}
