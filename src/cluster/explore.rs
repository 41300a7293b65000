//! `Explorer`: runs a test under many seeds, each with other faults, and finds the smallest schedule of
//! them that makes it fail. Upstream has nothing like it; FoundationDB and Antithesis test their own in
//! this way.
//!
//! Each run has a cluster of its own on one thread, with a stepped clock and seeded numbers: the same seed
//! runs the same way again. Time passes whenever all have had their turns; in every other run who is ready
//! goes on in an order that the seed draws, and not in that of waking. A run fails when the test says so or
//! panics, when it is not done in its time, or when users go on writing behind its end: two controllers that
//! fight never rest.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Cluster, Config};
use clock::Clock;
use entropy::Entropy;
use faults::{Schedule, Shrinking};

/// Once everybody had so many turns, time passes until somebody wakes.
const TURNS: usize = 200;
/// So often they get them again while somebody is at work; who never rests does not keep time from passing.
const MOST_ROUNDS: usize = 20;
/// How long is looked whether users come to rest, by the cluster's clock.
const REST: Duration = Duration::from_secs(60);
/// Who writes one object more often than that in this time does not.
const RESTLESS_WRITES: usize = 30;

/// How a test is explored. [`Cluster::explore`] makes one.
pub struct Explorer {
    seeds: std::ops::Range<u64>,
    users: Vec<String>,
    patience: Duration,
    config: Box<dyn Fn() -> Config>,
}

/// A test that fails, and how.
#[derive(Clone, Debug)]
pub struct FailingSchedule {
    /// The smallest that was found; [`Explorer::play`] runs it again.
    pub schedule: Schedule,
    /// What the test said.
    pub why: String,
    /// How many runs it took to find and to shrink it.
    pub runs: usize,
}

impl Cluster {
    /// Explores a test: an operator and what is expected of it, under faults that are drawn from seeds.
    pub fn explore() -> Explorer {
        Explorer {
            seeds: 0..200,
            users: vec![],
            patience: Duration::from_secs(600),
            config: Box::new(|| Config::new().nodes(0).components(super::Components::NONE).flow(false)),
        }
    }
}

impl Explorer {
    /// Runs it under these seeds; 200 if nobody says otherwise.
    #[must_use]
    pub fn seeds(mut self, seeds: std::ops::Range<u64>) -> Explorer {
        self.seeds = seeds;
        self
    }

    /// Faults are for this user, too, as the operator under test; else for all but the cluster's components.
    #[must_use]
    pub fn user(mut self, pattern: &str) -> Explorer {
        self.users.push(pattern.into());
        self
    }

    /// A run has so long, by its cluster's clock; ten minutes if nobody says otherwise.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Explorer {
        self.patience = patience;
        self
    }

    /// What each run's cluster is made of, an apiserver alone if nobody says otherwise. Clock and numbers
    /// are the explorer's.
    #[must_use]
    pub fn config(mut self, config: impl Fn() -> Config + 'static) -> Explorer {
        self.config = Box::new(config);
        self
    }

    /// Runs the test under each seed; tells how many runs were clean. Blocks its thread, which must not be
    /// one of a runtime.
    ///
    /// # Errors
    /// The first seed that fails, with the smallest schedule that does.
    pub fn run<F>(&self, test: F) -> Result<usize, Box<FailingSchedule>>
    where
        F: AsyncFn(&Cluster) -> Result<(), String>,
    {
        let mut runs = 0;
        for seed in self.seeds.clone() {
            let schedule = Schedule::draw(seed, &self.users);
            runs += 1;
            if let Err(why) = self.play(&schedule, &test) {
                return Err(Box::new(self.shrink(schedule, why, runs, &test)));
            }
        }
        Ok(runs)
    }

    fn shrink<F>(&self, failing: Schedule, mut why: String, mut runs: usize, test: &F) -> FailingSchedule
    where
        F: AsyncFn(&Cluster) -> Result<(), String>,
    {
        let mut shrinking = Shrinking::new(failing);
        while let Some(candidate) = shrinking.candidate() {
            runs += 1;
            let outcome = self.play(&candidate, test);
            shrinking.tell(outcome.is_err());
            why = outcome.err().unwrap_or(why);
        }
        FailingSchedule { schedule: shrinking.smallest(), why, runs }
    }

    /// Runs the test once.
    ///
    /// # Errors
    /// Why it failed.
    pub fn play<F>(&self, schedule: &Schedule, test: &F) -> Result<(), String>
    where
        F: AsyncFn(&Cluster) -> Result<(), String>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        let run = AssertUnwindSafe(|| runtime.block_on(self.run_once(schedule, test)));
        catch_unwind(run).unwrap_or_else(|panic| Err(words(&*panic)))
    }

    async fn run_once<F>(&self, schedule: &Schedule, test: &F) -> Result<(), String>
    where
        F: AsyncFn(&Cluster) -> Result<(), String>,
    {
        let start: DateTime<Utc> = DateTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let clock = Clock::stepped(start);
        schedule.order.into_iter().for_each(|order| clock.disorder(order));
        let config = (self.config)().clock(clock.clone()).entropy(Entropy::seeded(schedule.seed));
        let running = async {
            let cluster = Cluster::start(config).await.map_err(|error| error.to_string())?;
            cluster.requests().clear();
            for fault in &schedule.faults {
                cluster.faults().add(fault.clone()).map_err(|error| error.to_string())?;
            }
            test(&cluster).await?;
            self.comes_to_rest(&cluster).await
        };
        self.drive(&clock, running).await
    }

    /// Polls it, and moves time on whenever everybody had their turns.
    async fn drive<T>(
        &self,
        clock: &Clock,
        running: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let mut running = pin!(running);
        let mut busy = 0;
        while clock.elapsed() <= self.patience + REST {
            for _ in 0..TURNS {
                tokio::select! {
                    biased;
                    done = &mut running => return done,
                    () = tokio::task::yield_now() => {}
                }
            }
            // Who gives way to others may need more of them.
            busy = if clock.work().count() > 0 { busy + 1 } else { 0 };
            if busy > 0 && busy < MOST_ROUNDS {
                continue;
            }
            if let Some(pause) = clock.next_wake() {
                clock.advance(pause);
            }
        }
        Err(format!("it was not done after {:?} of the cluster's time", self.patience))
    }

    /// What was reached stays.
    async fn comes_to_rest(&self, cluster: &Cluster) -> Result<(), String> {
        cluster.faults().clear();
        cluster.requests().clear();
        cluster.clock().sleep(REST).await;
        let mut writes: BTreeMap<String, usize> = BTreeMap::new();
        for request in cluster.requests_of("") {
            if !matches!(request.verb.as_str(), "get" | "list" | "watch") {
                let what = format!("{} {}/{}", request.resource, request.namespace, request.name);
                *writes.entry(format!("{} wrote {what}", request.user)).or_default() += 1;
            }
        }
        let mut restless = writes.into_iter().filter(|(_, times)| *times > RESTLESS_WRITES).peekable();
        if restless.peek().is_none() {
            return Ok(());
        }
        let lines: Vec<String> = restless.map(|(what, times)| format!("{what} {times} times")).collect();
        Err(format!("it does not come to rest: in {REST:?} {}", lines.join(", ")))
    }
}

impl fmt::Display for FailingSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nfails after {} runs with {}", self.why, self.runs, self.schedule)
    }
}

impl std::error::Error for FailingSchedule {}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
