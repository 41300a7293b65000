//! Flags of authorization.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;
use crate::cli::Failure;
use apimachinery::duration::parse_flag;
use apiserver::authorization::config::{AuthorizationConfig, Mode};

/// Who may do what.
#[derive(Args)]
#[command(next_help_heading = "Authorization")]
pub struct AuthorizationFlags {
    /// Who is asked whether a request is allowed, in this order: AlwaysAllow, AlwaysDeny, ABAC, Webhook,
    /// RBAC, Node. The first who allows it decides. [default: Node,RBAC]
    #[arg(long, value_delimiter = ',', value_name = "MODE", env = "KUBARIUM_AUTHORIZATION_MODE",
        value_parser = values::authorization_mode)]
    pub authorization_mode: Option<Vec<Mode>>,
    /// A file with an AuthorizationConfiguration: the list of authorizers, with several webhooks. Instead of
    /// the flags beside it.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_AUTHORIZATION_CONFIG")]
    pub authorization_config: Option<PathBuf>,
    /// A file of policies for ABAC, one JSON object a line.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_AUTHORIZATION_POLICY_FILE")]
    pub authorization_policy_file: Option<PathBuf>,
    /// A kubeconfig that says where the webhook is.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_AUTHORIZATION_WEBHOOK_CONFIG_FILE")]
    pub authorization_webhook_config_file: Option<PathBuf>,
    /// The version of the SubjectAccessReview that is sent to the webhook.
    #[arg(
        long,
        default_value = "v1beta1",
        value_name = "VERSION",
        env = "KUBARIUM_AUTHORIZATION_WEBHOOK_VERSION"
    )]
    pub authorization_webhook_version: String,
    /// How long what the webhook allows is remembered.
    #[arg(
        long,
        default_value = "5m0s",
        value_parser = parse_flag,
        value_name = "DURATION",
        env = "KUBARIUM_AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL"
    )]
    pub authorization_webhook_cache_authorized_ttl: Duration,
    /// How long what the webhook refuses is remembered.
    #[arg(
        long,
        default_value = "30s",
        value_parser = parse_flag,
        value_name = "DURATION",
        env = "KUBARIUM_AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL"
    )]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,
}

impl AuthorizationFlags {
    /// What the flags say.
    ///
    /// # Errors
    /// What is wrong with them, in upstream's words.
    pub fn authorization(&self) -> Result<AuthorizationConfig, Failure> {
        let default = AuthorizationConfig::default();
        let others = self.authorization_mode.is_some() || self.authorization_webhook_config_file.is_some();
        if self.authorization_config.is_some() && others {
            return Err(Failure(
                "authorization-config can not be specified when --authorization-mode or \
                 --authorization-webhook-* flags are defined"
                    .into(),
            ));
        }
        let config = AuthorizationConfig {
            modes: self.authorization_mode.clone().unwrap_or(default.modes),
            policy_file: self.authorization_policy_file.clone(),
            webhook_config_file: self.authorization_webhook_config_file.clone(),
            config_file: self.authorization_config.clone(),
            webhook_version: self.authorization_webhook_version.clone(),
            webhook_cache_authorized_ttl: self.authorization_webhook_cache_authorized_ttl,
            webhook_cache_unauthorized_ttl: self.authorization_webhook_cache_unauthorized_ttl,
        };
        match &*config.problems() {
            [] => Ok(config),
            problems => Err(Failure(problems.join("; "))),
        }
    }
}
