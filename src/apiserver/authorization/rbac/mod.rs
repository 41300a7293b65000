//! The RBAC authorizer (`plugin/pkg/auth/authorizer/rbac`): roles and bindings, kept in memory by a watch on
//! each of the four kinds, so that a request costs a few lookups and no wait.

mod index;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sync::{RwLock, RwLockReadGuard};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use crate::authorizer::{Allowed, Authorizer, AuthorizerReply, Decision, UserRules};
use crate::registry::Registry;
use crate::request::RequestInfo;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::user::UserInfo;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use apis::rbac::bootstrap_policy::{POLICY, STARTING};
use apis::rbac::policy_rule::{PolicyRule, ResourceRequest};
use apis::scheme::Scheme;
use clock::Clock;
use index::{RbacIndex, Slot};

/// How long a watch that ended or failed is left alone.
const RETRY: Duration = Duration::from_millis(200);
/// As in `--authorization-mode`.
const MODE: &str = "RBAC";
const GROUP: &str = "rbac.authorization.k8s.io";
/// The kinds that RBAC reads.
const KINDS: [(&str, Slot); 4] = [
    ("roles", Slot::Roles),
    ("clusterroles", Slot::ClusterRoles),
    ("rolebindings", Slot::RoleBindings),
    ("clusterrolebindings", Slot::ClusterRoleBindings),
];

/// Constants that are worked out when they are first needed: every cluster starts with the same.
static POLICY_INDEX: LazyLock<RbacIndex> = LazyLock::new(|| RbacIndex::of_policy(&POLICY));

/// Decides by roles and bindings. Dropped, its watches end.
pub struct Rbac {
    known: Arc<RwLock<KnownRules>>,
    watches: Vec<JoinHandle<()>>,
}

/// What it decides by. A server stores the roles and bindings that it starts with when somebody first asks
/// for one of their kinds; until it has heard of them all, they count as if they were stored.
struct KnownRules {
    index: RbacIndex,
    /// Of which kinds it has heard of all that there is, by [`Slot`].
    heard: [bool; 4],
    /// Whether it once knew as many as every server starts with. That is for good (upstream's hook
    /// `rbac/bootstrap-roles` is done once): what users then delete is theirs to delete.
    has_known_all: bool,
}

impl KnownRules {
    fn index(&self) -> &RbacIndex {
        if self.heard == [true; 4] { &self.index } else { &POLICY_INDEX }
    }

    /// Whether a kind has as many objects as every server starts with.
    fn is_complete(&self, slot: Slot) -> bool {
        self.index.len(slot) >= POLICY_INDEX.len(slot)
    }

    fn note_all(&mut self) {
        let is_complete = self.heard != [true; 4]
            || (self.is_complete(Slot::ClusterRoles) && self.is_complete(Slot::ClusterRoleBindings));
        self.has_known_all |= is_complete;
    }
}

impl Rbac {
    /// Starts to watch. Needs a tokio runtime.
    ///
    /// In a store that has roles or bindings, what is stored counts, and nothing of a kind before its first
    /// list has come.
    pub fn start(registry: &Registry, scheme: &Scheme, clock: &Clock) -> Arc<Rbac> {
        let kind = |(plural, slot)| Some((scheme.resource(GROUP, "v1", plural)?, slot));
        let kinds: Vec<(Arc<Kind>, Slot)> = KINDS.into_iter().filter_map(kind).collect();
        let is_new = kinds.iter().all(|(kind, _)| registry.is_known_to_be_empty(kind));
        let mut heard = [true; 4];
        kinds.iter().for_each(|(_, slot)| heard[*slot as usize] = !is_new);
        let mut known = KnownRules { heard, index: RbacIndex::default(), has_known_all: false };
        known.note_all();
        let known = Arc::new(RwLock::new(known));
        let watch = |(kind, slot): (Arc<Kind>, Slot)| {
            let view = RbacView { known: known.clone(), slot };
            clock.spawn(follow(registry.clone(), kind, clock.named("apiserver: RBAC"), view))
        };
        Arc::new(Rbac { watches: kinds.into_iter().map(watch).collect(), known })
    }

    /// Whether it has known as many roles and bindings as every cluster starts with.
    pub fn knows_bootstrap_roles(&self) -> bool {
        self.known().has_known_all
    }

    fn known(&self) -> RwLockReadGuard<'_, KnownRules> {
        self.known.read()
    }

    fn decide(&self, user: &UserInfo, info: &RequestInfo) -> Decision {
        let known = self.known();
        let mut missing: Vec<String> = Vec::new();
        for (grant, role) in known.index().grants_of(user, &info.namespace) {
            match role {
                Ok(role) if role.rules.iter().any(|rule| allows(rule, info)) => {
                    return Decision::Allow(Allowed { by: MODE, reason: Some(grant.reason()), before: None });
                }
                Ok(_) => {}
                Err(error) if missing.iter().any(|known| error == *known) => {}
                Err(error) => missing.push(error.into()),
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
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        AuthorizerReply::Now(self.decide(user, info))
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let known = self.known();
        let mut rules = UserRules::default();
        for (_, role) in known.index().grants_of(user, namespace) {
            match role {
                Ok(role) => rules.rules.extend(role.rules.iter().cloned()),
                Err(missing) => rules.errors.push(missing.into()),
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
struct RbacView {
    known: Arc<RwLock<KnownRules>>,
    slot: Slot,
}

async fn follow(registry: Registry, kind: Arc<Kind>, clock: Clock, view: RbacView) {
    let options = ListOptions {
        send_initial_events: Some(true),
        resource_version_match: Some("NotOlderThan".into()),
        allow_watch_bookmarks: true,
        ..ListOptions::default()
    };
    loop {
        let are_stored = registry.has_made(&STARTING);
        match registry.watch(&kind, "", &options).await {
            Ok(events) => view.read(events, are_stored).await,
            Err(error) => tracing::warn!(%error, kind = ?kind, "the RBAC authorizer cannot watch"),
        }
        clock.sleep(RETRY).await;
    }
}

impl RbacView {
    /// Takes events until the watch ends. The first list replaces what was there once it is complete, so
    /// that a watch that starts anew takes nobody's permissions away meanwhile. `are_stored`: what the
    /// server starts with was stored before this watch began.
    async fn read(&self, mut events: Receiver<WatchEvent>, are_stored: bool) {
        let mut initial = Some(HashMap::new());
        while let Some(event) = events.recv().await {
            if !self.take(event, &mut initial, are_stored) {
                return;
            }
        }
    }

    /// Whether the watch goes on.
    fn take(
        &self,
        event: WatchEvent,
        initial: &mut Option<HashMap<String, Arc<Object>>>,
        are_stored: bool,
    ) -> bool {
        let mut known = self.known.write();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => match initial {
                Some(list) => drop(list.insert(object.key(), object)),
                None => known.index.set(self.slot, object),
            },
            WatchEvent::Deleted(object) => match initial {
                Some(list) => drop(list.remove(&object.key())),
                None => known.index.remove(self.slot, &object.key()),
            },
            WatchEvent::Bookmark(bookmark) => {
                if let Some(list) = initial.take_if(|_| bookmark.initial_events_end) {
                    known.index.replace(self.slot, list);
                }
            }
            WatchEvent::Error(_) => return false,
        }
        let slot = self.slot as usize;
        if !known.heard[slot] {
            // Whoever deletes one of them asks for it first, and so has them all made before.
            known.heard[slot] = known.is_complete(self.slot) || (are_stored && initial.is_none());
        }
        known.note_all();
        true
    }
}
