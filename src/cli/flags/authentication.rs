//! How users prove who they are: kube-apiserver's authentication flags
//! (`options.BuiltInAuthenticationOptions`).

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use apimachinery::duration::parse_flag;
use apiserver::authentication::oidc::OidcConfig;
use apiserver::authentication::options::{
    AuthenticationConfig, DEFAULT_ISSUER, RequestHeaderConfig, ServiceAccountConfig, TokenList,
};
use apiserver::authentication::webhook::WebhookConfig;

/// Authentication flags.
#[derive(Args)]
#[command(next_help_heading = "Authentication")]
pub struct AuthenticationFlags {
    /// Treat requests without credentials as system:anonymous.
    #[arg(long, env = "KUBARIUM_ANONYMOUS_AUTH", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true", help = "Treat requests without credentials as \
        system:anonymous [default: true]")]
    pub anonymous_auth: Option<bool>,
    /// A file with an AuthenticationConfiguration: issuers of tokens, how users are made of them, and where
    /// requests without credentials are let in. Instead of --oidc-*; read again when it changes.
    #[arg(long, env = "KUBARIUM_AUTHENTICATION_CONFIG", value_name = "FILE")]
    pub authentication_config: Option<PathBuf>,
    /// Believe client certificates of these authorities too, beside the cluster's own.
    #[arg(long, env = "KUBARIUM_CLIENT_CA_FILE", value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// Bearer tokens: CSV of token, user name, uid and groups.
    #[arg(long, env = "KUBARIUM_TOKEN_AUTH_FILE", value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// Passwords (gone from Kubernetes since 1.19): CSV of password, user name, uid and groups.
    #[arg(long, env = "KUBARIUM_BASIC_AUTH_FILE", value_name = "FILE")]
    pub basic_auth_file: Option<PathBuf>,
    /// Take Secrets of type bootstrap.kubernetes.io/token in kube-system as bearer tokens.
    #[arg(long, env = "KUBARIUM_ENABLE_BOOTSTRAP_TOKEN_AUTH", default_value_t = true, action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_bootstrap_token_auth: bool,
    /// Whom tokens for this server name; the service account issuer when not given.
    #[arg(long, env = "KUBARIUM_API_AUDIENCES", value_delimiter = ',')]
    pub api_audiences: Vec<String>,
    /// The front proxy.
    #[command(flatten)]
    pub request_header: RequestHeaderFlags,
    /// Service account tokens.
    #[command(flatten)]
    pub service_accounts: ServiceAccountFlags,
    /// OpenID Connect.
    #[command(flatten)]
    pub oidc: OidcFlags,
    /// Token reviews by a webhook.
    #[command(flatten)]
    pub webhook: TokenWebhookFlags,
}

/// The flags of OpenID Connect.
#[derive(Args)]
pub struct OidcFlags {
    /// The OpenID Connect provider whose ID tokens are believed; https.
    #[arg(long, env = "KUBARIUM_OIDC_ISSUER_URL", value_name = "URL")]
    pub oidc_issuer_url: Option<String>,
    /// The client that its tokens must be for.
    #[arg(long, env = "KUBARIUM_OIDC_CLIENT_ID", default_value = "", hide_default_value = true)]
    pub oidc_client_id: String,
    /// The claim that is the user's name.
    #[arg(long, env = "KUBARIUM_OIDC_USERNAME_CLAIM", default_value = "sub")]
    pub oidc_username_claim: String,
    /// What goes in front of the name; the issuer's URL when not given (but for email), - for nothing.
    #[arg(long, env = "KUBARIUM_OIDC_USERNAME_PREFIX", default_value = "", hide_default_value = true)]
    pub oidc_username_prefix: String,
    /// The claim that is the user's groups.
    #[arg(long, env = "KUBARIUM_OIDC_GROUPS_CLAIM", default_value = "", hide_default_value = true)]
    pub oidc_groups_claim: String,
    /// What goes in front of groups.
    #[arg(long, env = "KUBARIUM_OIDC_GROUPS_PREFIX", default_value = "", hide_default_value = true)]
    pub oidc_groups_prefix: String,
    /// A claim that a token must have, as key=value; may be given several times.
    #[arg(long, env = "KUBARIUM_OIDC_REQUIRED_CLAIM", value_parser = pair, value_name = "KEY=VALUE")]
    pub oidc_required_claim: Vec<(String, String)>,
    /// The algorithms that tokens may be signed with.
    #[arg(long, env = "KUBARIUM_OIDC_SIGNING_ALGS", value_delimiter = ',', default_value = "RS256")]
    pub oidc_signing_algs: Vec<String>,
    /// Authorities that may have signed the provider's certificate; those of the system when not given.
    #[arg(long, env = "KUBARIUM_OIDC_CA_FILE", value_name = "FILE")]
    pub oidc_ca_file: Option<PathBuf>,
    /// The provider's keys as a JWKS, instead of asking it for them (kubarium's own flag).
    #[arg(long, env = "KUBARIUM_OIDC_JWKS_FILE", value_name = "FILE")]
    pub oidc_jwks_file: Option<PathBuf>,
}

