//! `Gate`: holds a cluster between two steps, for whoever looks at one after the other.
//!
//! Whoever is about to take a step comes by here. While the gate is open and no breakpoint is set that costs
//! a relaxed load. Closed, it holds everybody who comes, and with them the cluster's clock: time passes for
//! nobody, and who is let through works until the next step. A breakpoint closes it.
//!
//! Bounds: held is who waits anyway (requests, workers, informers), each once. Of breakpoints there are at
//! most [`MAX_BREAKPOINTS`]; one more is refused. Of those who gave up the last [`MAX_GONE`] are told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clock::{Busy, Clock};
use sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot, watch};

use super::breakpoint::Breakpoint;
use super::held::HeldStep;
use super::recorded::StepId;

/// So many breakpoints there may be at once.
pub const MAX_BREAKPOINTS: usize = 64;
/// Of so many who gave up it is told.
pub const MAX_GONE: usize = 16;

/// There are as many breakpoints as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {MAX_BREAKPOINTS} breakpoints already, which is as many as there may be; remove one")]
pub struct TooManyBreakpoints;

/// What holds one cluster.
#[derive(Debug)]
pub struct Gate {
    clock: Clock,
    /// Closed, or with breakpoints: only then anybody looks further.
    is_active: AtomicBool,
    state: Mutex<GateState>,
    arrived: Notify,
    /// How often anything has changed of what there is to tell.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    /// The cluster ends: nobody is held any more.
    is_over: bool,
    breakpoints: BTreeMap<Arc<str>, Breakpoint>,
    last_number: u64,
    held: BTreeMap<u64, (HeldStep, oneshot::Sender<Busy>)>,
    gone: VecDeque<HeldStep>,
    /// Requests that are never held, by their first step: those of handles, while they are under way.
    let_through: BTreeSet<StepId>,
}

impl Gate {
    pub(super) fn new(clock: Clock) -> Gate {
        Gate {
            clock,
            is_active: AtomicBool::new(false),
            state: Mutex::default(),
            arrived: Notify::new(),
            changes: watch::Sender::default(),
        }
    }

    /// Whether anybody may be held.
    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Returns when the step may be taken.
    pub(super) async fn pass(&self, step: HeldStep) {
        if let Some(mut waits) = self.enter(step) {
            // A gate that is gone holds nobody.
            let _ = (&mut waits.released).await;
        }
    }

