//! Deletes what is in a namespace, kind by kind (`NamespacedResourcesDeleter`).

use std::sync::Arc;

use super::outcome::NamespaceOutcome;
use super::remote;
use crate::controller::Reconcile;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apis::views::pod::Pod;

/// Upstream's `finalizerEstimateSeconds`: when to look again where something has a finalizer.
const FINALIZER_ESTIMATE_SECONDS: u64 = 15;

/// Deletes everything in the namespace: the pods, and when they are gone all else, so that a pod never
/// outlives the policies and secrets that it was made with (KEP-5080).
pub(super) async fn delete_all_content(
    ctx: &Reconcile,
    scheme: &Scheme,
    namespace: &str,
) -> NamespaceOutcome {
    let mut outcome = NamespaceOutcome::default();
    let kinds = deletable(scheme);
    let (pods, others): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|kind| is_pod(kind));
    for kind in pods {
        delete_kind(ctx, &kind, namespace, &mut outcome).await;
    }
    outcome.waits_for_pods = !outcome.remaining.is_empty();
    if outcome.waits_for_pods {
        return outcome;
    }
    for kind in others {
        delete_kind(ctx, &kind, namespace, &mut outcome).await;
    }
    if let Err(error) = remote::delete_remote_content(ctx, namespace, &mut outcome).await {
        outcome.failures.push(error);
    }
    outcome
}

fn deletable(scheme: &Scheme) -> Vec<Arc<Kind>> {
    let has = |kind: &Kind, verb: &str| kind.verbs.iter().any(|it| **it == *verb);
    let mut kinds = scheme.storage_kinds();
    kinds.retain(|kind| kind.namespaced && has(kind, "delete") && has(kind, "list"));
    kinds
}

fn is_pod(kind: &Kind) -> bool {
    kind.group_version.group.is_empty() && &*kind.plural == "pods"
}

async fn delete_kind(ctx: &Reconcile, kind: &Kind, namespace: &str, outcome: &mut NamespaceOutcome) {
    if let Err(error) = try_delete_kind(ctx, kind, namespace, outcome).await {
        outcome.failures.push(error);
    }
}

async fn try_delete_kind(
    ctx: &Reconcile,
    kind: &Kind,
    namespace: &str,
    outcome: &mut NamespaceOutcome,
) -> Result<(), Status> {
    let everything = ListOptions::default();
    let background = DeleteOptions::propagation("Background");
    if kind.verbs.iter().any(|verb| &**verb == "deletecollection") {
        ignore_not_found(ctx.client.delete_collection(kind, namespace, &background, &everything).await)?;
    } else {
        for object in ctx.client.list(kind, namespace, &everything).await?.items.iter() {
            let name = &object.metadata.name;
            ignore_not_found(ctx.client.delete(kind, namespace, name, &background).await)?;
        }
    }
    let left = ctx.client.list(kind, namespace, &everything).await?.items;
    if left.is_empty() {
        return Ok(());
    }
    outcome.remaining.insert(kind.group_resource(), left.len());
    let finalizers = left.iter().flat_map(|object| &object.metadata.finalizers);
    let mut has_finalizers = false;
    for finalizer in finalizers {
        *outcome.finalizers.entry(finalizer.clone()).or_default() += 1;
        has_finalizers = true;
    }
    let grace = if is_pod(kind) { longest_grace(&left) } else { 0 };
    let estimate = if has_finalizers { FINALIZER_ESTIMATE_SECONDS } else { grace };
    outcome.estimate_seconds = outcome.estimate_seconds.max(estimate).max(grace);
    if !is_pod(kind) && !has_finalizers {
        let resource = kind.group_resource();
        let text = format!("unexpected items still remain in namespace: {namespace} for gvr: {resource}");
        return Err(Status::internal(text));
    }
    Ok(())
}

fn ignore_not_found(result: Result<(), Status>) -> Result<(), Status> {
    match result {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The longest grace period of any pod that has not ended.
fn longest_grace(pods: &[Arc<Object>]) -> u64 {
    let grace = |pod: &Arc<Object>| {
        let view = pod.view::<Pod>();
        let seconds = view.spec.termination_grace_period_seconds.filter(|_| !view.is_terminal())?;
        u64::try_from(seconds).ok()
    };
    pods.iter().filter_map(grace).max().unwrap_or(0)
}
