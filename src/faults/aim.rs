//! Which requests a fault is about: what its lists say, made ready when it is added, since every request of
//! a cluster with a fault is held against it.

use std::sync::Arc;

use super::fault::Fault;
use super::pattern::{Pattern, ResourcePattern, VerbPattern, any};
use apimachinery::user::UserInfo;
use apiserver::filters::interceptor::{OWN_USERS, is_own};
use apiserver::request::RequestInfo;

/// What a request has to be like.
#[derive(Debug)]
pub(super) struct Aim {
    is_about_requests: bool,
    verbs: Vec<VerbPattern>,
    users: Vec<UserPattern>,
    resources: Vec<ResourcePattern>,
    namespaces: Vec<Pattern>,
    names: Vec<Pattern>,
    agents: Vec<Pattern>,
    effect: Effect,
    /// Which webhooks do not answer.
    pub(super) silent_webhooks: Arc<[Pattern]>,
}

#[derive(Debug)]
struct UserPattern {
    name: Pattern,
    /// Who means the test kit says so.
    means_test_kit: bool,
}

/// What watches alone know hits nothing else.
#[derive(Debug)]
enum Effect {
    All,
    Watches,
    Reads,
    Writes,
}

impl Aim {
    pub(super) fn new(fault: &Fault) -> Aim {
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect::<Vec<_>>();
        let user = |text: &String| {
            let means_test_kit = text.starts_with(OWN_USERS);
            UserPattern { name: Pattern::new(text), means_test_kit }
        };
        Aim {
            is_about_requests: fault.stop.is_none() && fault.network.is_none(),
            verbs: fault.verbs.iter().map(|text| VerbPattern::new(text)).collect(),
            users: fault.users.iter().map(user).collect(),
            resources: fault.resources.iter().map(|text| ResourcePattern::new(text)).collect(),
            namespaces: patterns(&fault.namespaces),
            names: patterns(&fault.names),
            agents: patterns(&fault.user_agents),
            effect: Effect::of(fault),
            silent_webhooks: patterns(&fault.silent_webhooks).into(),
        }
    }

    /// Whether a request is like that. The program that asks is only asked for where it matters.
    pub(super) fn takes<'a>(
        &self,
        user: &UserInfo,
        info: &RequestInfo,
        agent: impl FnOnce() -> &'a str,
    ) -> bool {
        self.is_about_requests
            && any(&self.verbs, |verb| verb.matches(&info.verb))
            && self.takes_user(user)
            && any(&self.resources, |resource| resource.matches(info))
            && any(&self.namespaces, |pattern| pattern.matches(&info.namespace))
            && any(&self.names, |pattern| pattern.matches(&info.name))
            && self.effect.is_on(&info.verb)
            && (self.agents.is_empty() || {
                let agent = agent();
                self.agents.iter().any(|pattern| pattern.matches(agent))
            })
    }

    fn takes_user(&self, user: &UserInfo) -> bool {
        match self.users.as_slice() {
            [] => !user.is_component() && !is_own(user),
            users => users
                .iter()
                .any(|pattern| pattern.name.matches(&user.name) && (pattern.means_test_kit || !is_own(user))),
        }
    }
}

impl Effect {
    fn of(fault: &Fault) -> Effect {
        if fault.watch.is_some() {
            Effect::Watches
        } else if fault.stale.is_some() {
            Effect::Reads
        } else if !fault.silent_webhooks.is_empty() {
            Effect::Writes
        } else {
            Effect::All
        }
    }

    fn is_on(&self, verb: &str) -> bool {
        match self {
            Effect::All => true,
            Effect::Watches => verb == "watch",
            Effect::Reads => matches!(verb, "get" | "list"),
            Effect::Writes => !matches!(verb, "get" | "list" | "watch"),
        }
    }
}
