//! `Profiler`: what the processor's time goes to while somebody looks.
//!
//! Upstream's `/debug/pprof/profile` is Go's: a signal interrupts each thread a hundred times a second and
//! reads its stack. Here nothing is interrupted and no stack is read, which a program without symbols could
//! not tell anyway. Whatever runs under a clock is polled through `Tracked`, and each poll is timed by the
//! processor time of its thread. Within a poll, [`frame`] says what it is for.
//!
//! Where nobody looks it costs a look at one flag a poll, and at one variable of the thread a frame.

use std::cell::RefCell;
use std::cmp::Ordering as Order;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use sync::Mutex;

/// Of how many different stacks is told; the time of any other is [`OTHERS`]'.
const MAX_STACKS: usize = 4096;
/// What stacks are together that are too many.
const OTHERS: &str = "(too many different stacks)";

/// Somebody has a profile taken already, of whom there is one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cpu profiling already in use")]
pub struct AlreadyProfiled;

/// What the processor's time went to, of all that shares a clock.
#[derive(Debug, Clone, Default)]
pub struct CpuProfile {
    /// By stack, in the order of their names.
    pub shares: Vec<CpuShare>,
    /// How long was looked, in real time.
    pub elapsed: Duration,
    /// Processor time of the process that is nobody's here: of threads that poll nothing, of the runtime,
    /// of other clusters.
    pub elsewhere: Duration,
}

/// What one stack took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuShare {
    /// What ran, the outermost first: a task, and what it did.
    pub stack: Vec<FrameName>,
    /// Without what is deeper.
    pub cpu: Duration,
    /// How often it was polled, or entered.
    pub polls: u64,
}

/// What runs: a name that is given, or the path of a future's type.
#[derive(Debug, Clone)]
pub enum FrameName {
    /// Known when this was compiled.
    Static(&'static str),
    /// Made up while it runs.
    Shared(Arc<str>),
}

/// The profile of one clock, while it is taken.
#[derive(Debug, Default)]
pub(crate) struct Profiler {
    is_on: AtomicBool,
    /// Bound: [`MAX_STACKS`] and one.
    shares: Mutex<BTreeMap<Vec<FrameName>, CpuTaken>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CpuTaken {
    cpu: Duration,
    polls: u64,
}

/// A profile is being taken, until this is dropped.
#[must_use = "the profile ends when this is dropped"]
#[derive(Debug)]
pub struct Profiling {
    profiler: Arc<Profiler>,
    since: Instant,
    cpu: Duration,
}

impl Profiling {
    /// Looks for so long, in real time whatever the clock. Nothing is at work for it.
    pub async fn look_for(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Ends it, and tells what it has seen.
    #[must_use]
    pub fn end(self) -> CpuProfile {
        // First, so that nothing is noted that nobody hears of.
        self.profiler.is_on.store(false, Ordering::SeqCst);
        let taken = std::mem::take(&mut *self.profiler.shares.lock());
        let shares = taken.into_iter().map(|(stack, CpuTaken { cpu, polls })| CpuShare { stack, cpu, polls });
        let shares: Vec<CpuShare> = shares.collect();
        let here: Duration = shares.iter().map(|share| share.cpu).sum();
        let elsewhere = process_time().saturating_sub(self.cpu).saturating_sub(here);
        CpuProfile { shares, elapsed: self.since.elapsed(), elsewhere }
    }
}

impl Drop for Profiling {
    fn drop(&mut self) {
        self.profiler.is_on.store(false, Ordering::SeqCst);
    }
}

impl Profiler {
    /// See [`super::Clock::profile`].
    pub(crate) fn begin(self: &Arc<Profiler>) -> Result<Profiling, AlreadyProfiled> {
        if self.is_on.swap(true, Ordering::SeqCst) {
            return Err(AlreadyProfiled);
        }
        self.shares.lock().clear();
        Ok(Profiling { profiler: self.clone(), since: Instant::now(), cpu: process_time() })
    }