/// The flags of the token webhook.
#[derive(Args)]
pub struct TokenWebhookFlags {
    /// A webhook, as a kubeconfig, that knows bearer tokens.
    #[arg(long, env = "KUBARIUM_AUTHENTICATION_TOKEN_WEBHOOK_CONFIG_FILE", value_name = "FILE")]
    pub authentication_token_webhook_config_file: Option<PathBuf>,
    /// The version of the TokenReview that it is sent.
    #[arg(long, env = "KUBARIUM_AUTHENTICATION_TOKEN_WEBHOOK_VERSION", default_value = "v1beta1",
        value_parser = ["v1", "v1beta1"])]
    pub authentication_token_webhook_version: String,
    /// How long its answers count.
    #[arg(long, env = "KUBARIUM_AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL", default_value = "2m",
        value_parser = parse_flag, value_name = "DURATION")]
    pub authentication_token_webhook_cache_ttl: Duration,
}

/// The front proxy's flags.
#[derive(Args)]
pub struct RequestHeaderFlags {
    /// Believe what a proxy with a certificate of these authorities says in headers.
    #[arg(long, env = "KUBARIUM_REQUESTHEADER_CLIENT_CA_FILE", value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// Common names of such proxies; any when not given.
    #[arg(long, env = "KUBARIUM_REQUESTHEADER_ALLOWED_NAMES", value_delimiter = ',')]
    pub requestheader_allowed_names: Vec<String>,
    /// Where it says the user's name.
    #[arg(
        long,
        env = "KUBARIUM_REQUESTHEADER_USERNAME_HEADERS",
        value_delimiter = ',',
        default_value = "X-Remote-User"
    )]
    pub requestheader_username_headers: Vec<String>,
    /// Where it says the user's uid.
    #[arg(long, env = "KUBARIUM_REQUESTHEADER_UID_HEADERS", value_delimiter = ',')]
    pub requestheader_uid_headers: Vec<String>,
    /// Where it says the user's groups.
    #[arg(
        long,
        env = "KUBARIUM_REQUESTHEADER_GROUP_HEADERS",
        value_delimiter = ',',
        default_value = "X-Remote-Group"
    )]
    pub requestheader_group_headers: Vec<String>,
    /// What headers begin with that say something else of the user.
    #[arg(
        long,
        env = "KUBARIUM_REQUESTHEADER_EXTRA_HEADERS_PREFIX",
        value_delimiter = ',',
        default_value = "X-Remote-Extra-"
    )]
    pub requestheader_extra_headers_prefix: Vec<String>,
}

/// The flags of service account tokens.
#[derive(Args)]
pub struct ServiceAccountFlags {
    /// Who issues service account tokens: the first is said in new tokens, all are believed.
    #[arg(long, env = "KUBARIUM_SERVICE_ACCOUNT_ISSUER", value_delimiter = ',', default_value = DEFAULT_ISSUER)]
    pub service_account_issuer: Vec<String>,
    /// Keys that service account tokens may be signed with, beside the signing key; PEM, RSA or ECDSA.
    #[arg(long, env = "KUBARIUM_SERVICE_ACCOUNT_KEY_FILE", value_delimiter = ',', value_name = "FILE")]
    pub service_account_key_file: Vec<PathBuf>,
    /// The private key that signs service account tokens; one of the cluster's own when not given.
    #[arg(long, env = "KUBARIUM_SERVICE_ACCOUNT_SIGNING_KEY_FILE", value_name = "FILE")]
    pub service_account_signing_key_file: Option<PathBuf>,
    /// The longest life of a service account token, as 1h30m; 0 is no limit.
    #[arg(long, env = "KUBARIUM_SERVICE_ACCOUNT_MAX_TOKEN_EXPIRATION", value_name = "DURATION",
        value_parser = parse_flag)]
    pub service_account_max_token_expiration: Option<Duration>,
    /// Let a pod's own token outlive what its volume asks for, and note its use.
    #[arg(long, env = "KUBARIUM_SERVICE_ACCOUNT_EXTEND_TOKEN_EXPIRATION", default_value_t = true,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub service_account_extend_token_expiration: bool,
    /// Where the discovery document says that the keys are.
    #[arg(long, env = "KUBARIUM_SERVICE_ACCOUNT_JWKS_URI", value_name = "URL")]
    pub service_account_jwks_uri: Option<String>,
}

