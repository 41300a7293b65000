//! What the flags of kube-apiserver say of authentication (`options.BuiltInAuthenticationOptions`), and what
//! is made of it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::anonymous::Anonymous;
use super::basic_auth::BasicAuth;
use super::bootstrap_token::BootstrapTokens;
use super::csv_file;
use super::oidc::structured::{self, Structured};
use super::oidc::{KeySet, Oidc, OidcConfig};
use super::request_header::RequestHeader;
use super::reviews::{SelfSubjectReview, TokenReview};
use super::service_account::authenticator::ServiceAccountTokens;
use super::service_account::issuer::TokenIssuer;
use super::service_account::keys::{SigningKey, public_keys};
use super::service_account::legacy::LegacyServiceAccountTokens;
use super::service_account::metadata::PublicKeys;
use super::token_file::StaticTokens;
use super::union::Authenticators;
use super::webhook::{TokenWebhook, WebhookConfig};
use super::x509::{ClientAuthorities, ClientCertificate};
use crate::apimachinery::user::UserInfo;
use crate::apiserver::registry::Registry;
use crate::apiserver::review::Review;
use crate::apiserver::webhook::{ClientConfig, ServiceResolver, Target, Transport, WebhookClient};
use crate::clock::Clock;
use crate::entropy::Entropy;

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

/// A flag that cannot be followed. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl ConfigError {
    /// What is wrong with a file.
    pub fn file(path: &Path, error: impl fmt::Display) -> ConfigError {
        ConfigError(format!("cannot use {}: {error}", path.display()))
    }
}

/// What authenticators are made from, beside the flags.
pub struct Parts<'a> {
    /// Where Secrets, pods and accounts are.
    pub registry: &'a Registry,
    /// The cluster's clock.
    pub clock: &'a Clock,
    /// Draws the ids of tokens.
    pub entropy: &'a Entropy,
    /// The certificate of the cluster's own authority, in PEM.
    pub authority_pem: &'a str,
    /// The cluster's own key for service account tokens, private, in PEM; used unless a file is given.
    pub signing_key_pem: &'a str,
}

/// All that the apiserver has for authentication.
pub struct Authentication {
    /// Who asks.
    pub authenticators: Arc<Authenticators>,
    /// Makes service account tokens; none where nobody gave it a key.
    pub issuer: Option<Arc<TokenIssuer>>,
    /// What is told to those who check tokens themselves.
    pub discovery: Option<Discovery>,
    /// Whom tokens for this server name.
    pub audiences: Vec<String>,
}

/// What `/.well-known/openid-configuration` tells.
#[derive(Clone)]
pub struct Discovery {
    /// The issuer.
    pub issuer: String,
    /// Where the keys are, if that is not here.
    pub jwks_uri: Option<String>,
    /// The keys.
    pub keys: Arc<PublicKeys>,
}

impl Authentication {
    /// Nobody but the components of this process, and anonymous.
    pub fn in_process(clock: &Clock) -> Authentication {
        let authenticators = Arc::new(Authenticators::in_process(clock));
        Authentication { authenticators, issuer: None, discovery: None, audiences: vec![] }
    }

    /// The authenticators in upstream's order: front proxy, passwords, certificates, then bearer tokens,
    /// local ones before remote ones.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn new(config: &AuthenticationConfig, parts: &Parts<'_>) -> Result<Authentication, ConfigError> {
        let audiences = match &config.api_audiences[..] {
            [] => config.service_accounts.issuers.first().cloned().into_iter().collect(),
            audiences => audiences.to_vec(),
        };
        let mut all = Authenticators::in_process(parts.clock);
        all.anonymous = Anonymous::everywhere(config.anonymous);
        add_request_authenticators(&mut all, config, parts)?;
        let tokens = static_tokens(config)?;
        if !tokens.is_empty() {
            all.tokens.push(Box::new(StaticTokens::new(tokens, &audiences)));
        }
        let (keys, signing_key) = service_account_keys(&config.service_accounts, parts)?;
        let keys = Arc::new(PublicKeys::new(keys));
        let Parts { registry, clock, entropy, .. } = *parts;
        let accounts = &config.service_accounts;
        let legacy = LegacyServiceAccountTokens::new(&audiences, keys.clone(), registry, clock);
        all.tokens.push(Box::new(legacy));
        let bound = ServiceAccountTokens::new(&accounts.issuers, &audiences, keys.clone(), registry, clock);
        all.tokens.push(Box::new(bound));
        if config.bootstrap_tokens {
            all.tokens.push(Box::new(BootstrapTokens::new(registry, clock, &audiences)));
        }
        // Behind service accounts: an unknown JWT makes these ask somebody outside.
        add_remote_authenticators(&mut all, config, parts, &audiences)?;
        let first = accounts.issuers.first().cloned().unwrap_or_else(|| DEFAULT_ISSUER.into());
        let issuer = TokenIssuer::new(&first, &signing_key, &audiences, clock, entropy)
            .limited(accounts.max_token_expiration, accounts.extend_token_expiration);
        let discovery = Discovery { issuer: first, jwks_uri: accounts.jwks_uri.clone(), keys };
        let (authenticators, issuer) = (Arc::new(all), Some(Arc::new(issuer)));
        Ok(Authentication { authenticators, issuer, discovery: Some(discovery), audiences })
    }
}

impl Authentication {
    /// What answers TokenReviews and SelfSubjectReviews.
    pub fn reviews(&self, clock: &Clock) -> [Box<dyn Review>; 2] {
        let tokens = TokenReview::new(self.authenticators.clone(), self.audiences.clone());
        [Box::new(tokens), Box::new(SelfSubjectReview(clock.clone()))]
    }
}

