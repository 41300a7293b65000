//! The objects that tokens live and die with (`serviceaccount.ServiceAccountTokenGetter`).

use std::sync::Arc;

use chrono::TimeDelta;

use super::claims::ClaimedObject;
use crate::authentication::errors::BadCredential;
use crate::registry::Registry;
use apimachinery::object::Object;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::core::secret::{LEGACY_TOKEN_LAST_USED, SECRETS};
use apis::core::service_account::SERVICE_ACCOUNTS;
use clock::Clock;

/// How far clocks may differ (go-jose's `DefaultLeeway`).
pub(super) const LEEWAY_SECONDS: i64 = 60;
const INVALIDATED: &str = "service account token has been invalidated";

/// Looks up what a token is bound to.
#[derive(Clone)]
pub(super) struct Bound {
    registry: Registry,
    clock: Clock,
}

impl Bound {
    pub(super) fn new(registry: &Registry, clock: &Clock) -> Bound {
        Bound { registry: registry.clone(), clock: clock.clone() }
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.clock.now().timestamp()
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.registry.get(&SECRETS, namespace, name, None).await.ok()
    }

    /// Notes on a token's Secret the day on which it is used (`patchSecretWithLastUsedDate`). What cannot be
    /// noted is no reason to refuse the token.
    pub(super) async fn note_use(&self, secret: &Object) {
        let now = self.clock.now().date_naive();
        let noted = secret.metadata.labels.get(LEGACY_TOKEN_LAST_USED);
        let days = [Some(now), now.succ_opt()].map(|day| day.map(|day| day.to_string()));
        if days.contains(&noted.cloned()) {
            return;
        }
        let day = now.to_string();
        if let Err(status) = self.registry.label(&SECRETS, secret, LEGACY_TOKEN_LAST_USED, &day).await {
            tracing::debug!(status.message, "the use of a token is not noted");
        }
    }

    pub(super) async fn account(&self, namespace: &str, name: &str) -> Result<Arc<Object>, BadCredential> {
        let account = self.registry.get(&SERVICE_ACCOUNTS, namespace, name, None).await;
        account.map_err(|status| status.message.into())
    }

    /// The account is the one that the token was made for.
    pub(super) async fn check_account(
        &self,
        namespace: &str,
        claim: &ClaimedObject,
    ) -> Result<(), BadCredential> {
        let account = self.account(namespace, &claim.name).await?;
        if self.is_gone(&account) {
            return Err(format!("service account {namespace}/{} has been deleted", claim.name).into());
        }
        match &account.metadata.uid {
            uid if *uid == claim.uid => Ok(()),
            uid => Err(format!("service account UID ({uid}) does not match claim ({})", claim.uid).into()),
        }
    }

    pub(super) async fn check_secret(
        &self,
        namespace: &str,
        claim: &ClaimedObject,
    ) -> Result<(), BadCredential> {
        let secret = self.secret(namespace, &claim.name).await;
        let uid = self.living_uid(secret)?;
        let (shown, claimed) = ("service account secret ref claim", &claim.uid);
        if uid == *claimed {
            Ok(())
        } else {
            Err(format!("secret UID ({uid}) does not match {shown} ({claimed})").into())
        }
    }

    pub(super) async fn check_pod(
        &self,
        namespace: &str,
        claim: &ClaimedObject,
    ) -> Result<(), BadCredential> {
        let uid = self.living_uid(self.registry.get(&PODS, namespace, &claim.name, None).await.ok())?;
        let (shown, claimed) = ("service account pod ref claim", &claim.uid);
        if uid == *claimed {
            Ok(())
        } else {
            Err(format!("pod UID ({uid}) does not match {shown} ({claimed})").into())
        }
    }

    pub(super) async fn check_node(&self, claim: &ClaimedObject) -> Result<(), BadCredential> {
        let uid = self.living_uid(self.registry.get(&NODES, "", &claim.name, None).await.ok())?;
        let (shown, claimed) = ("service account node ref claim", &claim.uid);
        if uid == *claimed {
            Ok(())
        } else {
            Err(format!("node UID ({uid}) does not match {shown} ({claimed})").into())
        }
    }

    fn living_uid(&self, object: Option<Arc<Object>>) -> Result<String, BadCredential> {
        let living = object.filter(|object| !self.is_gone(object)).ok_or(INVALIDATED)?;
        Ok(living.metadata.uid.clone())
    }

    /// Whether its end is over for so long that clocks which differ are no excuse.
    fn is_gone(&self, object: &Object) -> bool {
        let leeway = TimeDelta::seconds(LEEWAY_SECONDS);
        object.metadata.deletion_timestamp.is_some_and(|end| end < self.clock.now() - leeway)
    }
}
