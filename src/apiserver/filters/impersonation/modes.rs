//! The ways in which somebody may act as somebody else (`impersonation/mode.go`, KEP 5284).
//!
//! A constrained way asks two things: whether one may do this very request as somebody of the sort
//! (`impersonate-on:user-info:list`), and whether one may be who is wanted (`impersonate:user-info`). The old
//! way asks only the latter, with the verb `impersonate`. The first way that allows counts; when none does,
//! the first refusal is what the client hears.

use std::collections::HashMap;
use std::sync::Arc;

use super::metrics::ImpersonationMetrics;
use crate::authentication::extra::NODE_NAME;
use crate::authentication::service_account::{self, split_username};
use crate::authorizer::{Authorizer, Decision, forbidden};
use crate::metrics::Render;
use crate::request::RequestInfo;
use apimachinery::names;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use clock::Clock;
use sync::{Mutex, MutexGuard};

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
pub(super) const AUTHENTICATION: &str = "authentication.k8s.io";
/// From so many groups or extras on a constrained way asks first whether all are allowed.
const MANY: usize = 4;
/// Users of whom it is known which way they go; at the bound all are forgotten.
const MAX_KNOWN_MODES: usize = 10_000;

/// Finds out who may act as whom.
pub struct Impersonation {
    authorizer: Arc<dyn Authorizer>,
    clock: Clock,
    modes: &'static [ImpersonationMode],
    /// By which way a user went last: it is tried first, and it is its refusal that is heard.
    known: Mutex<HashMap<Arc<str>, ImpersonationMode>>,
    metrics: ImpersonationMetrics,
}

/// Somebody may act as this user.
#[derive(Debug, PartialEq)]
pub(super) struct Acted {
    /// The user who is impersonated.
    pub user: Arc<UserInfo>,
    /// The verb that allowed it, for the audit log; none in the old way.
    pub constraint: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImpersonationMode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

/// In the order in which they are tried.
const ALL: &[ImpersonationMode] = &[
    ImpersonationMode::AssociatedNode,
    ImpersonationMode::ArbitraryNode,
    ImpersonationMode::ServiceAccount,
    ImpersonationMode::UserInfo,
    ImpersonationMode::Legacy,
];

impl Impersonation {
    /// All ways, or without `is_constrained` (a feature gate) the old one.
    pub fn new(authorizer: Arc<dyn Authorizer>, clock: &Clock, is_constrained: bool) -> Impersonation {
        let modes = if is_constrained { ALL } else { &[ImpersonationMode::Legacy] };
        let known = Mutex::default();
        let metrics = ImpersonationMetrics::default();
        Impersonation { authorizer, clock: clock.clone(), modes, known, metrics }
    }

