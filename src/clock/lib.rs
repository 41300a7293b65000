//! Time for one cluster: real, or stepped by hand in a test. Nothing else reads or waits for time. And
//! whether anything goes on: time may be stepped when nothing does.
//!
//! Upstream's `k8s.io/utils/clock`. Kubernetes' components take a clock so that a test can own time; here
//! every component of a cluster shares one, so that a stepped cluster is deterministic as a whole. Tokio's
//! own paused time is not used: it is per runtime, and one runtime may hold many clusters.

#![warn(missing_docs, unreachable_pub)]

mod beats;
mod changes;
mod disorder;
mod exact;
mod limits;
mod live;
mod pauses;
mod profile;
mod pulses;
mod stepped;
mod tracked;
mod waits;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::task::JoinHandle;

pub use exact::Exact;
pub use live::{LiveTask, TaskState};
pub use profile::{
    AlreadyProfiled, CpuProfile, CpuShare, FrameName, Framed, Profiling, frame, frame_of, is_profiled_here,
};
pub use stepped::Wake;
pub use tracked::{Tracked, yield_now};
pub use waits::{RuntimeWaits, WorkerWaits};
pub use work::{Activity, Busy};

use stepped::{Manner, Stepped};

/// Who waits for no longer on the machine's clock is at work: the next step of a container that starts, a
/// retry after a conflict. Longer waits are time that passes.
pub const SOON: Duration = Duration::from_millis(100);

/// The waited-for future did not finish within its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("timed out")]
pub struct Elapsed;

/// A cluster's clock. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Clock {
    source: TimeSource,
    work: Arc<Activity>,
    /// Who waits by this handle of it.
    name: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum TimeSource {
    /// The machine's wall clock is wrong by so much.
    Real {
        start: Instant,
        faster: u32,
        off: TimeDelta,
    },
    Stepped(Arc<Stepped>),
}

/// Later by `delay`; the end of time when that is later still.
pub fn after(time: DateTime<Utc>, delay: Duration) -> DateTime<Utc> {
    let delta = TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX);
    time.checked_add_signed(delta).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

impl Clock {
    /// The machine's clock.
    pub fn real() -> Clock {
        Clock::faster(1)
    }

    /// The machine's clock from now on, so many times as fast; 0 is 1.
    pub fn faster(times: u32) -> Clock {
        Clock::of(TimeSource::Real { start: Instant::now(), faster: times.max(1), off: TimeDelta::zero() })
    }

    /// The clock of a machine whose wall clock is ahead by so much, or behind. It goes as fast as others.
    pub fn off_by(off: TimeDelta) -> Clock {
        Clock::of(TimeSource::Real { start: Instant::now(), faster: 1, off })
    }

    /// A clock that stands at `start` until [`Clock::advance`] moves it.
    pub fn stepped(start: DateTime<Utc>) -> Clock {
        Clock::of(TimeSource::Stepped(Arc::new(Stepped::new(start))))
    }

    fn of(source: TimeSource) -> Clock {
        Clock { source, work: Arc::default(), name: None }
    }

    /// This clock for somebody: who waits by it is called so in [`Clock::next_waker`].
    #[must_use]
    pub fn named(&self, name: impl Into<Arc<str>>) -> Clock {
        Clock { name: Some(name.into()), ..self.clone() }
    }

    /// A clock that goes on by itself from where this one stands: of a stepped one, with nobody who sleeps by
    /// it yet. Both count their time from the same beginning, and what goes on under one is not the other's.
    pub fn fork(&self) -> Clock {
        let source = match &self.source {
            TimeSource::Stepped(stepped) => TimeSource::Stepped(Arc::new(stepped.fork())),
            real @ TimeSource::Real { .. } => real.clone(),
        };
        Clock { source, work: Arc::new(Activity::after(&self.work.pauses)), name: None }
    }

    /// Whether a test steps it.
    pub fn is_stepped(&self) -> bool {
        matches!(self.source, TimeSource::Stepped(_))
    }

    /// Wall time, as it appears in timestamps.
    pub fn now(&self) -> DateTime<Utc> {
        match &self.source {
            TimeSource::Real { faster: 1, off, .. } => {
                let now = DateTime::<Utc>::from(self.work.pauses.now());
                now.checked_add_signed(*off).unwrap_or(now)
            }
            TimeSource::Real { start, faster, .. } => {
                let ahead = self.work.pauses.since(*start) * (faster - 1);
                after(DateTime::<Utc>::from(self.work.pauses.now()), ahead)
            }
            TimeSource::Stepped(stepped) => stepped.now(),
        }
    }

