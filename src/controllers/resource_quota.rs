//! The quota controller (`pkg/controller/resourcequota`): counts again what is used.
//!
//! Admission charges; this gives back. It looks when a quota changes, when something that a quota counts is
//! deleted or uses less, and every few minutes. Kinds are watched from when a quota first counts them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use sync::Mutex;

use super::controller::{self, Action, Change, Controller, ControllerRun, Enqueue, Key, Reconcile, Watches};
use super::options::ControllerManagerOptions;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};
use apimachinery::options::ListOptions;
use apimachinery::quantity::Quantity;
use apimachinery::status::Status;
use apis::core::pod::PODS;
use apis::core::resource_quota::RESOURCE_QUOTAS;
use apis::kind::Kind;
use apis::quota::{ClaimSurroundings, Evaluator, measured_resources, scopes_of, to_value};
use apis::resource::device_class::DEVICE_CLASSES;
use apis::resources::{Amounts, add, amounts};
use apis::scheme::Scheme;
use client_go::ComponentContext;
use client_go::lister::Lister;
use client_go::shared_informer::HandlerRegistration;

/// What was charged may be on its way into the store: for so long nothing is given back.
const IN_FLIGHT: Duration = Duration::from_millis(50);
/// When a kind that a quota counts is looked for again.
const UNKNOWN_KIND: Duration = Duration::from_secs(5);
/// When is counted again what was counted before deletions were told of: one may have gone unseen.
const UNSYNCED_KIND: Duration = Duration::from_millis(100);

/// Starts it.
pub(crate) fn spawn(ctx: &ComponentContext, scheme: Arc<Scheme>, options: &ControllerManagerOptions) {
    let monitors = Arc::new(Monitors {
        quotas: ctx.informers.informer(&RESOURCE_QUOTAS).lister(),
        watched: Mutex::default(),
        running: OnceLock::new(),
    });
    let controller = ResourceQuotaController {
        scheme,
        sync_period: options.resource_quota_sync_period,
        monitors: monitors.clone(),
        seen: Mutex::default(),
    };
    let running = controller::spawn_workers(ctx, controller, options.concurrent_resource_quota_syncs);
    if monitors.running.set(running).is_err() {
        unreachable!("it was made a moment ago");
    }
}

struct ResourceQuotaController {
    scheme: Arc<Scheme>,
    sync_period: Duration,
    monitors: Arc<Monitors>,
    /// The revision at which each quota was found to say too much. Bound: one entry for each quota.
    seen: Mutex<BTreeMap<Key, u64>>,
}

impl Controller for ResourceQuotaController {
    const NAME: &'static str = "resourcequota_primary";
    const EVENT_SOURCE: &'static str = "resource-quota-controller";
    const SERVICE_ACCOUNT: &'static str = "resourcequota-controller";

