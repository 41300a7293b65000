//! Deletes an object if none of its owners is left, and goes on with one that waits for its dependents
//! (`attemptToDeleteWorker`).

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::graph::Graph;
use super::graph_builder::{collected, mapping};
use super::graph_node::{FOREGROUND, GraphNode, ORPHAN, ObjectIdentity, blocks};
use super::live;
use crate::controller::{Action, Controller, ControllerRun, Key, Reconcile, Watches};
use apimachinery::gvk::GroupVersion;
use apimachinery::object::{Object, OwnerReference};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::scheme::Scheme;

/// The worker; its keys are uids. It also keeps the graph, by watching everything.
pub(super) struct AttemptToDelete {
    graph: Arc<Graph>,
    scheme: Arc<Scheme>,
    orphan: ControllerRun,
    kinds: Vec<Arc<Kind>>,
}

/// The owners of an object, by what is the matter with them (`classifyReferences`).
#[derive(Default)]
struct SortedOwners {
    /// They are there.
    solid: Vec<OwnerReference>,
    /// They are gone.
    dangling: Vec<OwnerReference>,
    /// They are being deleted and wait for this object.
    waiting: Vec<OwnerReference>,
}

impl AttemptToDelete {
    /// On a graph that the objects of `kinds` make.
    pub(super) fn new(
        graph: Arc<Graph>,
        scheme: Arc<Scheme>,
        orphan: ControllerRun,
        kinds: Vec<Arc<Kind>>,
    ) -> AttemptToDelete {
        AttemptToDelete { graph, scheme, orphan, kinds }
    }

    async fn attempt(&self, ctx: &Reconcile, uid: &str, node: &GraphNode) -> Result<(), Status> {
        if node.is_being_deleted && !node.is_deleting_dependents {
            return Ok(());
        }
        let Some(latest) = live::get(ctx, &node.identity, uid).await? else {
            // No informer will tell, or not soon.
            let todo = self.graph.lose(uid, &node.identity, &self.scheme);
            todo.attempt_to_delete.into_iter().for_each(|uid| ctx.enqueue.now(uid));
            self.graph.note_absent(&node.identity, uid);
            return Ok(());
        };
        if node.is_deleting_dependents {
            return self.process_deleting_dependents(ctx, uid, node).await;
        }
        if latest.metadata.owner_references.is_empty() || latest.is_deleting() {
            return Ok(());
        }
        self.tell_of_invalid_owners(ctx, &node.identity, &latest)?;
        let owners = self.classify(ctx, &node.identity, &latest).await?;
        if !owners.solid.is_empty() {
            return release(ctx, uid, node, &owners).await;
        }
        if !owners.waiting.is_empty() && !node.dependents.is_empty() {
            return self.delete_in_foreground(ctx, uid, node, &latest).await;
        }
        let has = |finalizer: &str| latest.metadata.finalizers.iter().any(|it| it == finalizer);
        let policy = match () {
            () if has(ORPHAN) => "Orphan",
            () if has(FOREGROUND) => "Foreground",
            () => "Background",
        };
        delete(ctx, &node.identity, &latest, policy).await
    }

    /// `reportInvalidNamespaceOwnerRef`: nobody is owned by what is in another namespace.
    fn tell_of_invalid_owners(
        &self,
        ctx: &Reconcile,
        item: &ObjectIdentity,
        latest: &Object,
    ) -> Result<(), Status> {
        let namespace = &item.namespace;
        for owner in &latest.metadata.owner_references {
            if self.graph.is_out_of_reach(owner, namespace) {
                let OwnerReference { api_version, kind, name, uid, .. } = owner;
                let message = format!(
                    "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not \
                     exist in namespace {namespace:?}"
                );
                ctx.event(live::kind(item)?, latest, "Warning", "OwnerRefInvalidNamespace", message);
            }
        }
        Ok(())
    }

    /// An owner in foreground deletion goes when nothing blocks it any more.
    async fn process_deleting_dependents(
        &self,
        ctx: &Reconcile,
        uid: &str,
        node: &GraphNode,
    ) -> Result<(), Status> {
        let blocking = self.graph.blocking_dependents(uid);
        if blocking.is_empty() {
            let live = live::dependents(ctx, &collected(&self.scheme), &node.identity, uid).await?;
            if live.iter().any(|(_, dependent)| blocks(&dependent.metadata.owner_references, uid)) {
                return Err(Status::internal("a dependent has not been observed yet"));
            }
            return live::remove_finalizer(ctx, &node.identity, uid, FOREGROUND).await;
        }
        let idle = blocking.into_iter().filter(|(_, node)| !node.is_deleting_dependents);
        idle.for_each(|(uid, _)| ctx.enqueue.now(uid));
        Ok(())
    }

