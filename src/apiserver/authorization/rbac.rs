//! The RBAC authorizer (`plugin/pkg/auth/authorizer/rbac`): roles and bindings, kept compiled in memory by
//! a watch on each of the four kinds, so that a request costs a few string comparisons and no wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use super::rules::{CompiledRules, RbacObjects};
use super::{Allowed, Authorizer, Decision};
use crate::apimachinery::object::Object;
use crate::apimachinery::options::ListOptions;
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::watch::WatchEvent;
use crate::apis::kind::Kind;
use crate::apis::scheme::Scheme;
use crate::apiserver::registry::Registry;
use crate::apiserver::request::RequestInfo;
use crate::clock::Clock;

/// How long a watch that ended or failed is left alone.
const RETRY: Duration = Duration::from_millis(200);
/// Where the objects of a kind are kept.
type Slot = fn(&mut RbacObjects) -> &mut BTreeMap<String, Arc<Object>>;

/// The kinds that RBAC reads.
const KINDS: [(&str, Slot); 4] = [
    ("roles", |objects| &mut objects.roles),
    ("clusterroles", |objects| &mut objects.cluster_roles),
    ("rolebindings", |objects| &mut objects.role_bindings),
    ("clusterrolebindings", |objects| &mut objects.cluster_role_bindings),
];

/// Decides by roles and bindings. Dropped, its watches end.
pub struct Rbac {
    compiled: Arc<RwLock<Arc<CompiledRules>>>,
    watches: Vec<JoinHandle<()>>,
}

impl Rbac {
    /// Starts to watch; until a kind's first list has come nothing of it counts. Needs a tokio runtime.
    pub fn start(registry: &Registry, scheme: &Scheme, clock: &Clock) -> Arc<Rbac> {
        let compiled = Arc::default();
        let objects: Arc<Mutex<RbacObjects>> = Arc::default();
        let watch = |(plural, slot): (&str, Slot)| {
            let kind = scheme.resource("rbac.authorization.k8s.io", "v1", plural)?;
            let view = View { objects: objects.clone(), compiled: Arc::clone(&compiled), slot };
            Some(tokio::spawn(follow(registry.clone(), kind, clock.clone(), view)))
        };
        let watches = KINDS.into_iter().filter_map(watch).collect();
        Arc::new(Rbac { compiled, watches })
    }
}

impl Drop for Rbac {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

impl Authorizer for Arc<Rbac> {
    fn authorize(&self, user: &UserInfo, info: &RequestInfo) -> Decision {
        let rules = self.compiled.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        match rules.allows(user, info) {
            Ok(reason) => Decision::Allow(Allowed { by: "RBAC", reason: Some(reason) }),
            Err(missing) if missing.is_empty() => Decision::NoOpinion(String::new()),
            Err(missing) if missing.len() == 1 => Decision::NoOpinion(format!("RBAC: {}", missing[0])),
            Err(missing) => Decision::NoOpinion(format!("RBAC: [{}]", missing.join(", "))),
        }
    }
}

/// What one watch fills.
struct View {
    objects: Arc<Mutex<RbacObjects>>,
    compiled: Arc<RwLock<Arc<CompiledRules>>>,
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
        let mut initial = Some(BTreeMap::new());
        while let Some(event) = events.recv().await {
            let mut batch = vec![event];
            while let Ok(event) = events.try_recv() {
                batch.push(event);
            }
            for event in batch {
                if !self.take(event, &mut initial) {
                    return;
                }
            }
            if initial.is_none() {
                self.compile();
            }
        }
    }

    /// Whether the watch goes on.
    fn take(&self, event: WatchEvent, initial: &mut Option<BTreeMap<String, Arc<Object>>>) -> bool {
        let mut objects = self.objects.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let current = (self.slot)(&mut objects);
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                initial.as_mut().unwrap_or(current).insert(object.key(), object);
            }
            WatchEvent::Deleted(object) => {
                initial.as_mut().unwrap_or(current).remove(&object.key());
            }
            WatchEvent::Bookmark(bookmark) => {
                if let Some(list) = initial.take_if(|_| bookmark.initial_events_end) {
                    *current = list;
                }
            }
            WatchEvent::Error(_) => return false,
        }
        true
    }

    fn compile(&self) {
        let objects = self.objects.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let compiled = Arc::new(CompiledRules::compile(&objects));
        *self.compiled.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = compiled;
    }
}
