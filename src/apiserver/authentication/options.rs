//! The flags of authentication (`options.BuiltInAuthenticationOptions`).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::oidc::OidcOptions;
use super::webhook::TokenWebhookOptions;
use apimachinery::duration::parse_flag;
use apimachinery::user::UserInfo;
use component_base::flags::defaults;

/// What kubeadm gives `--service-account-issuer`.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// How users prove who they are. The default suits a cluster in a test: components, certificates of the
/// cluster's own authority, service account tokens, and anonymous.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Authentication")]
pub struct AuthenticationOptions {
    /// Treat requests without credentials as system:anonymous.
    #[arg(id = "anonymous-auth", long, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true", help = "Treat requests without credentials as \
        system:anonymous [default: true]")]
    pub anonymous: Option<bool>,
    /// A file with an AuthenticationConfiguration: issuers of tokens, how users are made of them, and where
    /// requests without credentials are let in. Instead of --oidc-*; read again when it changes.
    #[arg(id = "authentication-config", long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Believe client certificates of these authorities too, beside the cluster's own.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// Bearer tokens: CSV of token, user name, uid and groups.
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// Passwords (gone from Kubernetes since 1.19): CSV of password, user name, uid and groups.
    #[arg(long, value_name = "FILE")]
    pub basic_auth_file: Option<PathBuf>,
    /// Take Secrets of type bootstrap.kubernetes.io/token in kube-system as bearer tokens.
    #[arg(id = "enable-bootstrap-token-auth", long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub bootstrap_tokens: bool,
    /// Whom tokens for this server name; the service account issuer when not given.
    #[arg(long, value_delimiter = ',')]
    pub api_audiences: Vec<String>,
    /// A front proxy.
    #[command(flatten)]
    pub request_header: RequestHeaderOptions,
    /// Service account tokens.
    #[command(flatten)]
    pub service_accounts: ServiceAccountOptions,
    /// OpenID Connect.
    #[command(flatten)]
    pub oidc: OidcOptions,
    /// Token reviews by a webhook.
    #[command(flatten)]
    pub webhook: TokenWebhookOptions,
    /// Bearer tokens and whose they are, beside those of a file; the users carry `system:authenticated`.
    #[arg(skip)]
    pub static_tokens: TokenList,
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
#[derive(Args, Clone, Debug)]
pub struct RequestHeaderOptions {
    /// Believe what a proxy with a certificate of these authorities says in headers.
    #[arg(id = "requestheader-client-ca-file", long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// Common names of such proxies; any when not given.
    #[arg(id = "requestheader-allowed-names", long, value_delimiter = ',')]
    pub allowed_names: Vec<String>,
    /// Where it says the user's name.
    #[arg(
        id = "requestheader-username-headers",
        long,
        value_delimiter = ',',
        default_value = "X-Remote-User"
    )]
    pub username_headers: Vec<String>,
    /// Where it says the user's uid.
    #[arg(id = "requestheader-uid-headers", long, value_delimiter = ',')]
    pub uid_headers: Vec<String>,
    /// Where it says the user's groups.
    #[arg(id = "requestheader-group-headers", long, value_delimiter = ',', default_value = "X-Remote-Group")]
    pub group_headers: Vec<String>,
    /// What headers begin with that say something else of the user.
    #[arg(
        id = "requestheader-extra-headers-prefix",
        long,
        value_delimiter = ',',
        default_value = "X-Remote-Extra-"
    )]
    pub extra_header_prefixes: Vec<String>,
}

/// The flags `--service-account-*`.
#[derive(Args, Clone, Debug)]
pub struct ServiceAccountOptions {
    /// Who issues service account tokens: the first is said in new tokens, all are believed.
    #[arg(id = "service-account-issuer", long, value_delimiter = ',', default_value = DEFAULT_ISSUER)]
    pub issuers: Vec<String>,
    /// Keys that service account tokens may be signed with, beside the signing key; PEM, RSA or ECDSA.
    #[arg(id = "service-account-key-file", long, value_delimiter = ',', value_name = "FILE")]
    pub key_files: Vec<PathBuf>,
    /// The private key that signs service account tokens; one of the cluster's own when not given.
    #[arg(id = "service-account-signing-key-file", long, value_name = "FILE")]
    pub signing_key_file: Option<PathBuf>,
    /// The longest life of a service account token, as 1h30m; 0 is no limit.
    #[arg(id = "service-account-max-token-expiration", long, value_name = "DURATION",
        value_parser = parse_flag)]
    pub max_token_expiration: Option<Duration>,
    /// Let a pod's own token outlive what its volume asks for, and note its use.
    #[arg(id = "service-account-extend-token-expiration", long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub extend_token_expiration: bool,
    /// Where the discovery document says that the keys are.
    #[arg(id = "service-account-jwks-uri", long, value_name = "URL")]
    pub jwks_uri: Option<String>,
}

impl Default for AuthenticationOptions {
    fn default() -> AuthenticationOptions {
        defaults()
    }
}

impl Default for RequestHeaderOptions {
    fn default() -> RequestHeaderOptions {
        defaults()
    }
}

impl RequestHeaderOptions {
    /// Whether a header, in lower case, is one of these.
    pub(super) fn names(&self, header: &str) -> bool {
        let lists = [&self.username_headers, &self.uid_headers, &self.group_headers];
        let prefixes = &self.extra_header_prefixes;
        lists.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(header))
            || prefixes.iter().any(|prefix| header.starts_with(&prefix.to_ascii_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        options: AuthenticationOptions,
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
        let options = Only::parse_from(arguments).options;
        assert_eq!(options.request_header.allowed_names, ["a", "b"]);
        assert_eq!(options.request_header.username_headers, ["X-Remote-User"]);
        assert_eq!(options.anonymous, Some(false));
        assert_eq!(options.api_audiences, ["x", "y"]);
        assert_eq!(options.service_accounts.max_token_expiration, Some(Duration::from_secs(5400)));
    }
}
