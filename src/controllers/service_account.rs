//! The ServiceAccount `default` in every namespace
//! (`pkg/controller/serviceaccount.ServiceAccountsController`).

use serde_json::json;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pod_control::is_namespace_terminating;
use apimachinery::status::Status;
use apis::core::namespace::NAMESPACES;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::views::namespace::Namespace;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

const DEFAULT: &str = "default";

/// Makes sure that pods which name no account have one.
pub(crate) struct ServiceAccountsController {
    namespaces: Lister,
    accounts: Lister,
}

impl ServiceAccountsController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> ServiceAccountsController {
        let namespaces = ctx.informers.informer(&NAMESPACES).lister();
        ServiceAccountsController { namespaces, accounts: ctx.informers.informer(&SERVICE_ACCOUNTS).lister() }
    }
}

impl Controller for ServiceAccountsController {
    const NAME: &'static str = "serviceaccount";
    const EVENT_SOURCE: &'static str = "serviceaccount-controller";
    const SERVICE_ACCOUNT: &'static str = "service-account-controller";

    fn watches(&self) -> Watches {
        Watches::of(&NAMESPACES).maps(&SERVICE_ACCOUNTS, |change: &Change<'_>, enqueue: &Enqueue| {
            if matches!(change, Change::Deleted(_)) {
                enqueue.now(change.object().metadata.namespace.clone());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        if !is_active(&self.namespaces, key) || self.accounts.get(key, DEFAULT).is_some() {
            return Ok(Action::Done);
        }
        let account = json!({"metadata": {"name": DEFAULT, "namespace": key}});
        ignore_lost_race(ctx.client.create(&SERVICE_ACCOUNTS, key, account).await.map(drop))
    }
}

/// Whether a namespace is there to stay.
pub(crate) fn is_active(namespaces: &Lister, name: &str) -> bool {
    let namespace = namespaces.get("", name);
    namespace.is_some_and(|it| !it.is_deleting() && it.view::<Namespace>().status.phase != "Terminating")
}

/// Somebody else created it, or the namespace went: both are fine.
pub(crate) fn ignore_lost_race(created: Result<(), Status>) -> Result<Action, Status> {
    match created {
        Err(error)
            if error.is_already_exists() || error.is_not_found() || is_namespace_terminating(&error) =>
        {
            Ok(Action::Done)
        }
        other => other.map(|()| Action::Done),
    }
}
