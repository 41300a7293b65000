//! Objects that wait for initializers, as a client meets them: not in lists and watches, and their creation
//! is answered when they are done (`registry.Store.WaitForInitialized`, Kubernetes 1.7 to 1.13). Only behind
//! the feature gate; without it nothing of this is asked.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::request_scope::Scope;
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;

/// How long a create waits.
const PATIENCE: Duration = Duration::from_secs(30);

impl Scope {
    /// Whether this client does not see what is not initialized.
    pub(crate) fn sees_only_initialized(&self) -> bool {
        self.server.initializers && !self.query.flag("includeUninitialized").unwrap_or(false)
    }
}

/// The object when it is initialized.
///
/// # Errors
/// The failure that an initializer noted; 504 when it takes too long; 500 when the object is deleted.
pub(crate) async fn await_initialized(scope: &Scope, created: Arc<Object>) -> Result<Arc<Object>, Status> {
    if !scope.sees_only_initialized() || scope.ctx.dry_run {
        return Ok(created);
    }
    if let Some(outcome) = outcome(&created) {
        return outcome.map(|()| created);
    }
    let fields = FieldSelector::equal("metadata.name", &created.metadata.name);
    let options = ListOptions {
        predicate: Predicate { fields, ..Predicate::default() },
        resource_version: Some(created.metadata.resource_version.to_string()),
        ..ListOptions::default()
    };
    let mut events = scope.server.registry.watch(&scope.kind, scope.namespace(), &options).await?;
    let waiting = async {
        while let Some(event) = events.recv().await {
            let object = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => object,
                WatchEvent::Deleted(object) => {
                    let gone = Status::internal("object deleted while waiting for creation");
                    return Err(outcome(&object).and_then(Result::err).unwrap_or(gone));
                }
                _ => continue,
            };
            if let Some(outcome) = outcome(&object) {
                return outcome.map(|()| object);
            }
        }
        Err(Status::internal("the watch ended while waiting for creation"))
    };
    match scope.server.clock.timeout(PATIENCE, waiting).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Status::timeout("request did not complete within allowed duration")),
    }
}

/// An object whose initialization has failed does not stay.
pub(crate) async fn delete_failed(scope: &Scope, written: &Object) -> Result<(), Status> {
    let has_failed = scope.server.initializers && matches!(outcome(written), Some(Err(_)));
    if !has_failed || scope.ctx.dry_run || written.is_deleting() {
        return Ok(());
    }
    let (registry, namespace) = (&scope.server.registry, scope.namespace());
    let options = DeleteOptions::default();
    let deleted = registry.delete(&scope.ctx, &scope.kind, namespace, scope.name(), &options, &()).await;
    match deleted {
        Err(status) if !status.is_not_found() => Err(status),
        _ => Ok(()),
    }
}

/// Nothing as long as it waits.
fn outcome(object: &Object) -> Option<Result<(), Status>> {
    if !object.is_uninitialized() {
        return Some(Ok(()));
    }
    let tree = object.to_value();
    let result = tree["metadata"]["initializers"]["result"].as_object()?;
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": 500});
    if let Some(status) = status.as_object_mut() {
        status.extend(result.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    Some(Err(serde_json::from_value(status).unwrap_or_else(Status::internal)))
}