    /// Whom `user` acts as from now on, who wants to be `wanted` for what `info` asks.
    ///
    /// # Errors
    /// 403 of the first way that refused.
    pub(super) async fn find(
        &self,
        wanted: &UserInfo,
        user: &UserInfo,
        info: &RequestInfo,
    ) -> Result<Acted, Status> {
        let start = self.clock.elapsed();
        let last = self.lock().get(&user.name).copied();
        let others = self.modes.iter().copied().filter(|mode| Some(*mode) != last);
        let mut refusal = None;
        for mode in last.into_iter().chain(others) {
            match self.try_mode(mode, wanted, user, info).await {
                Ok(None) => {}
                Ok(Some(acted)) => {
                    self.remember(user, mode);
                    self.metrics.attempted(mode.name(), true, self.clock.elapsed().saturating_sub(start));
                    return Ok(acted);
                }
                Err(status) => drop(refusal.get_or_insert(status)),
            }
        }
        self.metrics.attempted("", false, self.clock.elapsed().saturating_sub(start));
        Err(refusal.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
    }

    /// Nothing when the way is not for such users.
    async fn try_mode(
        &self,
        mode: ImpersonationMode,
        wanted: &UserInfo,
        user: &UserInfo,
        info: &RequestInfo,
    ) -> Result<Option<Acted>, Status> {
        if !mode.leads_to(wanted, user) {
            return Ok(None);
        }
        let shown = (mode == ImpersonationMode::AssociatedNode).then(|| without_its_node(user));
        let ask = Ask { all: self, mode, user: shown.as_ref().unwrap_or(user) };
        if mode != ImpersonationMode::Legacy {
            let verb = format!("impersonate-on:{}:{}", mode.name(), info.verb);
            ask.check(RequestInfo { verb, ..info.clone() }).await?;
        }
        let acted = ask.identity(wanted).await?;
        let constraint = (mode != ImpersonationMode::Legacy).then(|| mode.verb());
        Ok(Some(Acted { user: Arc::new(acted), constraint }))
    }

    fn remember(&self, user: &UserInfo, mode: ImpersonationMode) {
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN_MODES {
            known.clear();
        }
        known.insert(user.name.clone(), mode);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, ImpersonationMode>> {
        self.known.lock()
    }
}

impl Render for Impersonation {
    fn render(&self, out: &mut String) {
        self.metrics.render(out);
    }
}

impl ImpersonationMode {
    fn name(self) -> &'static str {
        self.verb().strip_prefix("impersonate:").unwrap_or("legacy")
    }

    fn verb(self) -> &'static str {
        match self {
            ImpersonationMode::AssociatedNode => "impersonate:associated-node",
            ImpersonationMode::ArbitraryNode => "impersonate:arbitrary-node",
            ImpersonationMode::ServiceAccount => "impersonate:serviceaccount",
            ImpersonationMode::UserInfo => "impersonate:user-info",
            ImpersonationMode::Legacy => "impersonate",
        }
    }

    /// Whether `user` could become `wanted` in this way, whatever is allowed.
    fn leads_to(self, wanted: &UserInfo, user: &UserInfo) -> bool {
        let is_name_alone = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        match self {
            ImpersonationMode::AssociatedNode => {
                let own = user.extra.get(NODE_NAME).filter(|_| split_username(&user.name).is_some());
                let own = own.and_then(|values| <&[String; 1]>::try_from(&values[..]).ok());
                is_name_alone && node.is_some() && own.map(|[name]| name.as_str()) == node
            }
            ImpersonationMode::ArbitraryNode => is_name_alone && node.is_some(),
            ImpersonationMode::ServiceAccount => is_name_alone && split_username(&wanted.name).is_some(),
            // What Kubernetes itself has a form for has a way of its own.
            ImpersonationMode::UserInfo => node.is_none() && split_username(&wanted.name).is_none(),
            ImpersonationMode::Legacy => true,
        }
    }
}

/// What must be allowed in one way.
struct Ask<'a> {
    all: &'a Impersonation,
    mode: ImpersonationMode,
    user: &'a UserInfo,
}

