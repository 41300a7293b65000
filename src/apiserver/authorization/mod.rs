//! Authorization: may this user do that (`k8s.io/apiserver/pkg/authorization`, `plugin/pkg/auth/authorizer`).
//!
//! In come a user and what the request asks for, out goes a decision: of the first authorizer that allows or
//! denies it. What nobody allows is refused, with what each of them said. One file per authorizer; what an
//! authorizer is, is in `apiserver::authorizer`. What the object says is none of its business: that is
//! admission's.

pub mod config;
mod config_file;
mod mode;

mod privileged;

mod abac;
mod always;
mod node;
pub mod rbac;
mod webhook;

pub mod reviews;

pub mod metrics;

use std::path::Path;
use std::sync::Arc;

use crate::authorizer::{Authorizer, AuthorizerReply, Decision, UserRules};
use crate::dynamic_file_content::DynamicFileContent;
use crate::registry::Registry;
use crate::request::RequestInfo;
use crate::webhook::ServiceResolver;
use apimachinery::user::UserInfo;
use apis::scheme::Scheme;
use clock::Clock;
use config::AuthorizationOptions;
use config_file::AuthorizerEntry;
pub use config_file::BadAuthorizationConfig;
use metrics::{AuthorizationMetrics, Decisions};
use mode::Mode;
use rbac::Rbac;

/// What authorizers are made from.
#[derive(Clone, Copy)]
pub struct AuthorizerInitializer<'a> {
    /// Reads objects.
    pub registry: &'a Registry,
    /// The kinds.
    pub scheme: &'a Arc<Scheme>,
    /// Finds the Services that webhooks are behind.
    pub resolver: &'a ServiceResolver,
    /// The cluster's clock.
    pub clock: &'a Clock,
    /// What is counted.
    pub metrics: &'a Arc<AuthorizationMetrics>,
}

/// All authorizers behind one face: those that `config` names, in its order, or in that of its file, which
/// may change.
///
/// # Errors
/// What is wrong with it, or with a file that it names.
pub fn start(
    config: &AuthorizationOptions,
    rbac: &Arc<Rbac>,
    with: AuthorizerInitializer,
) -> Result<Arc<dyn Authorizer>, BadAuthorizationConfig> {
    if let problems @ [_, ..] = &*config.problems() {
        return Err(problems.join("; ").into());
    }
    let Some(path) = &config.config_file else {
        let named = |mode: Mode| (mode.name().to_lowercase(), AuthorizerEntry::Mode(mode));
        let entries = config.modes().iter().copied().map(named).collect();
        return Ok(Arc::new(Authorizers::new(entries, config, rbac, with)?));
    };
    let (registry, scheme, clock) = (with.registry.clone(), with.scheme.clone(), with.clock.clone());
    let (resolver, config, rbac) = (with.resolver.clone(), config.clone(), rbac.clone());
    let metrics = with.metrics.clone();
    let build = move |text: &str| {
        let with = AuthorizerInitializer {
            registry: &registry,
            scheme: &scheme,
            resolver: &resolver,
            clock: &clock,
            metrics: &metrics,
        };
        let entries = config_file::parse(text).map_err(String::from)?;
        Ok(Authorizers::new(entries, &config, &rbac, with)?)
    };
    let file = DynamicFileContent::open(path, with.clock, build);
    let failed = |error| format!("failed to load AuthorizationConfiguration from file: {error}");
    Ok(Arc::new(FollowedAuthorizers(file.map_err(failed)?)))
}

/// The authorizers of a file, as it is now.
struct FollowedAuthorizers(DynamicFileContent<Authorizers>);

impl Authorizer for FollowedAuthorizers {
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        let current = self.0.current();
        if let AuthorizerReply::Now(decision) = current.authorize(user, info) {
            return AuthorizerReply::Now(decision);
        }
        AuthorizerReply::Later(Box::pin(async move { current.authorize(user, info).wait().await }))
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        self.0.current().rules_for(user, namespace)
    }

    fn explain(&self, user: &UserInfo, info: &RequestInfo) -> Vec<(&'static str, String)> {
        self.0.current().explain(user, info)
    }
}

/// All authorizers, in order (upstream's union).
struct Authorizers(Vec<CountedAuthorizer>);

