//! Stepping a cluster: everybody is held between two steps, and somebody lets them go on, one at a time.
//!
//! What is let go works until nothing moves; then the next step may be taken. Time stands meanwhile. Only
//! when nobody is held does it pass, until somebody is: what waits for time comes after what waits for
//! nothing, as if steps took none.

use std::time::Duration;

use super::condition::WaitFor;
use super::inside::Inside;
use super::settle::Settle;
use super::time::TimeError;
use client_go::client::Client;
use flow::{Gate, HeldStep};

/// How long what was let go may work before the next is told of, in real time. What works longer goes on.
const REST: Duration = Duration::from_secs(5);
/// How long it is waited for somebody to be held, if nobody says otherwise; real time.
pub(super) const STEP_WITHIN: Duration = Duration::from_secs(30);
/// So many steps one call lets happen at most; then it says where things stand, and can be called again.
pub(super) const MAX_STEPS: usize = 10_000;

/// Why a cluster was not stepped.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The gate belongs to the flow record.
    #[error("this cluster keeps no flow record (Config.flow), and without it nothing can be held")]
    NoRecord,
    /// There is none of this number.
    #[error(
        "no step of the number {0} is held; `kubarium step show` (GET /kubarium/v1/step) lists those that are"
    )]
    NotHeld(u64),
    /// The condition makes no sense, or nobody could look.
    #[error(transparent)]
    Until(Box<TimeError>),
}

impl From<TimeError> for StepError {
    fn from(error: TimeError) -> StepError {
        StepError::Until(Box::new(error))
    }
}

/// What was let happen.
#[derive(Debug, Default)]
pub(super) struct StepsTaken {
    pub released: Vec<HeldStep>,
    /// Whether the condition is true; of other calls, that something was let happen.
    pub reached: bool,
    /// Of a condition that is not: what is there instead, in words.
    pub instead: String,
}

impl StepsTaken {
    fn of(released: Vec<HeldStep>) -> StepsTaken {
        StepsTaken { reached: !released.is_empty(), released, instead: String::new() }
    }
}

impl Inside {
    /// What holds this cluster.
    pub(super) fn stepped_by(&self) -> Result<&Gate, StepError> {
        self.flow.stepping().ok_or(StepError::NoRecord)
    }

    /// Holds everybody from the start, if the config says so: once all is written that every cluster begins
    /// with.
    pub(super) async fn step_from_the_start(&self) {
        if self.config.step {
            self.rest().await;
            self.flow.stepping().into_iter().for_each(Gate::close);
        }
    }

    /// Nobody is held any more: the cluster ends.
    pub(super) fn end_stepping(&self) {
        self.flow.stepping().into_iter().for_each(Gate::end);
    }

    /// Holds everybody, and waits until nothing moves.
    pub(super) async fn hold(&self) -> Result<(), StepError> {
        self.stepped_by()?.close();
        self.rest().await;
        Ok(())
    }

    /// Lets one step happen: that of this number, else the one that is held for longest.
    pub(super) async fn take_step(
        &self,
        number: Option<u64>,
        within: Duration,
    ) -> Result<StepsTaken, StepError> {
        let _alone = self.for_handles.time.stepping.lock().await;
        self.hold().await?;
        let released = self.stepped_by()?.release(number);
        match (released, number) {
            (Some(step), _) => {
                self.rest().await;
                Ok(StepsTaken::of(vec![step]))
            }
            (None, Some(number)) => Err(StepError::NotHeld(number)),
            (None, None) => {
                self.let_time_pass(within).await?;
                Ok(StepsTaken::default())
            }
        }
    }

    /// Lets steps happen until the next is of another stage than the first, or at a breakpoint.
    pub(super) async fn take_stage(&self, within: Duration) -> Result<StepsTaken, StepError> {
        let _alone = self.for_handles.time.stepping.lock().await;
        self.hold().await?;
        let Some(first) = self.next_held()? else {
            self.let_time_pass(within).await?;
            return Ok(StepsTaken::default());
        };
        let mut released = Vec::new();
        let is_more = |next: HeldStep, is_first: bool| {
            next.stage == first.stage && (is_first || next.breakpoint.is_none())
        };
        while self.next_held()?.is_some_and(|next| is_more(next, released.is_empty()))
            && released.len() < MAX_STEPS
        {
            released.extend(self.stepped_by()?.release(None));
            self.rest().await;
        }
        Ok(StepsTaken::of(released))
    }

    /// Lets steps happen until a condition is true, a breakpoint is reached, or the real time `within` is
    /// over. Looks with `client`.
    pub(super) async fn take_steps_until(
        &self,
        client: &Client,
        condition: WaitFor,
        within: Duration,
    ) -> Result<StepsTaken, StepError> {
        let condition = condition.resolve(&self.scheme).map_err(TimeError::from)?;
        let _alone = self.for_handles.time.stepping.lock().await;
        self.hold().await?;
        let mut taken = StepsTaken::default();
        let stepping = async {
            while !condition.holds(client).await.map_err(TimeError::from)? {
                if !self.stepped_by()?.is_closed() {
                    return Ok(false);
                }
                let is_at_breakpoint = self.next_held()?.is_some_and(|next| next.breakpoint.is_some());
                let is_stopped = is_at_breakpoint && !taken.released.is_empty();
                if is_stopped || taken.released.len() == MAX_STEPS {
                    return Ok(false);
                }
                match self.stepped_by()?.release(None) {
                    Some(step) => {
                        taken.released.push(step);
                        self.rest().await;
                    }
                    None => self.let_time_pass(within).await?,
                }
            }
            Ok(true)
        };
        let outcome: Result<Result<bool, StepError>, _> =
            self.for_handles.time.real.timeout(within, stepping).await;
        // Whoever let time pass is gone, perhaps before they could hold it again.
        self.hold_on().await?;
        taken.reached = outcome.unwrap_or(Ok(false))?;
        if !taken.reached {
            taken.instead = self.instead_of(&condition, client).await;
        }
        Ok(taken)
    }

    fn next_held(&self) -> Result<Option<HeldStep>, StepError> {
        Ok(self.stepped_by()?.first_held())
    }

    /// Until nothing moves, or it takes too long.
    async fn rest(&self) {
        let _ = self.for_handles.time.real.timeout(REST, self.clock.work().idle()).await;
    }

    /// Nobody is held: time passes until somebody is, for so long in real time.
    async fn let_time_pass(&self, within: Duration) -> Result<(), StepError> {
        let gate = self.stepped_by()?;
        let real = &self.for_handles.time.real;
        let _ = real.timeout(within, self.until_somebody_is_held(gate)).await;
        self.hold_on().await
    }

    /// Holds everybody again, unless somebody has let all go on meanwhile: that is the last word.
    async fn hold_on(&self) -> Result<(), StepError> {
        if self.stepped_by()?.is_closed() { self.hold().await } else { Ok(()) }
    }

    async fn until_somebody_is_held(&self, gate: &Gate) {
        if !self.clock.is_stepped() {
            self.clock.go_on();
            return gate.until_held().await;
        }
        let settle = Settle::new();
        while self.settle(&settle).await.is_ok() && gate.first_held().is_none() {
            match self.clock.next_wake() {
                Some(after) => self.clock.advance(after),
                None => gate.until_held().await,
            }
        }
    }
}
