//! `Faults`: which faults there are, what each has hit so far, and which of them hits a request.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::aim::Aim;
use super::asked::{AskedFor, agent};
use super::contradiction::Contradiction;
use super::expired::ExpiredWatches;
use super::fault::{Fault, WatchEnd};
use super::hold::{CannotHold, HeldComponents, Hold};
use super::network_fault::NetworkFault;
use super::open::OpenWatches;
use super::switch::ComponentSwitch;
use apiserver::filters::passed::Passed;
use clock::{Clock, Exact};
use entropy::Entropy;
use sync::{Mutex, RwLock};

/// Faults at once; a further one is refused.
pub const MAX_FAULTS: usize = 256;
/// In how many parts of one chance is divided.
const PARTS: usize = 1_000_000;

/// Why a fault was not added, or is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultRefusal {
    /// It can never do what it says.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// Of another of the same name.
    #[error("there is a fault {0:?} already; remove it, or choose another name")]
    Exists(String),
    /// None has that name.
    #[error("there is no fault {0:?}")]
    Unknown(String),
    /// Too many.
    #[error("there are {MAX_FAULTS} faults already, which is all there may be; remove some")]
    TooMany,
    /// The component to stop.
    #[error("{0}")]
    Component(String),
}

/// A fault, and what it has done.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultStatus {
    /// What was added, with its name.
    #[serde(flatten)]
    pub fault: Fault,
    /// How many requests it was about, in its time.
    pub matched: u64,
    /// How many of them it has hit.
    pub hits: u64,
    /// Its time is over, or it has hit as often as it was to: it is there, and hits nothing any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}

/// The faults of one cluster. Cloning shares them.
#[derive(Clone)]
pub struct Faults(pub(super) Arc<FaultBoard>);

pub(super) struct FaultBoard {
    pub(super) clock: Clock,
    /// The cluster's numbers: only asked for a seed, and only when there is a fault.
    entropy: Entropy,
    /// How many rules there are: all that is read when there is none.
    pub(super) number: AtomicUsize,
    pub(super) rules: RwLock<Vec<Arc<StandingFault>>>,
    given_names: AtomicU64,
    components: Mutex<Option<Weak<dyn ComponentSwitch>>>,
    held: HeldComponents,
    pub(super) open: OpenWatches,
    /// How often those of the network have become others.
    network_changes: watch::Sender<u64>,
}

pub(super) struct StandingFault {
    pub(super) fault: Fault,
    pub(super) aim: Aim,
    added: Duration,
    /// The revision of the store when it was added.
    pub(super) revision: u64,
    chance: Entropy,
    matched: AtomicU64,
    hits: AtomicU64,
    stopping: Mutex<Option<AbortHandle>>,
    hold: Hold,
    pub(super) expired: Arc<ExpiredWatches>,
    /// Each request that it could hit is to be made.
    _exact: Exact,
}

impl Faults {
    /// None yet. A cluster without any draws no number from `entropy`.
    pub fn new(clock: Clock, entropy: Entropy) -> Faults {
        let components: Mutex<Option<Weak<dyn ComponentSwitch>>> = Mutex::new(None);
        Faults(Arc::new(FaultBoard {
            clock,
            entropy,
            number: AtomicUsize::new(0),
            rules: RwLock::default(),
            given_names: AtomicU64::new(0),
            components,
            held: HeldComponents::default(),
            open: OpenWatches::default(),
            network_changes: watch::Sender::default(),
        }))
    }

    /// Tells it whom to stop and start, once they are there.
    pub fn know(&self, components: &Arc<dyn ComponentSwitch>) {
        *self.0.components.lock() = Some(Arc::downgrade(components));
    }