    /// One more: what comes when there are too many is counted together.
    fn add(&self, stack: Vec<FrameName>, cpu: Duration) {
        let mut shares = self.shares.lock();
        let is_too_many = shares.len() >= MAX_STACKS && !shares.contains_key(&stack);
        let stack = if is_too_many { vec![FrameName::Static(OTHERS)] } else { stack };
        let taken = shares.entry(stack).or_default();
        taken.cpu += cpu;
        taken.polls += 1;
    }
}

thread_local! {
    /// What is being polled on this thread, the outermost first; empty where nobody looks.
    static OPEN: RefCell<Vec<OpenFrame>> = const { RefCell::new(Vec::new()) };
}

struct OpenFrame {
    names: [Option<FrameName>; 2],
    /// Whose profile it is.
    profiler: Arc<Profiler>,
    began: Duration,
    /// Of that, what deeper frames took.
    deeper: Duration,
}

/// What was entered is left when this is dropped.
pub(crate) struct Entered(());

/// Enters a task's poll: of whom, by the clock's name, and what. None where nobody looks.
pub(crate) fn enter_task(
    profiler: &Arc<Profiler>,
    of: &Option<Arc<str>>,
    task: &FrameName,
) -> Option<Entered> {
    if !profiler.is_on.load(Ordering::Relaxed) {
        return None;
    }
    let of = of.clone().map(FrameName::Shared).filter(|of| of != task);
    let names = if of.is_some() { [of, Some(task.clone())] } else { [Some(task.clone()), None] };
    Some(enter(names, profiler.clone()))
}

/// Enters what is deeper in a poll; none where nobody looks at that poll.
fn enter_deeper(name: &FrameName) -> Option<Entered> {
    let profiler = OPEN.with_borrow(|open| open.last().map(|frame| frame.profiler.clone()))?;
    Some(enter([Some(name.clone()), None], profiler))
}

fn enter(names: [Option<FrameName>; 2], profiler: Arc<Profiler>) -> Entered {
    let frame = OpenFrame { names, profiler, began: thread_time(), deeper: Duration::ZERO };
    OPEN.with_borrow_mut(|open| open.push(frame));
    Entered(())
}

impl Drop for Entered {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|open| {
            let stack = open.iter().flat_map(|frame| frame.names.iter().flatten().cloned()).collect();
            // Whatever was entered later has been left.
            let Some(frame) = open.pop() else { return };
            let took = thread_time().saturating_sub(frame.began);
            if let Some(outer) = open.last_mut() {
                outer.deeper += took;
            }
            let profiler = &frame.profiler;
            if profiler.is_on.load(Ordering::Relaxed) {
                profiler.add(stack, took.saturating_sub(frame.deeper));
            }
        });
    }
}

pin_project! {
    /// A future whose processor time is told apart in a profile; see [`frame`].
    pub struct Framed<F> {
        name: FrameName,
        #[pin]
        future: F,
    }
}

/// What `future` takes of the processor is told under this name in a profile, within whatever polls it.
pub fn frame<F: Future>(name: FrameName, future: F) -> Framed<F> {
    Framed { name, future }
}

/// As [`frame`], of what is done at once.
pub fn frame_of<T>(name: FrameName, work: impl FnOnce() -> T) -> T {
    let _entered = enter_deeper(&name);
    work()
}

/// Whether somebody looks at what is being polled on this thread: else no name need be made up for it.
pub fn is_profiled_here() -> bool {
    OPEN.with_borrow(|open| !open.is_empty())
}

impl<F: Future> Future for Framed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = enter_deeper(this.name);
        this.future.poll(context)
    }
}

impl FrameName {
    /// The path of a type, as of a function or of a future.
    pub fn of_type<T: ?Sized>() -> FrameName {
        FrameName::Static(std::any::type_name::<T>())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        match self {
            FrameName::Static(name) => name,
            FrameName::Shared(name) => name,
        }
    }
}

