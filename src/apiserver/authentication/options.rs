//! The flags of authentication (`options.BuiltInAuthenticationOptions`).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::oidc::OidcConfig;
use super::webhook::WebhookConfig;
use apimachinery::user::UserInfo;

/// What kubeadm gives `--service-account-issuer`.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// How users prove who they are. The default suits a cluster in a test: components, certificates of the
/// cluster's own authority, service account tokens, and anonymous.
#[derive(Clone, Debug)]
pub struct AuthenticationConfig {
    /// Whether a request without credentials is `system:anonymous` (`--anonymous-auth`).
    pub anonymous: bool,
    /// Whether somebody said so: then the file of `config_file` may not say it, too.
    pub anonymous_is_given: bool,
    /// Bearer tokens and whose they are, beside those of a file; the users carry `system:authenticated`.
    pub static_tokens: TokenList,
    /// `--token-auth-file`
    pub token_auth_file: Option<PathBuf>,
    /// `--basic-auth-file`
    pub basic_auth_file: Option<PathBuf>,
    /// Authorities beside the cluster's own (`--client-ca-file`).
    pub client_ca_file: Option<PathBuf>,
    /// A front proxy (`--requestheader-*`).
    pub request_header: Option<RequestHeaderConfig>,
    /// `--enable-bootstrap-token-auth`
    pub bootstrap_tokens: bool,
    /// `--service-account-*`
    pub service_accounts: ServiceAccountConfig,
    /// `--oidc-*`
    pub oidc: Option<OidcConfig>,
    /// Issuers of tokens, and who is anonymous, as a file (`--authentication-config`).
    pub config_file: Option<PathBuf>,
    /// `--authentication-token-webhook-*`
    pub webhook: Option<WebhookConfig>,
    /// Whom tokens for this server name (`--api-audiences`); the first issuer when there are none.
    pub api_audiences: Vec<String>,
}

/// Tokens and whose they are. Printed it tells how many, and none of them.
#[derive(Clone, Default)]
pub struct TokenList(pub Vec<(String, Arc<UserInfo>)>);

impl fmt::Debug for TokenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

/// The flags `--requestheader-*`.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaderConfig {
    /// Who signs the proxy's certificate (`--requestheader-client-ca-file`).
    pub client_ca_file: PathBuf,
    /// Common names of proxies; all that are signed when there are none (`--requestheader-allowed-names`).
    pub allowed_names: Vec<String>,
    /// `--requestheader-username-headers`
    pub username_headers: Vec<String>,
    /// `--requestheader-uid-headers`
    pub uid_headers: Vec<String>,
    /// `--requestheader-group-headers`
    pub group_headers: Vec<String>,
    /// `--requestheader-extra-headers-prefix`
    pub extra_header_prefixes: Vec<String>,
}

/// The flags `--service-account-*`.
#[derive(Clone, Debug)]
pub struct ServiceAccountConfig {
    /// The first one is said in new tokens, all are believed (`--service-account-issuer`).
    pub issuers: Vec<String>,
    /// Whose signatures are believed beside the own one's (`--service-account-key-file`).
    pub key_files: Vec<PathBuf>,
    /// What signs; the cluster's own key when there is none (`--service-account-signing-key-file`).
    pub signing_key_file: Option<PathBuf>,
    /// The longest life of a token (`--service-account-max-token-expiration`).
    pub max_token_expiration: Option<Duration>,
    /// Whether a pod's own token outlives what its volume asks for
    /// (`--service-account-extend-token-expiration`).
    pub extend_token_expiration: bool,
    /// Where the discovery document says that the keys are (`--service-account-jwks-uri`).
    pub jwks_uri: Option<String>,
}

impl Default for AuthenticationConfig {
    fn default() -> AuthenticationConfig {
        AuthenticationConfig {
            anonymous: true,
            anonymous_is_given: false,
            static_tokens: TokenList::default(),
            token_auth_file: None,
            basic_auth_file: None,
            client_ca_file: None,
            request_header: None,
            bootstrap_tokens: true,
            service_accounts: ServiceAccountConfig::default(),
            oidc: None,
            config_file: None,
            webhook: None,
            api_audiences: vec![],
        }
    }
}

impl Default for ServiceAccountConfig {
    fn default() -> ServiceAccountConfig {
        ServiceAccountConfig {
            issuers: vec![DEFAULT_ISSUER.into()],
            key_files: vec![],
            signing_key_file: None,
            max_token_expiration: None,
            extend_token_expiration: true,
            jwks_uri: None,
        }
    }
}

impl RequestHeaderConfig {
    /// Whether a header, in lower case, is one of these.
    pub(super) fn names(&self, header: &str) -> bool {
        let lists = [&self.username_headers, &self.uid_headers, &self.group_headers];
        let prefixes = &self.extra_header_prefixes;
        lists.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(header))
            || prefixes.iter().any(|prefix| header.starts_with(&prefix.to_ascii_lowercase()))
    }
}