    /// Adds one behind those that are there; its name is returned.
    ///
    /// # Errors
    /// It cannot be meant, or its name is taken, or there are too many.
    pub fn add(&self, mut fault: Fault) -> Result<String, FaultRefusal> {
        fault.check()?;
        let mut rules = self.0.rules.write();
        if rules.len() >= MAX_FAULTS {
            return Err(FaultRefusal::TooMany);
        }
        let is_taken = |name: &str| rules.iter().any(|rule| rule.fault.name == name);
        while fault.name.is_empty() {
            let number = self.0.given_names.fetch_add(1, Ordering::Relaxed) + 1;
            let name = format!("fault-{number}");
            if !is_taken(&name) {
                fault.name = name;
            }
        }
        if is_taken(&fault.name) {
            return Err(FaultRefusal::Exists(fault.name));
        }
        let rule = Arc::new(self.rule(fault));
        self.begin(&rule)?;
        let name = rule.fault.name.clone();
        rules.push(rule.clone());
        self.0.number.store(rules.len(), Ordering::Release);
        drop(rules);
        self.network_changes(&rule);
        Ok(name)
    }

    fn rule(&self, fault: Fault) -> StandingFault {
        let seed = self.0.entropy.below(usize::MAX) as u64;
        StandingFault {
            aim: Aim::new(&fault),
            fault,
            added: self.0.clock.elapsed(),
            revision: self.revision(),
            chance: Entropy::seeded(seed),
            matched: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            stopping: Mutex::default(),
            hold: Hold::default(),
            expired: Arc::default(),
            _exact: self.0.clock.exact(),
        }
    }

    /// What it does when it is added, beside waiting for requests.
    fn begin(&self, rule: &Arc<StandingFault>) -> Result<(), FaultRefusal> {
        if rule.fault.network.is_some() {
            self.tell_in_time(rule);
            return Ok(());
        }
        let Some(component) = &rule.fault.stop else {
            self.end_open_in_time(rule);
            return Ok(());
        };
        let components = self.components();
        let components =
            components.ok_or_else(|| FaultRefusal::Component("there are no components".into()))?;
        components.check(component).map_err(FaultRefusal::Component)?;
        if rule.fault.after.is_none() {
            let taken = self.0.held.take(&rule.hold, &*components, component);
            taken.map_err(|CannotHold(why)| FaultRefusal::Component(why))?;
        }
        if rule.fault.after.is_some() || rule.fault.lasting.is_some() {
            let task = self.0.clock.spawn(self.clone().stop_for_a_while(rule.clone()));
            *rule.stopping.lock() = Some(task.abort_handle());
        }
        Ok(())
    }

    /// Tells of a fault of the network when it begins and when it is over, where that is later.
    fn tell_in_time(&self, rule: &Arc<StandingFault>) {
        let Fault { after, lasting, .. } = rule.fault;
        if after.is_none() && lasting.is_none() {
            return;
        }
        let faults = self.clone();
        let told = rule.clone();
        let task = self.0.clock.spawn(async move {
            faults.0.clock.sleep_until(told.begins()).await;
            faults.network_changes(&told);
            let Some(ends) = told.ends() else { return };
            faults.0.clock.sleep_until(ends).await;
            faults.network_changes(&told);
        });
        *rule.stopping.lock() = Some(task.abort_handle());
    }

