//! The faults of a cluster over HTTP.

mod fault_webhooks;

use std::sync::Arc;

use super::fault_resources;
use super::inside::Inside;
use apimachinery::status::Status;
use axum::response::Response;
use faults::{ComponentSwitch, Fault, FaultRefusal, Faults};
use handles::{ClusterHandle, HandleCall, Handles, answer};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the names of faults begin with that objects ask for, so that they are not taken for those that were
/// added otherwise.
pub(super) const OF_OBJECTS: &str = "object.";

/// What is shown of a fault beside what was added: whoever adds what was listed adds this, too.
const SHOWN: [&str; 4] = ["matched", "hits", "over", "warning"];

/// Faults that stop components know from now on what stops them.
pub(super) fn connect(inside: &Arc<Inside>) {
    inside.interceptors.faults.know(&(inside.clone() as Arc<dyn ComponentSwitch>));
}

/// Adds, lists, shows and removes them.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let faults = inside.interceptors.faults.clone();
    let on = |act: fn(&Faults, HandleCall) -> Result<Response, Status>| {
        let faults = faults.clone();
        move |call: HandleCall| std::future::ready(act(&faults, call))
    };
    let listed = json!({"type": "object", "properties": {"faults": {"type": "array", "items": fault()}}});
    let listing = ClusterHandle::get("/faults", "The faults, in the order in which they are looked at.");
    let adding = ClusterHandle::post("/faults", "Adds a fault; the first that hits a request decides.");
    let showing = ClusterHandle::get("/faults/{name}", "A fault, and what it has hit.").answers(fault());
    let removing = ClusterHandle::delete("/faults/{name}", "Removes a fault; what it stopped starts again.");
    let clearing = ClusterHandle::delete("/faults", "Removes all faults but those that objects ask for.");
    let adder = inside.clone();
    handles
        .with(listing.answers(listed), on(|faults, _| answer(&json!({"faults": faults.list()}))))
        .with(adding.body(fault()).answers(fault()), move |call| create(adder.clone(), call))
        .with(showing, on(show))
        .with(removing.answers(fault()), on(remove))
        .with(clearing, on(clear))
}

async fn create(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    let mut tree: Value = call.json().await?;
    if let Some(fields) = tree.as_object_mut() {
        SHOWN.iter().for_each(|field| drop(fields.remove(*field)));
    }
    let fault =
        Fault::deserialize(tree).map_err(|error| Status::bad_request(format!("the body: {error}")))?;
    fault_resources::check(&fault, &inside.scheme).map_err(FaultRefusal::Contradiction).map_err(refused)?;
    let warning = fault_webhooks::warning(&fault, &inside.kit()).await;
    let faults = &inside.interceptors.faults;
    let name = faults.add(fault).map_err(refused)?;
    let mut added = json!(faults.get(&name));
    if let Some(warning) = warning {
        added["warning"] = json!(warning);
    }
    answer(&added)
}

fn show(faults: &Faults, call: HandleCall) -> Result<Response, Status> {
    let name = call.path("name");
    answer(&faults.get(name).ok_or_else(|| refused(FaultRefusal::Unknown(name.into())))?)
}

fn remove(faults: &Faults, call: HandleCall) -> Result<Response, Status> {
    answer(&faults.remove(call.path("name")).map_err(refused)?)
}

fn clear(faults: &Faults, _: HandleCall) -> Result<Response, Status> {
    // An object says that its fault is there: it goes with the object.
    for status in faults.list().iter().filter(|status| !status.fault.name.starts_with(OF_OBJECTS)) {
        let _ = faults.remove(&status.fault.name);
    }
    answer(&json!({"faults": faults.list()}))
}

fn refused(refusal: FaultRefusal) -> Status {
    let text = refusal.to_string();
    match refusal {
        FaultRefusal::Unknown(_) => Status::failure(404, "NotFound", text),
        FaultRefusal::Exists(_) => Status::failure(409, "AlreadyExists", text),
        FaultRefusal::TooMany => Status::failure(409, "Conflict", text),
        FaultRefusal::Contradiction(_) | FaultRefusal::Component(_) => Status::bad_request(text),
    }
}

/// The form of a fault.
pub(super) fn fault() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let number = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let flag = json!({"type": "boolean"});
    let end = json!({"type": "string", "enum": ["close", "expire"]});
    let answer = json!({
        "code": number, "reason": text, "message": text, "retryAfter": number, "executed": flag,
    });
    let watch = json!({"end": end, "afterEvents": number, "duplicate": flag, "delay": text});
    let network = json!({
        "between": text, "and": text, "latency": text, "loss": {"type": "number"}, "refuse": flag,
        "partition": flag,
    });
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    object(json!({
        "name": text,
        "users": texts, "userAgents": texts, "verbs": texts, "resources": texts, "namespaces": texts,
        "names": texts,
        "probability": {"type": "number"}, "nth": number, "count": number, "after": text, "for": text,
        "latency": text,
        "answer": object(answer),
        "cut": object(json!({"afterBytes": number})),
        "watch": object(watch),
        "stale": object(json!({"revisions": number})),
        "silentWebhooks": texts, "partition": flag, "stop": text,
        "network": object(network),
    }))
}