impl AuthenticationConfig {
    /// All authorities, in PEM, that a client's certificate may lead to: what TLS tells clients.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn client_authorities(&self, own: &str) -> Result<Vec<String>, ConfigError> {
        let proxy = self.proxy_authority()?.map(|(pem, _)| pem);
        Ok([self.client_authority(own)?].into_iter().chain(proxy).collect())
    }

    /// The authorities of clients, in PEM: the cluster's own, and those of `--client-ca-file`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn client_authority(&self, own: &str) -> Result<String, ConfigError> {
        let others = self.client_ca_file.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(format!("{own}{others}"))
    }

    /// The authorities of front proxies, in PEM, and what else is said of them.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn proxy_authority(&self) -> Result<Option<(String, &RequestHeaderConfig)>, ConfigError> {
        let proxy = self.request_header.as_ref();
        proxy.map(|proxy| Ok((read(&proxy.client_ca_file)?, proxy))).transpose()
    }
}

fn add_request_authenticators(
    all: &mut Authenticators,
    config: &AuthenticationConfig,
    parts: &Parts<'_>,
) -> Result<(), ConfigError> {
    if let Some(proxy) = &config.request_header {
        let path = &proxy.client_ca_file;
        let authorities = ClientAuthorities::new(&[read(path)?], parts.clock)
            .map_err(|error| ConfigError::file(path, error))?;
        all.requests.push(Box::new(RequestHeader::new(authorities, proxy.clone())));
        all.request_header = Some(proxy.clone());
    }
    if let Some(path) = &config.basic_auth_file {
        all.requests.push(Box::new(BasicAuth::new(csv_file::read(path, "password")?)));
        all.asks_for_password = true;
    }
    let mut trusted = vec![parts.authority_pem.to_owned()];
    if let Some(path) = &config.client_ca_file {
        trusted.push(read(path)?);
    }
    trusted.retain(|pem| !pem.is_empty());
    if !trusted.is_empty() {
        let path = config.client_ca_file.as_deref().unwrap_or(Path::new("the cluster's own authority"));
        let authorities =
            ClientAuthorities::new(&trusted, parts.clock).map_err(|error| ConfigError::file(path, error))?;
        let expirations = all.metrics().expirations();
        all.requests.push(Box::new(ClientCertificate::new(authorities, expirations)));
    }
    Ok(())
}

fn add_remote_authenticators(
    all: &mut Authenticators,
    config: &AuthenticationConfig,
    parts: &Parts<'_>,
    audiences: &[String],
) -> Result<(), ConfigError> {
    let resolver = ServiceResolver::new(parts.registry, parts.entropy);
    if let Some(oidc) = &config.oidc {
        oidc.validate()?;
        let algorithms = oidc.algorithms()?;
        let keys = match &oidc.jwks_file {
            Some(path) => KeySet::of_file(path, algorithms)?,
            None => {
                let mut provider = ClientConfig::new(Target::Url(oidc.issuer_url.clone()));
                if let Some(path) = &oidc.ca_file {
                    provider.ca_bundle = read(path)?.into_bytes();
                }
                let transport = Transport::new(&provider, &resolver);
                KeySet::of_issuer(&oidc.issuer_url, None, transport, algorithms, parts.clock)
            }
        };
        all.tokens.push(Box::new(Oidc::new(oidc.authenticator(), keys, audiences, parts.clock)));
    }
    if let Some(path) = &config.config_file {
        if config.oidc.is_some() {
            let why = "authentication-config file and oidc-* flags are mutually exclusive";
            return Err(ConfigError(why.into()));
        }
        let parts = structured::Parts {
            resolver: resolver.clone(),
            audiences: audiences.to_vec(),
            own_issuers: config.service_accounts.issuers.clone(),
            clock: parts.clock.clone(),
        };
        let structured = Arc::new(Structured::new(path, parts)?);
        if config.anonymous_is_given && structured.anonymous().is_some() {
            let why = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is \
                       configured in authentication configuration file";
            return Err(ConfigError(why.into()));
        }
        all.tokens.push(Box::new(structured.clone()));
        all.structured = Some(structured);
    }
    if let Some(webhook) = &config.webhook {
        let target = ClientConfig::from_kubeconfig(&webhook.config_file).map_err(ConfigError)?;
        let client = WebhookClient::new(target, &resolver, parts.clock);
        all.tokens.push(Box::new(TokenWebhook::new(client, webhook, audiences, parts.clock)));
    }
    Ok(())
}

fn static_tokens(config: &AuthenticationConfig) -> Result<Vec<csv_file::Row>, ConfigError> {
    let mut tokens = config.static_tokens.0.clone();
    if let Some(path) = &config.token_auth_file {
        tokens.extend(csv_file::read(path, "token")?);
    }
    Ok(tokens)
}

/// The texts of all public keys, and that of the private one.
fn service_account_keys(
    config: &ServiceAccountConfig,
    parts: &Parts<'_>,
) -> Result<(Vec<String>, String), ConfigError> {
    let mut keys = Vec::new();
    for path in &config.key_files {
        let text = read(path)?;
        public_keys(&text).map_err(|error| ConfigError::file(path, error))?;
        keys.push(text);
    }
    let signing_key = match &config.signing_key_file {
        Some(path) => {
            let text = read(path)?;
            SigningKey::read(&text).map_err(|error| ConfigError::file(path, error))?;
            text
        }
        None => parts.signing_key_pem.to_owned(),
    };
    keys.push(signing_key.clone());
    Ok((keys, signing_key))
}

fn read(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|error| ConfigError::file(path, error))
}
