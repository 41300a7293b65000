//! The RBAC authorizer (`plugin/pkg/auth/authorizer/rbac`): roles and bindings, kept in memory by a watch on
//! each of the four kinds, so that a request costs a few lookups and no wait.

mod index;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use crate::apimachinery::object::Object;
use crate::apimachinery::options::ListOptions;
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::watch::WatchEvent;
use crate::apis::kind::Kind;
use crate::apis::rbac::bootstrap_policy;
use crate::apis::rbac::policy_rule::{PolicyRule, ResourceRequest};
use crate::apis::scheme::Scheme;
use crate::apiserver::authorizer::{Allowed, Answer, Authorizer, Decision, Rules};
use crate::apiserver::registry::Registry;
use crate::apiserver::request::RequestInfo;
use crate::clock::Clock;
use index::{Index, Slot};

/// How long a watch that ended or failed is left alone.
const RETRY: Duration = Duration::from_millis(200);
/// As in `--authorization-mode`.
const MODE: &str = "RBAC";
/// The kinds that RBAC reads.
const KINDS: [(&str, Slot); 4] = [
    ("roles", Slot::Roles),
    ("clusterroles", Slot::ClusterRoles),
    ("rolebindings", Slot::RoleBindings),
    ("clusterrolebindings", Slot::ClusterRoleBindings),
];

/// Decides by roles and bindings. Dropped, its watches end.
pub struct Rbac {
    index: Arc<RwLock<Index>>,
    watches: Vec<JoinHandle<()>>,
    /// How many ClusterRoles and bindings of them there are from the start.
    bootstrap: OnceLock<(usize, usize)>,
}

impl Rbac {
    /// Starts to watch; until a kind's first list has come nothing of it counts. Needs a tokio runtime.
    pub fn start(registry: &Registry, scheme: &Scheme, clock: &Clock) -> Arc<Rbac> {
        let index: Arc<RwLock<Index>> = Arc::default();
        let watch = |(plural, slot): (&str, Slot)| {
            let kind = scheme.resource("rbac.authorization.k8s.io", "v1", plural)?;
            let view = View { index: index.clone(), slot };
            Some(tokio::spawn(follow(registry.clone(), kind, clock.clone(), view)))
        };
        let watches = KINDS.into_iter().filter_map(watch).collect();
        Arc::new(Rbac { index, watches, bootstrap: OnceLock::new() })
    }

    /// Whether it has heard of as many roles and bindings as every cluster starts with.
    pub fn knows_bootstrap_roles(&self) -> bool {
        let (roles, bindings) = self.bootstrap.get_or_init(bootstrap_policy::counts);
        let index = self.index();
        index.len(Slot::ClusterRoles) >= *roles && index.len(Slot::ClusterRoleBindings) >= *bindings
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn decide(&self, user: &UserInfo, info: &RequestInfo) -> Decision {
        let index = self.index();
        let mut missing: Vec<String> = Vec::new();
        for (grant, role) in index.grants_of(user, &info.namespace) {
            match role {
                Ok(role) if role.rules.iter().any(|rule| allows(rule, info)) => {
                    return Decision::Allow(Allowed { by: MODE, reason: Some(grant.reason()) });
                }
                Ok(_) => {}
                Err(error) if missing.contains(&error) => {}
                Err(error) => missing.push(error),
            }
        }
        Decision::NoOpinion(match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        })
    }
}

impl Drop for Rbac {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> Answer<'a> {
        Answer::Now(self.decide(user, info))
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        let index = self.index();
        let mut rules = Rules::default();
        for (_, role) in index.grants_of(user, namespace) {
            match role {
                Ok(role) => rules.rules.extend(role.rules.iter().cloned()),
                Err(missing) => rules.errors.push(missing),
            }
        }
        rules
    }
}

/// Whether a rule allows what is asked for (`rbac.RuleAllows`).
pub fn allows(rule: &PolicyRule, info: &RequestInfo) -> bool {
    if !info.is_resource_request {
        return rule.allows_path(&info.verb, &info.path);
    }
    rule.allows(ResourceRequest {
        verb: &info.verb,
        group: &info.group,
        resource: &info.resource,
        subresource: &info.subresource,
        name: &info.name,
    })
}

/// What one watch fills.
struct View {
    index: Arc<RwLock<Index>>,
    slot: Slot,
}

async fn follow(registry: Registry, kind: Arc<Kind>, clock: Clock, view: View) {
    let options = ListOptions {
        send_initial_events: Some(true),
        resource_version_match: Some("NotOlderThan".into()),
        allow_watch_bookmarks: true,
        ..ListOptions::default()
    };
    loop {
        match registry.watch(&kind, "", &options).await {
            Ok(events) => view.read(events).await,
            Err(error) => tracing::warn!(%error, kind = ?kind, "the RBAC authorizer cannot watch"),
        }
        clock.sleep(RETRY).await;
    }
}

impl View {
    /// Takes events until the watch ends. The first list replaces what was there once it is complete, so
    /// that a watch that starts anew takes nobody's permissions away meanwhile.
    async fn read(&self, mut events: Receiver<WatchEvent>) {
        let mut initial = Some(HashMap::new());
        while let Some(event) = events.recv().await {
            if !self.take(event, &mut initial) {
                return;
            }
        }
    }

    /// Whether the watch goes on.
    fn take(&self, event: WatchEvent, initial: &mut Option<HashMap<String, Arc<Object>>>) -> bool {
        let mut index = self.index.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => match initial {
                Some(list) => drop(list.insert(object.key(), object)),
                None => index.set(self.slot, object),
            },
            WatchEvent::Deleted(object) => match initial {
                Some(list) => drop(list.remove(&object.key())),
                None => index.remove(self.slot, &object.key()),
            },
            WatchEvent::Bookmark(bookmark) => {
                if let Some(list) = initial.take_if(|_| bookmark.initial_events_end) {
                    index.replace(self.slot, list);
                }
            }
            WatchEvent::Error(_) => return false,
        }
        true
    }
}