impl AuthenticationFlags {
    /// What they say.
    pub fn config(&self) -> AuthenticationConfig {
        AuthenticationConfig {
            anonymous: self.anonymous_auth.unwrap_or(true),
            anonymous_is_given: self.anonymous_auth.is_some(),
            static_tokens: TokenList::default(),
            token_auth_file: self.token_auth_file.clone(),
            basic_auth_file: self.basic_auth_file.clone(),
            client_ca_file: self.client_ca_file.clone(),
            request_header: self.request_header.config(),
            bootstrap_tokens: self.enable_bootstrap_token_auth,
            service_accounts: self.service_accounts.config(),
            oidc: self.oidc.config(),
            config_file: self.authentication_config.clone(),
            webhook: self.webhook.config(),
            api_audiences: self.api_audiences.clone(),
        }
    }
}

impl OidcFlags {
    fn config(&self) -> Option<OidcConfig> {
        Some(OidcConfig {
            issuer_url: self.oidc_issuer_url.clone()?,
            client_id: self.oidc_client_id.clone(),
            username_claim: self.oidc_username_claim.clone(),
            username_prefix: self.oidc_username_prefix.clone(),
            groups_claim: self.oidc_groups_claim.clone(),
            groups_prefix: self.oidc_groups_prefix.clone(),
            required_claims: self.oidc_required_claim.iter().cloned().collect(),
            signing_algorithms: self.oidc_signing_algs.clone(),
            ca_file: self.oidc_ca_file.clone(),
            jwks_file: self.oidc_jwks_file.clone(),
        })
    }
}

impl TokenWebhookFlags {
    fn config(&self) -> Option<WebhookConfig> {
        Some(WebhookConfig {
            config_file: self.authentication_token_webhook_config_file.clone()?,
            version: self.authentication_token_webhook_version.clone(),
            cache_time_to_live: self.authentication_token_webhook_cache_ttl,
        })
    }
}

impl RequestHeaderFlags {
    fn config(&self) -> Option<RequestHeaderConfig> {
        Some(RequestHeaderConfig {
            client_ca_file: self.requestheader_client_ca_file.clone()?,
            allowed_names: self.requestheader_allowed_names.clone(),
            username_headers: self.requestheader_username_headers.clone(),
            uid_headers: self.requestheader_uid_headers.clone(),
            group_headers: self.requestheader_group_headers.clone(),
            extra_header_prefixes: self.requestheader_extra_headers_prefix.clone(),
        })
    }
}

impl ServiceAccountFlags {
    fn config(&self) -> ServiceAccountConfig {
        ServiceAccountConfig {
            issuers: self.service_account_issuer.clone(),
            key_files: self.service_account_key_file.clone(),
            signing_key_file: self.service_account_signing_key_file.clone(),
            max_token_expiration: self.service_account_max_token_expiration.filter(|limit| !limit.is_zero()),
            extend_token_expiration: self.service_account_extend_token_expiration,
            jwks_uri: self.service_account_jwks_uri.clone(),
        }
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not key=value"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        flags: AuthenticationFlags,
    }

    #[test]
    fn without_flags_it_is_the_default() {
        let config = Only::parse_from(["up"]).flags.config();
        assert_eq!(format!("{config:?}"), format!("{:?}", AuthenticationConfig::default()));
    }

    #[test]
    fn flags_say_what_upstreams_say() {
        let arguments = [
            "up",
            "--anonymous-auth=false",
            "--requestheader-client-ca-file=ca.crt",
            "--requestheader-allowed-names=a,b",
            "--service-account-max-token-expiration=1h30m",
            "--api-audiences=x,y",
        ];
        let config = Only::parse_from(arguments).flags.config();
        let proxy = config.request_header.unwrap();
        assert_eq!(proxy.allowed_names, ["a", "b"]);
        assert_eq!(proxy.username_headers, ["X-Remote-User"]);
        assert!(!config.anonymous);
        assert_eq!(config.api_audiences, ["x", "y"]);
        assert_eq!(config.service_accounts.max_token_expiration, Some(Duration::from_secs(5400)));
    }
}
