//! How requests are authorized (`pkg/kubeapiserver/options.BuiltInAuthorizationOptions`).

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::config_file::{Conditions, WebhookSettings};
pub use super::mode::Mode;
use apimachinery::duration::parse_flag;
use component_base::flags::{choices, defaults};

/// `--authorization-*` (`BuiltInAuthorizationOptions`).
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Authorization")]
pub struct AuthorizationOptions {
    /// Who is asked whether a request is allowed, in this order: AlwaysAllow, AlwaysDeny, ABAC, Webhook,
    /// RBAC, Node. The first who allows it decides. [default: Node,RBAC]
    #[arg(id = "authorization-mode", long, value_delimiter = ',', value_name = "MODE", value_parser = mode)]
    pub modes: Option<Vec<Mode>>,
    /// A file with an AuthorizationConfiguration: the list of authorizers, with several webhooks. Instead of
    /// the flags beside it.
    #[arg(id = "authorization-config", long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// A file of policies for ABAC, one JSON object a line.
    #[arg(id = "authorization-policy-file", long, value_name = "FILE")]
    pub policy_file: Option<PathBuf>,
    /// A kubeconfig that says where the webhook is.
    #[arg(id = "authorization-webhook-config-file", long, value_name = "FILE")]
    pub webhook_config_file: Option<PathBuf>,
    /// The version of the SubjectAccessReview that is sent to the webhook.
    #[arg(id = "authorization-webhook-version", long, default_value = "v1beta1", value_name = "VERSION")]
    pub webhook_version: String,
    /// How long what the webhook allows is remembered.
    #[arg(
        id = "authorization-webhook-cache-authorized-ttl",
        long,
        default_value = "5m0s",
        value_parser = parse_flag,
        value_name = "DURATION"
    )]
    pub webhook_cache_authorized_ttl: Duration,
    /// How long what the webhook refuses is remembered.
    #[arg(
        id = "authorization-webhook-cache-unauthorized-ttl",
        long,
        default_value = "30s",
        value_parser = parse_flag,
        value_name = "DURATION"
    )]
    pub webhook_cache_unauthorized_ttl: Duration,
}

impl Default for AuthorizationOptions {
    fn default() -> AuthorizationOptions {
        defaults()
    }
}

/// An entry of `--authorization-mode`, in upstream's words with what it may be.
fn mode(text: &str) -> Result<Mode, String> {
    Mode::from_str(text).map_err(|why| {
        let names = Mode::ALL.map(Mode::name);
        format!("{why}; {}", choices("the modes are", text, &names))
    })
}

impl AuthorizationOptions {
    /// The webhook that the flags name.
    pub(super) fn webhook(&self) -> WebhookSettings {
        WebhookSettings {
            kube_config_file: self.webhook_config_file.clone().unwrap_or_default(),
            version: self.webhook_version.clone(),
            authorized_ttl: self.webhook_cache_authorized_ttl,
            unauthorized_ttl: self.webhook_cache_unauthorized_ttl,
            timeout: Duration::from_secs(30),
            fails_closed: false,
            conditions: Conditions::default(),
        }
    }

    /// Who is asked, in this order.
    pub fn modes(&self) -> &[Mode] {
        self.modes.as_deref().unwrap_or(&[Mode::Node, Mode::Rbac])
    }

    /// What is wrong with it, as upstream words it.
    pub fn problems(&self) -> Vec<String> {
        let modes = self.modes();
        let has = |mode: Mode| modes.contains(&mode);
        let mut problems = Vec::new();
        if self.config_file.is_some() && (self.modes.is_some() || self.webhook_config_file.is_some()) {
            let why = "authorization-config can not be specified when --authorization-mode or \
                       --authorization-webhook-* flags are defined";
            return vec![why.into()];
        }
        if modes.is_empty() {
            problems.push("at least one authorization-mode must be passed".into());
        }
        let mut problem = |is_one: bool, text: &str| {
            if is_one {
                problems.push(text.to_owned());
            }
        };
        let (policy, webhook) = (self.policy_file.is_some(), self.webhook_config_file.is_some());
        problem(has(Mode::Abac) && !policy, "authorization-mode ABAC's authorization policy file not passed");
        problem(
            has(Mode::Webhook) && !webhook,
            "authorization-mode Webhook's authorization config file not passed",
        );
        problem(policy && !has(Mode::Abac), "cannot specify --authorization-policy-file without mode ABAC");
        problem(
            webhook && !has(Mode::Webhook),
            "cannot specify --authorization-webhook-config-file without mode Webhook",
        );
        let stands_twice = modes.iter().enumerate().any(|(at, mode)| modes[..at].contains(mode));
        if stands_twice {
            let names: Vec<String> = modes.iter().map(|mode| format!("{:?}", mode.name())).collect();
            let names = names.join(" ");
            problems.push(format!("authorization-mode [{names}] has mode specified more than once"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_in_upstreams_words() {
        let config =
            |modes: &[Mode]| AuthorizationOptions { modes: Some(modes.to_vec()), ..Default::default() };
        assert_eq!(AuthorizationOptions::default().problems(), [""; 0]);
        assert_eq!(config(&[]).problems(), ["at least one authorization-mode must be passed"]);
        assert_eq!(
            config(&[Mode::Abac, Mode::Rbac, Mode::Rbac]).problems(),
            [
                "authorization-mode ABAC's authorization policy file not passed",
                r#"authorization-mode ["ABAC" "RBAC" "RBAC"] has mode specified more than once"#
            ]
        );
        let with_file = AuthorizationOptions { policy_file: Some("policy".into()), ..Default::default() };
        let why = "cannot specify --authorization-policy-file without mode ABAC";
        assert_eq!(with_file.problems(), [why]);
        assert_eq!("Rbac".parse::<Mode>(), Err("authorization-mode \"Rbac\" is not a valid mode".into()));
    }
}
