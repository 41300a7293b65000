//! What is made of the flags of authentication (`BuiltInAuthenticationOptions.ToAuthenticationConfig`).

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::anonymous::Anonymous;
use super::basic_auth::BasicAuth;
use super::bootstrap_token::BootstrapTokens;
use super::config_error::AuthenticationConfigError;
use super::csv_file;
use super::oidc::structured::{self, Structured};
use super::oidc::{KeySet, Oidc};
use super::options::{AuthenticationOptions, DEFAULT_ISSUER, RequestHeaderOptions, ServiceAccountOptions};
use super::request_header::RequestHeader;
use super::reviews::{SelfSubjectReview, TokenReview};
use super::service_account::authenticator::ServiceAccountTokens;
use super::service_account::issuer::TokenIssuer;
use super::service_account::keys::{SigningKey, public_keys};
use super::service_account::legacy::LegacyServiceAccountTokens;
use super::service_account::metadata::PublicKeys;
use super::token_file::StaticTokens;
use super::union::Authenticators;
use super::webhook::TokenWebhook;
use super::x509::{ClientAuthorities, ClientCertificate};
use crate::registry::Registry;
use crate::registry::rest::Review;
use crate::webhook::{ClientConfig, ServiceResolver, Transport, WebhookClient, WebhookTarget};
use clock::Clock;
use entropy::Entropy;

/// What authenticators are made from, beside the flags.
pub struct AuthenticatorParts<'a> {
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
    pub fn new(
        config: &AuthenticationOptions,
        parts: &AuthenticatorParts<'_>,
    ) -> Result<Authentication, AuthenticationConfigError> {
        let audiences = match &config.api_audiences[..] {
            [] => config.service_accounts.issuers.first().cloned().into_iter().collect(),
            audiences => audiences.to_vec(),
        };
        let mut all = Authenticators::in_process(parts.clock);
        all.anonymous = Anonymous::everywhere(config.anonymous.unwrap_or(true));
        add_request_authenticators(&mut all, config, parts)?;
        let tokens = static_tokens(config)?;
        if !tokens.is_empty() {
            all.tokens.push(Box::new(StaticTokens::new(tokens, &audiences)));
        }
        let (keys, signing_key) = service_account_keys(&config.service_accounts, parts)?;
        let keys = Arc::new(PublicKeys::new(keys));
        let AuthenticatorParts { registry, clock, entropy, .. } = *parts;
        let accounts = &config.service_accounts;
        let uses = all.metrics().token_uses();
        let legacy = LegacyServiceAccountTokens::new(&audiences, keys.clone(), registry, clock, uses.clone());
        all.tokens.push(Box::new(legacy));
        let bound =
            ServiceAccountTokens::new(&accounts.issuers, &audiences, keys.clone(), registry, clock, uses);
        all.tokens.push(Box::new(bound));
        if config.bootstrap_tokens {
            all.tokens.push(Box::new(BootstrapTokens::new(registry, clock, &audiences)));
        }
        // Behind service accounts: an unknown JWT makes these ask somebody outside.
        add_remote_authenticators(&mut all, config, parts, &audiences)?;
        let first = accounts.issuers.first().cloned().unwrap_or_else(|| DEFAULT_ISSUER.into());
        let issuer = TokenIssuer::new(&first, &signing_key, &audiences, clock, entropy).limited(
            accounts.max_token_expiration.filter(|limit| !limit.is_zero()),
            accounts.extend_token_expiration,
        );
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

impl AuthenticationOptions {
    /// All authorities, in PEM, that a client's certificate may lead to: what TLS tells clients.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn client_authorities(&self, own: &str) -> Result<Vec<String>, AuthenticationConfigError> {
        let proxy = self.proxy_authority()?.map(|(pem, _)| pem);
        Ok([self.client_authority(own)?].into_iter().chain(proxy).collect())
    }

    /// The authorities of clients, in PEM: the cluster's own, and those of `--client-ca-file`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn client_authority(&self, own: &str) -> Result<String, AuthenticationConfigError> {
        let others = self.client_ca_file.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(format!("{own}{others}"))
    }

    /// The authorities of front proxies, in PEM, and what else is said of them.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn proxy_authority(
        &self,
    ) -> Result<Option<(String, &RequestHeaderOptions)>, AuthenticationConfigError> {
        let file = self.request_header.client_ca_file.as_ref();
        file.map(|file| Ok((read(file)?, &self.request_header))).transpose()
    }
}