/// An authorizer, and what it has decided with the name of its mode; nobody counts for that of privileged
/// groups, who is asked for nobody else. Last the names of those that are asked before it.
struct CountedAuthorizer(Box<dyn Authorizer>, Option<(Arc<Decisions>, &'static str)>, Option<Arc<str>>);

impl Authorizers {
    fn new(
        entries: Vec<(String, AuthorizerEntry)>,
        config: &AuthorizationOptions,
        rbac: &Arc<Rbac>,
        with: AuthorizerInitializer,
    ) -> Result<Authorizers, String> {
        let AuthorizerInitializer { registry, scheme, resolver, clock, metrics } = with;
        // Before all: somebody must be able to repair the rest, and to apply the first roles.
        let mut authorizers = vec![CountedAuthorizer(Box::new(privileged::PrivilegedGroups), None, None)];
        let mut names = Vec::new();
        for (name, entry) in entries {
            let mode = match &entry {
                AuthorizerEntry::Webhook(_) => Mode::Webhook,
                AuthorizerEntry::Mode(mode) => *mode,
            };
            let authorizer: Box<dyn Authorizer> = match entry {
                AuthorizerEntry::Webhook(settings) => {
                    Box::new(webhook::Webhook::new(*settings, resolver, clock)?)
                }
                AuthorizerEntry::Mode(Mode::Webhook) => {
                    Box::new(webhook::Webhook::new(config.webhook(), resolver, clock)?)
                }
                AuthorizerEntry::Mode(Mode::AlwaysAllow) => Box::new(always::AlwaysAllow),
                AuthorizerEntry::Mode(Mode::AlwaysDeny) => Box::new(always::AlwaysDenyAuthorizer),
                AuthorizerEntry::Mode(Mode::Abac) => {
                    Box::new(abac::Abac::read(config.policy_file.as_deref().unwrap_or(Path::new("")))?)
                }
                AuthorizerEntry::Mode(Mode::Rbac) => Box::new(rbac.clone()),
                AuthorizerEntry::Mode(Mode::Node) => Box::new(node::NodeAuthorizer::new(registry, scheme)),
            };
            let decisions = metrics.of(mode.name(), &name);
            let before = Some(names.join(", ")).filter(|before| !before.is_empty()).map(Arc::from);
            authorizers.push(CountedAuthorizer(authorizer, Some((decisions, mode.name())), before));
            names.push(mode.name());
        }
        Ok(Authorizers(authorizers))
    }

    /// Asks from the `first` on.
    fn ask<'a>(
        &'a self,
        first: usize,
        mut said: UndecidedWords,
        user: &'a UserInfo,
        info: &'a RequestInfo,
    ) -> AuthorizerReply<'a> {
        for (at, CountedAuthorizer(authorizer, decisions, before)) in self.0.iter().enumerate().skip(first) {
            let count = move |decision: &Decision| {
                if let Some((decisions, _)) = decisions {
                    decisions.heard(decision);
                }
            };
            match authorizer.authorize(user, info) {
                AuthorizerReply::Now(decision) => {
                    count(&decision);
                    if let Some(decided) = said.hear(decision) {
                        return AuthorizerReply::Now(decided.asked_after(before));
                    }
                }
                AuthorizerReply::Later(later) => {
                    return AuthorizerReply::Later(Box::pin(async move {
                        let decision = later.await;
                        count(&decision);
                        match said.hear(decision) {
                            Some(decided) => decided.asked_after(before),
                            None => self.ask(at + 1, said, user, info).wait().await,
                        }
                    }));
                }
            }
        }
        AuthorizerReply::Now(said.conclude())
    }
}

/// A no as it is told.
fn words(answer: AuthorizerReply<'_>) -> String {
    let AuthorizerReply::Now(decision) = answer else { return "asked elsewhere".into() };
    let (is_final, reason) = (matches!(decision, Decision::Deny(_)), decision.reason());
    match (decision.error(), is_final, reason) {
        (Some(error), _, _) => error.to_owned(),
        (_, true, reason) => format!("denied {reason}").trim_end().to_owned(),
        (_, false, "") => "no opinion".into(),
        (_, false, reason) => reason.to_owned(),
    }
}

/// What those said who have not decided.
#[derive(Default)]
struct UndecidedWords {
    reasons: Vec<String>,
    errors: Vec<String>,
}

impl UndecidedWords {
    /// Keeps what was said, or gives it back when it decides.
    fn hear(&mut self, decision: Decision) -> Option<Decision> {
        match decision {
            Decision::NoOpinion(reason) => {
                self.reasons.extend(Some(reason).filter(|reason| !reason.is_empty()));
                None
            }
            Decision::Failed { error, is_final: false, .. } => {
                self.errors.push(error);
                None
            }
            decided => Some(decided),
        }
    }

    fn conclude(self) -> Decision {
        let reason = self.reasons.join("\n");
        match &*self.errors {
            [] => Decision::NoOpinion(reason),
            [one] => Decision::Failed { error: one.clone(), reason, is_final: false },
            many => Decision::Failed { error: format!("[{}]", many.join(", ")), reason, is_final: false },
        }
    }
}

impl Authorizer for Authorizers {
    /// The first that allows or denies it, or the words of those that do not.
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        self.ask(0, UndecidedWords::default(), user, info)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let mut all = UserRules::default();
        for UserRules { rules, incomplete, errors } in
            self.0.iter().map(|CountedAuthorizer(authorizer, ..)| authorizer.rules_for(user, namespace))
        {
            all.rules.extend(rules);
            all.incomplete |= incomplete;
            all.errors.extend(errors);
        }
        all
    }

    fn explain(&self, user: &UserInfo, info: &RequestInfo) -> Vec<(&'static str, String)> {
        let named = |CountedAuthorizer(authorizer, named, _): &'_ CountedAuthorizer| {
            named.as_ref().map(|(_, name)| (*name, words(authorizer.authorize(user, info))))
        };
        self.0.iter().filter_map(named).collect()
    }
}
