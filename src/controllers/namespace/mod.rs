//! Namespace deletion: a terminating namespace is emptied, then let go (`pkg/controller/namespace`).
//!
//! In: namespaces with a deletion timestamp. Out: everything in them deleted, pods first; conditions that say
//! what is waited for; at last the finalizer `kubernetes` removed, which lets the apiserver remove the
//! namespace. It must not know any kind but Pod: the kinds come from the scheme, custom ones included.

mod conditions;
mod deleter;
mod outcome;
mod remote;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::options::ControllerManagerOptions;
use super::status::update_status;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::core::namespace::NAMESPACES;
use apis::core::pod::PODS;
use apis::scheme::Scheme;
use apis::views::namespace::Namespace;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The controller that empties terminating namespaces.
pub(crate) struct NamespaceController {
    scheme: Arc<Scheme>,
    sync_period: Duration,
    namespaces: Lister,
}

impl NamespaceController {
    /// With its informers; the kinds of `scheme` are what is deleted.
    pub(crate) fn new(
        ctx: &ComponentContext,
        scheme: Arc<Scheme>,
        options: &ControllerManagerOptions,
    ) -> NamespaceController {
        NamespaceController {
            scheme,
            sync_period: options.namespace_sync_period,
            namespaces: ctx.informers.informer(&NAMESPACES).lister(),
        }
    }
}

impl Controller for NamespaceController {
    const NAME: &'static str = "namespace";
    const EVENT_SOURCE: &'static str = "namespace-controller";
    const SERVICE_ACCOUNT: &'static str = "namespace-controller";

    fn watches(&self) -> Watches {
        let namespaces = self.namespaces.clone();
        // Upstream waits for the longest grace period of any pod; here the last pod's end goes on at once.
        let pods = move |change: &Change<'_>, enqueue: &Enqueue| {
            let namespace = &change.object().metadata.namespace;
            let is_gone = matches!(change, Change::Deleted(_));
            if is_gone && namespaces.get("", namespace).is_some_and(|namespace| namespace.is_deleting()) {
                enqueue.batched(namespace.clone());
            }
        };
        Watches::of(&NAMESPACES).maps(&PODS, pods)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(cached) = self.namespaces.get("", key).filter(|namespace| namespace.is_deleting()) else {
            return Ok(Action::Done);
        };
        // Not from the cache: a namespace of this name may have been made anew.
        let found = ctx.client.find(&NAMESPACES, "", key).await?;
        let Some(object) = found.filter(|object| object.metadata.uid == cached.metadata.uid) else {
            return Ok(Action::Done);
        };
        let view = object.view::<Namespace>();
        if view.spec.finalizers.is_empty() {
            return Ok(Action::Done);
        }
        let object =
            if view.status.phase == "Terminating" { object } else { terminate(ctx, &object).await? };
        let outcome = deleter::delete_all_content(ctx, &self.scheme, key).await;
        conditions::write(ctx, &object, &outcome).await?;
        if let Some(error) = outcome.failures.into_iter().next() {
            return Err(error);
        }
        if !outcome.undiscovered.is_empty() {
            return Err(Status::internal(conditions::undiscovered(&outcome.undiscovered)));
        }
        if outcome.remaining.is_empty() {
            return finalize(ctx, &object).await;
        }
        let until_it_may_be_gone = Duration::from_secs(outcome.estimate_seconds / 2 + 1);
        Ok(Action::RequeueAfter(until_it_may_be_gone.min(self.sync_period)))
    }
}

async fn terminate(ctx: &Reconcile, object: &Object) -> Result<Arc<Object>, Status> {
    let phase = |status: &mut serde_json::Map<String, Value>| {
        status.insert("phase".into(), "Terminating".into());
    };
    update_status(&ctx.client, &NAMESPACES, object, phase).await
}

/// Takes our finalizer away; the namespace goes with the last one.
async fn finalize(ctx: &Reconcile, object: &Object) -> Result<Action, Status> {
    let name = &object.metadata.name;
    let Some(fresh) = ctx.client.find(&NAMESPACES, "", name).await? else { return Ok(Action::Done) };
    let finalizers = &fresh.view::<Namespace>().spec.finalizers;
    let others: Vec<&String> = finalizers.iter().filter(|finalizer| *finalizer != "kubernetes").collect();
    let mut tree = fresh.to_value();
    tree["apiVersion"] = "v1".into();
    tree["kind"] = "Namespace".into();
    tree["spec"]["finalizers"] = json!(others);
    match ctx.client.update_subresource(&NAMESPACES, "", name, "finalize", tree).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::Done),
    }
}
