//! `Structured`: the issuers of an AuthenticationConfiguration, which may change while the server runs
//! (`server/options/authenticationconfig`).

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::KeySet;
use super::authenticator::Oidc;
use super::configuration::{Configuration, Provider};
use crate::authentication::anonymous::Anonymous;
use crate::authentication::errors::BadCredential;
use crate::authentication::jwt::AllowedAlgorithms;
use crate::authentication::remarks::Remarks;
use crate::authentication::{AuthenticationConfigError, Response, TokenAuthenticator};
use crate::dynamic_file_content::{BadFileContent, DynamicFileContent};
use crate::webhook::{ClientConfig, ServiceResolver, Transport, WebhookTarget};
use clock::Clock;

/// What the authenticators are made with.
pub struct OidcParts {
    /// For the connections to issuers.
    pub resolver: ServiceResolver,
    /// The audiences of this server.
    pub audiences: Vec<String>,
    /// The server's own issuers.
    pub own_issuers: Vec<String>,
    /// The time.
    pub clock: Clock,
}

/// The issuers of a file, as it is now.
pub struct Structured(DynamicFileContent<CurrentAuthenticators>);

struct CurrentAuthenticators {
    issuers: Vec<Oidc>,
    anonymous: Option<Anonymous>,
}

impl Structured {
    /// Reads the file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn new(path: &Path, parts: OidcParts) -> Result<Structured, AuthenticationConfigError> {
        let clock = parts.clock.clone();
        let file = DynamicFileContent::open(path, &clock, move |text| build(text, &parts));
        file.map(Structured).map_err(|error| AuthenticationConfigError::file(path, error))
    }

    /// What the file says of requests without credentials, if it says something.
    pub fn anonymous(&self) -> Option<Anonymous> {
        self.0.current().anonymous.clone()
    }

    async fn known(&self, token: &str, asked: Option<&[String]>) -> Result<Option<Response>, BadCredential> {
        let current = self.0.current();
        let mut errors = Vec::new();
        for issuer in &current.issuers {
            match issuer.known(token, asked).await {
                Ok(None) => {}
                Err(error) => errors.push(error),
                found => return found,
            }
        }
        if errors.is_empty() { Ok(None) } else { Err(BadCredential::all(&errors)) }
    }
}

impl TokenAuthenticator for Arc<Structured> {
    fn name(&self) -> &'static str {
        "JWT"
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

fn build(text: &str, parts: &OidcParts) -> Result<CurrentAuthenticators, BadFileContent> {
    let Configuration { providers, anonymous } =
        Configuration::parse(text, &parts.own_issuers).map_err(String::from)?;
    let issuer = |provider: Provider| {
        let Provider { discovery_url, certificate_authority, settings } = provider;
        let mut client = ClientConfig::new(WebhookTarget::Url(settings.issuer.clone()));
        client.ca_bundle = certificate_authority.into_bytes();
        let transport = Transport::new(&client, &parts.resolver);
        let (discovery, clock) = (discovery_url.as_deref(), &parts.clock);
        let keys = KeySet::of_issuer(&settings.issuer, discovery, transport, AllowedAlgorithms::all(), clock);
        Oidc::new(settings, keys, &parts.audiences, clock)
    };
    Ok(CurrentAuthenticators { issuers: providers.into_iter().map(issuer).collect(), anonymous })
}
