//! Tokens with which nodes join (`--enable-bootstrap-token-auth`,
//! `plugin/pkg/auth/authenticator/token/bootstrap`): `ID.SECRET`, kept in Secrets of kube-system.

use std::sync::{Arc, LazyLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use regex::Regex;
use serde_json::Value;

use super::errors::BadCredential;
use super::remarks::Remarks;
use super::{Response, TokenAuthenticator, audience_agnostic, secrets};
use crate::registry::Registry;
use apimachinery::user::UserInfo;
use apis::core::bootstrap_token::{self, NAME_PREFIX, NAMESPACE, TYPE};
use apis::core::secret::SECRETS;
use clock::Clock;

const GROUP: &str = "system:bootstrappers";

static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^([a-z0-9]{6})\\.([a-z0-9]{16})$").expect("it is right"));
static EXTRA_GROUP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$").expect("it is right"));

/// Knows the tokens of kube-system.
pub struct BootstrapTokens {
    registry: Registry,
    clock: Clock,
    audiences: Vec<String>,
}

impl BootstrapTokens {
    /// Reads Secrets through `registry`.
    pub fn new(registry: &Registry, clock: &Clock, audiences: &[String]) -> BootstrapTokens {
        BootstrapTokens { registry: registry.clone(), clock: clock.clone(), audiences: audiences.to_vec() }
    }

    /// Why a token is not one is for the log: upstream says nothing of it to anybody.
    async fn known(&self, token: &str, asked: Option<&[String]>) -> Result<Option<Response>, BadCredential> {
        let Some(parts) = TOKEN.captures(token) else { return Ok(None) };
        let Some(audiences) = audience_agnostic(&self.audiences, asked) else { return Ok(None) };
        let (id, secret) = (&parts[1], &parts[2]);
        let name = format!("{NAME_PREFIX}{id}");
        let Ok(object) = self.registry.get(&SECRETS, NAMESPACE, &name, None).await else { return Ok(None) };
        if object.is_deleting() {
            return Ok(None);
        }
        match self.user(&object.to_value(), id, secret) {
            Ok(user) => Ok(Some(Response { user: Arc::new(user), audiences })),
            Err(why) => {
                tracing::debug!(secret = name, why, "a bootstrap token is not accepted");
                Ok(None)
            }
        }
    }

    fn user(&self, secret: &Value, id: &str, given: &str) -> Result<UserInfo, &'static str> {
        let data = |key: &str| bootstrap_token::data(secret, key);
        if secret["type"] != TYPE || secret["data"].as_object().is_none_or(serde_json::Map::is_empty) {
            return Err("has invalid type");
        }
        if !secrets::same(&data("token-secret"), given) {
            return Err("has invalid value for key token-secret");
        }
        if data("token-id") != id {
            return Err("has invalid value for key token-id");
        }
        if bootstrap_token::is_expired(secret, self.clock.now()) {
            return Err("has expired");
        }
        if data("usage-bootstrap-authentication") != "true" {
            return Err("is not marked usage-bootstrap-authentication=true");
        }
        let extra = data("auth-extra-groups");
        let extra: Vec<&str> = extra.split(',').filter(|group| !group.is_empty()).collect();
        if !extra.iter().all(|group| EXTRA_GROUP.is_match(group)) {
            return Err("has invalid value for key auth-extra-groups");
        }
        let groups: Vec<&str> = [GROUP].into_iter().chain(extra).collect();
        Ok(UserInfo::authenticated(&format!("system:bootstrap:{id}"), &groups))
    }
}

impl TokenAuthenticator for BootstrapTokens {
    fn name(&self) -> &'static str {
        "BootstrapToken"
    }

    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
        _remarks: &'a Remarks,
    ) -> BoxFuture<'a, Result<Option<Response>, BadCredential>> {
        self.known(token, audiences).boxed()
    }
}
