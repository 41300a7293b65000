//! The configuration as it is now, and what FlowSchemas say of their level (`apf_controller.go`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sync::RwLock;
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use super::configuration::{Current, FlowConfiguration, FlowSchema, GROUP, LevelConfiguration};
use super::demand::ADJUSTMENT_PERIOD;
use super::lending::{self, Lender};
use super::level::PriorityLevel;
use super::metrics::FlowControlMetrics;
use super::queue_set::Queuing;
use super::rules::FlowSchemaView;
use super::spec::{PriorityLevelSpec, PriorityLevelView};
use crate::registry::{Part, Registry};
use crate::request::RequestContext;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;

/// How long a watch that ended or failed is left alone.
const RETRY: Duration = Duration::from_millis(200);
/// How soon after a change what every server has is looked after.
const ENSURE_AFTER: Duration = Duration::from_secs(60);
/// Both kinds have these, or they are made again.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// Keeps the configuration, and lends seats by it.
#[derive(Clone)]
pub(super) struct Follower {
    /// Requests at once, of all levels together.
    max_requests: u64,
    registry: Registry,
    kinds: Option<[Arc<Kind>; 2]>,
    clock: Clock,
    current: Current,
    metrics: Arc<FlowControlMetrics>,
    /// A level that nobody wants is not used any more.
    drained: Arc<Notify>,
    /// The period for which seats were last lent.
    lent: Arc<AtomicU64>,
}

/// What is known of a level before what it gets.
struct Wanted {
    header: HeaderValue,
    spec: PriorityLevelSpec,
    queuing: Queuing,
    is_quiescing: bool,
}

impl Follower {
    /// Of a server's kinds; one that does not serve them classifies nothing.
    pub(super) fn new(
        max_requests: u64,
        registry: &Registry,
        scheme: &Arc<Scheme>,
        clock: &Clock,
        metrics: &Arc<FlowControlMetrics>,
    ) -> Follower {
        let kind = |plural: &str| scheme.resource(GROUP, "v1", plural);
        let kinds = kind("prioritylevelconfigurations").zip(kind("flowschemas"));
        Follower {
            max_requests,
            registry: registry.clone(),
            kinds: kinds.map(|(levels, schemas)| [levels, schemas]),
            clock: clock.clone(),
            current: Arc::new(RwLock::new(Arc::default())),
            metrics: metrics.clone(),
            drained: Arc::default(),
            lent: Arc::default(),
        }
    }

    /// What holds now.
    pub(super) fn current(&self) -> Arc<FlowConfiguration> {
        self.current.read().clone()
    }

    /// Reads all there is, making what every server has; then follows changes in a task of its own.
    pub(super) async fn start(&self) -> JoinHandle<()> {
        if let Some(kinds) = &self.kinds {
            for kind in kinds {
                if let Err(error) = self.registry.bootstrap(kind).await {
                    tracing::warn!(%error, "priority and fairness has no objects");
                }
            }
            self.reload(kinds).await;
        }
        let follower = self.clone();
        self.clock.spawn(async move { follower.follow().await })
    }

    /// Adjusts limits to the demand of the last period, once in each.
    pub(super) fn lend_if_due(&self, now: Duration) {
        let period = now.as_secs() / ADJUSTMENT_PERIOD.as_secs();
        if self.lent.load(Ordering::Relaxed) != period && self.lent.swap(period, Ordering::Relaxed) != period
        {
            self.lend(&self.current(), now, false);
        }
    }

    fn lend(&self, configuration: &FlowConfiguration, now: Duration, ends_period: bool) {
        let levels = || configuration.levels.values().map(|level| &level.requests);
        let lenders: Vec<Lender> = levels().map(|level| level.lender(now, ends_period)).collect();
        let adjustment = lending::adjust(&lenders);
        let adjusted = adjustment.current.iter().zip(&adjustment.targets);
        for (level, (current, target)) in levels().zip(adjusted) {
            level.set_current(now, *current, *target, self.max_requests);
        }
        self.metrics.fair_fraction.store(adjustment.fair_fraction.to_bits(), Ordering::Relaxed);
    }

    async fn follow(&self) {
        let Some(kinds) = &self.kinds else { return };
        let [levels, schemas] = kinds;
        loop {
            let options = ListOptions::default();
            let watches = futures::join!(
                self.registry.watch(schemas, "", &options),
                self.registry.watch(levels, "", &options)
            );
            if let (Ok(of_schemas), Ok(of_levels)) = watches {
                self.follow_changes(kinds, of_schemas, of_levels).await;
            }
            self.clock.sleep(RETRY).await;
        }
    }