fn add_request_authenticators(
    all: &mut Authenticators,
    config: &AuthenticationOptions,
    parts: &AuthenticatorParts<'_>,
) -> Result<(), AuthenticationConfigError> {
    let proxy = &config.request_header;
    if let Some(path) = &proxy.client_ca_file {
        let authorities = ClientAuthorities::new(&[read(path)?], parts.clock)
            .map_err(|error| AuthenticationConfigError::file(path, error))?;
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
        let authorities = ClientAuthorities::new(&trusted, parts.clock)
            .map_err(|error| AuthenticationConfigError::file(path, error))?;
        let expirations = all.metrics().expirations();
        all.requests.push(Box::new(ClientCertificate::new(authorities, expirations)));
    }
    Ok(())
}

fn add_remote_authenticators(
    all: &mut Authenticators,
    config: &AuthenticationOptions,
    parts: &AuthenticatorParts<'_>,
    audiences: &[String],
) -> Result<(), AuthenticationConfigError> {
    let resolver = ServiceResolver::new(parts.registry, parts.entropy);
    let oidc = &config.oidc;
    if let Some(issuer) = &oidc.issuer_url {
        oidc.validate()?;
        let algorithms = oidc.algorithms()?;
        let keys = match &oidc.jwks_file {
            Some(path) => KeySet::of_file(path, algorithms)?,
            None => {
                let mut provider = ClientConfig::new(WebhookTarget::Url(issuer.clone()));
                if let Some(path) = &oidc.ca_file {
                    provider.ca_bundle = read(path)?.into_bytes();
                }
                let transport = Transport::new(&provider, &resolver);
                KeySet::of_issuer(issuer, None, transport, algorithms, parts.clock)
            }
        };
        all.tokens.push(Box::new(Oidc::new(oidc.authenticator(), keys, audiences, parts.clock)));
    }
    if let Some(path) = &config.config_file {
        if config.oidc.issuer_url.is_some() {
            let why = "authentication-config file and oidc-* flags are mutually exclusive";
            return Err(AuthenticationConfigError(why.into()));
        }
        let parts = structured::OidcParts {
            resolver: resolver.clone(),
            audiences: audiences.to_vec(),
            own_issuers: config.service_accounts.issuers.clone(),
            clock: parts.clock.clone(),
        };
        let structured = Arc::new(Structured::new(path, parts)?);
        if config.anonymous.is_some() && structured.anonymous().is_some() {
            let why = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is \
                       configured in authentication configuration file";
            return Err(AuthenticationConfigError(why.into()));
        }
        all.tokens.push(Box::new(structured.clone()));
        all.structured = Some(structured);
    }
    let webhook = &config.webhook;
    if let Some(path) = &webhook.config_file {
        let target = ClientConfig::from_kubeconfig(path).map_err(|why| AuthenticationConfigError(why.0))?;
        let client = WebhookClient::new(target, &resolver, parts.clock);
        all.tokens.push(Box::new(TokenWebhook::new(client, webhook, audiences, parts.clock)));
    }
    Ok(())
}

fn static_tokens(config: &AuthenticationOptions) -> Result<Vec<csv_file::Row>, AuthenticationConfigError> {
    let mut tokens = config.static_tokens.0.clone();
    if let Some(path) = &config.token_auth_file {
        tokens.extend(csv_file::read(path, "token")?);
    }
    Ok(tokens)
}

/// The texts of all public keys, and that of the private one.
fn service_account_keys(
    config: &ServiceAccountOptions,
    parts: &AuthenticatorParts<'_>,
) -> Result<(Vec<String>, String), AuthenticationConfigError> {
    let mut keys = Vec::new();
    for path in &config.key_files {
        let text = read(path)?;
        public_keys(&text).map_err(|error| AuthenticationConfigError::file(path, error))?;
        keys.push(text);
    }
    let signing_key = match &config.signing_key_file {
        Some(path) => {
            let text = read(path)?;
            SigningKey::read(&text).map_err(|error| AuthenticationConfigError::file(path, error))?;
            text
        }
        None => parts.signing_key_pem.to_owned(),
    };
    keys.push(signing_key.clone());
    Ok((keys, signing_key))
}

fn read(path: &Path) -> Result<String, AuthenticationConfigError> {
    fs::read_to_string(path).map_err(|error| AuthenticationConfigError::file(path, error))
}
