//! Parts of a trace: of one pod, of one user, since a time, in a lane, writes alone.

use std::collections::{HashMap, HashSet};

use super::lane::Lane;
use super::recorded::StepId;
use super::step::Step;
use super::story::{StageKind, StageOutcome, StoryStage};
use super::trace::{Trace, TraceStep};

/// Which part of a trace somebody wants; all of it by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedSteps {
    /// What happened there alone.
    pub lane: Option<Lane>,
    /// What led to this pod and what came of it; its name, or its key.
    pub pod: Option<String>,
    /// What happened in the last so many microseconds.
    pub since_microseconds: Option<u64>,
    /// What this user asked for and what came of it; the name, or the last part of it.
    pub user: Option<String>,
    /// What was stored, or was refused.
    pub only_writes: bool,
}

impl WantedSteps {
    /// Leaves the steps that are about the pod, the user and the time; times stay what they were. Lanes
    /// and writes are a matter of what is told of them: [`WantedSteps::tells`], [`WantedSteps::shows`].
    pub fn of(&self, trace: &mut Trace) {
        let all = trace.steps.len();
        if let Some(user) = &self.user {
            let by_user = |step: &Step| asked_by(step, user);
            let wanted = Related::of(&trace.steps).requests(by_user);
            trace.steps.retain(|step| wanted.contains(&step.id));
        }
        if let Some(pod) = &self.pod {
            let wanted = Related::of(&trace.steps).around(|step| mentions(step, pod));
            trace.steps.retain(|step| wanted.contains(&step.id));
        }
        if let Some(since) = self.since_microseconds {
            let from = trace.now_microseconds.saturating_sub(since);
            trace.steps.retain(|step| step.at_microseconds >= from);
        }
        trace.left_out += all - trace.steps.len();
    }

    /// Whether a stage is told.
    pub fn tells(&self, stage: &StoryStage) -> bool {
        let is_write =
            stage.kind == StageKind::Store || stage.outcome == StageOutcome::Refused || stage.is_write;
        self.lane.is_none_or(|lane| lane == stage.lane) && (!self.only_writes || is_write)
    }

    /// Whether a step of a component is shown.
    pub fn shows(&self, step: &Step, component: &str) -> bool {
        let is_write = matches!(step, Step::Stored { .. } | Step::Refused { .. });
        self.lane.is_none_or(|lane| lane == Lane::of(component)) && (!self.only_writes || is_write)
    }
}

fn asked_by(step: &Step, user: &str) -> bool {
    let is_it = |name: &str| name == user || name.rsplit(':').next() == Some(user);
    match step {
        Step::RequestReceived { user, .. } | Step::Authenticated { user, .. } => is_it(user),
        Step::Impersonated { user, acting, .. } => is_it(user) || is_it(acting),
        _ => false,
    }
}

fn mentions(step: &Step, pod: &str) -> bool {
    let is_key = |key: &str| key == pod || key.split_once('/').is_some_and(|(_, name)| name == pod);
    let is_name = |name: &str| pod.rsplit('/').next() == Some(name);
    match step {
        Step::Stored { resource, name, namespace, .. } | Step::Refused { resource, name, namespace, .. } => {
            &**resource == "pods" && is_name(name) && is_key(&format!("{namespace}/{name}"))
        }
        Step::WatchDelivered { resource, key, .. } | Step::InformerUpdated { resource, key, .. } => {
            &**resource == "pods" && is_key(key)
        }
        Step::SchedulingAttempt { pod: key } | Step::PodWorkerSync { pod: key, .. } => is_key(key),
        Step::SandboxStopped { pod: key, .. } | Step::EventRecorded { object: key, .. } => is_key(key),
        _ => false,
    }
}

/// The steps of a trace with their causes, in both directions.
struct Related<'a> {
    steps: &'a [TraceStep],
    by_id: HashMap<StepId, &'a TraceStep>,
    effects: HashMap<StepId, Vec<StepId>>,
}

impl<'a> Related<'a> {
    fn of(steps: &'a [TraceStep]) -> Related<'a> {
        let mut effects: HashMap<StepId, Vec<StepId>> = HashMap::new();
        for step in steps {
            if let Some(cause) = step.cause {
                effects.entry(cause).or_default().push(step.id);
            }
        }
        Related { steps, by_id: steps.iter().map(|step| (step.id, step)).collect(), effects }
    }

    /// The steps that `is_it` finds, all that led to them, and all that came of them.
    fn around(&self, is_it: impl Fn(&Step) -> bool) -> HashSet<StepId> {
        let found: Vec<&TraceStep> = self.steps.iter().filter(|step| is_it(&step.step)).collect();
        let mut wanted = self.after(found.iter().map(|step| step.id).collect());
        for step in found {
            let mut before = step.cause;
            while let Some(cause) = before.and_then(|id| self.by_id.get(&id)) {
                wanted.insert(cause.id);
                before = cause.cause.filter(|id| *id < cause.id);
            }
        }
        wanted
    }

    /// The requests of the steps that `is_it` finds, and all that came of them.
    fn requests(&self, is_it: impl Fn(&Step) -> bool) -> HashSet<StepId> {
        self.after(
            self.steps.iter().filter(|step| is_it(&step.step)).map(|step| self.request(step)).collect(),
        )
    }

    /// The request that a step of it belongs to; the step itself where that is not known.
    fn request(&self, step: &TraceStep) -> StepId {
        let mut at = step;
        while !matches!(at.step, Step::RequestReceived { .. }) {
            match at.cause.filter(|id| *id < at.id).and_then(|id| self.by_id.get(&id)) {
                Some(before) => at = before,
                None => return step.id,
            }
        }
        at.id
    }

    /// These, and all that came of them.
    fn after(&self, mut pending: Vec<StepId>) -> HashSet<StepId> {
        let mut followed = HashSet::new();
        while let Some(id) = pending.pop() {
            if followed.insert(id) {
                pending.extend(self.effects.get(&id).into_iter().flatten());
            }
        }
        followed
    }
}
