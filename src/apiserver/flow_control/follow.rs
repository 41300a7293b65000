//! The configuration as it is now, and what FlowSchemas say of their level (`apf_controller.go`).

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use http::HeaderValue;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use super::level::{PriorityLevel, PriorityLevelView};
use super::rules::FlowSchemaView;
use super::{Configuration, Current, FlowSchema, GROUP};
use crate::apimachinery::object::Object;
use crate::apimachinery::options::ListOptions;
use crate::apimachinery::status::Status;
use crate::apimachinery::watch::WatchEvent;
use crate::apis::kind::Kind;
use crate::apis::scheme::Scheme;
use crate::apiserver::registry::{Part, Registry};
use crate::apiserver::request::RequestContext;
use crate::clock::Clock;

/// How long a watch that ended or failed is left alone.
const RETRY: Duration = Duration::from_millis(200);
/// Both kinds have these, or they are made again.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// Keeps the configuration.
#[derive(Clone)]
pub struct Follower {
    /// Requests at once, of all levels together.
    max_requests: u64,
    registry: Registry,
    schemas: Option<Arc<Kind>>,
    levels: Option<Arc<Kind>>,
    clock: Clock,
    current: Current,
}

impl Follower {
    /// Of a server's kinds; one that does not serve them classifies nothing.
    pub fn new(max_requests: u64, registry: &Registry, scheme: &Arc<Scheme>, clock: &Clock) -> Follower {
        let kind = |plural: &str| scheme.resource(GROUP, "v1", plural);
        Follower {
            max_requests,
            registry: registry.clone(),
            schemas: kind("flowschemas"),
            levels: kind("prioritylevelconfigurations"),
            clock: clock.clone(),
            current: Arc::new(RwLock::new(Arc::default())),
        }
    }

