//! What other servers have in a namespace: their kinds are found by asking them, which may fail
//! (`discovery.ServerPreferredNamespacedResources`).

use serde_json::Value;

use super::outcome::NamespaceOutcome;
use crate::controller::Reconcile;
use apimachinery::gvk::GroupResource;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::apiregistration::api_service::API_SERVICES;
use apis::tree::{at, items, text};

/// A kind of another server.
struct RemoteKind {
    /// Group and version.
    path: String,
    resource: GroupResource,
}

/// Deletes what other servers have in the namespace; groups that do not answer are noted, and what they have
/// is waited for.
pub(super) async fn delete_remote_content(
    ctx: &Reconcile,
    namespace: &str,
    outcome: &mut NamespaceOutcome,
) -> Result<(), Status> {
    for service in ctx.client.list(&API_SERVICES, "", &ListOptions::default()).await?.items.iter() {
        let tree = service.to_value();
        // Those of this server are in the scheme.
        if at(&tree, "spec.service").is_null() {
            continue;
        }
        let group_version = format!("{}/{}", text(&tree, "spec.group"), text(&tree, "spec.version"));
        let is_available =
            |condition: &Value| condition["type"] == "Available" && condition["status"] == "True";
        if !items(&tree, "status.conditions").iter().any(is_available) {
            let why = format!("{group_version}: stale GroupVersion discovery: {group_version}");
            outcome.undiscovered.push(why);
            continue;
        }
        match kinds(ctx, &group_version).await {
            Err(status) => outcome.undiscovered.push(format!("{group_version}: {status}")),
            Ok(kinds) => {
                for kind in kinds {
                    delete_kind(ctx, &kind, namespace, outcome).await;
                }
            }
        }
    }
    Ok(())
}

/// Those whose objects are in namespaces and can be listed and deleted.
async fn kinds(ctx: &Reconcile, group_version: &str) -> Result<Vec<RemoteKind>, Status> {
    let path = format!("/apis/{group_version}");
    let document = ctx.client.get_path(&path).await?;
    let group = group_version.split('/').next().unwrap_or_default();
    let has = |resource: &Value, verb: &str| items(resource, "verbs").iter().any(|it| it == verb);
    let mut kinds = Vec::new();
    for resource in items(&document, "resources") {
        let name = text(resource, "name");
        let is_meant = resource["namespaced"] == true && !name.contains('/');
        if is_meant && ["list", "deletecollection"].iter().all(|verb| has(resource, verb)) {
            kinds.push(RemoteKind { path: path.clone(), resource: GroupResource::new(group, name) });
        }
    }
    Ok(kinds)
}

async fn delete_kind(ctx: &Reconcile, kind: &RemoteKind, namespace: &str, outcome: &mut NamespaceOutcome) {
    let path = format!("{}/namespaces/{namespace}/{}", kind.path, kind.resource.resource);
    match ctx.client.delete_path(&path).await {
        Err(status) if !matches!(status.code, 404 | 405) => return outcome.failures.push(status),
        _ => {}
    }
    match ctx.client.get_path(&path).await {
        Ok(list) if !items(&list, "items").is_empty() => {
            outcome.remaining.insert(kind.resource.clone(), items(&list, "items").len());
        }
        Err(status) if !status.is_not_found() => outcome.failures.push(status),
        _ => {}
    }
}
