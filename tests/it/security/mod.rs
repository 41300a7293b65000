//! Who may come in, as an attacker sees it: forged and stale credentials, smuggled headers, twisted paths.

mod certificates;
mod exposure;
mod heads;
mod leaks;
mod remote;
mod requests;
mod smuggling;
mod streams;
mod structured;
mod tokens;
mod upgrades;
mod vanishing;
mod web_pages;
pub(crate) mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta};
use kubarium::apimachinery::user::UserInfo;
use kubarium::apimachinery::wire::{ApiService, InProcessUser, PeerCertificates};
use kubarium::apis::scheme::Scheme;
use kubarium::apiserver::audit::AuditConfig;
use kubarium::apiserver::audit::policy::Policy;
use kubarium::apiserver::authentication::{Authentication, AuthenticationOptions, AuthenticatorParts};
use kubarium::apiserver::config::ApiserverConfig;
use kubarium::apiserver::handler_chain::build_handler_chain;
use kubarium::apiserver::registry::Registry;
use kubarium::apiserver::storage::Storage;
use kubarium::clock::Clock;
use kubarium::entropy::Entropy;
use kubarium::etcd::{Kv, Options};
use kubarium::pki::Authority;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use crate::apiserver::audit::{blocking, log_config};
use crate::apiserver::{Answer, request};

/// An apiserver with authentication, on a clock that a test moves.
pub(crate) struct Guarded {
    service: ApiService,
    /// The time of the server.
    pub clock: Clock,
    /// The cluster's own authority.
    pub authority: Authority,
    /// The key that signs service account tokens, PEM.
    pub signing_key: String,
    folder: TempDir,
}

impl Guarded {
    /// With the flags that `configure` sets; it is given a folder for files.
    pub(crate) async fn start(configure: impl FnOnce(&Path, &mut AuthenticationOptions)) -> Guarded {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH + TimeDelta::days(20_600));
        let folder = tempfile::tempdir().unwrap();
        let mut flags = AuthenticationOptions::default();
        configure(folder.path(), &mut flags);
        let authority = Authority::generate(clock.now()).unwrap();
        let signing_key = kubarium::pki::generate_signing_key().unwrap();
        let kv = Kv::open(Options::default(), clock.clone()).unwrap();
        let storage = Storage::new(kv, clock.clone(), Entropy::seeded(1));
        let scheme = Arc::new(Scheme::builtin());
        let registry = Registry::new(storage, scheme.clone(), clock.clone(), Entropy::seeded(2));
        let mut config = ApiserverConfig::new(scheme, registry, clock.clone(), Entropy::seeded(3));
        let parts = AuthenticatorParts {
            registry: &config.registry,
            clock: &clock,
            entropy: &config.entropy,
            authority_pem: authority.certificate_pem(),
            signing_key_pem: &signing_key,
        };
        config.authentication = Authentication::new(&flags, &parts).unwrap();
        config.audit = audit(folder.path().join(AUDIT_LOG));
        let service = build_handler_chain(config).unwrap();
        let guarded = Guarded { service, clock, authority, signing_key, folder };
        guarded.create("/api/v1/namespaces", json!({"metadata": {"name": "default"}})).await;
        guarded.create("/api/v1/namespaces", json!({"metadata": {"name": "kube-system"}})).await;
        guarded.create(ACCOUNTS, json!({"metadata": {"name": "builder"}})).await;
        guarded
    }

    /// A stranger's request.
    pub(crate) async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        self.send(request(line, &all, text)).await
    }

    /// A request over a connection with a client certificate, PEM.
    pub(crate) async fn ask_with_certificate(&self, pem: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = request(WHO, headers, String::new());
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        request.extensions_mut().insert(PeerCertificates([pem.contents].into()));
        self.send(request).await
    }

    /// Whom the server takes the sender of these headers for: a user's name, or `401`.
    pub(crate) async fn who(&self, headers: &[(&str, &str)]) -> String {
        who(&self.ask(WHO, headers, &Value::Null).await)
    }

    /// The same for a bearer token.
    pub(crate) async fn whose(&self, token: &str) -> String {
        self.who(&[("authorization", &format!("Bearer {token}"))]).await
    }

    /// An administrator's request.
    pub(crate) async fn admin(&self, line: &str, body: &Value) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = request(line, &[("content-type", "application/json")], text);
        let user = Arc::new(UserInfo::authenticated("admin", &["system:masters"]));
        request.extensions_mut().insert(InProcessUser(user));
        self.send(request).await
    }

    /// A JSON patch by an administrator.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> Answer {
        let headers = [("content-type", "application/json-patch+json")];
        let mut request = request(&format!("PATCH {path}"), &headers, patch.to_string());
        let user = Arc::new(UserInfo::authenticated("admin", &["system:masters"]));
        request.extensions_mut().insert(InProcessUser(user));
        self.send(request).await
    }

    /// POST as an administrator, which must succeed.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        let answer = self.admin(&format!("POST {path}"), &body).await;
        assert_eq!(answer.code, 201, "{}", answer.text);
        answer.json()
    }

    /// A token of the account `builder`, with a spec of the TokenRequest.
    pub(crate) async fn token(&self, spec: Value) -> String {
        let made = self.create(&format!("{ACCOUNTS}/builder/token"), json!({"spec": spec})).await;
        made["status"]["token"].as_str().unwrap().to_owned()
    }

    /// What the audit log has of how the last stranger proved who it is, by the names behind the group's.
    pub(crate) fn remarked(&self) -> Value {
        let text = fs::read_to_string(self.folder.path().join(AUDIT_LOG)).unwrap();
        let event: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let annotations = event["annotations"].as_object().cloned().unwrap_or_default();
        let of_group = annotations.into_iter().filter_map(|(key, value)| {
            let name = key.strip_prefix("authentication.k8s.io/")?;
            Some((name.to_owned(), value))
        });
        of_group.collect()
    }

    /// Longer than a token that was verified is remembered.
    pub(crate) fn forget_tokens(&self) {
        self.clock.advance(Duration::from_secs(11));
    }

    async fn send(&self, request: http::Request<Body>) -> Answer {
        Answer::of(self.service.clone().oneshot(request).await.unwrap()).await
    }
}

const AUDIT_LOG: &str = "audit.log";

/// Of what strangers ask.
fn audit(path: PathBuf) -> AuditConfig {
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: \
        Metadata, resources: [{group: '', resources: [nodes]}]}]}";
    let log = Some(blocking(log_config(path)));
    AuditConfig { policy: Some(Policy::parse(policy).unwrap()), log, webhook: None }
}

/// What nobody but administrators may do, so that the refusal names the user.
const WHO: &str = "GET /api/v1/nodes";
/// Service accounts.
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// Whom a refusal of [`WHO`] names; `*` for whoever is not refused.
pub(crate) fn who(answer: &Answer) -> String {
    match answer.code {
        403 => answer.status().2.split('"').nth(1).unwrap_or_default().to_owned(),
        200 => "*".into(),
        code => code.to_string(),
    }
}

/// What a JWT says.
pub(crate) fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Base64 as Secrets have it.
pub(crate) fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}
