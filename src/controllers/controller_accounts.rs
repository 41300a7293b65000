//! The ServiceAccounts of kube-system that controllers ask under
//! (`controller.SAControllerClientBuilder`, `--use-service-account-credentials`).

use std::time::Duration;

use serde_json::json;

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::service_account::ignore_lost_race;
use apimachinery::status::Status;
use apimachinery::user::CONTROLLER_ACCOUNTS;
use apis::core::service_account::SERVICE_ACCOUNTS;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

const NAMESPACE: &str = "kube-system";
/// Nobody needs them: the controllers of this process say who they are. So they wait until the cluster is up.
const DELAY: Duration = Duration::from_millis(500);

/// Makes them once.
pub(crate) struct ControllerAccounts {
    accounts: Lister,
}

impl ControllerAccounts {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> ControllerAccounts {
        ControllerAccounts { accounts: ctx.informers.informer(&SERVICE_ACCOUNTS).lister() }
    }
}

impl Controller for ControllerAccounts {
    const NAME: &'static str = "controller-accounts";
    const EVENT_SOURCE: &'static str = "controller-accounts";
    const SERVICE_ACCOUNT: &'static str = "";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::none().at_start("")
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        if key.is_empty() {
            ctx.enqueue.after(NAMESPACE.into(), DELAY);
            return Ok(Action::Done);
        }
        for name in CONTROLLER_ACCOUNTS.iter().filter(|name| self.accounts.get(NAMESPACE, name).is_none()) {
            let account = json!({"metadata": {"name": name, "namespace": NAMESPACE}});
            ignore_lost_race(ctx.client.create(&SERVICE_ACCOUNTS, NAMESPACE, account).await.map(drop))?;
        }
        Ok(Action::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_has_its_bindings_among_the_bootstrap_roles() {
        let rules = include_str!("../../manifests/bootstrap/rbac.txt");
        for name in CONTROLLER_ACCOUNTS {
            let is_bound = rules.contains(&format!("Controller {name}\n"))
                || rules.contains(&format!("ServiceAccount:kube-system/{name}\n"));
            assert!(is_bound, "{name}");
        }
    }
}