    /// The machine's own time, whatever this clock says: for what is shown to those who live by that.
    pub fn machine_now(&self) -> DateTime<Utc> {
        DateTime::from(SystemTime::now())
    }

    /// Whether a year of it is a year of the machine's, be it ahead or behind.
    pub fn goes_as_the_machine(&self) -> bool {
        matches!(self.source, TimeSource::Real { faster: 1, .. })
    }

    /// Time since this clock was made; never goes back. For measuring and for deadlines.
    pub fn elapsed(&self) -> Duration {
        match &self.source {
            TimeSource::Real { start, faster, .. } => self.work.pauses.since(*start) * *faster,
            TimeSource::Stepped(stepped) => stepped.elapsed(),
        }
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        let mut at_work = self.busy_if_soon(duration);
        self.wait(duration, &mut at_work).await;
    }

    /// On the machine's clock what is due soon comes before anybody could do something else: it is under way.
    fn busy_if_soon(&self, duration: Duration) -> Option<Busy> {
        (!self.is_stepped() && duration <= SOON).then(|| self.busy())
    }

    async fn wait(&self, duration: Duration, at_work: &mut Option<Busy>) {
        match &self.source {
            TimeSource::Real { faster, .. } => self.wait_on_machine(duration / *faster, at_work).await,
            TimeSource::Stepped(stepped) => {
                stepped.sleep_until(&self.name, Manner::Due, |now| now.saturating_add(duration)).await;
            }
        }
    }

    /// By the machine's clock, and for as long again as this one was held meanwhile. Who waits out a pause is
    /// not at work.
    async fn wait_on_machine(&self, mut left: Duration, at_work: &mut Option<Busy>) {
        let pauses = &self.work.pauses;
        let (is_due, mut lost) = (left.is_zero(), pauses.lost());
        loop {
            tokio::time::sleep(left).await;
            if pauses.is_on() && !is_due {
                let was_at_work = at_work.take().is_some();
                pauses.until_over().await;
                *at_work = was_at_work.then(|| self.busy());
            }
            left = pauses.lost().saturating_sub(lost);
            if is_due || left.is_zero() {
                return;
            }
            lost += left;
        }
    }

    /// Waits until [`Clock::elapsed`] has reached `deadline`.
    pub async fn sleep_until(&self, deadline: Duration) {
        self.sleep_so(Manner::Due, deadline).await;
    }

    /// As [`Clock::sleep_until`], of whoever looks again and again at what is stored, and would find nothing
    /// new as long as nothing has changed: [`Clock::step`] then goes on without them, and they look when time
    /// stops next.
    pub async fn look_until(&self, deadline: Duration) {
        self.sleep_so(Manner::Look, deadline).await;
    }

    /// As [`Clock::look_until`], after so long.
    pub async fn look_after(&self, pause: Duration) {
        self.look_until(self.elapsed().saturating_add(pause)).await;
    }

    /// As [`Clock::sleep_until`], of whoever does what may be late while nothing else happens: time is not
    /// stopped for them by [`Clock::step`].
    pub async fn idle_until(&self, deadline: Duration) {
        self.sleep_so(Manner::Idle, deadline).await;
    }

    async fn sleep_so(&self, manner: Manner, deadline: Duration) {
        match &self.source {
            TimeSource::Real { .. } => self.sleep(deadline.saturating_sub(self.elapsed())).await,
            TimeSource::Stepped(stepped) => stepped.sleep_until(&self.name, manner, |_| deadline).await,
        }
    }

