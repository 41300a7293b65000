//! Deletes bootstrap tokens whose time is over (`TokenCleaner`).

use super::super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::bootstrap_token::{NAME_PREFIX, NAMESPACE, TYPE, expiration};
use apis::core::secret::SECRETS;
use apis::tree::text;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// Takes old tokens away.
pub(crate) struct TokenCleaner {
    secrets: Lister,
}

impl TokenCleaner {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> TokenCleaner {
        TokenCleaner { secrets: ctx.informers.informer(&SECRETS).lister() }
    }
}

impl Controller for TokenCleaner {
    const NAME: &'static str = "token_cleaner";
    const EVENT_SOURCE: &'static str = "token-cleaner";
    const SERVICE_ACCOUNT: &'static str = "token-cleaner";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::none().maps(&SECRETS, |change: &Change<'_>, enqueue: &Enqueue| {
            let metadata = &change.object().metadata;
            if metadata.namespace == NAMESPACE && metadata.name.starts_with(NAME_PREFIX) {
                enqueue.now(metadata.name.clone());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(object) = self.secrets.get(NAMESPACE, key) else { return Ok(Action::Done) };
        let secret = object.to_value();
        let Some(end) = expiration(&secret).filter(|_| text(&secret, "type") == TYPE) else {
            return Ok(Action::Done);
        };
        if let Ok(left) = (end - ctx.clock.now()).to_std()
            && !left.is_zero()
        {
            return Ok(Action::RequeueAfter(left));
        }
        let options = DeleteOptions::default().of_uid(&object.metadata.uid);
        match ctx.client.delete(&SECRETS, NAMESPACE, key, &options).await {
            // Gone already, or another one by now.
            Err(status) if !status.is_not_found() && !status.is_conflict() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}