    fn enter(&self, mut step: HeldStep) -> Option<WaitsAtGate<'_>> {
        let mut state = self.lock();
        if state.is_over {
            return None;
        }
        let hit = state.breakpoints.iter().find(|(_, breakpoint)| breakpoint.is_at(&step));
        step.breakpoint = hit.map(|(name, _)| name.clone());
        if step.breakpoint.is_some() {
            self.set(&mut state, true);
        }
        if !state.is_closed {
            return None;
        }
        state.last_number += 1;
        let number = state.last_number;
        let (release, released) = oneshot::channel();
        state.held.insert(number, (HeldStep { number, ..step }, release));
        drop(state);
        self.arrived.notify_waiters();
        self.note_change();
        Some(WaitsAtGate { gate: self, number, released })
    }

    /// What comes of this request is not held, for as long as the answer lives.
    pub fn let_through(&self, request: StepId) -> LetThrough<'_> {
        self.lock().let_through.insert(request);
        LetThrough { gate: self, request }
    }

    pub(super) fn is_let_through(&self, request: StepId) -> bool {
        self.lock().let_through.contains(&request)
    }

    /// From now on everybody is held, and time stands.
    pub fn close(&self) {
        let mut state = self.lock();
        if !state.is_over {
            self.set(&mut state, true);
        }
    }

    /// Everybody goes on, and time does. Breakpoints stay.
    pub fn open(&self) {
        let mut state = self.lock();
        self.set(&mut state, false);
        let held = std::mem::take(&mut state.held);
        drop(state);
        for (_, release) in held.into_values() {
            // Who gave up meanwhile is not let through.
            let _ = release.send(self.clock.busy());
        }
    }

    /// The cluster ends: everybody goes on, and nobody is held any more.
    pub fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.breakpoints.clear();
        drop(state);
        self.open();
    }

    /// Whether everybody is held.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Lets one go on: the one of this number, else who came first.
    pub fn release(&self, number: Option<u64>) -> Option<HeldStep> {
        let mut state = self.lock();
        let number = number.or_else(|| state.held.keys().next().copied())?;
        let (step, release) = state.held.remove(&number)?;
        drop(state);
        self.note_change();
        // Until they are awake something goes on, whoever they are.
        let _ = release.send(self.clock.busy());
        Some(step)
    }

    /// Who is held, in the order in which they came.
    pub fn held(&self) -> Vec<HeldStep> {
        self.lock().held.values().map(|(step, _)| step.clone()).collect()
    }

    /// Who is held longest.
    pub fn first_held(&self) -> Option<HeldStep> {
        self.lock().held.values().next().map(|(step, _)| step.clone())
    }

    /// The last who gave up while they were held: their clients waited no longer.
    pub fn gone(&self) -> Vec<HeldStep> {
        self.lock().gone.iter().cloned().collect()
    }

    /// Of those who gave up until now nothing more is told.
    pub fn forget_gone(&self) {
        self.lock().gone.clear();
    }

    /// Returns when somebody is held.
    pub async fn until_held(&self) {
        loop {
            // Asked for before looking, so that an arrival in between is not missed.
            let arrived = self.arrived.notified();
            if !self.lock().held.is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// How often it has been opened or closed, somebody came or went, or a breakpoint did: who shows it hears
    /// of that, and need not ask from time to time.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn note_change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The breakpoints, by name.
    pub fn breakpoints(&self) -> Vec<(Arc<str>, Breakpoint)> {
        let state = self.lock();
        state.breakpoints.iter().map(|(name, breakpoint)| (name.clone(), breakpoint.clone())).collect()
    }

    /// Adds one, and says what it is called.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub fn add(&self, breakpoint: Breakpoint) -> Result<Arc<str>, TooManyBreakpoints> {
        let name = breakpoint.name();
        let mut state = self.lock();
        if state.breakpoints.len() == MAX_BREAKPOINTS && !state.breakpoints.contains_key(&name) {
            return Err(TooManyBreakpoints);
        }
        state.breakpoints.insert(name.clone(), breakpoint);
        self.look(&state);
        Ok(name)
    }

    /// Takes one away; all without a name. Says how many.
    pub fn remove(&self, name: Option<&str>) -> usize {
        let mut state = self.lock();
        let before = state.breakpoints.len();
        state.breakpoints.retain(|known, _| name.is_some_and(|name| **known != *name));
        self.look(&state);
        before - state.breakpoints.len()
    }

    fn set(&self, state: &mut GateState, is_closed: bool) {
        state.is_closed = is_closed;
        self.look(state);
        if is_closed { self.clock.hold() } else { self.clock.go_on() }
    }

    fn look(&self, state: &GateState) {
        let is_active = state.is_closed || !state.breakpoints.is_empty();
        self.is_active.store(is_active, Ordering::Relaxed);
        self.note_change();
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock()
    }
}

/// Somebody is held; dropped before they were let through, they have given up.
struct WaitsAtGate<'a> {
    gate: &'a Gate,
    number: u64,
    released: oneshot::Receiver<Busy>,
}

impl Drop for WaitsAtGate<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        let Some((step, _)) = state.held.remove(&self.number) else { return };
        if step.stage.is_asked_for() {
            state.gone.truncate(MAX_GONE - 1);
            state.gone.push_front(step);
        }
        drop(state);
        self.gate.note_change();
    }
}

/// A request is not held until this is dropped.
#[must_use = "a request is let through until this is dropped"]
pub struct LetThrough<'a> {
    gate: &'a Gate,
    request: StepId,
}