impl PartialEq for FrameName {
    fn eq(&self, other: &FrameName) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for FrameName {}

impl PartialOrd for FrameName {
    fn partial_cmp(&self, other: &FrameName) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for FrameName {
    fn cmp(&self, other: &FrameName) -> Order {
        self.as_str().cmp(other.as_str())
    }
}

#[cfg(unix)]
fn thread_time() -> Duration {
    time_of(rustix::time::ClockId::ThreadCPUTime)
}

#[cfg(unix)]
fn process_time() -> Duration {
    time_of(rustix::time::ClockId::ProcessCPUTime)
}

#[cfg(unix)]
fn time_of(clock: rustix::time::ClockId) -> Duration {
    Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
}

/// Polls wait for nothing, so that real time is near enough where processor time is not told.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

#[cfg(not(unix))]
fn process_time() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::super::Clock;
    use super::*;

    /// Keeps the processor busy until its thread has had so much more of it.
    fn toil(milliseconds: u64) {
        let end = thread_time() + Duration::from_millis(milliseconds);
        while thread_time() < end {}
    }

    fn share<'a>(profile: &'a CpuProfile, stack: &[&str]) -> Option<&'a CpuShare> {
        profile
            .shares
            .iter()
            .find(|share| share.stack.iter().map(FrameName::as_str).eq(stack.iter().copied()))
    }

    #[tokio::test]
    async fn each_task_is_told_with_what_it_did_and_what_is_deeper_counts_once() {
        let clock = Clock::real();
        let profiling = clock.profile().unwrap();
        assert_eq!(clock.profile().unwrap_err(), AlreadyProfiled);
        let named = clock.named("kube-scheduler");
        named
            .tracked(frame(FrameName::Static("filter"), async {
                toil(3);
                tokio::task::yield_now().await;
                frame_of(FrameName::Shared("plugin".into()), || toil(5));
            }))
            .called("one pod")
            .await;
        clock.spawn(async { toil(2) }).await.unwrap();
        Clock::real().spawn(async { toil(2) }).await.unwrap();
        let profile = profiling.end();
        let outer = share(&profile, &["kube-scheduler", "one pod", "filter"]).unwrap();
        assert!(outer.polls == 2 && outer.cpu >= Duration::from_millis(3), "{profile:?}");
        let inner = share(&profile, &["kube-scheduler", "one pod", "filter", "plugin"]).unwrap();
        assert!(inner.polls == 1 && inner.cpu >= Duration::from_millis(5), "{profile:?}");
        let task = share(&profile, &["kube-scheduler", "one pod"]).unwrap();
        assert!(task.cpu < outer.cpu + inner.cpu, "{profile:?}");
        let by_type =
            profile.shares.iter().filter(|share| share.stack[0].as_str().contains("each_task_is_told"));
        assert_eq!(by_type.count(), 1, "the other clock's is not: {profile:?}");
        assert!(profile.elsewhere >= Duration::from_millis(2), "{profile:?}");
        assert!(!is_profiled_here() && clock.profile().is_ok());
    }

    #[tokio::test]
    async fn who_panics_is_left_and_when_nobody_looks_nothing_is_noted() {
        let clock = Clock::real();
        clock.spawn(async {}).await.unwrap();
        let profiling = clock.profile().unwrap();
        let failed = clock.spawn(frame(FrameName::Static("clumsy"), async { panic!("on purpose") })).await;
        assert!(failed.is_err() && !is_profiled_here());
        let profile = profiling.end();
        assert_eq!(profile.shares.len(), 2, "{profile:?}");
        clock.spawn(async {}).await.unwrap();
        assert!(clock.work.profiler.shares.lock().is_empty());
    }

    #[test]
    fn stacks_that_are_too_many_are_told_together() {
        let profiler = Profiler::default();
        let stack = |number: usize| vec![FrameName::Shared(number.to_string().into())];
        (0..MAX_STACKS + 10).for_each(|number| profiler.add(stack(number), Duration::from_nanos(1)));
        profiler.add(stack(0), Duration::from_nanos(1));
        let shares = profiler.shares.lock();
        assert_eq!(shares.len(), MAX_STACKS + 1);
        assert_eq!(shares[&vec![FrameName::Static(OTHERS)]].polls, 10);
        assert_eq!(shares[&stack(0)].polls, 2);
    }
}
