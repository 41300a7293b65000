//! Tokens in Secrets of type `kubernetes.io/service-account-token`
//! (`pkg/controller/serviceaccount.TokensController`): filled in for the account that the Secret names, and
//! gone with it.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::secret::SECRETS;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::tree::{annotation, object_mut};
use client_go::component::ComponentContext;
use client_go::lister::Lister;

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// Makes tokens that live in Secrets.
pub trait TokenGenerator: Send + Sync {
    /// A token for an account, kept in a Secret.
    ///
    /// # Errors
    /// Why there is none.
    fn generate(&self, namespace: &str, account: &str, uid: &str, secret: &str) -> Result<String, String>;
}

/// Fills such Secrets.
pub(crate) struct TokensController {
    secrets: Lister,
    accounts: Lister,
    generator: Arc<dyn TokenGenerator>,
    root_ca: String,
}

impl TokensController {
    /// With its informers; `root_ca` is put beside each token, unless it is empty.
    pub(crate) fn new(ctx: &ComponentContext, generator: Arc<dyn TokenGenerator>, root_ca: &str) -> Self {
        TokensController {
            secrets: ctx.informers.informer(&SECRETS).lister(),
            accounts: ctx.informers.informer(&SERVICE_ACCOUNTS).lister(),
            generator,
            root_ca: root_ca.into(),
        }
    }

    /// The Secret with all that belongs into it; nothing when it is there already.
    fn filled(&self, secret: &Object, account: &Object) -> Result<Option<Value>, Status> {
        let before = secret.to_value();
        let mut tree = before.clone();
        let (namespace, name) = (&secret.metadata.namespace, &secret.metadata.name);
        let data = object_mut(&mut tree, "data");
        data.insert("namespace".into(), STANDARD.encode(namespace).into());
        if !self.root_ca.is_empty() {
            data.insert("ca.crt".into(), STANDARD.encode(&self.root_ca).into());
        }
        if data.get("token").and_then(Value::as_str).is_none_or(str::is_empty) {
            let (account, uid) = (&account.metadata.name, &account.metadata.uid);
            let token = self.generator.generate(namespace, account, uid, name).map_err(Status::internal)?;
            data.insert("token".into(), STANDARD.encode(token).into());
        }
        let annotations = object_mut(&mut tree, "metadata.annotations");
        annotations.insert(NAME.into(), account.metadata.name.as_str().into());
        annotations.insert(UID.into(), account.metadata.uid.as_str().into());
        Ok((tree != before).then_some(tree))
    }
}

impl Controller for TokensController {
    const NAME: &'static str = "serviceaccount-token";
    const EVENT_SOURCE: &'static str = "serviceaccount-token-controller";
    // None: it is what makes accounts able to ask, so it asks in the controller manager's own name.
    const SERVICE_ACCOUNT: &'static str = "";

    fn watches(&self) -> Watches {
        let secrets = self.secrets.clone();
        let tokens = |change: &Change<'_>, enqueue: &Enqueue| {
            // The kind's one selectable field is the type.
            if change.object().fields.iter().any(|field| field == TYPE) {
                enqueue.now(change.object().key());
            }
        };
        Watches::none().maps(&SECRETS, tokens).maps(&SERVICE_ACCOUNTS, move |change, enqueue| {
            if matches!(change, Change::Updated { .. }) {
                return;
            }
            let account = &change.object().metadata;
            for secret in secrets.list(&account.namespace, &Selector::default()) {
                let is_token = secret.fields.iter().any(|field| field == TYPE);
                if is_token && annotation(&secret.to_value(), NAME) == account.name {
                    enqueue.now(secret.key());
                }
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = key.split_once('/').unwrap_or_default();
        let Some(secret) = self.secrets.get(namespace, name).filter(|secret| !secret.is_deleting()) else {
            return Ok(Action::Done);
        };
        let tree = secret.to_value();
        let (account, uid) = (annotation(&tree, NAME), annotation(&tree, UID));
        let account = match self.accounts.get(namespace, account) {
            Some(account) => Some(account),
            // The Secret may be younger than what the informer knows of accounts.
            None => ctx.client.get(&SERVICE_ACCOUNTS, namespace, account).await.ok(),
        };
        let account = account.filter(|account| uid.is_empty() || account.metadata.uid == uid);
        let Some(account) = account else {
            let options = DeleteOptions::default();
            return match ctx.client.delete(&SECRETS, namespace, name, &options).await {
                Err(status) if !status.is_not_found() => Err(status),
                _ => Ok(Action::Done),
            };
        };
        match self.filled(&secret, &account)? {
            None => Ok(Action::Done),
            Some(tree) => {
                ctx.client.update(&SECRETS, namespace, name, tree).await?;
                Ok(Action::Done)
            }
        }
    }
}