impl Ask<'_> {
    /// Every part of an identity; then the whole, with what the server knows without being told.
    async fn identity(&self, wanted: &UserInfo) -> Result<UserInfo, Status> {
        let mut acted = wanted.clone();
        self.name(wanted, &mut acted).await?;
        if !wanted.uid.is_empty() {
            self.check(self.attribute(AUTHENTICATION, "uids", &wanted.uid)).await?;
        }
        self.groups(wanted).await?;
        self.extra(wanted).await?;
        complete(&mut acted);
        Ok(acted)
    }

    async fn name(&self, wanted: &UserInfo, acted: &mut UserInfo) -> Result<(), Status> {
        let mut asked = self.attribute(self.group(), "users", &wanted.name);
        if let Some(node) = node_name(&wanted.name).filter(|_| self.mode != ImpersonationMode::Legacy) {
            // A service account on any of its nodes is as good as on another.
            let name = if self.mode == ImpersonationMode::AssociatedNode { "*" } else { node };
            (asked.resource, asked.name) = ("nodes".into(), name.into());
            acted.groups = vec!["system:nodes".into()];
        }
        if let Some((namespace, name)) = split_username(&wanted.name) {
            asked.resource = "serviceaccounts".into();
            (asked.namespace, asked.name) = (namespace.into(), name.into());
            if wanted.groups.is_empty() {
                acted.groups = service_account::groups(namespace).map(Arc::from).to_vec();
            }
        }
        self.check(asked).await
    }

    async fn groups(&self, wanted: &UserInfo) -> Result<(), Status> {
        let asked = |group: &str| self.attribute(self.group(), "groups", group);
        let has = |name: &str| wanted.groups.iter().any(|group| &**group == name);
        if self.mode != ImpersonationMode::Legacy {
            if has("") {
                return Err(self.refused(&asked(""), "impersonating the empty string group is not allowed"));
            }
            if has("system:masters") {
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refused(&asked("system:masters"), why));
            }
            if wanted.groups.len() >= MANY && self.check(asked("*")).await.is_ok() {
                return Ok(());
            }
        }
        for group in &wanted.groups {
            self.check(asked(group)).await?;
        }
        Ok(())
    }

    async fn extra(&self, wanted: &UserInfo) -> Result<(), Status> {
        let asked = |key: &str, value: &str| RequestInfo {
            subresource: key.into(),
            ..self.attribute(AUTHENTICATION, "userextras", value)
        };
        if self.mode != ImpersonationMode::Legacy && !wanted.extra.is_empty() {
            if let Some(why) = wrong_extra(wanted) {
                return Err(self.refused(&asked("", ""), &why));
            }
            let values: usize = wanted.extra.values().map(Vec::len).sum();
            if values >= MANY && self.check(asked("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in &wanted.extra {
            for value in values {
                self.check(asked(key, value)).await?;
            }
        }
        Ok(())
    }

    /// Names and groups have moved to the group of users.
    fn group(&self) -> &'static str {
        if self.mode == ImpersonationMode::Legacy { "" } else { AUTHENTICATION }
    }

    fn attribute(&self, group: &str, resource: &str, name: &str) -> RequestInfo {
        RequestInfo {
            is_resource_request: true,
            verb: self.mode.verb().into(),
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            name: name.into(),
            ..RequestInfo::default()
        }
    }

    async fn check(&self, info: RequestInfo) -> Result<(), Status> {
        let Impersonation { authorizer, clock, metrics, .. } = self.all;
        let start = clock.elapsed();
        let decision = authorizer.authorize(self.user, &info).wait().await;
        let is_allowed = decision.is_allowed();
        metrics.authorized(self.mode.name(), is_allowed, clock.elapsed().saturating_sub(start));
        match decision {
            Decision::Allow(_) => Ok(()),
            Decision::Failed { error, reason, .. } if reason.is_empty() => Err(self.refused(&info, &error)),
            Decision::Failed { error, reason, .. } => Err(self.refused(&info, &format!("{error}: {reason}"))),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => Err(self.refused(&info, &reason)),
        }
    }

    fn refused(&self, info: &RequestInfo, why: &str) -> Status {
        forbidden(self.user, info, why)
    }
}

/// With the group that everybody or nobody is in.
fn complete(user: &mut UserInfo) {
    let missing = match &*user.name {
        "system:anonymous" => Some(UNAUTHENTICATED),
        _ => Some(AUTHENTICATED).filter(|_| !user.is_member_of(UNAUTHENTICATED)),
    };
    if let Some(group) = missing.filter(|group| !user.is_member_of(group)) {
        user.groups.push(group.into());
    }
}

/// What is wrong with extras that a constrained way takes only well formed.
fn wrong_extra(wanted: &UserInfo) -> Option<String> {
    wanted.extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".into());
        }
        if let Some(why) = names::domain_prefixed_path(key).first() {
            return Some(format!("impersonating an invalid key in extra is not allowed: extra.key: {why}"));
        }
        if *key != key.to_lowercase() {
            return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
        }
        match &values[..] {
            [] => Some("impersonating empty values in extra is not allowed".into()),
            values if values.iter().any(String::is_empty) => {
                Some("impersonating the empty string value in extra is not allowed".into())
            }
            _ => None,
        }
    })
}

fn node_name(username: &str) -> Option<&str> {
    let name = username.strip_prefix("system:node:")?;
    names::dns1123_subdomain(name).is_empty().then_some(name)
}

/// It was looked at whether the node is its own: authorizers see that it has one, and not which.
fn without_its_node(user: &UserInfo) -> UserInfo {
    let keys = user.extra.keys().cloned().collect();
    let extra = [("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)].into();
    UserInfo { extra, ..user.clone() }
}
