//! The end of a definition (`controller/finalizer/crd_finalizer.go`): first its instances go, then the
//! definition.

use std::sync::Arc;

use serde_json::{Value, json};

use super::identity::context;
use crate::registry::{Part, Registry};
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::apiextensions::custom_resource_definition::{
    CLEANUP_FINALIZER, CUSTOM_RESOURCE_DEFINITIONS, set_condition,
};
use apis::kind::Kind;
use clock::Clock;

/// Deletes the instances, waits until they are gone, and lets the definition go.
///
/// # Errors
/// What the store says; whoever called tries again.
pub(super) async fn finalize(
    registry: &Registry,
    clock: &Clock,
    name: &str,
    instances: Option<Arc<Kind>>,
) -> Result<(), Status> {
    let condition = |status: &str, reason: &str, message: &str| json!({"type": "Terminating", "status": status, "reason": reason, "message": message});
    let done = match instances {
        None => condition("False", "NeverEstablished", "resource was never established"),
        Some(kind) => {
            let message = "CustomResource deletion is in progress";
            let begun = condition("True", "InstanceDeletionInProgress", message);
            set(registry, clock, name, begun).await?;
            delete_instances(registry, &kind).await?;
            condition("False", "InstanceDeletionCompleted", "removed all instances")
        }
    };
    set(registry, clock, name, done).await?;
    let release = |current: Option<&Value>| {
        let mut new = current.cloned().unwrap_or_default();
        if let Some(list) = new["metadata"]["finalizers"].as_array_mut() {
            list.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
        }
        Ok(new)
    };
    update(registry, name, Part::Finalize, &release).await
}

async fn set(registry: &Registry, clock: &Clock, name: &str, condition: Value) -> Result<(), Status> {
    let change = |current: Option<&Value>| {
        let mut new = current.cloned().unwrap_or_default();
        set_condition(&mut new, condition.clone(), clock.now());
        Ok(new)
    };
    update(registry, name, Part::Status, &change).await
}

async fn update(
    registry: &Registry,
    name: &str,
    part: Part,
    change: &(dyn Fn(Option<&Value>) -> Result<Value, Status> + Send + Sync),
) -> Result<(), Status> {
    let kind = &CUSTOM_RESOURCE_DEFINITIONS;
    let change = |current: Option<&Value>| change(current);
    match registry.update(&context(), kind, "", name, part, &change, &(), false).await {
        Err(status) if !status.is_not_found() => Err(status),
        _ => Ok(()),
    }
}

/// Finalizers of the instances may hold them: each that goes is seen in a watch.
async fn delete_instances(registry: &Registry, kind: &Arc<Kind>) -> Result<(), Status> {
    let delete = DeleteOptions::default();
    let list = ListOptions::default();
    loop {
        registry.delete_collection(&context(), kind, "", &delete, &list, &()).await?;
        let left = registry.list(kind, "", &list).await?;
        if left.items.is_empty() {
            return Ok(());
        }
        let from = ListOptions {
            resource_version: Some(left.resource_version.to_string()),
            ..ListOptions::default()
        };
        let mut events = registry.watch(kind, "", &from).await?;
        while let Some(event) = events.recv().await {
            if matches!(event, WatchEvent::Deleted(_)) {
                break;
            }
        }
    }
}
