//! Units: the steps that belong together, as spans do in other systems. A request with all that its filters
//! and the store made of it, a key's round through its queue and its controller, an attempt of the
//! scheduler, a sync of a pod's worker.

use std::collections::HashMap;

use crate::recorded::StepId;
use crate::step::Step;
use crate::trace::TraceStep;

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// What a client asked to know what is served, one question after the other.
    Discovery,
    /// A request, with the watches that its writes reached.
    Request,
    /// A key in its queue, and its reconcile.
    Reconcile,
    /// An attempt to schedule a pod.
    Attempt,
    /// A sync of a pod's worker in its kubelet.
    Sync,
    /// An Event that people are told; its way through the apiserver is a request of its own.
    Event,
    /// A step whose beginning is not remembered.
    Other,
}

/// Steps that belong together.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    /// What it is.
    pub kind: UnitKind,
    /// The unit that led to it, as a place among all.
    pub parent: Option<usize>,
    /// The one that it begins with, then the others in the order in which they happened: a watch may have
    /// been faster than the writer.
    pub steps: Vec<&'a TraceStep>,
}

impl<'a> Unit<'a> {
    /// The step that it begins with.
    pub fn first(&self) -> &'a TraceStep {
        self.steps[0]
    }

    /// How a request ended that came to nothing: the status, and what was said.
    pub fn refusal(&self) -> Option<(u16, &'a str)> {
        self.steps.iter().find_map(|step| match &step.step {
            Step::Refused { code, why, .. } => Some((*code, &**why)),
            _ => None,
        })
    }

    /// Who asked, as far as anybody found out.
    pub fn who(&self) -> &'a str {
        let mut known = "somebody unknown";
        for step in &self.steps {
            match &step.step {
                Step::Authenticated { user, .. } if !user.is_empty() => known = user,
                Step::Impersonated { acting, .. } => known = acting,
                _ => {}
            }
        }
        known
    }

    /// Whether a person asks for it, be it in this process, as by `kubarium up -f`. Who comes from outside
    /// may have asked before what is served, which need not be part of this story.
    pub(super) fn is_persons(&self) -> bool {
        let Step::RequestReceived { user, .. } = &self.first().step else { return false };
        (user.is_empty() || self.first().cause.is_none()) && !user.starts_with("system:")
    }

    /// The time of its last step.
    pub fn until(&self) -> u64 {
        self.steps.iter().map(|step| step.at_microseconds).max().unwrap_or_default()
    }
}

/// What a step begins; none of what belongs to the step that led to it.
fn begins(step: &Step) -> Option<UnitKind> {
    match step {
        Step::RequestReceived { .. } => Some(UnitKind::Request),
        Step::Enqueued { .. } => Some(UnitKind::Reconcile),
        Step::SchedulingAttempt { .. } => Some(UnitKind::Attempt),
        Step::PodWorkerSync { .. } => Some(UnitKind::Sync),
        Step::EventRecorded { .. } => Some(UnitKind::Event),
        _ => None,
    }
}

/// What a step makes a unit that it cannot be part of: a reconcile of a key that nobody put into a queue, a
/// sandbox that is stopped because its pod is gone.
fn begins_beside(step: &Step, of: UnitKind) -> Option<UnitKind> {
    let kind = match step {
        Step::Discovered { .. } => UnitKind::Discovery,
        Step::ReconcileStarted { .. } => UnitKind::Reconcile,
        Step::PodPrepared { .. }
        | Step::SandboxCreated { .. }
        | Step::ImagePulled { .. }
        | Step::ContainerCreated { .. }
        | Step::ContainerStarted { .. }
        | Step::ContainerExited { .. }
        | Step::SandboxStopped { .. } => UnitKind::Sync,
        _ => return None,
    };
    (kind != of).then_some(kind)
}

/// All units of a trace, in the order of their first steps.
pub fn units(steps: &[TraceStep]) -> Vec<Unit<'_>> {
    let mut found =
        UnitSearch { steps, places: places(steps), of: vec![None; steps.len()], units: Vec::new() };
    for at in 0..steps.len() {
        found.place(at);
    }
    found.finish()
}

fn places(steps: &[TraceStep]) -> HashMap<StepId, usize> {
    steps.iter().enumerate().map(|(at, step)| (step.id, at)).collect()
}

struct UnitSearch<'a> {
    steps: &'a [TraceStep],
    places: HashMap<StepId, usize>,
    /// The unit of each step, once it is known.
    of: Vec<Option<usize>>,
    units: Vec<Unit<'a>>,
}

impl<'a> UnitSearch<'a> {
    /// Finds out the unit of a step. A cause may come after its effect, when a watch was faster than the
    /// writer: so the way back is walked first.
    fn place(&mut self, at: usize) {
        let mut way = vec![at];
        while let Some(before) = way.last().and_then(|at| self.cause(*at)) {
            let is_known = self.of[before].is_some();
            // Nothing is its own cause; a record that says so is not followed for ever.
            if is_known || way.len() > self.steps.len() {
                break;
            }
            way.push(before);
        }
        for at in way.into_iter().rev() {
            if self.of[at].is_none() {
                let led_by = self.cause(at).and_then(|before| self.of[before]);
                self.of[at] = Some(self.join(at, led_by));
            }
        }
    }

    fn cause(&self, at: usize) -> Option<usize> {
        self.places.get(&self.steps[at].cause?).copied().filter(|before| *before != at)
    }

    fn join(&mut self, at: usize, led_by: Option<usize>) -> usize {
        let step = &self.steps[at].step;
        let of = led_by.map(|unit| self.units[unit].kind);
        let beside = begins_beside(step, of.unwrap_or(UnitKind::Other));
        match (begins(step).or(beside), led_by) {
            (None, Some(unit)) => unit,
            (kind, parent) => {
                let kind = kind.unwrap_or(UnitKind::Other);
                self.units.push(Unit { kind, parent, steps: Vec::new() });
                self.units.len() - 1
            }
        }
    }

    /// In the order of their first steps, with their steps in order.
    fn finish(mut self) -> Vec<Unit<'a>> {
        let steps = self.steps;
        for (step, unit) in steps.iter().zip(&self.of) {
            self.units[unit.expect("each step was placed")].steps.push(step);
        }
        for unit in &mut self.units {
            let beginning = unit.steps.iter().position(|step| begins(&step.step) == Some(unit.kind));
            unit.steps[..=beginning.unwrap_or(0)].rotate_right(1);
        }
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(|at| self.units[*at].first().id);
        let mut new_places = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            new_places[*old] = new;
        }
        let moved = |unit: &Unit<'a>| Unit { parent: unit.parent.map(|old| new_places[old]), ..unit.clone() };
        order.iter().map(|old| moved(&self.units[*old])).collect()
    }
}