    fn network_changes(&self, rule: &StandingFault) {
        if rule.fault.network.is_some() {
            self.0.network_changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Those of the network that are in force now.
    pub fn of_network(&self) -> Vec<NetworkFault> {
        let now = self.0.clock.elapsed();
        let rules = self.0.rules.read();
        let in_time = rules.iter().filter(|rule| rule.is_in_time(|| now));
        in_time.filter_map(|rule| rule.fault.network.clone()).collect()
    }

    /// Told whenever [`Faults::of_network`] may have become another.
    pub fn changes_of_network(&self) -> watch::Receiver<u64> {
        self.0.network_changes.subscribe()
    }

    /// At once, or when its time comes.
    fn end_open_in_time(&self, rule: &Arc<StandingFault>) {
        if rule.fault.after.is_none() {
            return self.end_open(rule);
        }
        let (faults, late) = (self.clone(), rule.clone());
        let task = self.0.clock.spawn(async move {
            faults.0.clock.sleep_until(late.begins()).await;
            faults.end_open(&late);
        });
        *rule.stopping.lock() = Some(task.abort_handle());
    }

    async fn stop_for_a_while(self, rule: Arc<StandingFault>) {
        let Some(component) = &rule.fault.stop else { return };
        if rule.fault.after.is_some() {
            self.0.clock.sleep_until(rule.begins()).await;
            let Some(components) = self.components() else { return };
            if let Err(CannotHold(error)) = self.0.held.take(&rule.hold, &*components, component) {
                return tracing::warn!(component, error, "a fault cannot stop it");
            }
        }
        let Some(ends) = rule.ends() else { return };
        self.0.clock.sleep_until(ends).await;
        if let Some(components) = self.components() {
            self.0.held.release(&rule.hold, &*components, component);
        }
    }

    /// Removes one; what it stopped starts again.
    ///
    /// # Errors
    /// None has that name.
    pub fn remove(&self, name: &str) -> Result<FaultStatus, FaultRefusal> {
        let mut rules = self.0.rules.write();
        let at = rules.iter().position(|rule| rule.fault.name == name);
        let rule = rules.remove(at.ok_or_else(|| FaultRefusal::Unknown(name.into()))?);
        self.0.number.store(rules.len(), Ordering::Release);
        drop(rules);
        self.finish(&rule);
        Ok(rule.status(self.0.clock.elapsed()))
    }

    /// Removes all.
    pub fn clear(&self) {
        let rules = std::mem::take(&mut *self.0.rules.write());
        self.0.number.store(0, Ordering::Release);
        for rule in rules {
            self.finish(&rule);
        }
    }

    fn finish(&self, rule: &StandingFault) {
        if let Some(task) = rule.stopping.lock().take() {
            task.abort();
        }
        if let (Some(component), Some(components)) = (&rule.fault.stop, self.components()) {
            self.0.held.release(&rule.hold, &*components, component);
        }
        self.network_changes(rule);
    }

    /// Those that are there, in their order.
    pub fn list(&self) -> Vec<FaultStatus> {
        let now = self.0.clock.elapsed();
        self.0.rules.read().iter().map(|rule| rule.status(now)).collect()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<FaultStatus> {
        let now = self.0.clock.elapsed();
        self.0.rules.read().iter().find(|rule| rule.fault.name == name).map(|rule| rule.status(now))
    }

    /// The first that hits a request.
    pub(super) fn hit(&self, asked: &AskedFor) -> Option<Arc<StandingFault>> {
        let now = self.0.clock.elapsed();
        self.0
            .rules
            .read()
            .iter()
            .find(|rule| rule.is_about(asked, now) && (rule.is_too_old(asked) || rule.strikes()))
            .cloned()
    }

    /// Whether one of them may hit it.
    pub(super) fn concerns(&self, request: &Passed) -> bool {
        let ctx = &request.ctx;
        self.0.rules.read().iter().any(|rule| {
            (ctx.info.verb == "list" && !rule.expired.is_empty())
                || (rule.aim.takes(&ctx.user, &ctx.info, || agent(request))
                    && rule.is_in_time(|| self.0.clock.elapsed()))
        })
    }

    /// Who lists, or watches from no revision, has the newest state.
    pub(super) fn forget_expired(&self, asked: &AskedFor) {
        let begins_anew = match asked.info.verb.as_str() {
            "list" => true,
            "watch" => asked.from.unwrap_or_default() == 0,
            _ => false,
        };
        if begins_anew {
            self.0.rules.read().iter().for_each(|rule| rule.expired.lists(&asked.watcher()));
        }
    }

    /// Ends watches that are open: each is taken for one that is asked for now, in the order in which they
    /// were, and so is hit by chance and counted as any other.
    fn end_open(&self, rule: &StandingFault) {
        if !rule.ends_open() {
            return;
        }
        let (now, revision) = (self.0.clock.elapsed(), self.revision());
        let is_hit = |asked: &AskedFor| {
            let is_hit = rule.is_about(asked, now) && rule.strikes();
            if is_hit {
                rule.has_ended(asked, revision);
            }
            is_hit
        };
        self.0.open.end(rule.fault.partition, &is_hit);
        if let Some(components) = self.components() {
            components.end_cut_watches();
        }
    }

    /// The newest revision.
    pub(super) fn revision(&self) -> u64 {
        self.components().map_or(0, |components| components.revision())
    }

    /// The oldest revision that can still be read.
    pub(super) fn compact_revision(&self) -> u64 {
        self.components().map_or(0, |components| components.compact_revision())
    }

    fn components(&self) -> Option<Arc<dyn ComponentSwitch>> {
        self.0.components.lock().as_ref()?.upgrade()
    }
}

impl StandingFault {
    fn is_about(&self, asked: &AskedFor, now: Duration) -> bool {
        self.aim.takes(&asked.user, &asked.info, || &asked.agent) && self.is_in_time(|| now)
    }

    /// Whether it ends watches that are open. What they have told already nobody has counted: one that ends
    /// watches behind so many events leaves them.
    fn ends_open(&self) -> bool {
        let Fault { watch, partition, .. } = &self.fault;
        let ends = watch.as_ref().is_some_and(|watch| watch.end.is_some() && watch.after_events == 0);
        ends || *partition
    }

    /// Whoever begins again where a watch ended that has expired is told so.
    fn has_ended(&self, asked: &AskedFor, revision: u64) {
        if self.fault.watch.as_ref().is_some_and(|watch| watch.end == Some(WatchEnd::Expire)) {
            self.expired.add(&asked.watcher(), revision);
        }
    }

    fn begins(&self) -> Duration {
        self.added + self.fault.after.map_or(Duration::ZERO, |after| after.0)
    }

    fn ends(&self) -> Option<Duration> {
        self.fault.lasting.map(|lasting| self.begins() + lasting.0)
    }

    /// The time is only asked for where it matters.
    fn is_in_time(&self, now: impl FnOnce() -> Duration) -> bool {
        let Fault { after, lasting, .. } = &self.fault;
        if after.is_none() && lasting.is_none() {
            return true;
        }
        let now = now();
        now >= self.begins() && self.ends().is_none_or(|ends| now < ends)
    }

    /// Whether a watch begins where another was told that this is too old: it stays so until somebody lists.
    pub(super) fn is_too_old(&self, asked: &AskedFor) -> bool {
        self.expired.contains(&asked.watcher(), asked.from)
    }

    /// Throws the dice about a request that it is about.
    fn strikes(&self) -> bool {
        let number = self.matched.fetch_add(1, Ordering::Relaxed) + 1;
        if self.fault.nth.is_some_and(|nth| nth != number) {
            return false;
        }
        let likely = |probability: f64| self.chance.below(PARTS) < (probability * PARTS as f64) as usize;
        if self.fault.probability.is_some_and(|probability| !likely(probability)) {
            return false;
        }
        let count = self.fault.count.unwrap_or(u64::MAX);
        self.hits
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |hits| (hits < count).then(|| hits + 1))
            .is_ok()
    }

    fn status(&self, now: Duration) -> FaultStatus {
        let Fault { count, nth, .. } = &self.fault;
        let matched = self.matched.load(Ordering::Relaxed);
        let hits = self.hits.load(Ordering::Relaxed);
        let over = self.ends().is_some_and(|ends| now >= ends)
            || count.is_some_and(|count| hits >= count)
            || nth.is_some_and(|nth| matched >= nth);
        FaultStatus { fault: self.fault.clone(), matched, hits, over }
    }
}