    /// The object's own dependents go before it. Should one of them wait in turn, there may be a circle; the
    /// object then stops blocking its owners, or nothing would ever go.
    async fn delete_in_foreground(
        &self,
        ctx: &Reconcile,
        uid: &str,
        node: &GraphNode,
        latest: &Object,
    ) -> Result<(), Status> {
        if self.graph.dependents(uid).iter().any(|(_, dependent)| dependent.is_deleting_dependents) {
            let unblock = |reference: &Value| {
                let mut reference = reference.clone();
                if reference["blockOwnerDeletion"] == true {
                    reference["blockOwnerDeletion"] = json!(false);
                }
                Some(reference)
            };
            live::change_owners(ctx, &node.identity, uid, unblock).await?;
            let Some(unblocked) = live::get(ctx, &node.identity, uid).await? else { return Ok(()) };
            return delete(ctx, &node.identity, &unblocked, "Foreground").await;
        }
        delete(ctx, &node.identity, latest, "Foreground").await
    }

    async fn classify(
        &self,
        ctx: &Reconcile,
        item: &ObjectIdentity,
        latest: &Object,
    ) -> Result<SortedOwners, Status> {
        let mut owners = SortedOwners::default();
        for reference in &latest.metadata.owner_references {
            // An object may name tens of thousands, and each is answered at once.
            ctx.clock.yield_now().await;
            match self.owner(ctx, item, reference).await? {
                None => owners.dangling.push(reference.clone()),
                Some(owner) => {
                    let waits =
                        owner.is_deleting() && owner.metadata.finalizers.iter().any(|it| it == FOREGROUND);
                    let list = if waits { &mut owners.waiting } else { &mut owners.solid };
                    list.push(reference.clone());
                }
            }
        }
        Ok(owners)
    }

    async fn owner(
        &self,
        ctx: &Reconcile,
        item: &ObjectIdentity,
        reference: &OwnerReference,
    ) -> Result<Option<Arc<Object>>, Status> {
        if self.graph.is_absent(reference, &item.namespace) {
            return Ok(None);
        }
        let version = GroupVersion::parse(&reference.api_version);
        let kind = version.and_then(|version| self.scheme.kind(&version, &reference.kind));
        let is_namespaced = kind.as_ref().is_some_and(|kind| kind.namespaced);
        if is_namespaced && item.namespace.is_empty() {
            return Err(Status::bad_request("cluster-scoped objects cannot refer to namespaced owners"));
        }
        let namespace = if is_namespaced { item.namespace.clone() } else { String::new() };
        let identity = ObjectIdentity { kind, namespace, name: reference.name.clone() };
        let owner = live::get(ctx, &identity, &reference.uid).await?;
        if owner.is_none() {
            self.graph.note_absent(&identity, &reference.uid);
        }
        Ok(owner)
    }
}

impl Controller for AttemptToDelete {
    const NAME: &'static str = "garbage-collector";
    const EVENT_SOURCE: &'static str = "garbage-collector-controller";
    const SERVICE_ACCOUNT: &'static str = "generic-garbage-collector";

    fn watches(&self) -> Watches {
        self.kinds.iter().fold(Watches::none(), |watches, kind| {
            let (graph, scheme) = (self.graph.clone(), self.scheme.clone());
            watches.maps(kind, mapping(graph, scheme, kind.clone(), self.orphan.clone()))
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, uid: &Key) -> Result<Action, Status> {
        let Some(node) = self.graph.get(uid) else { return Ok(Action::Done) };
        match self.attempt(ctx, uid, &node).await {
            // The object itself is at fault; trying again does not help.
            Err(error) if error.is("BadRequest") => return Ok(Action::Done),
            other => other?,
        }
        // Until an informer tells of it, it may have been a cache that was ahead of another.
        match self.graph.get(uid) {
            Some(node) if node.is_virtual => Err(Status::internal("the owner has not been observed yet")),
            _ => Ok(Action::Done),
        }
    }
}

/// The object stays, without the owners that are gone or going.
async fn release(ctx: &Reconcile, uid: &str, node: &GraphNode, owners: &SortedOwners) -> Result<(), Status> {
    let gone: HashSet<&str> =
        owners.dangling.iter().chain(&owners.waiting).map(|owner| &*owner.uid).collect();
    if gone.is_empty() {
        return Ok(());
    }
    live::change_owners(ctx, &node.identity, uid, |reference| {
        let is_gone = reference["uid"].as_str().is_some_and(|uid| gone.contains(uid));
        (!is_gone).then(|| reference.clone())
    })
    .await
}

/// Only in the state in which its owners were judged: it may have been adopted meanwhile.
async fn delete(
    ctx: &Reconcile,
    identity: &ObjectIdentity,
    latest: &Object,
    policy: &str,
) -> Result<(), Status> {
    let metadata = &latest.metadata;
    let mut options = DeleteOptions::propagation(policy).of_uid(&metadata.uid);
    options.preconditions.get_or_insert_default().resource_version =
        Some(metadata.resource_version.to_string());
    match ctx.client.delete(live::kind(identity)?, &identity.namespace, &identity.name, &options).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
