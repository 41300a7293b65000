//! Bearer tokens that somebody outside knows (`--authentication-token-webhook-*`,
//! `plugin/pkg/authenticator/token/webhook`): a TokenReview is sent, its status is the answer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use clap::Args;

use super::errors::BadCredential;
use super::remarks::Remarks;
use super::{Response, TokenAuthenticator, token_cache};
use crate::webhook::{Answers, CallError, FIRST_PAUSE, WebhookClient};
use apimachinery::duration::parse_flag;
use apimachinery::user::UserInfo;
use apis::tree::{at, flag, members, text, texts};
use clock::Clock;

/// How long an answer may take (upstream's `defaultRequestTimeout`).
const TIMEOUT: Duration = Duration::from_secs(30);
/// Answers that are remembered.
const MAX_REMEMBERED: usize = 4096;

/// The flags `--authentication-token-webhook-*`.
#[derive(Args, Clone, Debug)]
pub struct TokenWebhookOptions {
    /// A webhook, as a kubeconfig, that knows bearer tokens.
    #[arg(id = "authentication-token-webhook-config-file", long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// The version of the TokenReview that it is sent.
    #[arg(id = "authentication-token-webhook-version", long, default_value = "v1beta1",
        value_parser = ["v1", "v1beta1"])]
    pub version: String,
    /// How long its answers count.
    #[arg(id = "authentication-token-webhook-cache-ttl", long, default_value = "2m",
        value_parser = parse_flag, value_name = "DURATION")]
    pub cache_time_to_live: Duration,
}

/// Asks a webhook whose a token is.
pub struct TokenWebhook {
    client: WebhookClient,
    version: String,
    time_to_live: Duration,
    audiences: Vec<String>,
    remembered: Answers<[u8; 32], TokenReviewOutcome>,
}

type TokenReviewOutcome = Result<Option<Response>, BadCredential>;

impl TokenWebhook {
    /// Asks through `client`; a token whose answer names no audience is for `audiences`.
    pub fn new(
        client: WebhookClient,
        config: &TokenWebhookOptions,
        audiences: &[String],
        clock: &Clock,
    ) -> TokenWebhook {
        TokenWebhook {
            client,
            version: config.version.clone(),
            time_to_live: config.cache_time_to_live,
            audiences: audiences.to_vec(),
            remembered: Answers::new(clock, MAX_REMEMBERED),
        }
    }

    async fn known(&self, token: &str, asked: Option<&[String]>) -> TokenReviewOutcome {
        let key = token_cache::key(token, asked);
        if let Some(outcome) = self.remembered.get(&key) {
            return outcome;
        }
        let review = self.ask(token, asked).await.map_err(|error| error.message)?;
        let outcome = self.read(&review, asked);
        self.remembered.put(key, outcome.clone(), self.time_to_live);
        outcome
    }

    /// Asks again when the webhook says that it could not answer.
    async fn ask(&self, token: &str, asked: Option<&[String]>) -> Result<Value, CallError> {
        let mut spec = json!({"token": token});
        if let Some(asked) = asked {
            spec["audiences"] = json!(asked);
        }
        let api_version = format!("authentication.k8s.io/{}", self.version);
        let review = json!({
            "apiVersion": api_version,
            "kind": "TokenReview",
            "metadata": {"creationTimestamp": null},
            "spec": spec,
            "status": {"user": {}},
        });
        self.client.call_until_it_passes(&review, TIMEOUT, FIRST_PAUSE).await
    }

    fn read(&self, review: &Value, asked: Option<&[String]>) -> TokenReviewOutcome {
        let named = texts(review, "status.audiences").into_iter().map(str::to_owned).collect::<Vec<_>>();
        let named = if named.is_empty() { self.audiences.clone() } else { named };
        let audiences = match asked {
            None => named,
            Some(asked) => named.into_iter().filter(|audience| asked.contains(audience)).collect(),
        };
        if asked.is_some() && audiences.is_empty() {
            return Ok(None);
        }
        if !flag(review, "status.authenticated") {
            return match text(review, "status.error") {
                "" => Ok(None),
                error => Err(error.into()),
            };
        }
        Ok(Some(Response { user: Arc::new(user_of(at(review, "status.user"))), audiences }))
    }
}

impl TokenAuthenticator for TokenWebhook {
    fn name(&self) -> &'static str {
        "Webhook"
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

fn user_of(user: &Value) -> UserInfo {
    let list = |(key, values): (&String, &Value)| {
        let values = values.as_array().into_iter().flatten().filter_map(Value::as_str);
        (key.clone(), values.map(str::to_owned).collect::<Vec<_>>())
    };
    let extra: BTreeMap<String, Vec<String>> = members(user, "extra").map(list).collect();
    let known = UserInfo::authenticated(text(user, "username"), &texts(user, "groups"));
    UserInfo { uid: text(user, "uid").into(), extra, ..known }
}