    fn watches(&self) -> Watches {
        Watches::none().maps(&RESOURCE_QUOTAS, |change: &Change<'_>, enqueue: &Enqueue| {
            let must_look = match change {
                Change::Updated { old, new } => {
                    let (old, new) = (old.to_value(), new.to_value());
                    // Admission's own charges need no second look.
                    old["spec"] != new["spec"] || old["status"]["hard"] != new["status"]["hard"]
                }
                _ => true,
            };
            if must_look {
                enqueue.now(change.object().key());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        // Not from the cache: what is freed may be told of before the charge that it undoes.
        // By a list: that is what its role allows.
        let quotas = ctx.client.list(&RESOURCE_QUOTAS, namespace, &ListOptions::default()).await?.items;
        let Some(quota) = quotas.iter().find(|quota| quota.metadata.name == name).cloned() else {
            self.seen().remove(key);
            return Ok(Action::Done);
        };
        let tree = quota.to_value();
        let hard = amounts(&tree, "spec.hard");
        let (used, again) = self.count(ctx, namespace, &tree, &hard).await?;
        let was = amounts(&tree, "status.used");
        let gives_back = used.iter().any(|(name, amount)| was.get(name).is_some_and(|was| was > amount));
        if gives_back && !self.is_settled(key, &quota) {
            return Ok(Action::RequeueAfter(IN_FLIGHT));
        }
        self.seen().remove(key);
        let is_dirty =
            hard != amounts(&tree, "status.hard") || used != was || tree["status"]["used"].is_null();
        if is_dirty {
            update(ctx, &tree, &hard, &used).await?;
        }
        Ok(Action::RequeueAfter(again))
    }
}

impl ResourceQuotaController {
    /// What is used of each thing that is limited, and when to count again.
    async fn count(
        &self,
        ctx: &Reconcile,
        namespace: &str,
        quota: &Value,
        hard: &Amounts,
    ) -> Result<(Amounts, Duration), Status> {
        let resources: BTreeSet<(Arc<str>, Arc<str>)> = hard
            .keys()
            .flat_map(|name| measured_resources(name))
            .map(|resource| (resource.group, resource.resource))
            .collect();
        let mut used = Amounts::new();
        let mut again = self.sync_period;
        for (group, resource) in resources {
            let Some(kind) = self.kind(&group, &resource) else {
                again = again.min(UNKNOWN_KIND);
                continue;
            };
            // Looked at before the list: what is deleted after it is told of then.
            if !self.monitors.is_watched(&kind) {
                again = again.min(UNSYNCED_KIND);
            }
            let mut evaluator = Evaluator::of(&kind);
            let items = ctx.client.list(&kind, namespace, &ListOptions::default()).await?.items;
            if evaluator.looks_around() {
                evaluator = evaluator.among(around(ctx, namespace, &items).await?);
            }
            let usage = usage_of(&evaluator, ctx, quota, hard, &items);
            add(&mut used, &usage);
        }
        Ok((used, again))
    }

    /// The version in which a resource is stored.
    fn kind(&self, group: &str, resource: &str) -> Option<Arc<Kind>> {
        let is_meant = |kind: &Arc<Kind>| {
            &*kind.group_version.group == group && &*kind.plural == resource && kind.namespaced
        };
        self.scheme.storage_kinds().into_iter().find(is_meant)
    }

    /// Whether a quota that says too much did so a moment ago already, unchanged: then no charge is in
    /// flight.
    fn is_settled(&self, key: &Key, quota: &Object) -> bool {
        let revision = quota.metadata.resource_version;
        self.seen().insert(key.clone(), revision) == Some(revision)
    }

    fn seen(&self) -> sync::MutexGuard<'_, BTreeMap<Key, u64>> {
        self.seen.lock()
    }
}

/// What decides beside claims of devices what they use. By lists, since that is what the role allows.
async fn around(
    ctx: &Reconcile,
    namespace: &str,
    claims: &[Arc<Object>],
) -> Result<ClaimSurroundings, Status> {
    let trees =
        |objects: &[Arc<Object>]| -> Vec<Value> { objects.iter().map(|object| object.to_value()).collect() };
    let all = ListOptions::default();
    let classes = trees(&ctx.client.list(&DEVICE_CLASSES, "", &all).await?.items);
    let claims = trees(claims);
    if !claims.iter().any(ClaimSurroundings::wants_pod_of) {
        return Ok(ClaimSurroundings::new(&classes, vec![], vec![]));
    }
    let pods = trees(&ctx.client.list(&PODS, namespace, &all).await?.items);
    Ok(ClaimSurroundings::new(&classes, pods, claims))
}

fn usage_of(
    evaluator: &Evaluator,
    ctx: &Reconcile,
    quota: &Value,
    hard: &Amounts,
    items: &[Arc<Object>],
) -> Amounts {
    let scopes = scopes_of(quota);
    let now = ctx.clock.now();
    let names: Vec<&String> = hard.keys().filter(|name| evaluator.measures(name)).collect();
    let mut used: Amounts = names.iter().map(|name| ((*name).clone(), Quantity::default())).collect();
    for object in items {
        let tree = object.to_value();
        if scopes.iter().all(|scope| evaluator.is_in(scope, &tree)) {
            let usage = evaluator.usage(&tree, now);
            add(&mut used, &apis::quota::mask(&usage, names.iter().copied()));
        }
    }
    used
}

/// With the revision that was counted for: what is charged meanwhile makes it fail, and count again.
async fn update(ctx: &Reconcile, quota: &Value, hard: &Amounts, used: &Amounts) -> Result<(), Status> {
    let metadata = &quota["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str());
    let mut new = quota.clone();
    new["status"] = serde_json::json!({"hard": to_value(hard), "used": to_value(used)});
    let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
    ctx.client.update_status(&RESOURCE_QUOTAS, namespace, name, new).await.map(drop)
}

/// The kinds that quotas count (`QuotaMonitor`).
struct Monitors {
    quotas: Lister,
    /// By where they are stored. Bound: one entry for each kind.
    watched: Mutex<BTreeMap<Arc<str>, HandlerRegistration>>,
    running: OnceLock<ControllerRun>,
}

impl Monitors {
    /// Whether each deletion of an object of `kind` makes the quotas of its namespace look. If not, it will:
    /// as soon as its informer has synced, and the controller has started.
    fn is_watched(&self, kind: &Arc<Kind>) -> bool {
        let Some(running) = self.running.get() else { return false };
        let mut watched = self.watched.lock();
        let registration = watched.entry(kind.storage_prefix().clone()).or_insert_with(|| {
            let (quotas, evaluator) = (self.quotas.clone(), Evaluator::of(kind));
            running.watch(kind, move |change, enqueue| replenish(&quotas, &evaluator, change, enqueue))
        });
        registration.has_synced()
    }
}

fn replenish(quotas: &Lister, evaluator: &Evaluator, change: &Change<'_>, enqueue: &Enqueue) {
    let namespace = &change.object().metadata.namespace;
    let quotas = quotas.list(namespace, &Selector::everything());
    let is_freed = |change: &Change<'_>| match change {
        Change::Added(_) => false,
        Change::Updated { old, new } => evaluator.frees(&old.to_value(), &new.to_value()),
        Change::Deleted(_) => true,
    };
    if quotas.is_empty() || !is_freed(change) {
        return;
    }
    for quota in quotas {
        let hard = amounts(&quota.to_value(), "spec.hard");
        if hard.keys().any(|name| evaluator.measures(name)) {
            enqueue.now(quota.key());
        }
    }
}
