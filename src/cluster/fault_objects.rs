//! Faults as objects, `faults.kubarium.dev/v1alpha1 Fault`, so that a test's YAML can hold them. Their kind
//! is there only where it was asked for: else discovery is upstream's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::fault_handles::{self, OF_OBJECTS};
use super::fault_resources;
use super::inside::Inside;
use apimachinery::options::{ListOptions, PatchType};
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use apis::kind::Kind;
use client_go::client::Client;
use faults::{Fault, FaultRefusal};

const GROUP: &str = "faults.kubarium.dev";
/// How long is waited before asking again, for the kind or after a watch that ended.
const PAUSE: Duration = Duration::from_millis(100);

/// What was added for each object.
type AddedFaults = BTreeMap<String, Value>;

/// Has the kind served, and follows its objects for as long as it is polled.
pub(super) async fn follow(inside: Arc<Inside>) {
    let client = inside.kit();
    while let Err(status) = client.create(&CUSTOM_RESOURCE_DEFINITIONS, "", definition()).await {
        if status.is_already_exists() {
            break;
        }
        inside.clock.sleep(PAUSE).await;
    }
    let kind = loop {
        match inside.scheme.resource(GROUP, "v1alpha1", "faults") {
            Some(kind) => break kind,
            None => inside.clock.sleep(PAUSE).await,
        }
    };
    let mut known = AddedFaults::new();
    loop {
        if let Err(status) = watch(&client, &kind, &inside, &mut known).await {
            tracing::debug!(status.message, "faults are not followed just now");
        }
        inside.clock.sleep(PAUSE).await;
    }
}

async fn watch(client: &Client, kind: &Kind, inside: &Inside, known: &mut AddedFaults) -> Result<(), Status> {
    let faults = &inside.interceptors.faults;
    let list = client.list(kind, "", &ListOptions::default()).await?;
    let there: Vec<&str> = list.items.iter().map(|object| &*object.metadata.name).collect();
    known.retain(|name, _| there.contains(&name.as_str()) || faults.remove(&called(name)).is_err());
    for object in list.items.iter() {
        take(client, kind, inside, known, &object.to_value()).await?;
    }
    let revision = Some(list.resource_version.to_string());
    let options = ListOptions { resource_version: revision, ..ListOptions::default() };
    let mut events = client.watch(kind, "", &options).await?;
    while let Some(event) = events.recv().await {
        match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                take(client, kind, inside, known, &object.to_value()).await?;
            }
            WatchEvent::Deleted(object) => {
                known.remove(&*object.metadata.name);
                let _ = faults.remove(&called(&object.metadata.name));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds what the object says, in place of what it said before; its status says what came of that.
async fn take(
    client: &Client,
    kind: &Kind,
    inside: &Inside,
    known: &mut AddedFaults,
    object: &Value,
) -> Result<(), Status> {
    let faults = &inside.interceptors.faults;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let spec = &object["spec"];
    if known.get(name) == Some(spec) {
        return Ok(());
    }
    let _ = faults.remove(&called(name));
    known.insert(name.to_owned(), spec.clone());
    let read = serde_json::from_value::<Fault>(spec.clone()).map_err(|error| error.to_string());
    let added = read.and_then(|fault| add(inside, fault.named(&called(name))).map_err(|why| why.to_string()));
    let status = json!({"status": {"active": added.is_ok(), "message": added.err().unwrap_or_default()}});
    match client.patch_status(kind, "", name, PatchType::Merge, &status).await {
        Err(status) if !status.is_not_found() => Err(status),
        _ => Ok(()),
    }
}

fn add(inside: &Inside, fault: Fault) -> Result<String, FaultRefusal> {
    fault_resources::check(&fault, &inside.scheme)?;
    inside.interceptors.faults.add(fault)
}

fn called(name: &str) -> String {
    format!("{OF_OBJECTS}{name}")
}

fn definition() -> Value {
    let status = json!({"type": "object", "properties": {
        "active": {"type": "boolean"}, "message": {"type": "string"},
    }});
    let schema = json!({"type": "object", "properties": {"spec": fault_handles::fault(), "status": status}});
    let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let columns =
        [column("Active", "boolean", ".status.active"), column("Message", "string", ".status.message")];
    let version = json!({
        "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns,
    });
    json!({
        "metadata": {"name": format!("faults.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster", "versions": [version],
            "names": {"kind": "Fault", "plural": "faults", "singular": "fault", "listKind": "FaultList"},
        },
    })
}