    /// Until a watch ends. What every server has is looked after some time after a change, and not when
    /// nothing changes.
    async fn follow_changes(
        &self,
        kinds: &[Arc<Kind>; 2],
        mut of_schemas: Receiver<WatchEvent>,
        mut of_levels: Receiver<WatchEvent>,
    ) {
        // There may have been changes while nobody watched.
        let mut ensure_at = Some(self.clock.elapsed() + ENSURE_AFTER);
        loop {
            let ensured = async {
                match ensure_at {
                    Some(at) => self.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                is_alive = next_change(&mut of_schemas, &mut of_levels) => {
                    if !is_alive {
                        return;
                    }
                    self.reload(kinds).await;
                    ensure_at.get_or_insert(self.clock.elapsed() + ENSURE_AFTER);
                }
                () = self.drained.notified() => self.reload(kinds).await,
                () = ensured => {
                    ensure_at = None;
                    for kind in kinds {
                        if let Err(error) = Box::pin(self.registry.ensure(kind, &MANDATORY)).await {
                            tracing::warn!(%error, "priority and fairness cannot keep its objects");
                        }
                    }
                }
            }
        }
    }

    async fn reload(&self, [levels, schemas]: &[Arc<Kind>; 2]) {
        let both = async {
            let of_schemas = self.read(schemas).await?;
            Ok::<_, Status>((of_schemas, self.read(levels).await?))
        };
        let (of_schemas, of_levels) = match both.await {
            Ok(objects) => objects,
            Err(error) => return tracing::warn!(%error, "priority and fairness cannot read its objects"),
        };
        let configuration = Arc::new(self.configure(&of_schemas, &of_levels));
        self.lend(&configuration, self.clock.elapsed(), true);
        *self.current.write() = configuration.clone();
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

    fn configure(&self, schemas: &[Arc<Object>], levels: &[Arc<Object>]) -> FlowConfiguration {
        let levels = self.levels_of(levels);
        let make = |object: &Arc<Object>| {
            let spec = read::<FlowSchemaView>(object).spec;
            let level = levels.get(&spec.priority_level_configuration.name)?;
            let (level, name) =
                (Some(level).filter(|level| !level.is_quiescing)?.clone(), &*object.metadata.name);
            let (name, header) = (name.into(), header_of(object));
            let stats = self.metrics.flow(&level.requests.name, &name);
            Some(Arc::new(FlowSchema { header, level, name, spec, stats }))
        };
        let mut schemas: Vec<Arc<FlowSchema>> = schemas.iter().filter_map(make).collect();
        schemas.sort_by(|a, b| {
            (a.spec.matching_precedence, &a.name).cmp(&(b.spec.matching_precedence, &b.name))
        });
        FlowConfiguration { schemas, levels }
    }

    /// Levels that stay keep their seats and whoever waits; those that go stay until nobody is left.
    fn levels_of(&self, objects: &[Arc<Object>]) -> BTreeMap<String, Arc<LevelConfiguration>> {
        let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
        for object in objects {
            let (name, spec) = (&object.metadata.name, read::<PriorityLevelView>(object).spec);
            let Some(queuing) = spec.queuing(name) else {
                tracing::warn!(name, "a priority level is broken");
                continue;
            };
            let header = header_of(object);
            wanted.insert(name.clone(), Wanted { header, spec, queuing, is_quiescing: false });
        }
        let before = self.current();
        for (name, level) in before.levels.iter().filter(|(_, level)| !level.requests.is_idle()) {
            let (header, spec, queuing) = (level.header.clone(), level.spec.clone(), level.queuing);
            wanted.entry(name.clone()).or_insert(Wanted { header, spec, queuing, is_quiescing: true });
        }
        let shares = wanted.values().map(|level| level.spec.shares()).sum();
        let mut waiting = 0;
        let mut executing = 0;
        let levels = wanted.into_iter().map(|(name, Wanted { header, spec, queuing, is_quiescing })| {
            let known = before.levels.get(&name).map(|level| level.requests.clone());
            let requests =
                known.unwrap_or_else(|| Arc::new(PriorityLevel::new(&name, &self.clock, &self.drained)));
            let limits = spec.limits(self.max_requests, shares);
            requests.configure(queuing, limits, is_quiescing);
            if is_quiescing && requests.is_idle() {
                // The last one left before it could be asked to say so.
                self.drained.notify_one();
            }
            executing += limits.nominal;
            if let Queuing::Queue { queues, length_limit, .. } = queuing {
                waiting += queues * length_limit;
            }
            let max_seats = spec.max_seats(limits.nominal, queuing);
            (name, Arc::new(LevelConfiguration { header, requests, spec, queuing, max_seats, is_quiescing }))
        });
        let levels = levels.collect();
        self.metrics.set_denominators(self.clock.elapsed(), waiting, executing);
        levels
    }
}

/// When limits are adjusted next.
pub(super) fn next_lending(now: Duration) -> Duration {
    let period = ADJUSTMENT_PERIOD.as_secs();
    Duration::from_secs((now.as_secs() / period + 1) * period)
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

fn header_of(object: &Object) -> HeaderValue {
    HeaderValue::from_str(&object.metadata.uid).unwrap_or(HeaderValue::from_static(""))
}

/// An object that says nothing intelligible says nothing.
fn read<T: DeserializeOwned + Default>(object: &Object) -> T {
    serde_json::from_slice(&object.stored()).unwrap_or_default()
}

fn is_outdated(schema: &Object, configuration: &FlowConfiguration) -> bool {
    let view = read::<FlowSchemaView>(schema);
    let exists = configuration.levels.get(&view.spec.priority_level_configuration.name);
    let wanted = if exists.is_some_and(|level| !level.is_quiescing) { "False" } else { "True" };
    !view.status.conditions.iter().any(|one| one.r#type == "Dangling" && one.status == wanted)
}
