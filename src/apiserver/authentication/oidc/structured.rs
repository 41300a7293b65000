//! `Structured`: the issuers of an AuthenticationConfiguration, which may change while the server runs
//! (`server/options/authenticationconfig`).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::KeySet;
use super::authenticator::Oidc;
use super::configuration::{Configuration, Provider};
use crate::apiserver::authentication::anonymous::Anonymous;
use crate::apiserver::authentication::jwt::Allowed;
use crate::apiserver::authentication::{ConfigError, Response, TokenAuthenticator};
use crate::apiserver::webhook::{ClientConfig, ServiceResolver, Target, Transport};
use crate::clock::Clock;

/// The file is looked at when somebody comes, at most so often.
const INTERVAL: Duration = Duration::from_secs(1);

/// What the authenticators are made with.
pub struct Parts {
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
pub struct Structured {
    path: PathBuf,
    parts: Parts,
    current: RwLock<Arc<Current>>,
    /// When the file was looked at last, and what was wrong with it then.
    looked: Mutex<(Duration, String)>,
}

struct Current {
    text: String,
    issuers: Vec<Oidc>,
    anonymous: Option<Anonymous>,
}

impl Structured {
    /// Reads the file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn new(path: &Path, parts: Parts) -> Result<Structured, ConfigError> {
        let text = read(path).map_err(|error| ConfigError::file(path, error))?;
        let current = build(text, &parts).map_err(|error| ConfigError::file(path, error))?;
        let looked = Mutex::new((parts.clock.elapsed(), String::new()));
        Ok(Structured { path: path.to_owned(), parts, current: RwLock::new(Arc::new(current)), looked })
    }

    /// What the file says of requests without credentials, if it says something.
    pub fn anonymous(&self) -> Option<Anonymous> {
        self.current().anonymous.clone()
    }

    /// What the file says now; as long as it is wrong, what it said before.
    fn current(&self) -> Arc<Current> {
        let known = self.current.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        if !self.is_due() {
            return known;
        }
        let outcome = read(&self.path).and_then(|text| match text == known.text {
            true => Ok(None),
            false => build(text, &self.parts).map(Some),
        });
        let mut looked = self.looked.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match outcome {
            Ok(changed) => {
                looked.1.clear();
                let Some(changed) = changed.map(Arc::new) else { return known };
                tracing::info!(file = %self.path.display(), "reloaded authentication config");
                *self.current.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = changed.clone();
                changed
            }
            Err(error) => {
                if looked.1 != error {
                    tracing::error!(error, "failed to load authentication config");
                    looked.1 = error;
                }
                known
            }
        }
    }

    fn is_due(&self) -> bool {
        let now = self.parts.clock.elapsed();
        let mut looked = self.looked.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_due = now >= looked.0 + INTERVAL;
        if is_due {
            looked.0 = now;
        }
        is_due
    }

    async fn known(&self, token: &str, asked: Option<&[String]>) -> Result<Option<Response>, String> {
        let current = self.current();
        let mut errors = Vec::new();
        for issuer in &current.issuers {
            match issuer.known(token, asked).await {
                Ok(None) => {}
                Err(error) => errors.push(error),
                found => return found,
            }
        }
        if errors.is_empty() { Ok(None) } else { Err(errors.join(", ")) }
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
    ) -> BoxFuture<'a, Result<Option<Response>, String>> {
        self.known(token, audiences).boxed()
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

fn build(text: String, parts: &Parts) -> Result<Current, String> {
    let Configuration { providers, anonymous } = Configuration::parse(&text, &parts.own_issuers)?;
    let issuer = |provider: Provider| {
        let Provider { discovery_url, certificate_authority, settings } = provider;
        let mut client = ClientConfig::new(Target::Url(settings.issuer.clone()));
        client.ca_bundle = certificate_authority.into_bytes();
        let transport = Transport::new(&client, &parts.resolver);
        let (discovery, clock) = (discovery_url.as_deref(), &parts.clock);
        let keys = KeySet::of_issuer(&settings.issuer, discovery, transport, Allowed::all(), clock);
        Oidc::new(settings, keys, &parts.audiences, clock)
    };
    Ok(Current { issuers: providers.into_iter().map(issuer).collect(), text, anonymous })
}