    /// What holds now.
    pub fn current(&self) -> Arc<Configuration> {
        self.current.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Reads all there is, making what every server has; then follows changes in a task of its own.
    pub async fn start(&self) -> JoinHandle<()> {
        if let (Some(schemas), Some(levels)) = (&self.schemas, &self.levels) {
            for kind in [levels, schemas] {
                if let Err(error) = self.registry.bootstrap(kind).await {
                    tracing::warn!(%error, "priority and fairness has no objects");
                }
            }
            self.reload(schemas, levels).await;
        }
        let follower = self.clone();
        tokio::spawn(async move { follower.follow().await })
    }

    async fn follow(&self) {
        let (Some(schemas), Some(levels)) = (&self.schemas, &self.levels) else { return };
        loop {
            let options = ListOptions::default();
            let watches = futures::join!(
                self.registry.watch(schemas, "", &options),
                self.registry.watch(levels, "", &options)
            );
            if let (Ok(mut of_schemas), Ok(mut of_levels)) = watches {
                while next_change(&mut of_schemas, &mut of_levels).await {
                    self.reload(schemas, levels).await;
                }
            }
            self.clock.sleep(RETRY).await;
        }
    }

    async fn reload(&self, schemas: &Arc<Kind>, levels: &Arc<Kind>) {
        let both = async {
            let of_schemas = self.read(schemas).await?;
            Ok::<_, Status>((of_schemas, self.read(levels).await?))
        };
        let (of_schemas, of_levels) = match both.await {
            Ok(objects) => objects,
            Err(error) => return tracing::warn!(%error, "priority and fairness cannot read its objects"),
        };
        let configuration = Arc::new(configure(self.max_requests, &self.current(), &of_schemas, &of_levels));
        *self.current.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = configuration.clone();
        for schema in of_schemas.iter().filter(|schema| is_outdated(schema, &configuration)) {
            self.say_whether_dangling(schemas, schema).await;
        }
    }

    /// All objects; those that must be there are made again when somebody took them away.
    async fn read(&self, kind: &Arc<Kind>) -> Result<Arc<[Arc<Object>]>, Status> {
        let list =
            || async { Ok::<_, Status>(self.registry.list(kind, "", &ListOptions::default()).await?.items) };
        let found = list().await?;
        let is_there = |name: &&str| found.iter().any(|object| object.metadata.name == **name);
        if MANDATORY.iter().all(is_there) {
            return Ok(found);
        }
        self.registry.restore(kind).await?;
        list().await
    }

    /// The registry says it with every write of a FlowSchema.
    async fn say_whether_dangling(&self, kind: &Arc<Kind>, schema: &Object) {
        let change =
            |current: Option<&Value>| -> Result<Value, Status> { Ok(current.cloned().unwrap_or_default()) };
        let (ctx, name) = (RequestContext::default(), &schema.metadata.name);
        let written = self.registry.update(&ctx, kind, "", name, Part::Main, &change, &(), false).await;
        if let Err(error) = written.map(drop)
            && !error.is_not_found()
        {
            tracing::warn!(%error, name, "cannot say whether a FlowSchema's level exists");
        }
    }
}

/// Waits for a change; several at once are one. False when a watch ended.
async fn next_change(one: &mut Receiver<WatchEvent>, other: &mut Receiver<WatchEvent>) -> bool {
    let event = tokio::select! { event = one.recv() => event, event = other.recv() => event };
    let mut is_alive = matches!(event, Some(event) if !matches!(event, WatchEvent::Error(_)));
    for watch in [one, other] {
        while let Ok(event) = watch.try_recv() {
            is_alive &= !matches!(event, WatchEvent::Error(_));
        }
    }
    is_alive
}

fn configure(
    max_requests: u64,
    before: &Configuration,
    schemas: &[Arc<Object>],
    levels: &[Arc<Object>],
) -> Configuration {
    let levels = levels_of(max_requests, before, levels);
    let make = |object: &Arc<Object>| {
        let spec = read::<FlowSchemaView>(object).spec;
        let level = levels.get(&spec.priority_level_configuration.name)?.clone();
        let header = HeaderValue::from_str(&object.metadata.uid).ok()?;
        Some(FlowSchema { name: object.metadata.name.clone(), header, spec, level })
    };
    let mut schemas: Vec<FlowSchema> = schemas.iter().filter_map(make).collect();
    schemas.sort_by(|a, b| (a.spec.matching_precedence, &a.name).cmp(&(b.spec.matching_precedence, &b.name)));
    Configuration { schemas, levels }
}

/// Levels that stay keep their seats and whoever waits.
fn levels_of(
    max_requests: u64,
    before: &Configuration,
    objects: &[Arc<Object>],
) -> BTreeMap<String, Arc<PriorityLevel>> {
    let views: Vec<PriorityLevelView> = objects.iter().map(|object| read(object)).collect();
    let shares = views.iter().map(|view| view.spec.shares()).sum();
    let mut levels = BTreeMap::new();
    for (object, view) in objects.iter().zip(&views) {
        let (name, uid) = (&object.metadata.name, &object.metadata.uid);
        let known = before.levels.get(name).filter(|level| level.uid == **uid).cloned();
        let level = known.unwrap_or_else(|| Arc::new(PriorityLevel::new(name, uid)));
        level.set_limits(view.spec.limits(max_requests, shares));
        levels.insert(name.clone(), level);
    }
    levels
}

/// An object that says nothing intelligible says nothing.
fn read<T: DeserializeOwned + Default>(object: &Object) -> T {
    serde_json::from_slice(object.stored()).unwrap_or_default()
}

fn is_outdated(schema: &Object, configuration: &Configuration) -> bool {
    let view = read::<FlowSchemaView>(schema);
    let exists = configuration.levels.contains_key(&view.spec.priority_level_configuration.name);
    let wanted = if exists { "False" } else { "True" };
    !view.status.conditions.iter().any(|one| one.r#type == "Dangling" && one.status == wanted)
}