impl Drop for LetThrough<'_> {
    fn drop(&mut self) {
        self.gate.lock().let_through.remove(&self.request);
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use futures::poll;

    use super::super::{Flow, HeldStage, Step};
    use super::*;

    fn write(name: &str) -> HeldStep {
        HeldStep::in_apiserver(HeldStage::Write, "pods".into(), name.into())
    }

    #[tokio::test]
    async fn who_comes_is_held_with_the_clock_and_let_through_one_by_one() {
        let clock = Clock::real();
        let flow = Flow::new(clock.clone());
        flow.gate(|| panic!("nobody asks where nobody steps")).await;
        let gate = flow.stepping().unwrap();
        gate.close();
        let mut first = std::pin::pin!(flow.gate(|| write("a")));
        let mut second = std::pin::pin!(flow.gate(|| write("b")));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending() && clock.is_held());
        gate.until_held().await;
        assert_eq!(
            gate.release(None).unwrap().to_string(),
            "kube-apiserver: before the write of pods a to etcd"
        );
        first.await;
        assert!(poll!(&mut second).is_pending());
        assert_eq!(gate.release(Some(9)), None);
        gate.open();
        second.await;
        assert!(!clock.is_held() && gate.held().is_empty() && !flow.is_stepped());
    }

    #[tokio::test]
    async fn who_shows_it_hears_of_each_change() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let gate = flow.stepping().unwrap();
        let mut changes = gate.changes();
        let mut heard = |what: &str| {
            assert!(changes.has_changed().unwrap(), "{what}");
            changes.borrow_and_update();
        };
        gate.close();
        heard("closed");
        let mut held = Box::pin(flow.gate(|| write("a")));
        assert!(poll!(&mut held).is_pending());
        heard("somebody came");
        gate.release(None);
        heard("was let go");
        let mut gives_up = Box::pin(flow.gate(|| write("b")));
        assert!(poll!(&mut gives_up).is_pending());
        heard("another came");
        drop(gives_up);
        heard("gave up");
        gate.open();
        heard("opened");
        let at = Breakpoint { stage: HeldStage::Write, of: "pods".into(), object: "".into() };
        gate.add(at).unwrap();
        heard("a breakpoint");
        gate.remove(None);
        heard("none");
        flow.gate(|| write("c")).await;
        assert!(!gate.changes().has_changed().unwrap(), "nobody looks where nobody steps");
    }

    #[tokio::test]
    async fn what_a_handle_asks_for_is_let_through_and_what_comes_of_it_later_is_not() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let received = || Step::RequestReceived { user: "".into(), verb: "create".into(), path: "/".into() };
        let request = flow.record(None, received());
        let cause = flow.record(request.cause(), Step::VALIDATED).cause();
        let gate = flow.stepping().unwrap();
        gate.close();
        let through = gate.let_through(request);
        flow.gate(|| write("a").caused_by(cause)).await;
        let second = flow.record(cause, received()).cause();
        assert!(poll!(Box::pin(flow.gate(|| write("b").caused_by(second)))).is_pending());
        drop(through);
        assert!(poll!(Box::pin(flow.gate(|| write("a").caused_by(cause)))).is_pending());
        assert_eq!(flow.held_up(request).map(|step| step.object), Some("a".into()));
    }

    #[tokio::test]
    async fn a_breakpoint_closes_the_gate_and_holds_what_it_names() {
        let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
        let gate = flow.stepping().unwrap();
        let at = |name: &str| Breakpoint { stage: HeldStage::Write, of: "pods".into(), object: name.into() };
        let name = gate.add(at("b")).unwrap();
        flow.gate(|| write("a")).await;
        let mut held = Box::pin(flow.gate(|| write("b")));
        assert!(poll!(&mut held).is_pending() && gate.is_closed());
        assert_eq!(gate.held()[0].breakpoint, Some(name));
        // Whoever gives up is told of, and of so many alone.
        drop(held);
        for number in 0..MAX_GONE + 3 {
            let mut held = Box::pin(flow.gate(|| write(&number.to_string())));
            assert!(poll!(&mut held).is_pending());
        }
        assert_eq!((gate.held().len(), gate.gone().len(), &*gate.gone()[0].object), (0, MAX_GONE, "18"));
        gate.forget_gone();
        assert_eq!(gate.gone(), []);
        assert_eq!((gate.remove(Some("other")), gate.remove(None)), (0, 1));
        (0..MAX_BREAKPOINTS).for_each(|number| drop(gate.add(at(&number.to_string())).unwrap()));
        assert_eq!(gate.add(at("more")), Err(TooManyBreakpoints));
        assert!(gate.add(at("1")).is_ok(), "it is there already");
        gate.end();
        flow.gate(|| write("b")).await;
        gate.close();
        flow.gate(|| write("b")).await;
    }
}