    /// As [`Clock::timeout`], between two of many times at which somebody says that `of` is there, as in the
    /// renewal of a Lease. When [`Clock::step`] leaves out such times, the last of them comes, before
    /// anything else does.
    pub async fn timeout_of_beat<F: Future>(
        &self,
        of: &Arc<str>,
        period: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        let TimeSource::Stepped(stepped) = &self.source else { return self.timeout(period, future).await };
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = stepped.beat(&self.name, of, period) => Err(Elapsed),
        }
    }

    /// Whether somebody waits to say again that `of` is there: as seldom as time stops, and yet in time. On
    /// the machine's clock one has to look.
    pub fn is_beating(&self, of: &str) -> bool {
        matches!(&self.source, TimeSource::Stepped(stepped) if stepped.is_beating(of))
    }

    /// Something was written: those who wait by [`Clock::look_until`] may find something new, unless it was a
    /// beat that wrote.
    pub fn note_change(&self) {
        if let TimeSource::Stepped(stepped) = &self.source {
            stepped.note_change();
        }
    }

    /// Something has changed that may not be written: those who wait by [`Clock::look_until`] are to look.
    pub fn stir(&self) {
        if let TimeSource::Stepped(stepped) = &self.source {
            stepped.stir();
        }
    }

    /// As long as this is held no time is left out by [`Clock::step`], and everybody comes at theirs.
    pub fn exact(&self) -> Exact {
        Exact::new(match &self.source {
            TimeSource::Real { .. } => None,
            TimeSource::Stepped(stepped) => Some(stepped.clone()),
        })
    }

    /// Blocks the calling thread, in real time whatever the clock: for what only the operating system can say
    /// when it is done, such as another process letting go of a file. Never within a task.
    pub fn block_thread(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Runs `future` for at most `duration`.
    pub async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Result<F::Output, Elapsed> {
        let mut at_work = None;
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = self.wait(duration, &mut at_work) => Err(Elapsed),
        }
    }

    /// Time stands until [`Clock::go_on`], for all who share this clock: what they wait for comes later by as
    /// much, and no timestamp tells of it. A stepped clock stands anyway, and says that it is held.
    pub fn hold(&self) {
        self.work.pauses.begin();
    }

    /// Time goes on from where it was held.
    pub fn go_on(&self) {
        self.work.pauses.end();
    }

    /// Returns when it is not held.
    pub async fn going(&self) {
        self.work.pauses.until_over().await;
    }

    /// Whether it is held.
    pub fn is_held(&self) -> bool {
        self.work.pauses.is_on()
    }

    /// Whether anything goes on.
    pub fn work(&self) -> &Activity {
        &self.work
    }

    /// Something goes on for as long as this is held: what no task is awake for, as work on another thread.
    pub fn busy(&self) -> Busy {
        self.work.begin()
    }

    /// Begins to note what the processor's time goes to under this clock. It says nothing of polls that have
    /// begun before.
    ///
    /// # Errors
    /// Somebody does already.
    pub fn profile(&self) -> Result<Profiling, AlreadyProfiled> {
        self.work.profiler.begin()
    }

    /// Lets all others run, sockets too, and goes on. Unlike after tokio's own, something goes on meanwhile.
    pub async fn yield_now(&self) {
        let _at_work = self.busy();
        tokio::task::yield_now().await;
    }

    /// From now on who is woken under this clock goes on in an order that is drawn from a seed, and not in
    /// that of waking: another one that a real cluster might have, and on one thread the same each time.
    pub fn disorder(&self, seed: u64) {
        self.work.disorder.begin(seed);
    }

    /// Something goes on whenever this future is awake: from being woken to being found waiting.
    pub fn tracked<F: Future>(&self, future: F) -> Tracked<F> {
        Tracked::new(future, &self.work, &self.name)
    }

    /// Runs a task; something goes on whenever it is awake.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        tokio::spawn(self.tracked(future))
    }

    /// Moves a stepped clock forward and wakes, in order of their deadlines, all whose time has come.
    ///
    /// # Panics
    /// On a real clock: only a test steps time.
    pub fn advance(&self, duration: Duration) {
        let TimeSource::Stepped(stepped) = &self.source else {
            panic!("only a stepped clock can be advanced");
        };
        stepped.advance(duration);
    }

    /// Moves a stepped clock forward to what is next, or by `most` when that is nearer; says whether there
    /// was something. Nothing is to be at work. Unlike [`Clock::advance`] by [`Clock::next_wake`] it leaves
    /// out times at which nothing would be found and of which nothing would be left, so that a month in which
    /// little happens has few steps.
    ///
    /// # Panics
    /// On a real clock, as [`Clock::advance`].
    pub fn step(&self, most: Duration) -> bool {
        let TimeSource::Stepped(stepped) = &self.source else {
            panic!("only a stepped clock can be stepped");
        };
        stepped.step(most)
    }

    /// How long until the next sleeper of a stepped clock is due: what a test advances by to let one thing
    /// happen.
    pub fn next_wake(&self) -> Option<Duration> {
        self.next_waker().map(|wake| wake.after)
    }

    /// When the next sleepers of a stepped clock are due, and who they are.
    pub fn next_waker(&self) -> Option<Wake> {
        match &self.source {
            TimeSource::Real { .. } => None,
            TimeSource::Stepped(stepped) => stepped.next_wake(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stepped_clock_moves_only_when_told() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(10)).await }
        });
        while clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(9));
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(1)));
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.now().timestamp(), 10);
        assert!(clock.machine_now() - clock.now() > TimeDelta::days(365) && !clock.goes_as_the_machine());
    }

    #[test]
    fn a_wrong_clock_tells_another_time_and_goes_as_fast() {
        let (right, ahead) = (Clock::real(), Clock::off_by(TimeDelta::minutes(10)));
        let apart = ahead.now() - right.now();
        assert!((TimeDelta::minutes(9)..TimeDelta::minutes(11)).contains(&apart), "{apart}");
        assert!(ahead.elapsed() < Duration::from_secs(60));
        assert!(ahead.machine_now() - right.now() < TimeDelta::minutes(1));
        assert!(ahead.goes_as_the_machine() && !Clock::faster(2).goes_as_the_machine());
        let never = Clock::off_by(TimeDelta::MAX);
        assert!(never.now() - right.now() < TimeDelta::minutes(1), "what no time can be is none");
    }

    #[tokio::test]
    async fn a_fork_goes_on_from_where_its_parent_stands_and_wakes_nobody_there() {
        let parent = Clock::stepped(DateTime::UNIX_EPOCH);
        parent.advance(Duration::from_secs(5));
        let mut sleeper = std::pin::pin!(parent.sleep(Duration::from_secs(1)));
        assert!(futures::poll!(&mut sleeper).is_pending());
        let fork = parent.fork();
        assert_eq!((fork.elapsed(), fork.next_wake()), (Duration::from_secs(5), None));
        fork.advance(Duration::from_secs(60));
        assert!(futures::poll!(&mut sleeper).is_pending());
        assert_eq!((parent.now().timestamp(), fork.now().timestamp()), (5, 65));
        assert!(!Clock::real().fork().is_stepped());
    }

    #[tokio::test]
    async fn the_end_of_time_is_reached_and_not_passed() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        for _ in 0..2 {
            clock.advance(Duration::MAX);
            assert_eq!(clock.now(), DateTime::<Utc>::MAX_UTC);
        }
        // There is no later.
        clock.sleep(Duration::MAX).await;
    }

    /// Two who are woken by the same step of time, and who of them came first.
    async fn first_of_two(seed: Option<u64>) -> u8 {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        seed.into_iter().for_each(|seed| clock.disorder(seed));
        let (sender, mut came) = tokio::sync::mpsc::unbounded_channel();
        for number in [1, 2] {
            let (clock, sender) = (clock.clone(), sender.clone());
            let sleeper = clock.clone();
            clock.spawn(async move {
                sleeper.sleep(Duration::from_secs(1)).await;
                let _ = sender.send(number);
            });
        }
        clock.work().idle().await;
        clock.advance(Duration::from_secs(1));
        clock.work().idle().await;
        came.recv().await.unwrap()
    }

    #[tokio::test]
    async fn in_disorder_either_of_two_comes_first_and_for_one_seed_the_same() {
        assert_eq!(first_of_two(None).await, 1);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let first = first_of_two(Some(seed)).await;
            assert_eq!(first_of_two(Some(seed)).await, first, "{seed}");
            seen.insert(first);
        }
        assert_eq!(seen.len(), 2);
    }

    #[tokio::test]
    async fn a_deadline_is_absolute() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let deadline = clock.elapsed() + Duration::from_secs(10);
        let waiting = clock.sleep_until(deadline);
        clock.advance(Duration::from_secs(9));
        let mut waiting = std::pin::pin!(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(1)));
        clock.advance(Duration::from_secs(1));
        waiting.await;
        clock.sleep_until(Duration::from_secs(3)).await;
    }
}
