//! How requests are authorized (`pkg/kubeapiserver/options.BuiltInAuthorizationOptions`).

use std::path::PathBuf;
use std::time::Duration;

use super::config_file::{Conditions, WebhookSettings};
pub use super::mode::Mode;

/// What `--authorization-*` say; without being told it is `Node,RBAC`.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorizationConfig {
    /// `--authorization-mode`, in the order in which they are asked.
    pub modes: Vec<Mode>,
    /// `--authorization-policy-file`: ABAC's policies, one JSON object a line.
    pub policy_file: Option<PathBuf>,
    /// `--authorization-webhook-config-file`: a kubeconfig that says where the webhook is.
    pub webhook_config_file: Option<PathBuf>,
    /// `--authorization-config`: all of this as a file, and more.
    pub config_file: Option<PathBuf>,
    /// `--authorization-webhook-version`: of the SubjectAccessReview that is sent.
    pub webhook_version: String,
    /// `--authorization-webhook-cache-authorized-ttl`
    pub webhook_cache_authorized_ttl: Duration,
    /// `--authorization-webhook-cache-unauthorized-ttl`
    pub webhook_cache_unauthorized_ttl: Duration,
}

impl Default for AuthorizationConfig {
    fn default() -> AuthorizationConfig {
        AuthorizationConfig {
            modes: vec![Mode::Node, Mode::Rbac],
            policy_file: None,
            webhook_config_file: None,
            config_file: None,
            webhook_version: "v1".into(),
            webhook_cache_authorized_ttl: Duration::from_secs(300),
            webhook_cache_unauthorized_ttl: Duration::from_secs(30),
        }
    }
}

impl AuthorizationConfig {
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

    /// What is wrong with it, as upstream words it.
    pub fn problems(&self) -> Vec<String> {
        let has = |mode: Mode| self.modes.contains(&mode);
        let mut problems = Vec::new();
        if self.modes.is_empty() {
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
        let stands_twice = self.modes.iter().enumerate().any(|(at, mode)| self.modes[..at].contains(mode));
        if stands_twice {
            let names: Vec<String> = self.modes.iter().map(|mode| format!("{:?}", mode.name())).collect();
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
        let config = |modes: &[Mode]| AuthorizationConfig { modes: modes.to_vec(), ..Default::default() };
        assert_eq!(AuthorizationConfig::default().problems(), [""; 0]);
        assert_eq!(config(&[]).problems(), ["at least one authorization-mode must be passed"]);
        assert_eq!(
            config(&[Mode::Abac, Mode::Rbac, Mode::Rbac]).problems(),
            [
                "authorization-mode ABAC's authorization policy file not passed",
                r#"authorization-mode ["ABAC" "RBAC" "RBAC"] has mode specified more than once"#
            ]
        );
        let with_file = AuthorizationConfig { policy_file: Some("policy".into()), ..Default::default() };
        let why = "cannot specify --authorization-policy-file without mode ABAC";
        assert_eq!(with_file.problems(), [why]);
        assert_eq!("Rbac".parse::<Mode>(), Err("authorization-mode \"Rbac\" is not a valid mode".into()));
    }
}
