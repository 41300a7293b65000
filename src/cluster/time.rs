//! Time that passes from wake to wake: nothing sees it jump.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Datelike, Utc};

use super::condition::{BadCondition, WaitFor};
use super::inside::Inside;
use super::settle::{Settle, Unsettled};
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::time::LAST_YEAR;
use client_go::client::Client;
use clock::{Clock, Wake};

/// What there is instead of what was waited for is looked at for so long at most, in real time.
const LOOKED_WITHIN: Duration = Duration::from_secs(5);

/// Why time did not pass, or did not bring what was waited for.
#[derive(Debug, thiserror::Error)]
pub enum TimeError {
    /// Nobody steps the machine's clock.
    #[error(
        "the clock of this cluster is the machine's, which nobody can step; start the cluster with \
         --clock stepped (Config.clock in Rust)"
    )]
    RealClock,
    /// There is no such time.
    #[error(
        "{asked:?} from {now} is after the year {LAST_YEAR}, the last that a timestamp can say; ask for less"
    )]
    TooFar {
        /// How much time.
        asked: Duration,
        /// From when.
        now: DateTime<Utc>,
    },
    /// Something keeps moving at one point in time.
    #[error("time does not pass: {0}")]
    Unsettled(#[from] Unsettled),
    /// Somebody steps the cluster.
    #[error(
        "the cluster is held between two steps, and its clock with it: let it go on with `kubarium step continue`, \
         or take one step with `kubarium step`"
    )]
    Held,
    /// The condition makes no sense.
    #[error(transparent)]
    Condition(#[from] BadCondition),
    /// The cluster was asked, and answered otherwise.
    #[error("{}", .0.message)]
    Refused(#[from] Status),
    /// The time that was given is over.
    #[error(
        "{condition} did not come true within {within:?} of the cluster's time{}{}",
        as_it_is(.instead), next_waker(.next)
    )]
    TooLate {
        /// What was waited for.
        condition: WaitFor,
        /// How long.
        within: Duration,
        /// What is there instead, in words; empty where that could not be looked at.
        instead: String,
        /// Who would be next.
        next: Option<Wake>,
    },
}

/// What is there instead, as a part of a sentence.
fn as_it_is(instead: &str) -> String {
    if instead.is_empty() { String::new() } else { format!(": {instead}") }
}

/// Who is next, as the end of a sentence.
fn next_waker(wake: &Option<Wake>) -> String {
    match wake {
        None => String::new(),
        Some(Wake { after, who }) => format!("; next, {} after {after:?}", names(who)),
    }
}

/// Who wakes, for people.
pub(super) fn names(who: &[Arc<str>]) -> String {
    let names: Vec<&str> = who.iter().map(|name| &**name).collect();
    if names.is_empty() { "somebody wakes".into() } else { format!("{} wakes", names.join(", ")) }
}

impl Inside {
    /// Lets so much time pass, from wake to wake, with such a settle between. Says how often somebody woke.
    pub(crate) async fn pass(&self, duration: Duration, settle: &Settle) -> Result<usize, TimeError> {
        self.stepped()?;
        self.is_going()?;
        let _alone = self.for_handles.time.stepping.lock().await;
        self.clock.stir();
        let end = self.end(duration)?;
        let mut wakes = 0;
        while self.step(end, settle).await? {
            wakes += 1;
        }
        Ok(wakes)
    }

    /// Waits until a condition is true, for at most so much of the cluster's time; on a stepped clock that
    /// passes meanwhile.
    /// Looks with `client`, which no fault should hit.
    pub(super) async fn until(
        &self,
        client: &Client,
        condition: &WaitFor,
        within: Duration,
        settle: &Settle,
    ) -> Result<(), TimeError> {
        let condition = condition.clone().resolve(&self.scheme)?;
        self.is_going()?;
        if !self.clock.is_stepped() {
            return match self.clock.timeout_for_client(within, self.see(client, &condition)).await {
                Ok(seen) => seen,
                Err(_) => Err(self.late(client, condition, within).await),
            };
        }
        let _alone = self.for_handles.time.stepping.lock().await;
        self.clock.stir();
        let end = self.end(within)?;
        self.settle(settle).await?;
        while !condition.holds(client).await? {
            if !self.step(end, settle).await? {
                let holds = condition.holds(client).await?;
                return if holds { Ok(()) } else { Err(self.late(client, condition, within).await) };
            }
        }
        Ok(())
    }

    async fn late(&self, client: &Client, condition: WaitFor, within: Duration) -> TimeError {
        let next = self.clock.next_waker();
        let instead = self.instead_of(&condition, client).await;
        TimeError::TooLate { condition, within, instead, next }
    }

    /// What there is instead of what was waited for. A store that does not answer does not answer this,
    /// either: nobody waits for that.
    pub(super) async fn instead_of(&self, condition: &WaitFor, client: &Client) -> String {
        let looked = self.for_handles.time.real.timeout(LOOKED_WITHIN, condition.instead(client)).await;
        looked.unwrap_or_default()
    }

    /// On to the next wake, or to the end when there is none before it; says whether there was one.
    async fn step(&self, end: Duration, settle: &Settle) -> Result<bool, TimeError> {
        self.settle(settle).await?;
        let was_due = self.clock.step(end.saturating_sub(self.clock.elapsed()));
        if !was_due {
            self.settle(settle).await?;
        }
        Ok(was_due)
    }

    /// When so much time of a stepped clock will have passed.
    fn end(&self, duration: Duration) -> Result<Duration, TimeError> {
        let now = self.clock.now();
        let end = self.clock.elapsed().checked_add(duration);
        let is_told = clock::after(now, duration).year() <= LAST_YEAR;
        end.filter(|_| is_told).ok_or(TimeError::TooFar { asked: duration, now })
    }

    /// Looks whenever the object changes.
    async fn see(&self, client: &Client, condition: &WaitFor) -> Result<(), TimeError> {
        let options = ListOptions::default();
        loop {
            let mut events = client.watch(condition.kind(), condition.namespace(), &options).await?;
            while !condition.holds(client).await? {
                // A watch that ends early is asked for again.
                let Some(_) = events.recv().await else { break };
            }
            if condition.holds(client).await? {
                return Ok(());
            }
        }
    }

    fn is_going(&self) -> Result<(), TimeError> {
        if self.clock.is_held() { Err(TimeError::Held) } else { Ok(()) }
    }

    fn stepped(&self) -> Result<(), TimeError> {
        if self.clock.is_stepped() { Ok(()) } else { Err(TimeError::RealClock) }
    }
}

/// Nothing moves, and nobody holds the clock.
async fn at_rest(clock: &Clock) {
    clock.going().await;
    clock.work().idle().await;
}

/// A duration that is none.
#[derive(Debug, thiserror::Error)]
#[error("{0}; say it as 90s, 1h or 30d")]
pub(crate) struct BadDuration(String);

/// A duration as Go writes it, or whole days, as `30d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        None => golang::duration::parse_flag(text).map_err(|why| BadDuration(why.into())),
    }
}

/// Runs a future to its end. On a stepped clock time goes on to the next wake whenever nothing moves, neither
/// the future nor anything else under this clock.
pub(super) async fn while_time_passes<T>(clock: &Clock, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(clock.tracked(future));
    if !clock.is_stepped() {
        return future.await;
    }
    loop {
        tokio::select! {
            biased;
            output = &mut future => return output,
            () = at_rest(clock) => {}
        }
        match clock.next_wake() {
            Some(pause) => clock.advance(pause),
            // Whoever is outside may still bring it to its end.
            None => return future.await,
        }
    }
}
